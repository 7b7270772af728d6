"""Tool calls whose arguments a server sent as text: read once they are complete.

Not here: checking them against their tools (`calls/toolcalling.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from codeagent_lsp.llm.calls.jsontext import loads_object
from codeagent_lsp.llm.wire import new_call_id
from codeagent_lsp.messages import UNREADABLE, ToolCall


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as it was sent: its name, the text of its arguments, its id ('' for none)."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class ReadCalls:
    """The calls of a reply, with unique ids; what was wrong with those left out, and these."""

    calls: tuple[ToolCall, ...]
    problem: str
    unusable: tuple[ToolCall, ...]


def read_calls(written: Iterable[WrittenCall], *, cut: bool) -> ReadCalls:
    """Return the calls whose arguments are a JSON object, slightly repaired if need be; never of a reply that was cut
    at its limit, as repairing would invent the end.
    """
    calls: list[ToolCall] = []
    unusable: list[ToolCall] = []
    problems: list[str] = []
    used: set[str] = set()
    for call in written:
        # A call without parameters comes with empty arguments from many servers.
        arguments = loads_object(call.arguments or "{}", repair=not cut)
        if not call.name or arguments is None:
            problems.append(_complaint(call.name, cut=cut))
            unusable.append(ToolCall(call.name or UNREADABLE, {}))
            continue
        call_id = call.id if call.id and call.id not in used else new_call_id()
        used.add(call_id)
        calls.append(ToolCall(call.name, arguments, call_id))
    return ReadCalls(tuple(calls), " ".join(problems), tuple(unusable))


def _complaint(name: str, *, cut: bool) -> str:
    if cut:
        return f"The call of {name or 'a tool'} was cut at the token limit and did not run. Do less at once."
    if not name:
        return "A tool call had no name and did not run. Name the tool."
    return f"The arguments of {name} are not a JSON object, so it did not run. Send one JSON object."
