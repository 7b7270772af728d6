"""What surrounds the runs, in a real VS Code: the key, the server and where it is found, reports, lists, languages."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from pathlib import Path

import pytest

from tests.clients.vscode.support import ROOT, Editor, Window, window
from tests.clients.vscode.test_runs import CHANGED, SOURCE, both_ends, until
from tests.living import contents

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

HELLO = "import sys\nprint('to the one')\nprint('to the other', file=sys.stderr)\nsys.exit(3)\n"


def environment(pid: int) -> dict[str, str]:
    """The variables of a process."""
    pairs = (entry.partition("=") for entry in Path(f"/proc/{pid}/environ").read_text().split("\0"))
    return {name: value for name, _, value in pairs}


def files_with(folder: Path, words: str) -> list[Path]:
    """The files below a folder that hold the words."""
    return [path for path, held in contents(folder).items() if words.encode() in held]


def test_the_key_is_in_the_servers_environment_and_nowhere_else(tmp_path: Path, editor: Editor) -> None:
    key = "key-" + secrets.token_hex(12)
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=[{"text": "Hello."}], own=True) as opened:
        before = opened.another_server([])
        assert "CODEAGENT_API_KEY" not in environment(before)
        opened.command("CodeAgent: Set API Key…")
        opened.page.locator(".quick-input-widget input[type=password]").wait_for()
        opened.answer(key)
        after = opened.another_server([before])
        assert environment(after)["CODEAGENT_API_KEY"] == key
        opened.task("Say hello")
        opened.transcript().locator(".markdown").filter(has_text="Hello.").wait_for()
        for process in (folder / "cmdline" for folder in Path("/proc").glob("[0-9]*")):
            with contextlib.suppress(OSError):  # it ended meanwhile
                assert key.encode() not in process.read_bytes()
        assert files_with(opened.state, key) == []
        assert files_with(tmp_path / "user" / "User", key) == []
        assert files_with(tmp_path / "ws", key) == []
        opened.command("CodeAgent: Forget API Key")
        assert "CODEAGENT_API_KEY" not in environment(opened.another_server([after]))


def stub(folder: Path, name: str, log: Path) -> None:
    """A server that writes down its name before it is the real one."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "codeagent-lsp"
    start = f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m codeagent_lsp.cli serve "$@"'
    program.write_text(f'#!/bin/sh\necho {name} >>"{log}"\n{start}\n')
    program.chmod(0o755)


@pytest.mark.volume
def test_the_server_is_looked_for_in_order(tmp_path: Path, editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    log, local = tmp_path / "started", tmp_path / "ws" / ".venv" / "bin"
    stub(local, "python", log)
    (local / "python").symlink_to(sys.executable)
    stub(tmp_path / "first", "path", log)
    plain = [folder for folder in os.environ["PATH"].split(":") if not (Path(folder) / "codeagent-lsp").exists()]
    monkeypatch.setenv("PATH", ":".join([str(tmp_path / "first"), *plain]))

    def started() -> list[str]:
        return log.read_text().split() if log.exists() else []

    settings: dict[str, list[str]] = {"codeagent.server.command": []}
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=[], settings=settings, own=True) as opened:
        until(lambda: started() == ["python"], "the one beside the workspace's Python comes first")
        (local / "codeagent-lsp").unlink()
        opened.command("CodeAgent: Restart Server")
        until(lambda: started()[1:] == ["path"], f"then the one on PATH: {started()}")
        (tmp_path / "first" / "codeagent-lsp").unlink()
        opened.command("CodeAgent: Restart Server")
        toast = opened.page.locator(".notifications-toasts").filter(has_text="was not found")
        toast.wait_for()
        offered = toast.locator(".monaco-button").all_inner_texts()
        assert "Install" in offered and "Choose a Program…" in offered
        stub(tmp_path / "first", "again", log)
        opened.command("CodeAgent: Restart Server")
        until(lambda: started()[-1:] == ["again"], "one that comes later is taken")


@pytest.mark.volume
def test_reports_and_lists(tmp_path: Path, editor: Editor) -> None:
    files = {"a.py": SOURCE, "hello.py": HELLO}
    with window(tmp_path, editor, files=files, script=[{"text": "Good morning."}]) as opened:
        page = opened.page
        rows = page.locator(".quick-input-list .monaco-list-row")
        opened.command("CodeAgent: Doctor")
        page.locator(".tab.active").filter(has_text="Doctor").wait_for()
        report = page.frame_locator("iframe.webview.ready").frame_locator("iframe#active-frame")
        report.locator("strong").filter(has_text="model").wait_for()
        opened.command("View: Close All Editors")
        page.locator(".tab").wait_for(state="detached")  # nothing to save
        opened.task("Say good morning")
        opened.transcript().locator(".markdown").filter(has_text="Good morning.").wait_for()
        opened.open("hello.py")
        opened.command("CodeAgent: Run This File in the Shadow")
        shown = opened.transcript().locator(".output")
        shown.filter(has_text="to the one").wait_for()
        opened.transcript().locator(".note").filter(has_text="Exit code 3").wait_for()
        opened.command("CodeAgent: Tools…")
        rows.filter(has_text="list_dir").locator(".codicon-check").wait_for()
        opened.pick("list_dir")
        opened.command("CodeAgent: Tools…")
        rows.filter(has_text="list_dir").locator(".codicon-circle-slash").wait_for()
        page.keyboard.press("Escape")
        opened.command("CodeAgent: New Session")
        opened.transcript().locator(".empty").wait_for()
        opened.command("CodeAgent: Sessions…")
        opened.transcript().locator(".session").filter(has_text="Say good morning").click()
        opened.transcript().locator(".markdown").filter(has_text="Good morning.").wait_for()
        opened.choose("CodeAgent: Choose Permission Mode…", "readOnly")
        opened.command("CodeAgent: Choose Model…")
        rows.filter(has_text="Another name…").wait_for()
        page.keyboard.press("Escape")
        opened.command("CodeAgent: Get Started")
        page.locator(".getting-started-step").filter(has_text="Choose a model").wait_for()


def commands(opened: Window, words: str) -> str:
    """What the palette lists for the words."""
    found = opened.listed("F1", f">{words}")
    opened.page.keyboard.press("Escape")
    return found


def test_chinese_and_commands_only_where_they_make_sense(tmp_path: Path, editor: Editor) -> None:
    script = [both_ends(), CHANGED]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script, locale="zh-cn") as opened:
        page = opened.page
        offered = commands(opened, "CodeAgent 接受")
        assert "接受所有更改" not in offered and "接受此文件" not in offered
        assert "停止" not in commands(opened, "CodeAgent 停止")
        opened.open("a.py")
        page.keyboard.press("Control+Alt+g")
        opened.answer("把两端都改掉")
        opened.wait_status("等待您")
        page.locator(".quick-input-list .monaco-list-row").filter(has_text="应用").wait_for()
        page.keyboard.press("Escape")
        opened.in_bar("放弃").wait_for()
        assert "停止" in commands(opened, "CodeAgent 停止")
        assert "接受此文件" in commands(opened, "CodeAgent 接受"), "its changes are in the editor of the file, too"
        page.keyboard.press("Control+Alt+r")
        page.locator(".codelens-decoration a").filter(has_text="接受此处更改").first.wait_for()
        assert "接受此文件" in commands(opened, "CodeAgent 接受")
