"""The pure parts of the terminal: safe text, blocks of Markdown, diffs, prompts, the summary."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import re
import termios
from argparse import Namespace
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from codeagent_lsp.errors import UserError
from codeagent_lsp.events.call_words import call_words
from codeagent_lsp.state import workspace_state
from codeagent_lsp.terminal.display import in_terminal, one_line, visible
from codeagent_lsp.terminal.options import from_namespace
from codeagent_lsp.terminal.questions import (
    Decision,
    Keyboard,
    accepted,
    decision_of,
    parts_of,
    picked,
    without_review,
)
from codeagent_lsp.terminal.screen import MAX_LINES, diff_lines, is_diff
from codeagent_lsp.terminal.stage import Blocks, PlainMarkdown
from codeagent_lsp.terminal.summary import Summary, ending
from codeagent_lsp.texts import keys, text
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange

DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@ x.py#1\n one\n-two\n+TWO\n three\n@@ -9 +9 @@\n-nine\n+NINE\n"


def test_control_and_invisible_characters_are_shown() -> None:
    assert visible("a\x1b[2Jb\u202ec\r\nd\te\x07") == "a<U+001B>[2Jb<U+202E>c\nd\te<U+0007>"
    assert visible("half \ud83d") == "half <U+D83D>"


@given(st.text())
def test_what_is_visible_can_always_be_printed(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert not any(ord(char) < 32 and char not in "\n\t" for char in shown)
    assert visible(shown) == shown


def test_commands_of_editors_are_named_as_those_of_the_terminal() -> None:
    assert in_terminal("There is none. `codeagent.session.list` shows all.").endswith(
        "`codeagent-lsp sessions list` shows all."
    )
    assert in_terminal("Or codeagent.trust asks again.") == "Or `codeagent-lsp trust` asks again."
    assert in_terminal("`codeagent.unheard.of` and codeagent.json.") == "`codeagent.unheard.of` and codeagent.json."


def test_each_command_that_a_sentence_names_has_its_name_in_the_terminal() -> None:
    editors_only = {"mcp.reload", "respond", "prompt", "tools.enable", "lend.list", "memory.show"}
    for key in keys():
        left = re.findall(r"codeagent\.([A-Za-z.]*[A-Za-z])", in_terminal(text(key)))
        assert not set(left) - editors_only, key


def test_one_line_is_one_short_line() -> None:
    assert one_line("a\n  b\r\nc") == "a b c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


def test_blocks_end_at_empty_lines_and_fences() -> None:
    blocks = Blocks()
    assert blocks.feed("one\ntwo\n") == []
    assert blocks.feed("\nthree\n```py\na = 1\n\nb = 2\n") == ["one\ntwo\n\n", "three\n"]
    assert blocks.rest == "```py\na = 1\n\nb = 2\n"
    assert blocks.feed("```\nrest") == ["```py\na = 1\n\nb = 2\n```\n"]
    assert blocks.close() == ["rest"]
    assert blocks.close() == []


@given(st.text(alphabet="a `~\n-", max_size=60), st.integers(1, 5))
def test_no_piece_of_an_answer_is_lost(answer: str, size: int) -> None:
    blocks, out = Blocks(), []
    for start in range(0, len(answer), size):
        out += blocks.feed(answer[start : start + size])
    out += blocks.close()
    assert "".join(out).split() == answer.split()


@pytest.mark.parametrize("width", [1, 7, 80])
@pytest.mark.parametrize(
    "source", ["# Head\n", "- a\n- b\n", "```py\nx = '一二三四五六七八'\n```\n", "| a | b |\n|-|-|\n| 1 | 2 |"]
)
def test_markdown_is_printed_at_any_width(source: str, width: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True)
    console.print(PlainMarkdown(source))


LINKS: dict[str, tuple[str, str]] = {
    "words": ("[the docs](https://evil.example/x 'a title')", "the docs (https://evil.example/x)"),
    "another address as words": (
        "[https://good.example](https://evil.example)",
        "https://good.example (https://evil.example)",
    ),
    "an address alone": ("<https://one.example>", "https://one.example"),
    "mail": ("<a@b.example>", "a@b.example"),
    "no words": ("[](https://evil.example)", "(https://evil.example)"),
    "a picture": ("![a cat](https://evil.example/c.png)", "a cat (https://evil.example/c.png)"),
    "a picture with a link": ("[![a](http://p.example)](http://t.example)", "a (http://p.example) (http://t.example)"),
    "a command": ("[x](command:rm)", "x (command:rm)"),
    "a reference": ("[x][1]\n\n[1]: http://t.example", "[x][1] [1]: http://t.example"),
    "a terminal link": ("&#27;]8;;http://t.example&#7;x", "\ufffd]8;;http://t.example\ufffdx"),
    "a hidden direction": ("a&#x202e;b&rlm;", "a<U+202E>b<U+200F>"),
    "HTML": ("List<int> <!-- no --> <b>x</b>", "List<int> <!-- no --> <b>x</b>"),
}


@pytest.mark.parametrize(("source", "shown"), LINKS.values(), ids=LINKS.keys())
def test_markdown_hides_nothing(source: str, shown: str) -> None:
    out = io.StringIO()
    Console(file=out, width=100, force_terminal=True, legacy_windows=False).print(PlainMarkdown(source))
    assert " ".join(re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).split()) == shown
    assert "\x1b]" not in out.getvalue()


def test_lists_do_not_begin_with_an_empty_line() -> None:
    out = io.StringIO()
    Console(file=out, width=20).print(PlainMarkdown("- a\n- b\n"))
    assert out.getvalue().split("\n")[0].strip() == "• a"


def test_a_diff_has_numbers_and_marks() -> None:
    assert is_diff(DIFF)
    assert [line.plain for line in diff_lines(DIFF)] == [
        "✎ x.py",
        "    1   1   one",
        "    2     - two",
        "        2 + TWO",
        "    3   3   three",
        "    ⋯",
        "    9     - nine",
        "        9 + NINE",
    ]


def test_parts_of_a_diff_that_touch_have_no_gap() -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n@@ -3,2 +3,2 @@\n three\n-four\n+FOUR\n"
    assert not any("⋯" in line.plain for line in diff_lines(diff))


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_the_numbers_of_a_diff_are_those_in_both_files(old: list[str], new: list[str]) -> None:
    diff = "\n".join(unified_diff(old, new, "a/x", "b/x", lineterm=""))
    for line in (line.plain for line in diff_lines(diff)):
        if line.startswith(" ") and "⋯" not in line:
            before, after, mark, content = line[2:5].strip(), line[6:9].strip(), line[10], line[12:]
            assert before == "" if mark == "+" else old[int(before) - 1] == content
            assert after == "" if mark == "-" else new[int(after) - 1] == content


@pytest.mark.parametrize(
    ("old", "new", "heading"),
    [
        ("/dev/null", "b/new.py", "✚ new.py  new"),
        ("a/old.py", "/dev/null", "✗ old.py  deleted"),
        ("a/old.py", "b/new.py", "➜ old.py → new.py  moved"),
    ],
)
def test_headings_say_what_happens_to_a_file(old: str, new: str, heading: str) -> None:
    assert next(diff_lines(f"--- {old}\n+++ {new}\n")).plain == heading


def test_lines_that_look_like_headings_stay_in_the_diff() -> None:
    diff = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,1 @@\n--- a comment\n kept\n"
    assert [line.plain for line in diff_lines(diff)][1:] == ["    1     - -- a comment", "    2   1   kept"]


def test_a_diff_cannot_write_to_the_terminal() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -0,0 +1,1 @@\n+\x1b]0;owned\x07\u202egnp.exe\n"
    assert [line.plain for line in diff_lines(diff)][1] == "        1 + <U+001B>]0;owned<U+0007><U+202E>gnp.exe"


def test_a_long_diff_is_cut_and_says_so() -> None:
    body = "".join(f"+{number}\n" for number in range(MAX_LINES + 50))
    lines = [line.plain for line in diff_lines(f"--- /dev/null\n+++ b/x\n@@ -0,0 +1,{MAX_LINES + 50} @@\n{body}")]
    assert len(lines) == MAX_LINES + 1
    assert "51" in lines[-1]


@pytest.mark.parametrize(
    ("line", "choice"),
    [("1", "Apply"), (" 2 \n", "Discard"), ("a", "Apply"), ("DISC", "Discard"), ("3", None), ("0", None), ("", None)],
)
def test_picking(line: str, choice: str | None) -> None:
    assert picked(line, ("Apply", "Discard")) == choice
    assert picked("d", ("Deny", "Discard")) is None
    assert picked("apply", ("Apply the rest", "Apply")) == "Apply"


SOME = Changeset(
    (
        FileChange("/w/a.py", "1\n" * 20, "2\n" + "1\n" * 18 + "3\n"),
        FileChange("/w/new.py", None, "x = 1\n"),
        FileChange("/w/old.py", "y\n", None),
        FileChange("/w/b.py", "1\n" * 20, "2\n" + "1\n" * 18 + "3\n", None, "/w/was.py"),
        FileChange("/w/d.py", "same\n", "same\n", None, "/w/c.py"),
    )
)


def test_every_part_of_a_diff_can_be_decided_about_alone() -> None:
    parts = parts_of(SOME.diff(lambda path: path.removeprefix("/w/")))
    names = [part.name.partition("#")[0] for part in parts]
    assert names == ["a.py", "a.py", "new.py", "old.py", "b.py", "d.py"]
    assert [part.is_hunk for part in parts] == [True, True, False, False, False, False]
    assert all(len(parts_of(part.diff)) == 1 for part in parts), "each shows its file"
    chosen = decision_of(parts, [parts[0], parts[2]], [parts[5]])
    assert chosen == Decision({"hunks": [parts[0].name], "files": ["new.py"]}, {"files": ["d.py"]})
    assert decision_of(parts, parts, ()) == Decision(apply={})
    assert decision_of(parts, (), parts) == Decision(discard={})
    assert decision_of(parts, (), ()) == Decision()


@pytest.mark.parametrize(
    ("choices", "choice"),
    [
        (("Review", "Apply", "Discard"), "Apply"),
        (("查看", "应用", "放弃"), "应用"),
        (("Deny", "Allow once", "Allow exactly this for the session", "Always allow exactly this"), "Allow once"),
        (("拒绝", "允许一次", "本会话内允许", "始终允许"), "允许一次"),
        (("Deny", "Allow exactly this for the session"), "Allow exactly this for the session"),
        (("Deny", "Always allow exactly this"), "Deny"),
        (("Always allow exactly this",), None),
        (("Deny", "Allow once"), "Allow once"),
        (("Keep", "Delete"), "Delete"),
        (("Cancel", "Edit the steps", "Change…", "Start"), "Start"),
        (("取消", "修改…", "开始执行"), "开始执行"),
        (("no", "yes"), "yes"),
        (("only",), "only"),
        (("One (recommended)", "Two"), "One (recommended)"),
        (("One", "Two (recommended) ⚠"), "One"),
        (("None of these", "One ⚠", "Two ⚠"), "None of these"),
        (("都不选", "One ⚠", "Two"), "Two"),
        ((), None),
    ],
)
def test_yes_takes_the_narrowest_consent_that_will_do(choices: tuple[str, ...], choice: str | None) -> None:
    assert accepted(choices) == choice


def test_review_is_not_offered_to_somebody_who_sees_the_diff() -> None:
    assert without_review(("Review", "Apply", "Discard")) == ("Apply", "Discard")


async def test_keyboard_gives_lines_and_the_end() -> None:
    read, write = os.pipe()
    keyboard = Keyboard(read)
    os.write(write, b"one\ntw")
    assert not keyboard.present
    assert await keyboard.line() == "one"
    os.write(write, "o é\n".encode())
    assert await keyboard.line() == "two é"
    os.close(write)
    assert await keyboard.line() is None
    os.close(read)


async def test_what_was_typed_before_a_question_is_no_answer() -> None:
    ours, theirs = pty.openpty()
    try:
        keyboard = Keyboard(theirs)
        os.write(ours, b"1\n2\n")
        assert await keyboard.line() == "1"
        keyboard.forget()
        os.write(ours, b"3\n")
        assert await keyboard.line() == "3"
    finally:
        os.close(ours)
        os.close(theirs)


async def test_a_secret_is_not_echoed_and_the_terminal_is_put_back() -> None:
    ours, theirs = pty.openpty()
    try:
        typing = asyncio.ensure_future(Keyboard(theirs).secret_line())
        await asyncio.sleep(0)  # it has begun, so nothing is echoed any more
        assert not termios.tcgetattr(theirs)[3] & termios.ECHO
        os.write(ours, b"hidden\n")
        assert await asyncio.wait_for(typing, 5) == "hidden"
        os.write(theirs, b"after")
        shown = b""
        while b"after" not in shown:
            shown += os.read(ours, 100)
        assert b"hidden" not in shown
        assert termios.tcgetattr(theirs)[3] & termios.ECHO
    finally:
        os.close(ours)
        os.close(theirs)


def completed(status: str, **more: Any) -> dict[str, Any]:
    return {"type": "run_completed", "status": status, **more}


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([completed("completed")], 0),
        ([completed("completed", outcome="full")], 0),
        ([completed("completed", outcome="partial")], 1),
        ([completed("completed", outcome="unknown")], 1),
        ([completed("completed", outcome="none")], 3),
        ([{"type": "changes_applied", "outcome": "none", "reason": "x"}, completed("completed", outcome="none")], 1),
        ([completed("failed", error="x")], 1),
        ([completed("stopped")], 1),
        ([completed("rejected")], 3),
        ([completed("cancelled")], 130),
        ([], 1),
    ],
)
def test_exit_codes(events: list[dict[str, Any]], code: int) -> None:
    summary = Summary()
    for event in events:
        summary = summary.after(event)
    assert summary.exit_code == code
    for language in ("en", "zh-cn"):
        assert all(line.plain.strip() for line in ending(summary, "", 1.0, language))


def test_the_summary_adds_up_tokens() -> None:
    usage = {"type": "usage", "prompt_tokens": 1000, "completion_tokens": 20}
    summary = Summary().after(usage).after(usage).after(completed("completed", outcome="full", files_changed=["a"]))
    (line,) = ending(summary, "", 2.04, "en")
    assert line.plain == "✓ Applied 1 file.  2,000 tokens in, 40 out · 2.0 s"
    paid = {"prompt_tokens": 2000, "cached_tokens": 1500, "cost": 0.25}
    (line,) = ending(Summary().after(usage).after(completed("completed", usage=paid)), "", 2.0, "en")
    assert "$0.25 (75 % cached) · 1,000 tokens in" in line.plain


def test_a_tool_call_names_what_it_is_about() -> None:
    assert call_words({"name": "read_file", "arguments": {"path": "a.py", "limit": 3}}) == "read_file a.py"
    assert call_words({"name": "todo"}) == "todo"


@pytest.fixture
def options(tmp_path: Path) -> Iterator[Namespace]:
    flags: dict[str, object] = {"yes": False, "json": False, "width": None, "set": [], "session": ""}
    yield Namespace(task="x", workspace=str(tmp_path), mode="auto", attempts=1, apply="review", **flags)


@pytest.mark.parametrize(
    ("assignment", "key", "value"),
    [
        ("model.name=7", "model.name", "7"),
        ("codeagent.agent.maxIterations=7", "agent.maxIterations", 7),
        ("model.maxTokens=auto", "model.maxTokens", "auto"),
        ('tools.disabled=["a"]', "tools.disabled", ["a"]),
        ("model.baseUrl=http://h/v1?a=b", "model.baseUrl", "http://h/v1?a=b"),
    ],
)
def test_settings_are_read_as_their_type(options: Namespace, assignment: str, key: str, value: Any) -> None:
    options.set = [assignment]
    assert dict(from_namespace(options).settings)[key] == value


def test_the_last_session_is_that_of_the_users_own_last_run(
    options: Namespace, state_dir: Path, tmp_path: Path
) -> None:
    options.session = "last"
    with pytest.raises(UserError, match="No run is recorded"):
        from_namespace(options)
    sessions = workspace_state([str(tmp_path.resolve())]) / "sessions"
    sessions.mkdir(parents=True)
    for name, kind, ts in (("a" * 16, "run", 1.0), ("b" * 16, "run", 2.0), ("c" * 16, "foreign", 3.0)):
        begun = {
            "type": "run_started",
            "run_id": f"r{name}",
            "task": "x",
            "title": "x",
            "kind": kind,
            "ts": ts,
            "seq": 1,
        }
        (sessions / f"{name}.jsonl").write_text(json.dumps(begun) + "\n")
    assert from_namespace(options).session == "b" * 16


@pytest.mark.parametrize(
    "assignment", ["model.nmae=x", "agent.maxIterations=many", "nothing", "=x", "edits.apply=later"]
)
def test_a_bad_setting_names_itself(options: Namespace, assignment: str) -> None:
    options.set = [assignment]
    with pytest.raises(UserError, match=assignment.partition("=")[0] or "KEY=VALUE"):
        from_namespace(options)


def test_apply_is_a_setting_that_set_overrides(options: Namespace) -> None:
    options.apply = "auto"
    assert dict(from_namespace(options).settings) == {"edits.apply": "auto"}
    options.set = ["edits.apply=live"]
    assert dict(from_namespace(options).settings) == {"edits.apply": "live"}
