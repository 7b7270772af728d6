"""`codeagent-lsp run` from the outside: exit codes, files, prompts, events, Ctrl-C."""

from __future__ import annotations

import codecs
import json
import re
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from codeagent_lsp import events
from tests.server.warm import COLD
from tests.terminal.scripts import COMMAND, Desk, Terminal, call

pytestmark = pytest.mark.slow

CALC = b"def add(a, b):\n    return a - b\n"
FIXED = b"def add(a, b):\n    return a + b\n"
FIX = [
    call("read_file", path="calc.py"),
    call("edit_file", path="calc.py", old_str="a - b", new_str="a + b"),
    {"text": "The **sign** was wrong.", "chunks": 4, "delay": 0.01},
]
ASK = "Apply changes to calc.py"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.file("calc.py", CALC)
    return desk


def processes_of(desk: Desk) -> list[int]:
    """Processes that were started for this desk and are still there."""
    mark = f"CODEAGENT_STATE_DIR={desk.root}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes() and (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def plain(screen: str) -> str:
    """What a screen says, without colours and movements."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen).replace("\r", "")


def test_of_several_attempts_one_is_proposed(desk: Desk) -> None:
    result = desk.run(FIX, "--yes", "--json", "--attempts", "2")
    assert result.returncode == 0, result.stdout + result.stderr
    assert (desk.workspace / "calc.py").read_bytes() == FIXED
    ends = [event for line in result.stdout.splitlines() if (event := json.loads(line))["type"] == "run_completed"]
    assert len(ends) == 3  # the attempts are runs, too; the last end is that of the task
    assert ends[-1]["files_changed"] == [str(desk.workspace / "calc.py")]
    wrong = desk.run(FIX, "--attempts", "9")
    assert (wrong.returncode, "1 to 8" in wrong.stderr) == (2, True)


def test_yes_applies_and_is_done(desk: Desk) -> None:
    result = desk.run(FIX, "--yes")
    assert result.returncode == 0, result.stdout + result.stderr
    assert (desk.workspace / "calc.py").read_bytes() == FIXED
    assert "● read_file calc.py" in result.stdout
    assert "+     return a + b" in result.stdout
    assert "The **sign** was wrong." in result.stdout
    assert "✓ Applied 1 file." in result.stdout
    assert "\x1b" not in result.stdout
    assert processes_of(desk) == []


def test_apply_auto_does_not_ask(desk: Desk) -> None:
    result = desk.run(FIX, "--apply", "auto")
    assert result.returncode == 0, result.stdout
    assert ASK not in result.stdout
    assert (desk.workspace / "calc.py").read_bytes() == FIXED


def test_nobody_to_ask_means_no(desk: Desk) -> None:
    result = desk.run(FIX, stdin="1\n")
    assert result.returncode == 3
    assert (desk.workspace / "calc.py").read_bytes() == CALC
    assert "--yes" in result.stdout


def test_what_a_broken_stream_leaves_is_told_and_can_be_applied(desk: Desk) -> None:
    result = desk.run([FIX[1], {"text": "Half a sen", "error": "broken"}])
    assert result.returncode == 1
    assert (desk.workspace / "calc.py").read_bytes() == CALC
    assert "No file was written." in result.stdout
    assert "not written  ✎ calc.py  +1 −1" in result.stdout
    (run_id,) = re.findall(r"codeagent-lsp apply (\w+) --workspace", result.stdout)
    undecided = desk.apply(run_id)
    assert (undecided.returncode, (desk.workspace / "calc.py").read_bytes()) == (3, CALC)
    assert "+     return a + b" in undecided.stdout
    applied = desk.apply(run_id, "--yes")
    assert (applied.returncode, (desk.workspace / "calc.py").read_bytes()) == (0, FIXED), applied.stdout
    assert "written  ✎ calc.py  +1 −1" in applied.stdout
    again = desk.apply(run_id, "--yes")
    assert (again.returncode, "no changes" in again.stdout) == (1, True)


def test_a_file_that_cannot_be_written_keeps_no_other_out(desk: Desk) -> None:
    desk.file("a.txt", "Größe\nlevel = 1\n".encode("latin-1"))
    beyond = call("edit_file", path="a.txt", old_str="level = 1", new_str="level = 1 → 2")
    result = desk.run([beyond, FIX[1], {"text": "Done."}, {"text": "Done."}], "--yes")
    assert (desk.workspace / "calc.py").read_bytes() == FIXED
    assert "not written  ✎ a.txt" in result.stdout and "U+2192" in result.stdout


def test_a_file_that_was_only_made_executable_is_listed(desk: Desk) -> None:
    script = desk.file("h.sh", b"#!/bin/sh\n")
    run = [call("run_cmd", command="chmod +x h.sh"), FIX[1], {"text": "Done."}, {"text": "Done."}]
    shown = desk.run(run, "--yes").stdout
    assert script.stat().st_mode & 0o111, shown
    assert "written  ✎ h.sh  chmod +x" in shown and "written  ✎ calc.py  +1 −1" in shown


def test_yes_writes_what_was_staged_before_an_error(desk: Desk) -> None:
    result = desk.run([FIX[1], {"text": "Half a sen", "error": "broken"}], "--yes")
    assert (result.returncode, (desk.workspace / "calc.py").read_bytes()) == (1, FIXED), result.stdout
    assert "✗ Failed." in result.stdout and "written  ✎ calc.py  +1 −1" in result.stdout


def test_a_question_that_nobody_answers_is_answered_in_the_next_run(desk: Desk) -> None:
    asking = [{"text": "It is the sign.\n\nShall I change calc.py?"}]
    result = desk.run(asking, task="Fix the sign in calc.py")
    assert result.returncode == 0, result.stdout
    assert result.stdout.count("It is the sign.") == 1
    (session,) = re.findall(r"To answer: codeagent-lsp run --session (\w+) ", result.stdout)
    answered = desk.run([FIX[1], {"text": "Done."}], "--yes", "--session", session, task="Yes, do")
    assert (answered.returncode, (desk.workspace / "calc.py").read_bytes()) == (0, FIXED), answered.stdout


def test_the_list_of_runs_says_what_is_not_decided(desk: Desk) -> None:
    listing = [*COMMAND[:-1], "sessions", "list", "--workspace", str(desk.workspace)]
    desk.run([FIX[1], {"text": "Done."}])
    (line,) = re.findall(r"    1 file not decided: codeagent-lsp (.+)", desk.done(listing).stdout)
    rows = json.loads(desk.done([*listing, "--json"]).stdout)
    assert [row["undecided"] for row in rows] == [1] and rows[0]["runId"] in line
    assert desk.done([*COMMAND[:-1], *shlex.split(line), "--yes"]).returncode == 0
    assert (desk.workspace / "calc.py").read_bytes() == FIXED
    assert "not decided" not in desk.done(listing).stdout


def test_changes_that_do_not_fit_any_more_are_told(desk: Desk) -> None:
    (run_id,) = re.findall(r"codeagent-lsp apply (\w+) --workspace", desk.run(FIX).stdout)
    desk.file("calc.py", CALC.replace(b"a - b", b"a * b"))
    result = desk.apply(run_id, "--yes")
    assert result.returncode == 1
    assert "No file was written." in result.stdout
    assert b"a * b" in (desk.workspace / "calc.py").read_bytes()


def test_a_session_goes_on(desk: Desk) -> None:
    (session,) = re.findall(r"codeagent-lsp run --session (\w+) ", desk.run([{"error": "timeout"}]).stdout)
    result = desk.run([{"expect": "Do it", "text": "Again."}], "--session", session, "--json")
    assert result.returncode == 0, result.stdout
    assert json.loads(result.stdout.splitlines()[-1])["session_id"] == session


def test_a_long_output_is_named_folded_and_kept(desk: Desk) -> None:
    printing = (
        "for number in $(seq 300); do echo line $number; done; printf '\\r10 %%\\r99 %%'; sleep 0.8; echo; exit 3"
    )
    script = [call("run_cmd", command=printing), {"text": "See [it](http://t.example)."}]
    result = desk.run(script, "--yes")
    shown = result.stdout[result.stdout.index("  ● run_cmd for number") :].splitlines()
    assert shown[1:3] == ["    line 1", "    line 2"]
    assert shown[11].startswith("    ⋯ 271 more lines: codeagent-lsp trace show --full --run ")
    assert shown[30:33] == ["    line 300", "    99 %", "    ✗ exit code 3"]
    words = shlex.split(shown[11].rpartition("codeagent-lsp ")[2])
    assert "\n    line 150\n" in desk.done([*COMMAND[:-1], *words]).stdout
    told = [json.loads(line) for line in desk.run(script, "--yes", "--json").stdout.splitlines()]
    printed = "".join(event["content"] for event in told if event["type"] == "step_output")
    assert printed.count("\n") == 301, ("JSON is complete", told)


def test_json_prints_events_and_nothing_else(desk: Desk) -> None:
    result = desk.run(FIX, "--yes", "--json")
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines[0]["type"] == "response_start"
    assert lines[-1]["type"] == "run_completed"
    assert lines[-1]["outcome"] == "full"
    assert [line["seq"] for line in lines] == sorted({line["seq"] for line in lines})
    for line in lines:
        assert events.to_dict(events.from_dict(line)) == line
    assert {"token", "tool_calls", "tool_result", "changes_proposed", "changes_applied", "usage"} <= {
        line["type"] for line in lines
    }
    assert (desk.workspace / "calc.py").read_bytes() == FIXED


def test_json_asks_nobody(desk: Desk) -> None:
    result = desk.run(FIX, "--json", stdin="1\n")
    assert result.returncode == 3
    assert (desk.workspace / "calc.py").read_bytes() == CALC
    assert "--yes" in result.stderr


def test_a_failed_run(desk: Desk) -> None:
    result = desk.run([{"error": "timeout"}])
    assert result.returncode == 1
    assert "✗" in result.stdout
    assert desk.run([{"expect": "something else", "text": "x"}], "--json").returncode == 1


def test_a_model_that_is_not_there(desk: Desk) -> None:
    result = desk.run(FIX, "--set", "model.name=/no/such/script.json")
    assert result.returncode == 1
    assert "/no/such/script.json" in result.stdout
    assert result.stdout.count("model.name is its path") == 1, "said once"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"x = 1\r\ny = 2\r\n", b"x = 1\r\ny = 3\r\n"),
        (codecs.BOM_UTF8 + b"x = 1\ny = 2", codecs.BOM_UTF8 + b"x = 1\ny = 3"),
        ("# caf\xe9\ny = 2\n".encode("latin-1"), "# caf\xe9\ny = 3\n".encode("latin-1")),
        ("# 你好\ny = 2\n".encode(), "# 你好\ny = 3\n".encode()),
    ],
)
def test_files_keep_their_encoding_and_line_ends(desk: Desk, before: bytes, after: bytes) -> None:
    path = desk.file("odd.py", before)
    path.chmod(0o751)
    script = [call("read_file", path="odd.py"), call("edit_file", path="odd.py", old_str="y = 2", new_str="y = 3")]
    result = desk.run(script, "--yes")
    assert result.returncode == 0, result.stdout
    assert path.read_bytes() == after
    assert path.stat().st_mode & 0o777 == 0o751


def test_several_files_created_moved_and_deleted(desk: Desk) -> None:
    desk.file("old.py", b"old\n")
    desk.file("gone.py", b"gone\n")
    script = [
        call("write_file", path="pkg/deep/new.py", content="new\n"),
        call("move_file", path="old.py", new_path="pkg/old.py"),
        call("delete_file", path="gone.py"),
        call("edit_file", path="calc.py", old_str="a - b", new_str="a + b"),
    ]
    result = desk.run(script, "--yes")
    names = {str(path.relative_to(desk.workspace)) for path in desk.workspace.rglob("*") if path.is_file()}
    assert names == {"calc.py", "pkg/deep/new.py", "pkg/old.py"}, result.stdout
    assert result.returncode == 0
    assert (desk.workspace / "pkg/deep/new.py").read_bytes() == b"new\n"
    assert (desk.workspace / "pkg/old.py").read_bytes() == b"old\n"


@pytest.mark.journey
def test_the_prompt_shows_the_diff_and_takes_numbers(desk: Desk) -> None:
    with Terminal(desk, FIX, env=COLD) as terminal:
        terminal.wait_for("Your choice: ")
        shown = plain(terminal.screen)
        assert "-     return a - b" in shown
        assert "+     return a + b" in shown
        assert "1 Apply" in shown
        assert "Review" not in shown
        assert (desk.workspace / "calc.py").read_bytes() == CALC
        terminal.type("nonsense\n")
        terminal.wait_for("1 to 2")
        terminal.type("1\n")
        assert terminal.end() == 0
    assert "Applied 1 file" in terminal.screen
    assert "\x1b[32m" in terminal.screen
    assert (desk.workspace / "calc.py").read_bytes() == FIXED


def test_changes_are_applied_one_by_one_and_taken_back(desk: Desk) -> None:
    desk.file("calc.py", CALC + b"\n" * 9 + b"def neg(a):\n    return a\n")
    neg = call("edit_file", path="calc.py", old_str="    return a\n", new_str="    return -a\n")
    new = call("write_file", path="new.py", content="X = 1\n")
    with Terminal(desk, [*FIX[:2], neg, new, FIX[2]]) as terminal:
        terminal.wait_for("One by one")
        terminal.type("one\n")
        for number, key in enumerate("231", 1):
            terminal.wait_for(f"Change {number} of 3")
            terminal.type(f"{key}\n")
        assert terminal.end() == 0
    shown = plain(terminal.screen)
    assert "written  ✚ new.py  +1 −0" in shown and "not written  ✎ calc.py  +1 −1" in shown
    assert (desk.workspace / "calc.py").read_bytes().startswith(CALC)
    (run_id,) = re.findall(r"codeagent-lsp apply (\w+)", shown)
    assert f"codeagent-lsp undo {run_id}" in shown
    assert desk.apply(run_id, "--yes").returncode == 0
    assert (desk.workspace / "calc.py").read_bytes() == CALC + b"\n" * 9 + b"def neg(a):\n    return -a\n"
    undone = desk.undo(run_id)
    assert (undone.returncode, "Undone in 2 files." in undone.stdout) == (0, True), undone.stdout
    assert (desk.workspace / "calc.py").read_bytes().endswith(b"    return a\n")
    assert not (desk.workspace / "new.py").exists()
    again = desk.undo(run_id)
    assert (again.returncode, "nothing to undo" in again.stdout) == (1, True)


@pytest.mark.parametrize("options", [(), ("--yes",)])
def test_an_undo_asks_about_lines_that_were_changed_since(desk: Desk, options: tuple[str, ...]) -> None:
    new = call("write_file", path="new.py", content="X = 1\n")
    (run_id,) = re.findall(r"codeagent-lsp undo (\w+)", desk.run([*FIX[:2], new, FIX[2]], "--yes").stdout)
    desk.file("new.py", b"X = 1\nY = 2\n")
    undone = desk.undo(run_id, *options)
    assert "You have changed lines since that would be undone: new.py:1." in undone.stdout
    assert (desk.workspace / "calc.py").read_bytes() == CALC
    assert (desk.workspace / "new.py").read_bytes() == (b"Y = 2\n" if options else b"X = 1\nY = 2\n")
    said = "Undone in 1 file.  " if options else "Undone in 1 file. Lines that were changed since are as they were."
    assert (undone.returncode, said in undone.stdout) == (0 if options else 1, True), undone.stdout


def test_discard_is_rejected(desk: Desk) -> None:
    with Terminal(desk, FIX) as terminal:
        terminal.wait_for("Your choice: ")
        terminal.type("discard\n")
        assert terminal.end() == 3
    assert (desk.workspace / "calc.py").read_bytes() == CALC


def test_the_end_of_input_applies_nothing(desk: Desk) -> None:
    with Terminal(desk, FIX) as terminal:
        terminal.wait_for("Your choice: ")
        terminal.type("\x04")
        assert terminal.end() == 3
    assert (desk.workspace / "calc.py").read_bytes() == CALC


def test_free_text_is_asked_for(desk: Desk) -> None:
    script = [call("AskUser", questions=[{"text": "Which name?"}]), {"text": "Thank you."}]
    with Terminal(desk, script) as terminal:
        terminal.wait_for("Which name?")
        terminal.wait_for("> ")
        terminal.type("Zoë\n")
        assert terminal.end() == 0
    assert "Thank you." in terminal.screen


def test_permission_for_a_file_that_runs_code_later(desk: Desk) -> None:
    script = [call("write_file", path=".vscode/tasks.json", content="{}\n"), {"text": "Never mind."}]
    with Terminal(desk, script) as terminal:
        terminal.wait_for("Your choice: ")
        shown = plain(terminal.screen)
        assert "Allow write_file: .vscode/tasks.json?" in shown
        assert "1 Deny" in shown
        terminal.type("1\n")
        assert terminal.end() == 0
    assert not (desk.workspace / ".vscode").exists()
    assert "Never mind." in terminal.screen


@pytest.mark.parametrize("columns", [10, 40])
def test_narrow_terminals_and_wide_characters(desk: Desk, columns: int) -> None:
    text = "# 标题\n\n你好，世界，这是一个很长的句子。\n\n```py\nx = '一二三四五六七八九十'\n```\n\n- 一\n- 二\n"
    script = [call("write_file", path="名字.py", content="# 一二三四五六七八九十\n"), {"text": text, "chunks": 30}]
    with Terminal(desk, script, "--yes", columns=columns) as terminal:
        assert terminal.end() == 0
    assert "Traceback" not in terminal.screen


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"LANG": "", "LC_ALL": "C"}])
def test_no_colour_no_terminal_features_no_locale(desk: Desk, env: dict[str, str]) -> None:
    with Terminal(desk, FIX, "--yes", env=env) as terminal:
        assert terminal.end() == 0
    assert "Traceback" not in terminal.screen
    if "LC_ALL" not in env:
        assert "\x1b[32m" not in terminal.screen


def test_output_that_cannot_show_our_characters(desk: Desk) -> None:
    assert desk.run(FIX, "--yes", PYTHONIOENCODING="utf-8").returncode == 0
    desk.file("calc.py", CALC)
    result = desk.run(FIX, "--yes", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "? read_file calc.py" in result.stdout


def test_chinese_users_read_chinese(desk: Desk) -> None:
    result = desk.run(FIX, "--yes", LANG="zh_CN.UTF-8")
    assert "已应用 1 个文件" in result.stdout


def test_ctrl_c_while_the_model_speaks(desk: Desk) -> None:
    with Terminal(desk, [{"text": "word " * 200, "chunks": 200, "delay": 0.2}]) as terminal:
        terminal.wait_for("word")
        began = time.monotonic()
        terminal.interrupt()
        assert terminal.end() == 130
        assert time.monotonic() - began < 3
    assert "Cancelled." in terminal.screen
    assert processes_of(desk) == []


def test_ctrl_c_at_a_prompt_changes_nothing(desk: Desk) -> None:
    with Terminal(desk, FIX) as terminal:
        terminal.wait_for("Your choice: ")
        terminal.interrupt()
        assert terminal.end() == 130
    assert (desk.workspace / "calc.py").read_bytes() == CALC
    assert processes_of(desk) == []


def test_a_reader_that_goes_away_ends_the_run(desk: Desk) -> None:
    slow = [{"text": "word " * 100, "chunks": 100, "delay": 0.1}]
    with subprocess.Popen(
        desk.command(slow, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=desk.environ()
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(15) != 0
        assert b"Traceback" not in process.stderr.read()
    assert processes_of(desk) == []


def test_usage_errors(desk: Desk) -> None:
    assert desk.run(FIX, "--workspace", str(desk.root / "nowhere")).returncode == 2
    assert desk.run(FIX, "--mode", "wild").returncode == 2
    bad = desk.run(FIX, "--set", "agent.maxIterations=0")
    assert bad.returncode == 2
    assert "agent.maxIterations" in bad.stderr
    assert bad.stdout == ""


def test_modules_of_the_current_folder_are_not_run(desk: Desk) -> None:
    desk.file("json.py", b"raise SystemExit('taken over')\n")
    python, *rest = desk.command(FIX, "--yes")
    command = [python, "-P", *rest]
    environ = desk.environ(**COLD)
    result = subprocess.run(
        command, cwd=desk.workspace, env=environ, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
