"""The program that runs one source of own tools: one JSON message per line, a call at a time.

Requests are `{"id", "tool"?, "arguments"?}`; without a tool it lists them. Answers are `{"id", "result"}`, of a call in
the form of MCP, or `{"id", "error"}`. Not here: the server's side (`worker_connection.py`).
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import Mapping, Sequence
from typing import IO, Any

from codeagent_lsp.own_tools import Tool
from codeagent_lsp.tools.own.loading import NotLoaded, described, description_of, load

PLACE = 2  # index of the source's first argument


def main(argv: Sequence[str]) -> None:
    """Answer requests until standard input ends."""
    requests, answers = _channels()
    tools: dict[str, Tool] | None = None
    for line in requests:
        request = json.loads(line)
        try:
            tools = load(*argv[PLACE:]) if tools is None else tools
            answer = {"result": _result(tools, argv[PLACE + 1], request)}
        except NotLoaded as error:
            answer = {"error": str(error)}
        answers.write(json.dumps({"id": request["id"], **answer}, default=str) + "\n")
        answers.flush()


def _channels() -> tuple[IO[str], IO[str]]:
    """Return the channels of the messages, and keep them from the tools: what those print goes to standard error."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def _result(tools: Mapping[str, Tool], source: str, request: Mapping[str, Any]) -> Any:
    if "tool" not in request:
        return [_listed(tool) for tool in tools.values()]
    tool = tools.get(request["tool"])
    if tool is None:
        return _failed(f"there is no tool {request['tool']!r} any more")
    try:
        return _called(tool, request["arguments"])
    except BaseException as error:  # noqa: BLE001 - what a user's code raises, also SystemExit, is the call's result
        return _failed(described(error, source))


def _listed(tool: Tool) -> dict[str, Any]:
    try:
        schema = tool.get_parameters_schema()
    except Exception as error:
        raise NotLoaded(f"{tool.name}: {error}") from error
    return {"name": tool.name, "description": description_of(tool), "schema": schema}


def _called(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if not tool.validate_args(**arguments):
        return _failed("it does not accept these arguments")
    result = tool.execute(**arguments)
    if inspect.isawaitable(result):
        result = asyncio.run(_awaited(result))
    return _shown(tool, result)


async def _awaited(result: Any) -> Any:
    return await result


def _shown(tool: Tool, result: Any) -> dict[str, Any]:
    """Return a result in the form of MCP; data that is too long becomes cut text."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    cut = tool.truncate_output(text)
    if isinstance(result, dict) and cut == text:
        return {"content": [], "structuredContent": result}
    return {"content": [{"type": "text", "text": cut}]}


def _failed(reason: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": reason}], "isError": True}
