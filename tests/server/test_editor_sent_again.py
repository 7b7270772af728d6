"""An accepted change lands while the user types in other lines, however fast, or is known not to have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.server import editor as editor_module
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.files.uris import from_path
from codeagent_lsp.workspace.text.document import Document
from tests.leaping import leaping
from tests.server.typing_client import EGLOT, NEOVIM, VSCODE, Habit, TypingClient, while_typing

NOTES = "# notes: "
RATES = (5, 8, 12, 20, 30, 60)


def lines(hunks: int) -> tuple[str, str]:
    """Return a text of which the first line is nobody's, and the same with so many hunks."""
    base = [NOTES, *(f"    line {number}" for number in range(1, 12 * hunks + 12))]
    text = [*base]
    for number in range(hunks):
        place = 12 * number + 10
        text[place : place + 1] = [f"    changed {number}", f"    and more {number}"] if number % 3 else []
    return "\n".join(base) + "\n", "\n".join(text) + "\n"


async def deliver(tmp_path: Path, habit: Habit, hunks: int, rate: float, keys: int = 10_000) -> TypingClient:
    path = tmp_path / "a.py"
    base, text = lines(hunks)
    client = TypingClient(habit)
    client.open(path, base)
    work = client.editor.apply(Changeset((FileChange(str(path), base, text),)), "label")
    applied, typed = await while_typing(client, path, NOTES, rate, work, keys)
    assert (applied.outcome, applied.reason) == ("full", "")
    assert typed
    assert client.text(path) == text.replace(NOTES, f"{NOTES}{typed}")
    return client


@pytest.mark.slow
@pytest.mark.parametrize("hunks", [1, 50])
@pytest.mark.parametrize("rate", RATES)
@leaping
async def test_it_lands_in_an_editor_that_refuses_older_versions(tmp_path: Path, rate: float, hunks: int) -> None:
    client = await deliver(tmp_path, VSCODE, hunks, rate)
    assert client.asked >= 1


@pytest.mark.slow
@pytest.mark.parametrize("hunks", [1, 50])
@pytest.mark.parametrize("rate", RATES)
@leaping
async def test_it_lands_in_an_editor_that_drops_them_and_says_yes(tmp_path: Path, rate: float, hunks: int) -> None:
    await deliver(tmp_path, NEOVIM, hunks, rate)


@pytest.mark.slow
@pytest.mark.parametrize("hunks", [1, 50])
@pytest.mark.parametrize("rate", RATES)
@leaping
async def test_it_lands_at_the_first_pause_where_typing_is_told_then(tmp_path: Path, rate: float, hunks: int) -> None:
    await deliver(tmp_path, EGLOT, hunks, rate, keys=max(10, int(rate / 2)))


@pytest.mark.slow
@pytest.mark.parametrize("habit", [VSCODE, NEOVIM], ids=["refuses", "drops"])
@leaping
async def test_what_is_typed_in_the_lines_themselves_stays_and_is_a_conflict(tmp_path: Path, habit: Habit) -> None:
    path = tmp_path / "a.py"
    base, text = lines(3)
    client = TypingClient(habit)
    client.open(path, base)
    wanted = Changeset((FileChange(str(path), base, text),))
    applied, typed = await while_typing(client, path, "    line 23", 30, client.editor.apply(wanted, "label"), 10)
    assert (applied.outcome, [conflict.line for conflict in applied.conflicts]) == ("partial", [23])
    assert client.text(path) == text.replace("    changed 1\n    and more 1\n", f"    line 23{typed}\n")
    came = text.replace("    changed 1\n    and more 1\n", "    line 23\n")
    assert [(each.base, each.text) for each in applied.left] == [(came, text)], "the other hunks do not wait"


