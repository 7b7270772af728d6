"""Nothing is repaired that the servers do not prove: with servers that say whatever they like, in time or not."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.inline.finish_change.finishing import Finished, changed_declarations, finish
from codeagent_lsp.language_servers.session_servers import FoundDiagnostics
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers
from codeagent_lsp.workspace.files.paths import Roots
from tests.examples import examples
from tests.language_servers.rig import Staged

LIB, USE, MORE = "/w/lib.py", "/w/use.py", "/w/more.py"
OLD = {LIB: "def load(name, folder): ...\n"}
NOW = {
    LIB: "def load(name): ...\n",
    USE: "from lib import load\n\nload(1, 2)\nload(3, folder=4)\nvalue = load(5, 6)\n",
    MORE: "import lib\n\nlib.load(\n    9,\n    10,\n)\nlib.load(11, 12)\n",
}

Says = Callable[[str, str, bool], str]
"""Returns what is wrong with a line of a file, '' for nothing; whether the definition is as before."""


def old_calls(path: str, line: str, is_before: bool) -> str:
    """What a real server says: two arguments are too many now."""
    return "" if is_before or path == LIB or "load(" not in line or "," not in line else "too many"


class Servers:
    """Servers that check line by line, by the texts of the view that they are asked about; `late` are unknown files."""

    def __init__(self, says: Says, late: Sequence[str] = ()) -> None:
        self._says = says
        self._late = late
        self.asked = 0

    def errors(self, texts: Mapping[str, str], path: str) -> list[tuple[int, str]]:
        is_before = texts[LIB] == OLD[LIB]
        lines = enumerate(texts[path].split("\n"))
        return [(number, said) for number, line in lines if (said := self._says(path, line, is_before))]

    async def diagnostics(
        self, view: FileView, paths: Sequence[str], seconds: float
    ) -> dict[str, tuple[FoundDiagnostics, ...] | None]:
        self.asked += 1
        texts = {path: view.staged_text(path) for path in NOW}  # type: ignore[attr-defined]
        found: dict[str, tuple[FoundDiagnostics, ...] | None] = {}
        for path in paths:
            items = [
                {"range": {"start": {"line": line, "character": self._column(texts[path], line)}}, "message": said,
                 "severity": 1}
                for line, said in self.errors(texts, path)
            ]  # fmt: skip
            found[path] = None if path in self._late else (FoundDiagnostics("fake", items, texts[path], "utf-16"),)
        return found

    def _column(self, text: str, line: int) -> int:
        return max(text.split("\n")[line].find("load("), 0)


class View(FileView):
    """A view of these texts alone."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        staged = Staged()
        staged.texts.update(texts)
        super().__init__(Roots(["/w"]), NoBuffers(), staged)
        self._texts = {**NOW, **texts}

    def staged_text(self, path: str) -> str:
        return self._texts[path]


async def finished(servers: Servers) -> Finished:
    return await finish(changed_declarations(OLD, NOW), OLD, NOW, servers, View, 5.0)


async def test_what_is_proved_is_repaired() -> None:
    found = await finished(Servers(old_calls))
    assert found.texts[USE] == "from lib import load\n\nload(1)\nload(3)\nvalue = load(5)\n"
    assert found.texts[MORE].endswith("lib.load(11)\n")


async def test_a_file_that_no_server_knows_is_left() -> None:
    found = await finished(Servers(old_calls, late=[USE]))
    assert USE not in found.texts
    assert MORE in found.texts
    nothing = await finished(Servers(old_calls, late=list(NOW)))
    assert (dict(nothing.texts), nothing.checked) == ({}, False)


async def test_a_repair_with_an_error_of_its_own_is_taken_out_alone() -> None:
    def says(path: str, line: str, is_before: bool) -> str:
        return "three is bad" if line == "load(3)" else old_calls(path, line, is_before)

    found = await finished(Servers(says))
    assert "load(1)\nload(3, folder=4)\n" in found.texts[USE]
    assert [each.line for each in found.left if each.path == USE] == [3]


async def test_what_the_server_does_not_call_wrong_is_left_alone() -> None:
    servers = Servers(lambda path, line, is_before: "")
    assert not (await finished(servers)).texts
    assert servers.asked == 1
    always = await finished(Servers(lambda path, line, is_before: "too many" if "load(" in line else ""))
    assert not always.texts, "it was wrong before"


async def test_it_ends_when_it_is_cancelled() -> None:
    class Waiting(Servers):
        async def diagnostics(
            self, view: FileView, paths: Sequence[str], seconds: float
        ) -> dict[str, tuple[FoundDiagnostics, ...] | None]:
            began.set()
            await asyncio.sleep(60)
            return {}

    began = asyncio.Event()
    task = asyncio.create_task(finished(Waiting(old_calls)))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.integers(), st.integers(1, 6), st.integers(1, 6))
def test_whatever_servers_say_nothing_new_is_wrong(seed: int, before: int, after: int) -> None:
    """A server that calls lines right and wrong by chance, but always the same line alike."""

    def says(path: str, line: str, is_before: bool) -> str:
        chance = hashlib.blake2b(f"{seed}{path}{line}{is_before}".encode(), digest_size=2).digest()[0]
        return f"wrong: {line}" if line and chance % (before if is_before else after) == 0 else ""

    servers = Servers(says)
    found = asyncio.run(finished(servers))
    final = {**NOW, **found.texts}
    for path in (USE, MORE):
        had = {said for _, said in servers.errors(NOW, path)}
        assert {said for _, said in servers.errors(final, path)} <= had, "no new error"
        if final[path] != NOW[path]:
            assert len(servers.errors(final, path)) < len(servers.errors(NOW, path)), "and fewer of the old ones"
