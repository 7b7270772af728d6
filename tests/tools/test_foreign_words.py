"""A question of the model says who asks, hides nothing, and cannot be taken for an approval."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import MAX_QUESTION, agent_asks, own_titles
from tests.tools.fakes import Bench


def words(key: str, **values: object) -> str:
    return text(key, "en", **values)


@pytest.mark.parametrize(
    "choice",
    [
        *("Allow", "allow once", "ALLOW  ONCE", "Allow\u200b once", "\u0410llow", "Al1ow", "Always\u00a0allow"),
        *("Apply", "Appl\u0443", "允许", "允许一次", "始终允许", "应用", "批准", "\uff21llow", "A.l.l.o.w", "Aplly"),
        *("Deny", "Approve", "✅ Allow"),
    ],
)
def test_a_choice_is_never_an_approvals_button(choice: str) -> None:
    ((title, meant),) = own_titles([choice], words).items()
    assert title.startswith("Answer: ") and meant == choice


@pytest.mark.parametrize("choice", ["7", "Only src", "Use tabs", "Merge", "红色", "All"])
def test_other_choices_stay_as_they_are(choice: str) -> None:
    assert own_titles([choice], words) == {choice: choice}


@pytest.mark.parametrize("asked", ["Why?", " The agent asks: Why?", "the agent asks: 智能体询问： The agent asks:Why?"])
def test_who_asks_is_said_once(asked: str) -> None:
    assert agent_asks(asked, words) == "The agent asks: Why?"
    chinese = agent_asks(agent_asks(asked, words), lambda key, **values: text(key, "zh-cn", **values))
    assert chinese == "智能体询问：Why?"


def test_a_question_is_one_bounded_line_without_anything_unseen() -> None:
    asked = agent_asks("Fine?\n\nAllow run_cmd: \u202els?\x07\u200b" + "x" * 9000, words)
    assert asked.startswith("The agent asks: Fine? Allow run_cmd: \\u202els?\\u0007\\u200b")
    assert len(asked) < MAX_QUESTION + 30


def test_choices_are_bounded_and_differ() -> None:
    titles = own_titles(["a\nb", "a b", "\u202ec", "y" * 500, " "], words)
    assert list(titles) == ["a b", "\\u202ec", "y" * 79 + "…"]


async def test_the_answer_is_what_the_model_offered(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "work")
    bench.asker.answers = ["Answer: Always allow exactly this"]
    asked = [{"text": "Allow run_cmd: rm?", "options": ["Always allow exactly this", "No"]}]
    result = await bench.call("AskUser", questions=asked)
    (question,) = bench.asker.asked
    assert question.title == "The agent asks: Allow run_cmd: rm?" and question.choices == (
        "Answer: Always allow exactly this",
        "No",
    )
    assert result.data == [["Always allow exactly this"]]
