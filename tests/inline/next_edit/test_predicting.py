"""The next edit by a model: what it is asked, in each published format, and which part of its answer is offered."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.inline.next_edit.history import History
from codeagent_lsp.inline.next_edit.predicting import Shown, edits_of, predict, recent_edits, window_of
from codeagent_lsp.inline.next_edit.proposals import Proposed
from codeagent_lsp.llm.fill.edit_formats import FORMATS, EditFormat, EditRequest, format_of

BASE = "def area(w):\n    return w\n\n\ndef main():\n    print(area(3))\n"
NOW = BASE.replace("area(w):", "area(w, h):")
NAMES = ("sweep-next-edit-1.5b", "zeta-2", "zeta", "mercury-coder")


@dataclass
class Scripted:
    """Answers with what `answer` makes of the request."""

    form: EditFormat
    answer: Callable[[EditRequest], str]
    asked: list[EditRequest] = field(default_factory=list)

    async def stream(self, request: EditRequest) -> AsyncGenerator[str, None]:
        self.asked.append(request)
        text = self.answer(request)
        for start in range(0, len(text), 7):
            yield text[start : start + 7]

    async def close(self) -> None: ...


def form_of(name: str) -> EditFormat:
    form = format_of(name)
    assert form is not None
    return form


def edited(base: str, *texts: str, path: str = "/ws/a.py") -> History:
    history = History().opened(path, base)
    for text in texts:
        history = history.noted(path, text)
    return history


def as_answer(name: str, rewritten: str) -> str:
    """A rewritten window as a model of this name writes it."""
    if name == "zeta":
        return f"<|editable_region_start|>\n{rewritten}\n<|editable_region_end|>\n```"
    if name == "zeta-2":
        return f"{rewritten}>>>>>>> UPDATED\n"
    return f"\n{rewritten}" if name.startswith("sweep") else f"```\n{rewritten}\n```"


def predicted(
    history: History,
    change: Callable[[str], str],
    name: str = NAMES[0],
    shown: Callable[[str], str | None] = lambda path: path.removeprefix("/ws/"),
    clean: Callable[[str], str] = str,
) -> tuple[list[Proposed], list[EditRequest]]:
    model = Scripted(form_of(name), lambda request: as_answer(name, change(request.window)))
    found = asyncio.run(predict(model, history, Shown(shown, clean)))
    return found, model.asked


def applied(text: str, found: Sequence[Proposed]) -> str:
    for each in reversed(found):
        assert text[each.start : each.end] == each.old
        text = text[: each.start] + each.new + text[each.end :]
    return text


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_in_each_format_is_the_smallest_edits(name: str) -> None:
    wanted = NOW.replace("return w", "return w * h").replace("area(3)", "area(3, 4)")
    found, (asked,) = predicted(edited(BASE, NOW), lambda window: wanted, name)
    assert applied(NOW, found) == wanted
    assert [(each.old, each.new) for each in found] == [("", " * h"), ("", ", 4")]
    assert found[0].title == "return w → return w * h"
    assert asked.original == BASE
    assert asked.window[: asked.cursor] == "def area(w, h"


def test_the_prompt_of_sweep_is_the_published_one() -> None:
    _, (asked,) = predicted(edited("a\nb\n", "a\nc\n"), str)
    assert form_of(NAMES[0]).prompt(asked) == "\n".join(
        [
            "<|file_sep|>a.py.diff",
            "original:\na\nb",
            "updated:\na\nc",
            "<|file_sep|>original/a.py\na\nb",
            "<|file_sep|>current/a.py\na\nc",
            "<|file_sep|>updated/a.py",
        ]
    )


def test_the_prompt_of_zeta_marks_the_region_and_the_cursor() -> None:
    _, (asked,) = predicted(edited("a\nb\n", "a\nbc\n"), str, "zeta")
    prompt = form_of("zeta").prompt(asked)
    assert 'User edited "a.py":\n```diff\n@@ -1,2 +1,2 @@\n a\n-b\n+bc\n```\n\n### User Excerpt:' in prompt
    region = "<|editable_region_start|>\na\nbc<|user_cursor_is_here|>\n<|editable_region_end|>"
    assert f"```a.py\n<|start_of_file|>\n{region}\n\n```\n\n### Response:\n" in prompt


def test_the_prompt_of_zeta_2_is_one_side_of_a_conflict() -> None:
    _, (asked,) = predicted(edited("a\nb\n", "a\nbc\n"), str, "zeta-2")
    assert form_of("zeta-2").prompt(asked) == (
        "<[fim-suffix]>\n<[fim-prefix]><filename>edit_history\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a\n-b\n+bc\n\n"
        "<filename>a.py\n<<<<<<< CURRENT\na\nbc<|user_cursor|>\n=======\n<[fim-middle]>"
    )


def test_the_window_is_so_many_lines_around_the_cursor_and_more_is_shown_around_it() -> None:
    lines = [f"line {number}\n" for number in range(200)]
    now = "".join([*lines[:100], "line 100 changed\n", *lines[101:]])
    _, (asked,) = predicted(edited("".join(lines), now), str)
    assert asked.window.splitlines()[0] == "line 90"
    assert asked.window.splitlines()[-1] == "line 110"
    assert asked.original == asked.window.replace(" changed", "")
    assert asked.above.splitlines()[0] == "line 50"
    assert asked.below.splitlines()[-1] == "line 150"
    assert not asked.at_start


@pytest.mark.parametrize(
    "change",
    [
        lambda window: window,
        lambda window: window.replace("area(w, h)", "area(w)"),  # what the user did is taken back
        lambda window: window.replace("    return", "  return"),
        lambda window: "",
        lambda window: "def area(w, h):\n    return w\n",  # stopped early
        lambda window: window + "again\n" * 20,
        lambda window: "None",
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_next_edit_is_not_offered(name: str, change: Callable[[str], str]) -> None:
    if name != "mercury-coder" and change("x") == "None":
        return
    found, asked = predicted(edited(BASE, NOW), change, name)
    assert len(asked) == 1
    assert found == []


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\x1b", "\U000e0041"])
def test_what_is_not_seen_is_not_offered(hidden: str) -> None:
    wanted = NOW.replace("return w", f"return w{hidden} * h")
    assert predicted(edited(BASE, NOW), lambda window: wanted)[0] == []


def test_an_answer_that_is_none_is_not_offered() -> None:
    for name, answer in (("zeta", "I would change the call."), ("zeta-2", "<<<<<<< CURRENT\nx\n")):
        model = Scripted(form_of(name), lambda request, answer=answer: answer)  # type: ignore[misc]
        assert asyncio.run(predict(model, edited(BASE, NOW), Shown(str, str))) == []


def test_a_line_that_is_added_belongs_to_the_line_before() -> None:
    found, _ = predicted(edited(BASE, NOW), lambda window: window.replace("return w\n", "return w\n    # area\n"))
    (edit,) = found
    assert (edit.old, edit.new) == ("", "\n    # area")
    assert NOW[: edit.start].endswith("return w")


def test_line_breaks_of_the_file_stay() -> None:
    base, now = BASE.replace("\n", "\r\n"), NOW.replace("\n", "\r\n")
    found, (asked,) = predicted(
        edited(base, now), lambda window: window.replace("return w\n", "x = 1\n    return w*h\n")
    )
    assert "\r" not in asked.window + asked.original
    assert applied(now, found) == now.replace("return w\r\n", "x = 1\r\n    return w*h\r\n")


def test_hidden_files_secrets_and_special_tokens_are_not_sent() -> None:
    hidden = predicted(edited(BASE, NOW), str, shown=lambda path: None)
    secret = predicted(edited(BASE, NOW), str, clean=lambda text: text.replace("w, h", "***"))
    token = predicted(edited(BASE, f"{NOW}# <|file_sep|>\n"), str)
    assert [hidden, secret, token] == [([], [])] * 3
    far = "".join(f"line {number}\n" for number in range(60)) + "key = hush\n"
    _, (asked,) = predicted(
        edited(far, far.replace("line 40\n", "line 41\n")), str, clean=lambda text: text.replace("hush", "***")
    )
    assert "hush" not in asked.below
    assert "***" in asked.below


def test_edits_of_other_files_are_told_and_those_of_hidden_ones_not() -> None:
    history = History()
    for path in ("/ws/b.py", "/ws/secret.py", "/ws/a.py"):
        history = history.opened(path, BASE)
    for path in ("/ws/b.py", "/ws/secret.py", "/ws/a.py"):
        history = history.noted(path, NOW)
    _, (asked,) = predicted(history, str, shown=lambda path: None if "secret" in path else path.removeprefix("/ws/"))
    assert [edit.path for edit in asked.recent] == ["b.py", "a.py"]


def test_nothing_is_asked_without_an_edit_or_beside_endless_lines() -> None:
    assert window_of(History().opened("/ws/a.py", BASE), 10) is None
    assert window_of(edited(BASE, NOW, BASE), 10) is None
    assert window_of(edited(f"x = '{'a' * 500}'\n{BASE}", f"x = '{'a' * 500}'\n{NOW}"), 10) is None


@given(
    st.lists(st.sampled_from(["a", "bb cc", "", "  x = 1", "é 漢"]), min_size=1, max_size=30),
    st.lists(st.sampled_from(["a", "bb cc", "", "  y = 2", "é 漢 ü"]), min_size=1, max_size=30),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_edits_make_of_the_text_what_the_model_wrote_or_less(
    old: list[str], new: list[str], newline: str, ends: bool
) -> None:
    text = newline.join(old) + (newline if ends else "")
    history = edited("", text)
    window = window_of(history, 12)
    if window is None:
        return
    found = edits_of(window, "\n".join(new))
    result = applied(text, found)
    assert result[: window.start] == text[: window.start]
    assert "\r\n" not in result.replace("\r\n", "") if newline == "\r\n" else "\r" not in result
    assert result == text or result.replace("\r", "") != text.replace("\r", "")
    wanted = set("\n".join(new).split()) | set(text.split())
    assert set(result.split()) <= wanted, "no word is made of two"


_LINES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=14)


@given(_LINES, _LINES)
def test_a_diff_says_where_its_lines_stand(before: list[str], after: list[str]) -> None:
    taken, made = [*before], [*after]
    for edit in reversed(list(recent_edits("x.py", "\n".join(before), "\n".join(after)))):
        head, *lines = edit.diff.split("\n")
        old_start, old_count, new_start, new_count = (int(number) for number in re.findall(r"\d+", head))
        old, new = ([line[1:] for line in lines if line[0] in signs] for signs in (" -", " +"))
        assert (len(old), len(new)) == (old_count, new_count)
        assert (edit.before, edit.after) == ("\n".join(old), "\n".join(new))
        assert made[new_start - 1 :][:new_count] == new
        assert taken[old_start - 1 :][:old_count] == old
        taken[old_start - 1 : old_start - 1 + old_count] = new
    assert taken == made


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("sweepai/sweep-next-edit-1.5B", 0),
        ("sweep-next-edit-0.5b.q8_0.gguf", 0),
        ("hf.co/sweepai/sweep-next-edit-7b", 0),
        ("zed-industries/zeta-2", 1),
        ("zeta_2.1-Q4_K_M.gguf", 1),
        ("zed-industries/zeta", 2),
        ("zeta:latest", 2),
        ("mercury-coder", 3),
        ("mercury-edit", 3),
    ],
)
def test_the_name_says_the_format(name: str, number: int) -> None:
    assert format_of(name) is FORMATS[number]


@pytest.mark.parametrize("name", ["qwen2.5-coder-1.5b", "gpt-5", "claude-sonnet-5", "zetachat", "sweeper", "default"])
def test_other_models_are_no_next_edit_models(name: str) -> None:
    assert format_of(name) is None
