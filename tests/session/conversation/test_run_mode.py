"""The permission mode of a run: never more than the user's, and less where the run may only read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from codeagent_lsp.session.conversation.conversation import RunMode
from codeagent_lsp.session.run_planner import RunPlanner
from codeagent_lsp.tools.permissions.policy import Mode


@dataclass
class FakePlanner:
    reading_only: bool = False


def mode_of(kind: str, planner: FakePlanner, modes: list[Mode]) -> RunMode:
    return RunMode(kind, cast("RunPlanner", planner), lambda: modes[-1])


def test_it_follows_the_users_mode() -> None:
    modes: list[Mode] = ["ask"]
    mode = mode_of("run", FakePlanner(), modes)
    assert (mode.offered(), mode.now()) == ("ask", "ask")
    modes.append("bypass")
    assert (mode.offered(), mode.now()) == ("bypass", "bypass")


@pytest.mark.parametrize("kind", ["ask", "explain"])
def test_an_answer_changes_nothing(kind: str) -> None:
    mode = mode_of(kind, FakePlanner(), ["bypass"])
    assert (mode.offered(), mode.now()) == ("readOnly", "readOnly")


def test_while_only_reading_tools_are_offered_and_refused() -> None:
    planner = FakePlanner(reading_only=True)
    mode = mode_of("run", planner, ["acceptEdits"])
    assert (mode.offered(), mode.now()) == ("acceptEdits", "readOnly")
    planner.reading_only, mode.reading = False, True
    assert mode.now() == "readOnly"
    mode.reading = False
    assert mode.now() == "acceptEdits"
