"""Real language servers on staged texts: diagnostics, references, renames, fixes; the disk stays as it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.language_servers.answers import (
    ServerAnswer,
    ServerQuestion,
    Texts,
    actions,
    hover_text,
    items,
    places,
)
from codeagent_lsp.language_servers.server_edits import server_edit
from codeagent_lsp.language_servers.session_servers import SessionServers
from codeagent_lsp.tools.diagnostics.difference import from_lsp
from tests.language_servers.real import missing, real_session
from tests.language_servers.rig import Workspace, nothing_left
from tests.language_servers.samples import PYTHON, SAMPLES, TYPESCRIPT, USERS, C, Sample
from tests.shadow.rig import snapshot

SECONDS = 60.0
FORTH_AND_BACK = 5


@dataclass
class Asked:
    """A sample project, and its servers."""

    sample: Sample
    project: Workspace
    servers: SessionServers

    async def errors(self, *names: str) -> dict[str, list[str] | None]:
        """The errors of files as they are staged; without linters."""
        paths = {self.project.path(name): name for name in names}
        found = await self.servers.diagnostics(self.project.view, list(paths), SECONDS)
        made: dict[str, list[str] | None] = dict.fromkeys(names)
        for path, each in found.items():
            if each is not None:
                read = (from_lsp(one.items, path, one.text, one.encoding) for one in each)
                made[paths[path]] = [item.message for one in read for item in one if item.severity == "error"]
        return made

    async def ask(self, method: str, name: str, word: str, server: str = "", **more: Any) -> list[ServerAnswer]:
        """Ask about the first place of a word."""
        text = self.project.view.read(self.project.path(name)).text
        start = text.index(word) if word else 0
        end = start + len(word) if method == "textDocument/codeAction" else None
        question = ServerQuestion(method, self.project.path(name), start, end, more, server)
        answers = await self.servers.ask(self.project.view, question, SECONDS)
        return list(answers)

    def texts(self) -> Texts:
        return Texts(self.project.view)


@pytest.fixture(params=SAMPLES, ids=lambda sample: sample.server)
async def asked(request: pytest.FixtureRequest, workspace: Path, tmp_path: Path) -> AsyncIterator[Asked]:
    sample: Sample = request.param
    if reason := missing(sample.server):
        pytest.skip(reason)
    sample.lay(workspace)
    before = snapshot(workspace)
    async with nothing_left(), real_session(tmp_path / "state") as servers:
        yield Asked(sample, Workspace(workspace), servers)
        assert servers.take_troubles() == []
    assert snapshot(workspace) == before, "the disk is as it was"


async def test_diagnostics_of_what_is_staged(asked: Asked) -> None:
    sample, project = asked.sample, asked.project
    library, user = sample.library, sample.user(0)
    assert await asked.errors(library, user) == {library: [], user: []}
    project.stage(library, sample.bad)
    assert len((await asked.errors(library))[library] or []) == 1
    project.stage(library, None if sample.deletable else sample.files[library])
    assert sample.deletable == bool((await asked.errors(user))[user]), "what it uses is gone"
    del project.staged.texts[project.path(library)]
    assert await asked.errors(library, user) == {library: [], user: []}
    project.stage(*sample.fresh)
    project.stage(user, sample.wrong_use)
    assert len((await asked.errors(user))[user] or []) == 1, "a new file is known"
    project.staged.texts.clear()
    assert (await asked.errors(user))[user] == []


@pytest.mark.journey
async def test_another_file_that_a_change_breaks(asked: Asked) -> None:
    sample, project = asked.sample, asked.project
    broken = sample.library if sample is C else sample.user(3)
    assert (await asked.errors(broken))[broken] == []
    for _ in range(FORTH_AND_BACK):
        project.stage(sample.library, sample.changed)
        assert len((await asked.errors(broken))[broken] or []) == 1
        project.staged.texts.clear()
        assert (await asked.errors(broken))[broken] == [], "nothing of the text before"


async def test_references_and_renames_of_staged_text(asked: Asked) -> None:
    """Two files have a line more than on the disk."""
    sample, project = asked.sample, asked.project
    users = [sample.user(number) for number in range(USERS)]
    for name in (sample.library, users[7]):
        project.stage(name, sample.comment + (project.folder / name).read_text())
    (answer,) = await asked.ask(
        "textDocument/references", sample.library, "total", sample.server, context={"includeDeclaration": True}
    )
    found = places(answer, asked.texts())
    assert {Path(place.path).name for place in found} >= {*users, sample.library}
    assert all("total" in place.text for place in found)
    (answer,) = await asked.ask("textDocument/rename", sample.library, "total", sample.server, newName="summe")
    edit = server_edit(answer, answer.result, asked.texts())
    assert {Path(path).name for path in edit.texts} >= {*users, sample.library}
    for path, text in edit.texts.items():
        assert text == project.view.read(path).text.replace("total", "summe")


async def test_hover_and_calls(asked: Asked) -> None:
    sample = asked.sample
    (answer,) = await asked.ask("textDocument/hover", sample.user(0), "total(", sample.server)
    assert "total" in hover_text(answer)
    (answer,) = await asked.ask("textDocument/prepareCallHierarchy", sample.library, "total", sample.server)
    (item,) = items(answer, asked.texts())
    assert item.name.startswith("total")
    (answer,) = await asked.ask("callHierarchy/incomingCalls", sample.library, "", sample.server, item=item.raw)
    assert len(items(answer, asked.texts(), "from")) >= USERS - 1


@pytest.mark.parametrize("asked", [PYTHON, TYPESCRIPT, C], indirect=True, ids=lambda sample: str(sample.server))
async def test_a_quick_fix(asked: Asked) -> None:
    text, word, fixed = asked.sample.fix
    name = f"broken.{asked.sample.suffix}"
    asked.project.stage(name, text)
    server = "ruff" if asked.sample is PYTHON else asked.sample.server
    made: list[str] = []
    async with asyncio.timeout(120):
        while not any(fixed in each and each != text for each in made):  # it may still read its project
            answers = await asked.ask("textDocument/codeAction", name, word, server, context={"diagnostics": []})
            made = await texts_made(asked, name, answers)
            await asyncio.sleep(0.2)


async def texts_made(asked: Asked, name: str, answers: Sequence[ServerAnswer]) -> list[str]:
    """The text of a file after each of the actions, '' where one does not change it."""
    made = []
    for answer in answers:
        for action in actions(answer):
            edit = action.raw.get("edit")
            if edit is None:
                resolved = await asked.ask("codeAction/resolve", name, "", answer.server, item=action.raw)
                edit = resolved[0].result.get("edit") if resolved else None
            with suppress(EditRefused):  # TypeScript writes the end of a text as a place behind its last line
                texts = server_edit(answer, edit, asked.texts()).texts if edit else {}
                made.append(texts.get(asked.project.path(name)) or "")
    return made


@pytest.mark.parametrize("name", ["rust-analyzer", "jdtls"])
async def test_what_no_registry_has(name: str) -> None:
    if reason := missing(name):
        pytest.skip(reason)


async def test_a_program_that_only_has_the_name_fails_once(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rustup puts a `rust-analyzer` on PATH that says that it is not installed."""
    if reason := missing("ruff"):  # only for the sandbox
        pytest.skip(reason)
    folder = workspace / "node_modules" / ".bin"
    folder.mkdir(parents=True)
    program = folder / "rust-analyzer"
    program.write_text("#!/bin/sh\necho \"error: Unknown binary 'rust-analyzer' in official toolchain\" >&2\nexit 1\n")
    program.chmod(0o755)
    project = Workspace(workspace)
    project.write("Cargo.toml", '[package]\nname = "x"\n')
    path = project.write("a.rs", "fn main() {}\n")
    async with real_session(tmp_path / "state") as servers:
        for _ in range(3):
            assert await servers.ask(project.view, ServerQuestion("textDocument/hover", path, 3), 20) == ()
        assert [line for line in servers.take_troubles() if "Unknown binary" in line] != []
        assert servers.installed(project.view, path) == ()
