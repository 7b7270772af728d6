"""The command `codeagent-lsp editor-mcp`: serves the user's editor to another agent over MCP on standard streams.

It ends when its client closes standard input, and on SIGTERM, SIGINT and SIGHUP. Only MCP messages go to stdout. Not
here: the parts. Heavy modules are imported late.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from importlib.util import find_spec
from pathlib import Path

from codeagent_lsp.errors import CodeAgentError, UsageError, UserError
from codeagent_lsp.mcp_server.command import DONE, FAILED, USAGE, until_one_ends
from codeagent_lsp.state import state_root


def editor_command(workspace: str, language: str) -> int:
    """Serve until the end and return the exit code. That no editor has the folder open is no error: one may come."""
    try:
        folder = Path(workspace).absolute()
        if not folder.is_dir():
            raise UsageError("terminal.folder", folder=workspace)
        if not find_spec("mcp"):
            raise UsageError("lend.needs_mcp")
    except UsageError as error:
        return _failed(error, language, USAGE)
    # On stderr, which clients show or keep.
    logging.basicConfig(level=logging.CRITICAL)
    try:
        asyncio.run(_served(str(folder)))
    except CodeAgentError as error:
        return _failed(error, language, FAILED)
    return DONE


def _failed(error: CodeAgentError, language: str, code: int) -> int:
    words = error.localized(language) if isinstance(error, UserError) else str(error)
    sys.stderr.write(f"codeagent-lsp editor-mcp: {words}\n")
    return code


async def _served(folder: str) -> None:
    from codeagent_lsp.mcp_server.attachment import Attachment  # late, both: the library is heavy, and may be missing
    from codeagent_lsp.mcp_server.editor_serving import over_stdio

    attachment = Attachment(state_root(), folder)
    try:
        await until_one_ends([over_stdio(attachment)])
    finally:
        await attachment.close()
