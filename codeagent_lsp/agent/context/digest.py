"""Summarises old exchanges without a model: which tool was called, on what, and with which outcome. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codeagent_lsp.agent.context.tokens import Exchange
from codeagent_lsp.messages import Message, ToolCall
from codeagent_lsp.workspace.text.excerpts import excerpt

FILE_TOOLS = frozenset(
    [
        *("read_file", "read_files", "write_file", "edit_file", "insert_text", "batch_edit", "preview_edit"),
        *("apply_patch", "undo_patch", "list_dir"),
    ]
)
COMMAND_TOOLS = frozenset(["run_cmd", "run_tests", "analyze_coverage"])
LONG_OUTPUT = 2000
SHORT = 240
LONGEST_LINE = 160
SUBJECTS = ("path", "file", "command", "pattern", "query", "target", "name")


def digest(exchanges: Sequence[Exchange], earlier: str, limit: int) -> str:
    """Return one line per step, the latest ones in at most `limit` characters, after `earlier` in a third of it."""
    before = excerpt(earlier, limit // 3) if earlier else ""
    lines = [line for exchange in exchanges for line in _lines(exchange)]
    room, kept = limit - len(before), list[str]()
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 40:
            break
        kept.append(line)
    left_out = [f"({len(lines) - len(kept)} earlier steps)"] if len(kept) < len(lines) else []
    return "\n".join(filter(None, (before, *left_out, *reversed(kept))))


def short_result(call: ToolCall, text: str) -> str:
    """Return an old tool result, shortened: files as a reference, output of commands cut at 2,000 characters, others
    unchanged.
    """
    if call.name in COMMAND_TOOLS:
        return excerpt(text, LONG_OUTPUT)
    if call.name not in FILE_TOOLS or len(text) <= SHORT:
        return text
    short = f"({_called(call)}: {_length(text)}, removed to save room; read it again if you need it)"
    return short if len(short) < len(text) else text


def _lines(exchange: Exchange) -> list[str]:
    first, results = exchange[0], {message.tool_call_id: message for message in exchange[1:]}
    if first.role != "assistant":
        return []  # the user's messages are kept in full elsewhere, notes are no longer needed
    said = [f"- I said: {_line(first.content)}"] if first.content.strip() else []
    return said + [f"- {_called(call)}: {_outcome(call, results.get(call.id))}" for call in first.tool_calls]


def _outcome(call: ToolCall, result: Message | None) -> str:
    if result is None:
        return "no result"
    return f"read {_length(result.content)}" if call.name == "read_file" else _line(result.content) or "done"


def _called(call: ToolCall) -> str:
    subject = next((str(call.arguments[key]) for key in SUBJECTS if call.arguments.get(key)), "")
    lines = _range(call.arguments)
    return f"{call.name} {_line(subject)}{lines}".strip()


def _range(arguments: Mapping[str, object]) -> str:
    start, end = arguments.get("start_line"), arguments.get("end_line")
    return f" lines {start or 1}-{end or ''}" if start or end else ""


def _length(text: str) -> str:
    return f"{text.count(chr(10)) + 1} lines"


def _line(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= LONGEST_LINE else f"{first[:LONGEST_LINE]}…"
