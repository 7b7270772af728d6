"""The result of a run so far, as a value, for the last line and the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rich.text import Text

from codeagent_lsp.terminal.safe import one_line, visible
from codeagent_lsp.texts import text

EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_REJECTED, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
SUBJECT_KEYS = ("pattern", "query", "path", "file_path", "command", "question", "url", "name")


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a run. `status` is '' before its end; `declined` counts prompts without a user to answer them.

    `refused` is the reason why accepted changes were not all written, None if they were.
    """

    status: str = ""
    outcome: str = ""
    error: str = ""
    words: str = ""
    files: tuple[str, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usage: Mapping[str, Any] | None = None
    declined: int = 0
    refused: str | None = None
    told: str = ""

    def after(self, event: Mapping[str, Any]) -> Summary:
        """Return the summary after an event."""
        match event["type"]:
            case "usage":
                return replace(
                    self,
                    prompt_tokens=self.prompt_tokens + int(event.get("prompt_tokens", 0)),
                    completion_tokens=self.completion_tokens + int(event.get("completion_tokens", 0)),
                )
            case "error":
                return replace(self, told=event["error"])
            case "changes_applied":
                return replace(self, refused=None if event["outcome"] == "full" else str(event.get("reason") or ""))
            case "run_completed":
                return replace(
                    self,
                    status=event["status"],
                    outcome=event.get("outcome") or "",
                    error=event.get("error") or "",
                    words=event.get("summary") or "",
                    files=tuple(event.get("files_changed", ())),
                    usage=event.get("usage"),
                )
        return self

    def unasked(self) -> Summary:
        """Return the summary after a prompt without a user."""
        return replace(self, declined=self.declined + 1)

    @property
    def exit_code(self) -> int:
        """Return the exit code: 0 done, 1 failed, 3 rejected, 130 interrupted."""
        match self.status:
            case "rejected":
                return EXIT_REJECTED
            case "cancelled":
                return EXIT_INTERRUPTED
            case "completed" if self.outcome in ("", "full"):
                return EXIT_DONE
            case "completed" if self.outcome == "none" and self.refused is None:
                return EXIT_REJECTED  # no user accepted them, or the question was closed
        return EXIT_FAILED


def _cost(usage: Mapping[str, Any] | None, language: str) -> str:
    from codeagent_lsp.session.spending import spent_words  # late: all events, which the terminal does without

    return spent_words(usage, language) if usage and usage.get("cost") else ""


def tool_line(call: Mapping[str, Any]) -> str:
    """Return a tool call as a short text: its name and its subject."""
    arguments = call.get("arguments") or {}
    subject = next((str(arguments[key]) for key in SUBJECT_KEYS if arguments.get(key)), "")
    return f"{call.get('name', '')} {subject}".strip()


def ending(summary: Summary, note: str, seconds: float, language: str) -> Iterator[Text]:
    """Yield the lines after a run. `note` replaces the outcome if there was no proper end."""
    good = summary.exit_code == EXIT_DONE and not note
    mark = ("✓ ", "green") if good else ("✗ ", "red" if summary.exit_code == EXIT_FAILED else "yellow")
    said = visible(note or _outcome(summary, language))
    parts = [f"{seconds:.1f} s"]
    if summary.prompt_tokens or summary.completion_tokens:
        prompt, completion = f"{summary.prompt_tokens:,}", f"{summary.completion_tokens:,}"
        parts.insert(0, text("terminal.tokens", language, prompt=prompt, completion=completion))
    if cost := _cost(summary.usage, language):
        parts.insert(0, cost)
    yield Text.assemble(mark, (said, "bold"), ("  " + " · ".join(parts), "dim"))
    if summary.refused:
        yield Text(f"  {one_line(summary.refused, 1000)}", style="yellow")
    if summary.error and summary.error != summary.told and not note:
        yield Text(f"  {one_line(summary.error, 1000)}", style="red")
    elif summary.status == "stopped" and summary.words:
        yield Text(f"  {one_line(summary.words, 1000)}", style="yellow")


def _outcome(summary: Summary, language: str) -> str:
    if summary.error:
        return text("ended.failed", language)
    if summary.status == "completed" and summary.outcome in ("full", "partial", "unknown"):
        return text(f"outcome.{summary.outcome}", language, count=len(summary.files))
    if summary.status == "completed" and summary.outcome == "none":
        return text("terminal.not_applied", language)
    return text(f"ended.{summary.status}", language) if summary.status else text("ended.failed", language)
