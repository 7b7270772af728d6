"""Which text diagnostics are of that a server publishes, in an order that only we decide."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

from codeagent_lsp.language_servers import text_diagnostics
from codeagent_lsp.language_servers.server_connection import ServerConnection, ServerLate
from codeagent_lsp.language_servers.text_diagnostics import OpenTexts, TextDiagnostics
from codeagent_lsp.workspace.files import uris
from tests.language_servers.rig import fake

PATH = "/ws/a.txt"
LONG = 60.0


class Connection:
    """A server that answers requests once it has read what it was sent."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self.has_read = True

    def notify(self, method: str, params: Any) -> None:
        pass

    async def request(self, method: str, params: Any, seconds: float) -> None:
        if not self.has_read:
            raise ServerLate("It is busy.")


class Rig:
    """The diagnostics of one server that has `PATH` open."""

    def __init__(self, way: str = "push") -> None:
        self.connection = Connection()
        connection = cast("ServerConnection", self.connection)
        self.open = OpenTexts(fake(way=way), connection)
        self.diagnostics = TextDiagnostics(fake(way=way), connection, self.open)
        self.open.change(PATH, "one")

    def publish(self, item: str, **version: int | None) -> None:
        self.diagnostics.take({"uri": uris.from_path(PATH), "diagnostics": [item], **version})

    async def known(self) -> Any:
        """What is known without waiting."""
        return await self.diagnostics.of(PATH, time.monotonic(), pulls=False)


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(text_diagnostics, "QUIET_SECONDS", 0.0)
    return Rig()


async def test_the_last_word_counts(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server that reads on while it still looks at the text before."""
    monkeypatch.setattr(text_diagnostics, "QUIET_SECONDS", LONG)
    rig.open.change(PATH, "two")
    asking = asyncio.create_task(rig.diagnostics.of(PATH, time.monotonic() + LONG, pulls=False))
    rig.publish("of the text before")
    for _ in range(10):
        await asyncio.sleep(0)
    assert not asking.done()
    monkeypatch.setattr(text_diagnostics, "QUIET_SECONDS", 0.0)
    rig.publish("of this text")
    assert await asking == ["of this text"]


async def test_what_comes_without_a_version_is_of_the_text_that_was_sent_last(rig: Rig) -> None:
    assert await rig.known() is None
    rig.publish("one")
    assert await rig.known() == ["one"]
    rig.open.change(PATH, "two")
    assert await rig.known() is None
    rig.publish("two", version=None)
    assert await rig.known() == ["two"]


async def test_it_does_not_count_before_the_text_was_read(rig: Rig) -> None:
    rig.connection.has_read = False
    rig.publish("one")
    assert await rig.known() is None
    rig.connection.has_read = True
    assert await rig.known() == ["one"]


async def test_a_server_that_names_versions_is_believed_only_with_them(rig: Rig) -> None:
    rig.publish("one", version=1)
    rig.publish("without")
    assert await rig.known() == ["one"]
    rig.open.change(PATH, "two")
    rig.publish("without")
    rig.publish("one again", version=1)
    assert await rig.known() is None
    rig.publish("two", version=2)
    assert await rig.known() == ["two"]


async def test_what_is_of_a_closed_text_is_of_no_later_one(rig: Rig) -> None:
    rig.open.show({})
    rig.publish("cleared")
    rig.open.show({PATH: "one"})
    assert await rig.known() is None


async def test_what_a_quiet_server_says_of_the_disk_is_not_taken_for_the_text() -> None:
    """Or its text would be mended before the server has seen it broken, and then there is no news of it ever."""
    rig = Rig("quiet")
    asking = asyncio.create_task(rig.diagnostics.of(PATH, time.monotonic() + LONG, pulls=False))
    await asyncio.sleep(0)
    rig.publish("of the disk")
    for _ in range(10):
        await asyncio.sleep(0)
    assert rig.open.versions[PATH] == 2, "the broken text is still open"
    rig.publish("broken", version=2)
    for _ in range(10):
        await asyncio.sleep(0)
    assert rig.open.versions[PATH] == 3
    rig.publish("one", version=3)
    assert await asking == ["one"]
