"""The lenses of open questions."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from codeagent_lsp.server.actions import Waiting
from codeagent_lsp.server.backend import waiting_items
from codeagent_lsp.session.inbox import OpenQuestion
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question, agent_asks

CHOICES = ("Deny", "Allow once")


def waits_for(question: Question) -> Waiting:
    item = OpenQuestion("id", "run", question, asyncio.get_running_loop().create_future())
    inbox = SimpleNamespace(open=lambda: (item,))
    manager = SimpleNamespace(runs=SimpleNamespace(all=tuple, active=tuple))
    (waiting,) = waiting_items(cast("Any", inbox), cast("Any", manager), "en")
    return waiting


@pytest.mark.parametrize("by_agent", [True, False])
async def test_the_lens_of_a_question_says_once_who_asks(by_agent: bool) -> None:
    title = agent_asks("Why?", text) if by_agent else "Apply it?"
    waiting = waits_for(Question("question", title, ("Yes",), by_agent=by_agent))
    assert waiting.title == ("The agent asks: Why? ·" if by_agent else "Agent asks: Apply it? ·")


@pytest.mark.parametrize(("title", "offered"), [("Allow run_cmd: make?", 2), ("Allow run_cmd: " + "x" * 300, 1)])
async def test_a_lens_allows_nothing_that_it_does_not_show(title: str, offered: int) -> None:
    waiting = waits_for(Question("approval", title, CHOICES))
    assert [title for title, _, _ in waiting.actions] == list(CHOICES[:offered])
