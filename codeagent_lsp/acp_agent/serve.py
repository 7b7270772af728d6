"""The command `codeagent-lsp acp`: serves one client of the Agent Client Protocol on standard input and output.

Only the protocol goes to stdout. It ends when the client closes standard input, and on SIGTERM, SIGINT and SIGHUP, with
all that it has started. The library is imported late, as it is an extra and may be missing. Not here: what a client may
call (`agent.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from codeagent_lsp.errors import UsageError
from codeagent_lsp.system import STOP_SIGNALS, call_on_stop
from codeagent_lsp.terminal.display import user_locale
from codeagent_lsp.terminal.options import settings_of
from codeagent_lsp.texts import choose_language

DONE, USAGE = 0, 2  # exit codes
MOST_BYTES = 64 * 1024 * 1024
"""Of one message: pictures are in them."""
_log = logging.getLogger(__name__)


def acp_command(assignments: Iterable[str] = ()) -> int:
    """Serve a client on standard input and output until it closes them or a signal comes, and return the exit code: 0,
    or 2 if the library is missing or a setting is wrong. `assignments` are settings as `KEY=VALUE`.
    """
    language = choose_language("auto", user_locale())
    try:
        settings = dict(settings_of(assignments))
        if find_spec("acp") is None:
            raise UsageError("acp.needs_extra")
    except UsageError as error:
        sys.stderr.write(f"codeagent-lsp acp: {error.localized(language)}\n")
        return USAGE
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    asyncio.run(_serve(settings))
    return DONE


class Lines:
    """The library's transport over two streams: one JSON object a line, in UTF-8. Other lines are logged and skipped,
    while the library's own transport would end the process.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end of the stream. Lines that are no JSON object are skipped."""
        while True:
            try:
                line = await self._reader.readline()
                message = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError) as error:  # no JSON, or a line over the limit, which is dropped
                _log.warning("A message that cannot be read was passed over: %s", error)
                continue
            if not line:
                return None
            if isinstance(message, dict):
                return message

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message. ConnectionError if the client is gone."""
        # One call, so that messages of several tasks do not mix.
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self._writer.drain()

    async def close(self) -> None:
        """Close the stream to the client; messages that are not sent yet are lost."""
        self._writer.close()


async def _serve(settings: dict[str, object]) -> None:
    from acp import run_agent, stdio_streams  # late: see above

    from codeagent_lsp.acp_agent.agent import Agent  # late: it imports the library

    agent = Agent(user_locale(), settings)
    reader, writer = await stdio_streams(limit=MOST_BYTES)
    serving = asyncio.ensure_future(run_agent(agent, Lines(reader, writer), use_unstable_protocol=True))
    stopped = asyncio.Event()
    call_on_stop(asyncio.get_running_loop(), stopped.set, STOP_SIGNALS)
    stop = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait([serving, stop], return_when=asyncio.FIRST_COMPLETED)
    finally:
        await agent.close()
        for task in (serving, stop):
            task.cancel()
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(serving, stop, return_exceptions=True)
