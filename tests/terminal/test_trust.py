"""`codeagent-lsp trust`: what a folder brings is listed and trusted for the server that works there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codeagent_lsp.cli import main
from codeagent_lsp.session.memory.knowledge import Knowledge, knowledge_in
from codeagent_lsp.state import STATE_VARIABLE, state_root, workspace_state
from codeagent_lsp.terminal.reports import trust_command
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots
from tests.tools.skills.samples import skill

Out = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that brings a skill, a command and a tool."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    made = tmp_path / "project"
    for name, content in (
        (".claude/skills/pdf/SKILL.md", skill("pdf", "reads\u202e PDF files", "Their text.")),
        (".claude/commands/fix.md", "Fix it."),
        (".codeagent/tools/db.py", "TOOLS = []\n"),
    ):
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return made


def trusted(folder: Path) -> list[str]:
    """The kinds that a server in this folder would find trusted."""
    root = str(folder.resolve())
    known: Knowledge = knowledge_in(state_root(), workspace_state([root]), tuple, lambda: False)
    view = FileView(Roots([root]), NoBuffers(), NothingStaged())
    return [item.kind for item in known.brought(view) if known.trust.covers(item.digest)]


def saying(*answers: str) -> Callable[[str], str]:
    said: Iterator[str] = iter(answers)
    return lambda question: next(said, "")


def test_it_is_listed_and_nothing_is_trusted_by_that(folder: Path, capsys: Out) -> None:
    assert main(["trust", "--workspace", str(folder), "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:2] for line in lines] == ["? "] * 3
    assert "the skill pdf: .claude/skills/pdf, " in lines[0] and "\u202e" not in lines[0]
    assert "the command /fix" in lines[1] and "the tools of db.py" in lines[2]
    assert trusted(folder) == []


def test_yes_trusts_all_of_it_as_it_is_now(folder: Path, capsys: Out) -> None:
    assert main(["trust", "--workspace", str(folder), "--yes"]) == 0
    assert "Trusted: the skill pdf, the command /fix, the tools of db.py." in capsys.readouterr().out
    assert trusted(folder) == ["skills", "commands", "tools"]
    (folder / ".codeagent/tools/db.py").write_text("import os\n")
    assert trusted(folder) == ["skills", "commands"]
    assert main(["trust", "--workspace", str(folder), "--list"]) == 0
    assert [line[:2] for line in capsys.readouterr().out.splitlines()] == ["✓ ", "✓ ", "? "]


def test_one_thing_is_trusted_by_its_name_or_path(folder: Path, capsys: Out) -> None:
    assert main(["trust", "pdf", "--yes", "--workspace", str(folder)]) == 0
    assert "Trusted: the skill pdf." in capsys.readouterr().out
    assert main(["trust", ".codeagent/tools/db.py", "--yes", "--workspace", str(folder)]) == 0
    assert trusted(folder) == ["skills", "tools"]
    assert main(["trust", "fix", "nothing", "--yes", "--workspace", str(folder)]) == 2
    assert "nothing of the name nothing" in capsys.readouterr().err
    assert trusted(folder) == ["skills", "tools"]


@pytest.mark.parametrize(
    ("answers", "found", "code"),
    [
        (("y",), ["skills", "commands", "tools"], 0),
        (("YES",), ["skills", "commands", "tools"], 0),
        (("n",), [], 3),
        ((), [], 3),
        (("e", "y", "n", "yes"), ["skills", "tools"], 3),
        (("e", "y", "y", "y"), ["skills", "commands", "tools"], 0),
    ],
)
def test_the_user_is_asked(folder: Path, capsys: Out, answers: tuple[str, ...], found: list[str], code: int) -> None:
    assert trust_command(str(folder), yes=False, listing=False, answer=saying(*answers)) == code
    assert trusted(folder) == found
    assert ("Their text." in capsys.readouterr().out) is (answers[:1] == ("e",))


def test_where_nobody_can_be_asked_nothing_is_trusted(folder: Path, capsys: Out) -> None:
    assert main(["trust", "--workspace", str(folder)]) == 3
    assert "--yes" in capsys.readouterr().out
    assert trusted(folder) == []


def test_nothing_and_no_folder(folder: Path, tmp_path: Path, capsys: Out) -> None:
    assert main(["trust", "--workspace", str(tmp_path)]) == 0
    assert "brings nothing" in capsys.readouterr().out
    assert main(["trust", "--workspace", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err
