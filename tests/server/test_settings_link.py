"""The layers of a server's settings: what a client said at the start holds until it says all of it anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from codeagent_lsp.server.front import SettingsLink
from codeagent_lsp.server.server import CodeAgentServer


class Answers:
    """A client that answers each request for our section with the next of these."""

    def __init__(self, *sections: Mapping[str, Any] | None) -> None:
        self._sections = list(sections)

    async def request(self, method: str, params: Any, seconds: float) -> list[Any]:
        return [self._sections.pop(0)]


async def applied(initial: Mapping[str, Any], *sections: Mapping[str, Any] | None) -> list[str]:
    """What `edits.apply` is after each answer."""
    link = SettingsLink(lambda problem: None, {})
    link.initialize(initial)
    server = cast(CodeAgentServer, Answers(*sections))
    found: list[str] = [link.settings.edits.apply]
    for _ in sections:
        await link.pull(server)
        found.append(link.settings.edits.apply)
    return found


LIVE = {"edits": {"apply": "live"}}


@pytest.mark.parametrize("first", [LIVE, {**LIVE, "language": "en"}])
async def test_a_client_that_says_all_of_it_anew_can_take_a_value_back(first: Mapping[str, Any]) -> None:
    assert await applied(LIVE, first, {"language": "en"}, LIVE) == ["live", "live", "review", "live"]


@pytest.mark.parametrize("first", [None, {}, {"language": "en"}, {"edits": {}}, {"edits": {"apply": "auto"}}])
async def test_of_one_that_answers_with_something_else_the_start_holds(first: Mapping[str, Any] | None) -> None:
    *_, last = await applied(LIVE, first, {})
    assert last == "live"
