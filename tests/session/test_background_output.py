"""What is heard of commands in the background: values are never shown in parts, and every command is recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeagent_lsp.shadow.shell import Command, Shell
from codeagent_lsp.tools.commands.background import BackgroundCommands
from codeagent_lsp.tools.variables.variables import Variables
from tests.session.hooks.real_shadows import RealShadows
from tests.shadow.fakes import Desk, desk
from tests.shadow.rig import needs_overlay

pytestmark = needs_overlay

VALUE = "first-half-and-other-half"


class Rig:
    """Background commands over a folder, with one value that they know, and a record of all commands."""

    def __init__(self, ws: Desk, shadows: RealShadows) -> None:
        self.ws, self._shadows = ws, shadows
        self.recorded: list[tuple[str, int | None]] = []
        self.variables = Variables()
        self.variables.keep("KEY", VALUE)
        self.commands = BackgroundCommands(
            self._shell, shadows.close, lambda words, folder, level, code: self._record(words, code), self.variables
        )

    async def start(self, script: str, ready: str) -> str:
        return (await self.commands.start(Command(script, str(self.ws.root)), ready, 20)).text

    async def heard(self, seconds: float = 10) -> str:
        return (await self.commands.output("bg1", seconds)).text

    async def _shell(self, name: str) -> Shell:
        return await self._shadows.shell(name, self.ws.view, self.ws.staging, self._approve)

    async def _approve(self, paths: tuple[str, ...]) -> bool:
        return True

    def _record(self, words: str, code: int | None) -> None:
        self.recorded.append((words, code))


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    shadows = RealShadows(tmp_path / "state")
    made = Rig(desk(tmp_path / "w"), shadows)
    yield made
    made.commands.close()
    await shadows.close()


async def test_a_value_that_comes_in_halves_is_masked(rig: Rig) -> None:
    text = await rig.start("printf 'up first-half-'; read -t 2 <> <(:); echo and-other-half; exec sleep 986.5", "first")
    text += await rig.heard() + await rig.heard(1)
    assert text.replace("\n", "") == "up [$KEY]"


async def test_a_value_beside_is_masked(rig: Rig) -> None:
    await rig.start("echo up; sleep 981.5", "up")
    assert await rig.commands.beside("bg1", f"echo {VALUE}", 10) == ("[$KEY]", 0)


async def test_a_question_is_heard(rig: Rig) -> None:
    await rig.start("printf 'Password: '; sleep 985.5", "Password")
    assert await rig.heard(1) == "Password: "


async def test_the_end_of_what_was_left_out_is_no_half_of_a_value(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeagent_lsp.tools.commands.background.MOST_UNREAD", 300)
    await rig.start(f"for i in $(seq 40); do echo $i {VALUE}; done; echo end; sleep 984.5", "end")
    text = await rig.heard(1)
    assert "half" not in text


@pytest.mark.parametrize("character", ["x", "中", "🙂"])
async def test_long_lines_beside_do_not_meet_those_of_the_command(rig: Rig, character: str) -> None:
    await rig.start("while :; do echo own; done & sleep 5; kill $!; sleep 983.5", "own")
    script = f"for i in 1 2 3; do printf '{character}%.0s' $(seq 9000); echo; done; printf '{character}%.0s' $(seq 900)"
    text, code = await rig.commands.beside("bg1", script, 30)
    assert text.split("\n") == [character * 9000] * 3 + [character * 900]
    assert code == 0
    assert set((await rig.heard()).split("\n")) <= {"(the beginning is left out)", "own", "ow", "o", ""}


async def test_every_command_and_its_end_is_recorded(rig: Rig) -> None:
    await rig.start("echo up; sleep 982.5", "up")
    await rig.commands.beside("bg1", "exit 3", 10)
    await rig.commands.stop("bg1")
    assert rig.recorded == [
        ("echo up; sleep 982.5", None),
        ("exit 3", None),
        ("exit 3", 3),
        ("echo up; sleep 982.5", 137),
    ]
