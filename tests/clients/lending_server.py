"""The real server, which also puts the questions of a test to the editor's other language servers.

`python lending_server.py FOLDER` answers every `FOLDER/N.question` (the arguments of `LentServers.ask`) with a
`FOLDER/N.answer`, a list of `[server, result, encoding]`. Not here: the questions.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from lsprotocol import types

from codeagent_lsp.app import create_server
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.server.clients import policy_of
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.run_services import LentServers
from codeagent_lsp.server.server import CodeAgentServer

PAUSE = 0.05


def main(folder: Path) -> None:
    """Serve on standard input and output."""
    server, tasks = create_server(), BackgroundTasks()

    async def begin() -> None:
        tasks.start(_serve(server, folder))

    server.on_started(begin)
    server.serve_stdio()


async def _serve(server: CodeAgentServer, folder: Path) -> None:
    policy = policy_of(types.InitializeParams(capabilities=server.client_capabilities))
    lent = LentServers(Client(server, policy=policy))
    while True:
        for question, arguments in _questions(folder):
            found = await lent.ask(**arguments)
            _write(question.with_suffix(".answer"), [[one.server, one.result, one.encoding] for one in found])
        await asyncio.sleep(PAUSE)


def _questions(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Take the questions that are there."""
    found = [(path, json.loads(path.read_text())) for path in folder.glob("*.question")]
    for path, _ in found:
        path.unlink()
    return found


def _write(path: Path, value: Any) -> None:
    """Write a file that is there only when it is whole."""
    path.with_suffix(".part").write_text(json.dumps(value))
    path.with_suffix(".part").rename(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
