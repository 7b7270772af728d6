"""Never a diagnostic of an older text: random orders of changes, new files, deletions and back, by seed."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.language_servers.session_servers import SessionServers
from codeagent_lsp.workspace.files import uris
from tests.examples import volume
from tests.language_servers.real import missing, real_session
from tests.language_servers.rig import Workspace, fake, messages, session

MARKER = re.compile(r"undefined_\d+")
NAMES = ("a", "b", "c", "d")
SECONDS = 60.0


class Edits:
    """Random changes of some files, of which each text has markers of its own."""

    def __init__(self, project: Workspace, chance: random.Random, suffix: str) -> None:
        self.project = project
        self.chance = chance
        self.suffix = suffix
        self.count = 0

    def text(self) -> str:
        """Return a text that nothing had before, with none to three markers."""
        self.count += 1
        uses = "".join(f"undefined_{self.count}{number};\n" for number in range(self.chance.randrange(4)))
        return f"{'# ' if self.suffix == 'py' else '// '}{self.count}\n{uses}"

    def make(self) -> None:
        """Change one file: a new text, the disk's again, an older one, or none."""
        name = f"{self.chance.choice(NAMES)}.{self.suffix}"
        path, staged = self.project.path(name), self.project.staged.texts
        match self.chance.choice(("change", "change", "back", "delete")):
            case "change":
                staged[path] = self.text()
            case "back":
                staged.pop(path, None)
            case "delete" if self.project.view.exists(path):
                staged[path] = None
            case _:
                staged[path] = self.text()

    def expected(self, name: str) -> list[str]:
        """The markers in the text of a file, as the run sees it."""
        return sorted(MARKER.findall(self.project.view.read(self.project.path(name)).text))

    def there(self) -> list[str]:
        """The files that exist."""
        names = [f"{name}.{self.suffix}" for name in NAMES]
        return [name for name in names if self.project.view.exists(self.project.path(name))]


def started(workspace: Path, seed: int, suffix: str) -> Edits:
    project = Workspace(workspace)
    edits = Edits(project, random.Random(seed), suffix)
    for name in NAMES[:2]:
        project.write(f"{name}.{suffix}", edits.text())
    return edits


async def checked(edits: Edits, servers: SessionServers, rounds: int, seconds: float) -> int:
    """Make random edits, some while answers are awaited; return how many answers were right. Fails for a wrong one."""
    right = 0
    for _ in range(rounds):
        for _ in range(edits.chance.randrange(1, 4)):
            edits.make()
        names = edits.there()
        if not names:
            continue
        asked = edits.chance.sample(names, edits.chance.randrange(1, len(names) + 1))
        wanted = {edits.project.path(name): edits.expected(name) for name in asked}
        work = asyncio.create_task(servers.diagnostics(edits.project.view, list(wanted), seconds))
        if edits.chance.random() < 0.3:
            await asyncio.sleep(edits.chance.random() * 0.03)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            continue
        for path, found in (await work).items():
            if found is not None:
                assert markers(found) == wanted[path], path
                right += 1
    return right


def markers(found: Any) -> list[str]:
    return sorted({match for message in messages(found) or () for match in MARKER.findall(message)})


@pytest.mark.slow
@pytest.mark.parametrize("way", ["pull", "push", "quiet"])
@pytest.mark.parametrize("seed", range(volume(40)))
async def test_a_slow_server_that_answers_out_of_order(workspace: Path, tmp_path: Path, way: str, seed: int) -> None:
    edits = started(workspace, seed, "txt")
    async with session(tmp_path / "state", fake("--delay", "0.03", way=way)) as servers:
        right = await checked(edits, servers, 15, SECONDS)
        names = edits.there()
        found = await servers.diagnostics(edits.project.view, [edits.project.path(name) for name in names], SECONDS)
        assert [markers(found[edits.project.path(name)]) for name in names] == [edits.expected(name) for name in names]
        assert right, "something was answered"
        assert servers.take_troubles() == []


@pytest.mark.slow
async def test_files_that_use_others(workspace: Path, tmp_path: Path) -> None:
    """A text that is unchanged has other diagnostics because of one that changed."""
    project = Workspace(workspace)
    used = project.write("used.txt", "undefined_1\n")
    user = project.write("user.txt", f"uses {uris.from_path(used)}\n")
    async with session(tmp_path / "state", fake(way="pull")) as servers:
        for number in range(2, 12):
            project.stage("used.txt", f"undefined_{number}\n")
            found = await servers.diagnostics(project.view, [user], SECONDS)
            assert messages(found[user]) == [f"undefined_{number}"]


@pytest.mark.slow
@pytest.mark.parametrize(("server", "suffix"), [("basedpyright", "py"), ("typescript-language-server", "ts")])
@pytest.mark.parametrize("seed", range(volume(10)))
async def test_real_servers(workspace: Path, tmp_path: Path, server: str, suffix: str, seed: int) -> None:
    if reason := missing(server):
        pytest.skip(reason)
    edits = started(workspace, seed, suffix)
    for name, text in {"tsconfig.json": '{"compilerOptions": {"strict": true}}', "pyproject.toml": ""}.items():
        edits.project.write(name, text)
    async with real_session(tmp_path / "state") as servers:
        assert await checked(edits, servers, 15, SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize(("server", "suffix"), [("basedpyright", "py"), ("typescript-language-server", "ts")])
async def test_real_servers_and_files_that_use_others(
    workspace: Path, tmp_path: Path, server: str, suffix: str
) -> None:
    """The user of a module hears of each change of it at once: names that come and go."""
    if reason := missing(server):
        pytest.skip(reason)
    project, chance = Workspace(workspace), random.Random(5)
    lines = ("{} = 1\n", "import used\n\nprint(used.{})\n")
    if suffix == "ts":
        lines = ("export const {} = 1;\n", "import * as used from './used';\n\nconsole.log(used.{});\n")
        project.write("tsconfig.json", '{"compilerOptions": {"strict": true, "module": "commonjs"}}')
    project.write(f"used.{suffix}", lines[0].format("name_0"))
    user = project.write(f"user.{suffix}", lines[1].format("name_0"))
    async with real_session(tmp_path / "state") as servers:
        for number in range(12):
            there, wanted = f"name_{chance.randrange(3)}", f"name_{chance.randrange(3)}"
            if number % 4 == 3:
                project.stage(f"used.{suffix}", None)
            else:
                project.stage(f"used.{suffix}", lines[0].format(there))
            project.stage(f"user.{suffix}", lines[1].format(wanted))
            found = await servers.diagnostics(project.view, [user], SECONDS)
            errors = [item for each in found[user] or () for item in each.items if item["severity"] == 1]
            assert found[user] is not None
            assert bool(errors) == (number % 4 == 3 or there != wanted), (number, there, wanted, errors)
