"""Allowed commands really run, in a workspace of traps: nothing inside or outside is different afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from codeagent_lsp.tools.permissions.shell_policy import judge
from tests.examples import volume
from tests.tools.permissions.shell.arena import Arena
from tests.tools.permissions.shell.cases import ALLOWED
from tests.tools.permissions.shell.everyday import EVERYDAY
from tests.tools.permissions.shell.generated import from_grammars, mutants

QUIET = tuple(command for command in (*ALLOWED, *EVERYDAY) if "sleep" not in command)


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena(tmp_path)


def allowed(commands: Iterator[str], count: int) -> list[str]:
    """The first `count` different commands that run without a question."""
    found = (text for text in commands if "sleep" not in text and "\0" not in text and judge(text).decision == "allow")
    return list(islice(dict.fromkeys(islice(found, count * 2)), count))


def test_the_arena_sees_effects_and_who_had_them(arena: Arena) -> None:
    commands = ["ls", "touch made", "cat a.txt", "chmod 600 b.txt", "echo a > link/secret.txt"]
    assert arena.culprits(commands) == ["touch made", "chmod 600 b.txt", "echo a > link/secret.txt"]
    assert arena.effects_of(["cat a.txt", "true"]) == []


def test_what_only_looks_changes_nothing(arena: Arena) -> None:
    assert arena.culprits(QUIET[::4]) == []


def test_generated_commands_change_nothing(arena: Arena) -> None:
    assert arena.culprits(allowed(from_grammars(1), 60)) == []


def test_changed_commands_that_are_still_allowed_change_nothing(arena: Arena) -> None:
    assert arena.culprits([text for text in islice(mutants(1), 400) if judge(text).decision == "allow"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(volume(6)))
def test_many_generated_commands_change_nothing(arena: Arena, seed: int) -> None:
    assert arena.culprits(allowed(from_grammars(100 + seed), 600)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(volume(4)))
def test_many_changed_commands_that_are_still_allowed_change_nothing(arena: Arena, seed: int) -> None:
    found = [
        text for text in islice(mutants(100 + seed), 6_000) if "sleep" not in text and judge(text).decision == "allow"
    ]
    assert len(found) > 300
    assert arena.culprits(found) == []
