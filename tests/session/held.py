"""The embedded model held by a grammar to the replies of a script: its server reads every prompt, writes every token
and keeps its cache as always; only the choice is not the model's. What a summary says is left to it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import pytest

from codeagent_lsp.agent.context.compaction import SUMMARISE
from codeagent_lsp.llm.calls.text_calls import render
from codeagent_lsp.llm.model import StreamItem
from codeagent_lsp.llm.providers.llamacpp import LlamaCppModel
from codeagent_lsp.llm.providers.scripted import ScriptedReply


def hold(replies: Iterable[ScriptedReply], monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on every llama.cpp server is asked for these replies, one after the other, each in its own words."""
    left = iter(replies)
    ask = LlamaCppModel._reply
    summary = SUMMARISE.partition("{")[0]

    def held(model: LlamaCppModel, body: dict[str, Any], url: str = "") -> AsyncGenerator[StreamItem, None]:
        if summary not in body["prompt"].rpartition("user\n")[2]:
            body = {**body, "grammar": f"root ::= {json.dumps(written(next(left)), ensure_ascii=False)}"}
        return ask(model, body, url)

    monkeypatch.setattr(LlamaCppModel, "_reply", held)


def written(reply: ScriptedReply) -> str:
    """A reply as a model without tools of its own writes it, and as it stands in the history."""
    return "\n".join(filter(None, (reply.text, *map(render, reply.tool_calls))))