@leaping
async def test_files_that_go_together_come_together(tmp_path: Path) -> None:
    base, text = lines(3)
    client = TypingClient(VSCODE)
    paths = [tmp_path / name for name in ("a.py", "b.py", "c.py")]
    for path in paths:
        client.open(path, base)
    work = client.editor.apply(Changeset(tuple(FileChange(str(path), base, text) for path in paths)), "label")
    applied, typed = await while_typing(client, paths[1], NOTES, 60, work)
    assert (applied.outcome, client.asked > 1) == ("full", True)
    ours = [client.text(path) for path in paths]
    assert ours == [text, text.replace(NOTES, f"{NOTES}{typed}"), text]


@pytest.mark.slow
@leaping
async def test_where_typing_is_always_ahead_it_lands_at_the_first_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor_module, "TYPING_SECONDS", 0.2)
    client = await deliver(tmp_path, VSCODE, 3, 5_000, keys=5_000)
    assert client.asked > 1


@pytest.mark.slow
@leaping
async def test_an_editor_that_never_takes_it_is_told_of_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor_module, "TYPING_SECONDS", 0.3)
    monkeypatch.setattr(editor_module, "PAUSES_SECONDS", 0.3)
    path = tmp_path / "a.py"
    base, text = lines(3)
    client = TypingClient(VSCODE)
    client.open(path, base)
    wanted = Changeset((FileChange(str(path), base, text),))
    applied, typed = await while_typing(client, path, NOTES, 5_000, client.editor.apply(wanted, "label"))
    assert (applied.outcome, applied.left.paths) == ("none", (str(path),))
    assert "a.py" in applied.reason
    assert "nothing was changed" in applied.reason
    assert client.text(path) == base.replace(NOTES, f"{NOTES}{typed}")
    assert 1 < client.asked < 200


@pytest.mark.slow
@leaping
async def test_a_refusal_of_the_present_text_is_final(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    base, text = lines(1)
    client = TypingClient(VSCODE)
    client.open(path, base)
    client.own[path.as_uri()] = Document(path.as_uri(), base, 3)  # it never tells so
    applied = await client.editor.apply(Changeset((FileChange(str(path), base, text),)), "label")
    assert (applied.outcome, client.asked) == ("none", 1)


@pytest.mark.parametrize("version", [1, 2, 7])
@leaping
async def test_it_goes_to_the_text_with_which_a_file_was_opened_anew(tmp_path: Path, version: int) -> None:
    """A file that is closed and opened begins with its first version, which says nothing of its text."""
    path = tmp_path / "a.py"
    base, text = lines(1)
    client = TypingClient(VSCODE)
    client.open(path, base)

    def opened_anew() -> bool:
        if client.asked == 1:
            document = Document(from_path(str(path)), f"anew\n{base}", version)
            client.own[document.uri] = document
            client.documents.close(document.uri)
            client.documents.open(document)
        return client.asked == 1

    client.meanwhile = opened_anew
    applied = await client.editor.apply(Changeset((FileChange(str(path), base, text),)), "label")
    assert (applied.outcome, client.text(path)) == ("full", f"anew\n{text}")


@leaping
async def test_it_goes_to_a_version_without_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    base, text = lines(1)
    client = TypingClient(VSCODE)
    client.open(path, base)

    def counted() -> bool:
        if client.asked == 1:
            uri = from_path(str(path))
            client.own[uri] = replace(client.own[uri], version=9)
            client.documents.change(uri, 9, [])
        return False

    client.meanwhile = counted
    applied = await client.editor.apply(Changeset((FileChange(str(path), base, text),)), "label")
    assert (applied.outcome, client.text(path)) == ("full", text)


@pytest.mark.slow
@leaping
async def test_a_busy_editor_may_tell_two_seconds_later(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    base, text = lines(1)
    client = TypingClient(replace(VSCODE, tells_after=1.5))
    client.open(path, base)
    client.told_now()
    applied = await client.editor.apply(Changeset((FileChange(str(path), base, text),)), "label")
    assert (applied.outcome, client.text(path)) == ("full", text)
