"""The commands `codeagent.prompt`, `prompt.send` and `prompt.complete`.

Not here: the documents (`server/prompt_documents.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from codeagent_lsp.server.commands.convert import Arguments, Later, Table, attached

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.server.prompt_documents import Prompting

TWICE_SECONDS = 2.0
"""A document that is sent again with the same words within this time was clicked twice."""


def prompt_commands(
    backend: Backend,
    prompting: Prompting,
    start: Callable[[Arguments], Awaitable[dict[str, Any]]],
    later: Later,
) -> Table:
    """Return the handlers by command name; `start` starts a run from a command's arguments, `later` runs work after the
    answer.
    """

    sending = asyncio.Lock()
    just_sent: dict[tuple[str, str, str], tuple[float, dict[str, Any]]] = {}

    def open_document(given: Arguments) -> dict[str, Any]:
        span = given.get("range")
        pointed = "uri" in given and (span is None or span["start"] != span["end"])
        mentioned = attached({"attachments": [given]}, backend.views.plain()) if pointed else ""
        words = " ".join(filter(None, (given.get("text", ""), mentioned)))
        prompting.completion.warm()
        later(prompting.documents.open(f"{words} " if mentioned else words, backend.front.language()))
        return {}

    async def send(given: Arguments) -> dict[str, Any]:
        words = prompting.documents.task(given["uri"])
        chosen = {key: given[key] for key in ("mode", "attempts", "sessionId") if key in given}
        asked = (given["uri"], words, repr(chosen))
        # The second click waits for the start that the first one began, and gets its answer.
        async with sending:
            if asked not in just_sent or time.monotonic() - just_sent[asked][0] > TWICE_SECONDS:
                answer = await start({"task": words, **chosen})
                # Only the last one: an older one cannot be a second click.
                just_sent.clear()
                just_sent[asked] = (time.monotonic(), answer)
        prompting.documents.sent(given["uri"])
        return just_sent[asked][1]

    async def complete(given: Arguments) -> list[dict[str, Any]]:
        return await prompting.completion.complete_text(given["text"])

    return {"codeagent.prompt.complete": complete, "codeagent.prompt": open_document, "codeagent.prompt.send": send}
