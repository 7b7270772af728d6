"""Presentation of diagnostics to the model: errors first, then by place, a bounded number. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from codeagent_lsp.tools.diagnostics.port import Diagnostic

MAX_SHOWN = 50
_MAX_MESSAGE = 300
_RANK = {"error": 0, "warning": 1, "info": 2, "hint": 3}


def ordered(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics without duplicates, the worst first, then by file, line and column."""
    return tuple(
        sorted(dict.fromkeys(found), key=lambda item: (_RANK[item.severity], item.path, item.line, item.column))
    )


def show(found: tuple[Diagnostic, ...], name: Callable[[str], str]) -> str:
    """Return one line each, at most `MAX_SHOWN`, and the total if there are more; '' for none."""
    lines = [_line(item, name) for item in found[:MAX_SHOWN]]
    if len(found) > MAX_SHOWN:
        errors = sum(item.severity == "error" for item in found)
        lines.append(f"(and {len(found) - MAX_SHOWN} more; {errors} errors in all)")
    return "\n".join(lines)


def _line(item: Diagnostic, name: Callable[[str], str]) -> str:
    message = " ".join(item.message.split())
    short = message if len(message) <= _MAX_MESSAGE else f"{message[: _MAX_MESSAGE - 1]}…"
    plain = "".join(char if char.isprintable() else " " for char in short)
    words = (f"{name(item.path)}:{item.line}:{item.column}", item.severity, item.code, plain)
    return " ".join(filter(None, words)) + (f" ({item.source})" if item.source else "")
