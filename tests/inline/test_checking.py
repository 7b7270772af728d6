"""Suggestions that would bring an error: dropped for the next answer, by servers that run, on exactly that text.

To the server of these tests every name `undefined_<n>` is an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.errors import ModelError
from codeagent_lsp.inline.checking import SuggestionChecks
from codeagent_lsp.inline.completer import Completer, Options
from codeagent_lsp.inline.context import Material, Place
from codeagent_lsp.language_servers.known import KnownServer
from codeagent_lsp.language_servers.session_servers import SessionServers
from tests.inline.test_completer import Typewriter
from tests.language_servers.rig import Workspace, fake, messages, session

NOW = Options(pause=0.0)
SECONDS = 20.0
TEXT = "def add(a, b):\n    return undefined_1\n\n\nx = \n"


class Checked:
    """A completer on the file `x.py` of a workspace, whose answers are checked by `servers`."""

    def __init__(self, project: Workspace, servers: SessionServers, answers: list[str], text: str = TEXT) -> None:
        self.filler = Typewriter(lambda request: answers[min(request.sample, len(answers) - 1)])
        self.project = project
        self.servers = servers
        self.path = project.write("x.py", text)
        self.place = Place("x.py", text, len(text) - 1, file=self.path)
        checks = SuggestionChecks(lambda: [servers], lambda: project.view)
        self.errors: list[ModelError] = []
        self.completer = Completer(self.filler, nothing, lambda text: text, self.errors.append, checks.begin)

    async def warmed(self) -> Checked:
        """Start the servers, as a run would."""
        await self.servers.diagnostics(self.project.view, [self.path], SECONDS)
        return self

    async def answer(self) -> str:
        return await self.completer.complete(self.place, NOW)

    def samples(self) -> list[int]:
        return [request.sample for request in self.filler.requests]


async def nothing(place: Place) -> Material:
    return Material()


@pytest.fixture
def project(tmp_path: Path) -> Workspace:
    (tmp_path / "ws").mkdir()
    return Workspace(tmp_path / "ws")


def server(way: str, *words: str) -> KnownServer:
    return fake(*words, way=way, suffix="py")


@pytest.fixture(params=["pull", "push"])
async def servers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SessionServers]:
    async with session(tmp_path / "state", server(request.param)) as made:
        yield made


@pytest.mark.slow
async def test_an_answer_that_brings_an_error_is_dropped_for_the_next(
    project: Workspace, servers: SessionServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine's check is waited for.
    monkeypatch.setattr("codeagent_lsp.inline.checking.LATE_SECONDS", SECONDS)
    checked = await Checked(project, servers, ["undefined_2\n", "add(1, 2)\n"]).warmed()
    assert await checked.answer() == "add(1, 2)"
    assert checked.samples() == [0, 1] and checked.completer.counts.dropped == 1
    assert await checked.answer() == "add(1, 2)" and checked.samples() == [0, 1], "and is known"


@pytest.mark.slow
async def test_nothing_is_suggested_where_the_next_brings_one_too(project: Workspace, servers: SessionServers) -> None:
    checked = await Checked(project, servers, ["undefined_2\n", "undefined_3\n"]).warmed()
    assert await checked.answer() == ""
    assert await checked.answer() == "" and checked.samples() == [0, 1], "which is known, too"


@pytest.mark.slow
async def test_the_same_answer_again_is_not_checked_again(project: Workspace, servers: SessionServers) -> None:
    checked = await Checked(project, servers, ["undefined_2\n"]).warmed()
    assert await checked.answer() == ""
    assert checked.samples() == [0, 1]


@pytest.mark.slow
async def test_an_error_that_is_there_already_is_none_of_the_suggestion(
    project: Workspace, servers: SessionServers
) -> None:
    checked = await Checked(project, servers, ["add(1, 2)\n"]).warmed()
    assert await checked.answer() == "add(1, 2)"
    again = await Checked(project, servers, [" + 1\n"], "x = undefined_1\n").warmed()
    assert await again.answer() == " + 1", "also in the line itself"


@pytest.mark.slow
async def test_the_unsaved_text_is_what_counts_and_stays(project: Workspace, servers: SessionServers) -> None:
    checked = await Checked(project, servers, ["undefined_2\n", "1\n"]).warmed()
    project.stage("x.py", TEXT)
    project.write("x.py", "# saved\n")
    assert await checked.answer() == "1"
    found = await servers.diagnostics(project.view, [checked.path], SECONDS)
    assert messages(found[checked.path]) == ["undefined_1"], "a question after it sees the text of the user"
    saved = project.view.saved(checked.path)
    assert saved is not None and saved.text == "# saved\n"


async def test_no_server_is_started_for_it(project: Workspace, servers: SessionServers) -> None:
    checked = Checked(project, servers, ["undefined_2\n"])
    assert await checked.answer() == "undefined_2"
    assert servers.names == ()


@pytest.mark.slow
async def test_an_unfinished_answer_cannot_be_judged(project: Workspace, servers: SessionServers) -> None:
    checked = await Checked(project, servers, ["add(undefined_2,\n"]).warmed()
    assert await checked.answer() == "add(undefined_2,"


@pytest.mark.slow
async def test_a_server_at_work_for_a_run_is_not_waited_for(project: Workspace, tmp_path: Path) -> None:
    async with session(tmp_path / "state", server("pull", "--delay", "3")) as servers:
        checked = await Checked(project, servers, ["undefined_2\n"]).warmed()
        asked = asyncio.create_task(servers.diagnostics(project.view, [checked.path], SECONDS))
        await asyncio.sleep(0.05)
        assert servers.busy
        async with asyncio.timeout(1.0):
            assert await checked.answer() == "undefined_2"
        asked.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("point", ["textDocument/diagnostic=hang", "textDocument/diagnostic=die"])
async def test_a_server_that_fails_costs_no_suggestion(project: Workspace, tmp_path: Path, point: str) -> None:
    async with session(tmp_path / "state", server("pull", point)) as servers:
        checked = Checked(project, servers, ["undefined_2\n"])
        await servers.diagnostics(project.view, [checked.path], 0.5)
        async with asyncio.timeout(5.0):
            assert await checked.answer() == "undefined_2"


@pytest.mark.slow
async def test_typing_another_way_ends_the_check(project: Workspace, servers: SessionServers) -> None:
    checked = await Checked(project, servers, ["undefined_2\n"]).warmed()
    asked = asyncio.create_task(checked.answer())
    await asyncio.sleep(0.02)
    assert checked.filler.requests
    checked.completer.moved("x.py", TEXT[:-1] + "q\n")
    assert await asked == ""
    await checked.completer.close()


NAMES = st.sampled_from(["undefined_1", "undefined_2", "undefined_3", "add", "a1", "1"])
ANSWERS = st.lists(st.lists(NAMES, min_size=1, max_size=3).map(" + ".join), min_size=1, max_size=2)


@pytest.mark.slow  # a server for each example
@pytest.mark.hypothesis
@given(st.lists(NAMES, max_size=4), ANSWERS)
def test_never_a_new_error_and_nothing_fine_is_dropped(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], answers: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("checked")
    (folder / "ws").mkdir()
    text = "".join(f"y = {name}\n" for name in before) + "x = \n"

    async def play() -> str:
        # What is known too late is shown as it is: another matter.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("codeagent_lsp.inline.checking.LATE_SECONDS", SECONDS)
            return await asked()

    async def asked() -> str:
        async with session(folder / "state", server("pull")) as servers:
            project = Workspace(folder / "ws")
            checked = await Checked(project, servers, [f"{answer}\n" for answer in answers], text).warmed()
            return await checked.answer()

    shown = asyncio.run(play())
    fine = [each for each in answers if not any(name.startswith("undefined") for name in each.split(" + "))]
    assert not any(name.startswith("undefined") for name in shown.split(" + "))
    assert shown == (fine[0] if fine else "")
