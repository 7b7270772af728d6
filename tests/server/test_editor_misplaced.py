"""An editor that makes a change in another text than the one it was made for: it knows no versions, or has one for two.

What is typed stays, and the change comes to its place all the same.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeagent_lsp.server.editor import laid, misplaced
from codeagent_lsp.server.text_edits import minimal_edits, same_text
from codeagent_lsp.workspace.changes.changeset import Changeset, Current, FileChange
from codeagent_lsp.workspace.text.document import Change
from tests.examples import examples, pairwise
from tests.leaping import leaping
from tests.server.test_editor_sent_again import NOTES, RATES, lines
from tests.server.typing_client import VERSIONED, VSCODE, Habit, TypingClient

ONE_VERSION = replace(VSCODE, counts=False, wire=0.02)
NO_VERSIONS = Habit(replace(VERSIONED, versioned_edits=False), VSCODE.refuses, wire=0.02)
HABIT = {"one version": ONE_VERSION, "no versions": NO_VERSIONS}
HABITS = pytest.mark.parametrize("habit", [*HABIT.values()], ids=[*HABIT])


def _line(text: str) -> Change:
    return Change(text, (0, 0), (0, 0))


@pytest.mark.slow
@HABITS
@leaping
async def test_a_key_told_together_with_the_change_is_known_apart(tmp_path: Path, habit: Habit) -> None:
    path = tmp_path / "a.py"
    base, text = lines(3)
    client = TypingClient(habit)
    client.open(path, base)
    before, wait = client.habit.wire, 0.001
    client.habit = replace(client.habit, tells_after=2 * before + wait)
    client.told_now()
    client.type(path, _line("typed\n"))
    applied = await client.editor.apply(Changeset((FileChange(str(path), base, text),)), "label")
    assert client.text(path) == f"typed\n{text}"
    assert applied.outcome == "full"


@pytest.mark.slow
@HABITS
@leaping
async def test_lines_typed_above_right_before_it_comes_do_not_move_it(tmp_path: Path, habit: Habit) -> None:
    path = tmp_path / "a.py"
    base, text = lines(3)
    client = TypingClient(habit)
    client.open(path, base)
    client.type(path, _line("typed\nlines\n"))  # not told yet
    applied = await client.editor.apply(Changeset((FileChange(str(path), base, text),)), "label")
    assert client.text(path) == f"typed\nlines\n{text}"
    assert (applied.outcome, applied.reason) == ("full", "")


@pytest.mark.slow
@HABITS
@leaping
async def test_what_is_typed_in_the_lines_themselves_stays(tmp_path: Path, habit: Habit) -> None:
    path = tmp_path / "a.py"
    base, text = "one\ntwo\nthree\n", "one\nzwei\nthree\n"
    client = TypingClient(habit)
    client.open(path, base)
    client.type(path, Change("mine ", (1, 0), (1, 0)))
    applied = await client.editor.apply(Changeset((FileChange(str(path), base, text),)), "label")
    assert client.text(path) == "one\nmine two\nthree\n"
    assert (applied.outcome, [each.line for each in applied.conflicts]) == ("none", [2])


@pytest.mark.slow
@HABITS
@leaping
async def test_of_two_files_only_the_one_that_was_typed_in_is_made_anew(tmp_path: Path, habit: Habit) -> None:
    base, text = lines(1)
    client = TypingClient(habit)
    paths = [tmp_path / name for name in ("a.py", "b.py")]
    for path in paths:
        client.open(path, base)
    client.type(paths[1], _line("typed\n"))
    changes = tuple(FileChange(str(path), base, text) for path in paths)
    applied = await client.editor.apply(Changeset(changes), "label")
    assert [client.text(path) for path in paths] == [text, f"typed\n{text}"]
    assert applied.outcome == "full"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rate", "hunks"), pairwise(HABIT, RATES, (1, 50)))
@leaping
async def test_it_comes_to_its_place_while_lines_are_added_above(
    tmp_path: Path, name: str, rate: int, hunks: int
) -> None:
    path = tmp_path / "a.py"
    base, text = lines(hunks)
    client = TypingClient(HABIT[name])
    client.open(path, base)
    task = asyncio.ensure_future(client.editor.apply(Changeset((FileChange(str(path), base, text),)), "label"))
    typed = 0
    while not task.done() and typed < 2 * rate:
        client.type(path, _line("typed\n"))
        typed += 1
        await asyncio.sleep(1 / rate)
    applied = await task
    assert client.text(path) == "typed\n" * typed + text
    assert (applied.outcome, applied.reason) == ("full", "")


_TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=8).map("".join)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(400), suppress_health_check=[HealthCheck.too_slow])
@given(_TEXTS, _TEXTS, _TEXTS)
def test_what_is_taken_back_is_what_was_misplaced_and_nothing_else(base: str, text: str, typed: str) -> None:
    """Whatever was typed: either the change is right where it was made, or taking it back leaves what was typed."""
    change = FileChange("/a", base, text)
    edits = minimal_edits(base, text, "utf-16")
    after = laid(typed, edits, "utf-16")
    back = misplaced(change, edits, [base, typed, after], "utf-16")
    if back is not None:
        assert (back.base, back.text) == (after, typed)
        return
    meant = Changeset((change,)).rebase({"/a": Current(typed)})
    right = meant.changeset.get("/a")
    is_right = (right.text if right else typed) == after and not meant.conflicts
    assert is_right or same_text(typed, base) or typed == text or after in (base, typed, text) or not edits


def test_a_change_in_its_own_text_is_left_alone() -> None:
    base, text = lines(2)
    edits = minimal_edits(base, text, "utf-16")
    assert misplaced(FileChange("/a", base, text), edits, [base, text, f"{NOTES}{text}"], "utf-16") is None
