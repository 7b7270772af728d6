"""Plans that a model writes down instead of calling the tool."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.tools.plan.plan import MOST_STEPS, TITLE_CHARS
from codeagent_lsp.tools.plan.written_steps import drafted_steps

STYLES = (
    "{n}. {t}",
    "{n}) {t}",
    "  {n}. {t}",
    "- {n}. {t}",
    "- [ ] {n}. {t}",
    "{n}. **{t}**",
    "**{n}. {t}**",
    "**{n}.** {t}",
    "### {n}. {t}",
    "## Step {n}: {t}",
    "Step {n}: {t}",
    "Step {n} - {t}",
    "**Step {n}:** {t}",
    "**Step {n}: {t}**",
    "- **Step {n}**: {t}",
    "STEP {n}. {t}",
    "Phase {n}: {t}",
    "{n}、{t}",
    "步骤 {n}：{t}",
    "步骤{n}: {t}",
    "第 {n} 步：{t}",
    "**第{n}步**：{t}",
    "#### 步骤 {n}：{t}",
)
TITLES = ("Read `calc.py`", "Rename `a` to `b`", "编写测试", "Run the tests")
FRAMES = (
    "{}",
    "Here is the plan.\n\n{}",
    "{}\n\nI begin with the first one.",
    "## Plan\n\n{}\n\n## Risks\n\n1. None\n2. x",
)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("gap", ["\n", "\n\n"])
@pytest.mark.parametrize("frame", FRAMES)
def test_steps_are_read_in_each_style(style: str, gap: str, frame: str) -> None:
    answer = frame.format(gap.join(style.format(n=n, t=t) for n, t in enumerate(TITLES, 1)))
    assert [step.title for step in drafted_steps(answer)] == list(TITLES)


@pytest.mark.parametrize("style", STYLES)
def test_what_stands_below_a_step_describes_it(style: str) -> None:
    lines = [f"{style.format(n=n, t=title)}\n   - in `a.py`\n   - and in `b.py`" for n, title in enumerate(TITLES, 1)]
    steps = drafted_steps("\n".join(lines))
    assert [(step.title, step.description) for step in steps] == [(t, "- in `a.py`\n- and in `b.py`") for t in TITLES]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I would rather not.",
        "1. Only one step",
        "- read\n- write",
        "Which one do you mean?\n\n1. the parser\n2. the lexer\n\nPlease say which?",
        "2. the second\n3. the third",
        "It needs Python 3.11. Version 1.2 will do.\n1.5 times as fast\n2.5 as well",
        "```\n1. a\n2. b\n```",
        "\n".join(f"{n}. step" for n in range(1, MOST_STEPS + 2)),
    ],
)
def test_what_is_no_plan_has_no_steps(answer: str) -> None:
    assert drafted_steps(answer) == ()


@pytest.mark.parametrize(
    "line",
    [
        "1. **Write it**: in `a.py`",
        "**1. Write it**: in `a.py`",
        "### 1. **Write it** — in `a.py`",
        "1) **Write it:** in `a.py`",
    ],
)
def test_what_is_bold_is_the_title(line: str) -> None:
    first, _ = drafted_steps(f"{line}\n{line.replace('1', '2')}")
    assert (first.title, first.description) == ("Write it", "in `a.py`")


def test_a_long_step_has_its_first_sentence_as_title() -> None:
    long = "Write the parser. " + "It takes every form of a date that people write. " * 6
    first, second = drafted_steps(f"1. {long}\n2. Test it")
    assert (first.title, second.title) == ("Write the parser.", "Test it")
    assert first.description.startswith("It takes every form")


@given(st.text(max_size=300))
def test_any_answer_is_read(answer: str) -> None:
    assert all(0 < len(step.title) <= TITLE_CHARS for step in drafted_steps(answer))


@given(st.lists(st.text("a *`.:!1) ", min_size=1, max_size=250), min_size=2, max_size=5))
def test_any_titles_are_kept_in_bounds(titles: list[str]) -> None:
    answer = "\n".join(f"{number}. {title}" for number, title in enumerate(titles, 1))
    assert all(0 < len(step.title) <= TITLE_CHARS for step in drafted_steps(answer))
