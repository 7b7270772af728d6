"""The lenses of open questions."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from codeagent_lsp.server.waiting import waiting_items
from codeagent_lsp.session.inbox import OpenQuestion
from codeagent_lsp.tools.asking import Question

CHOICES = ("Deny", "Allow once")


@pytest.mark.parametrize(("title", "offered"), [("Allow run_cmd: make?", 2), ("Allow run_cmd: " + "x" * 300, 1)])
async def test_a_lens_allows_nothing_that_it_does_not_show(title: str, offered: int) -> None:
    question = Question("approval", title, CHOICES)
    item = OpenQuestion("id", "run", question, asyncio.get_running_loop().create_future())
    inbox = SimpleNamespace(open=lambda: (item,))
    manager = SimpleNamespace(runs=SimpleNamespace(all=tuple, active=tuple))
    (waiting,) = waiting_items(cast(Any, inbox), cast(Any, manager), "en")
    assert [title for title, _, _ in waiting.actions] == list(CHOICES[:offered])
