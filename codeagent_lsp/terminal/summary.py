"""The result of a run so far, as a value, for the last lines and the exit code: how it ended, which files it has
written, what is staged and waits for a decision, and which question is open.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.text import Text

from codeagent_lsp.lsp_client.disk import FileWrite
from codeagent_lsp.session.spending import spent_words
from codeagent_lsp.terminal.display import one_line, visible
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.files.paths import path_of

EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_REJECTED, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
WAITING = "waiting"
"""The status of a run whose question nobody has answered."""
MOST_FILES = 20
PARAGRAPH = "\n\n"
_MARKS = {"edit": "✎", "create": "✚", "delete": "✗", "move": "➜"}


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a run so far. `status` is '' before its end; `declined` counts prompts without a user to answer
    them; `told` is the last error that was reported on the way, `error` that with which the run ended. `unconfirmed`
    says that `words` begin with the files of which it is not known what became of them. `refused` is why accepted
    changes were not all written, None if they were; `undone` says that changes were taken back, `later` that the user
    has left some for later.

    `staged` are the changes that were neither applied nor discarded; `question` is the last one that was not answered,
    followed by its choices. Of `attempts` (run ids) only the tokens count, as the best of them is proposed as the run's
    own. `modes` are the applied changes that no text shows: files that can be executed now, or no longer.
    """

    status: str = ""
    outcome: str = ""
    error: str = ""
    words: str = ""
    unconfirmed: bool = False
    files: tuple[str, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usage: Mapping[str, Any] | None = None
    declined: int = 0
    refused: str | None = None
    undone: bool = False
    later: bool = False
    told: str = ""
    run_id: str = ""
    session_id: str = ""
    staged: Changeset = Changeset()
    question: tuple[str, ...] = ()
    attempts: frozenset[str] = frozenset()
    modes: tuple[FileChange, ...] = ()

    def after(self, event: Mapping[str, Any]) -> Summary:
        """Return the summary after one more event, plain data in the form of the protocol; this one stays as it is."""
        run_id = str(event.get("run_id") or "")
        if event["type"] == "usage":
            # Of attempts at the task, too: they are paid for as well.
            prompt, completion = int(event.get("prompt_tokens", 0)), int(event.get("completion_tokens", 0))
            return replace(
                self,
                prompt_tokens=self.prompt_tokens + prompt,
                completion_tokens=self.completion_tokens + completion,
            )
        if event["type"] == "response_start" and event.get("attempt_of"):
            return replace(self, attempts=self.attempts | {run_id})
        # What else an attempt does concerns nobody: the run that began it proposes the best one as its own.
        if run_id in self.attempts:
            return self
        named = replace(self, run_id=run_id or self.run_id, session_id=str(event.get("session_id") or self.session_id))
        return named._take(event)

    def _take(self, event: Mapping[str, Any]) -> Summary:
        match event["type"]:
            case "error":
                return replace(self, told=event["error"])
            case "file_change":
                change = event.get("change")
                staged = self.staged.without([event["path"]])
                return replace(self, staged=staged.with_change(FileChange.from_dict(change)) if change else staged)
            case "question_asked" if event.get("run_id"):
                return replace(self, question=(event["title"], *event.get("choices", ())))
            case "question_answered" if event.get("answer") is not None:
                return replace(self, question=())
            case "changes_applied":
                refused = None if event["outcome"] == "full" else str(event.get("reason") or "")
                done = map(FileChange.from_dict, event.get("applied", ()))
                modes = () if event.get("undo") else (*self.modes, *(each for each in done if each.only_mode))
                return replace(self, refused=refused, undone=bool(event.get("undo")), modes=modes)
            case "run_completed":
                return replace(
                    self,
                    status=event["status"],
                    outcome=event.get("outcome") or "",
                    error=event.get("error") or "",
                    words=event.get("summary") or "",
                    unconfirmed=bool(event.get("unconfirmed")),
                    files=tuple(event.get("files_changed", ())),
                    usage=event.get("usage"),
                )
        return self

    def unasked(self) -> Summary:
        """Return the summary after one more prompt that no user could answer."""
        return replace(self, declined=self.declined + 1)

    def left_for_later(self) -> Summary:
        """Return the summary after the user has decided to decide about some changes later."""
        return replace(self, later=True)

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0 done (also if it waits for an answer), 1 failed, 3 rejected,
        130 interrupted.
        """
        match self.status:
            case "rejected":
                return EXIT_REJECTED
            case "cancelled":
                return EXIT_INTERRUPTED
            case status if status == WAITING:
                return EXIT_DONE  # the next run of its session has the answer
            case "completed" if self.outcome in ("", "full") or (self.outcome == "partial" and self.later):
                return EXIT_DONE
            case "completed" if self.outcome == "none" and self.refused is None:
                return EXIT_REJECTED  # no user accepted them, or the question was closed
        return EXIT_FAILED


def _cost(usage: Mapping[str, Any] | None, language: str) -> str:
    return spent_words(usage, language) if usage and usage.get("cost") else ""


def place_of(folder: Path) -> str:
    """Return the option, with a space in front and quoted for a shell, that names an absolute folder to our commands;
    '' if it is the current one.
    """
    return "" if folder == Path.cwd() else f" --workspace {shlex.quote(str(folder))}"


def ending(summary: Summary, note: str, seconds: float, language: str) -> Iterator[Text]:
    """Yield the lines on how a run has ended after `seconds`: outcome, cost, tokens and time, then what went wrong.
    `note` replaces the outcome if there was no proper end.
    """
    said = visible(note or _outcome(summary, language))
    parts = [f"{seconds:.1f} s"]
    if summary.prompt_tokens or summary.completion_tokens:
        prompt, completion = f"{summary.prompt_tokens:,}", f"{summary.completion_tokens:,}"
        parts.insert(0, text("terminal.tokens", language, prompt=prompt, completion=completion))
    if cost := _cost(summary.usage, language):
        parts.insert(0, cost)
    yield Text.assemble(_mark(summary, note), (said, "bold"), ("  " + " · ".join(parts), "dim"))
    if summary.refused:
        yield Text(f"  {one_line(summary.refused, 1000)}", style="yellow")
    if summary.error and summary.error != summary.told and not note:
        yield Text(f"  {one_line(summary.error, 1000)}", style="red")
    elif summary.status == "stopped" and summary.words:
        yield Text(f"  {one_line(summary.words, 1000)}", style="yellow")
    elif summary.status == WAITING and not note:
        yield Text(f"  {one_line(_open_question(summary), 1000)}", style="cyan")
    if summary.unconfirmed and summary.status != "stopped":  # its words begin with it
        yield Text(f"  {one_line(summary.words.partition(PARAGRAPH)[0], 1000)}", style="yellow")


def account(summary: Summary, written: Iterable[FileWrite], folder: Path, language: str) -> Iterator[Text]:
    """Yield the lines on what a run in this folder has left: each file that it wrote, each change that is only staged,
    and the commands for that and for going on.
    """
    done = (*_net(written), *summary.modes)
    parts = [("terminal.written", "green", done), ("terminal.staged", "yellow", summary.staged.files)]
    if not parts[0][2]:
        yield Text(f"  {text('terminal.nothing_written', language)}", style="dim")
    for key, colour, changes in parts:
        for change in changes[:MOST_FILES]:
            added, removed = change.counts()
            name = one_line(change.path.removeprefix(path_of(str(folder), "")))
            word, mark = (f"  {text(key, language)}  ", colour), (f"{_MARKS[change.kind]} ", colour)
            counts = f"+{added} −{removed}" if change.runs is None else f"chmod {'+x' if change.runs else '-x'}"
            yield Text.assemble(word, mark, name, (f"  {counts}", "dim"))
        if len(changes) > MOST_FILES:
            yield Text(f"  {text('terminal.more_files', language, count=len(changes) - MOST_FILES)}", style=colour)
    if summary.staged:
        command = f"codeagent-lsp apply {summary.run_id}{place_of(folder)}"
        yield Text(f"  {text('terminal.apply', language, command=command)}", style="yellow")
    if parts[0][2] and summary.run_id and not summary.undone:
        command = f"codeagent-lsp undo {summary.run_id}{place_of(folder)}"
        yield Text(f"  {text('terminal.undo', language, command=command)}", style="dim")
    if summary.session_id and summary.status not in ("completed", "rejected"):
        command = f'codeagent-lsp run --session {summary.session_id}{place_of(folder)} "…"'
        key, colour = ("terminal.answer", "cyan") if summary.status == WAITING else ("terminal.go_on", "dim")
        yield Text(f"  {text(key, language, command=command)}", style=colour)


def _net(written: Iterable[FileWrite]) -> tuple[FileChange, ...]:
    """Return what all writes together have changed."""
    changes: dict[Path, FileChange] = {}
    for write in written:
        before = changes[write.path].base if write.path in changes else _decode(write.before)
        changes[write.path] = FileChange(str(write.path), before, _decode(write.after))
    return tuple(change for change in changes.values() if not change.empty)


def _decode(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _mark(summary: Summary, note: str) -> tuple[str, str]:
    if summary.status == WAITING and not note:
        return "? ", "cyan"
    if summary.exit_code == EXIT_DONE and not note:
        return "✓ ", "green"
    return "✗ ", "red" if summary.exit_code == EXIT_FAILED else "yellow"


def _open_question(summary: Summary) -> str:
    """Return the question that the run waits for: the one that was asked, else the end of its answer."""
    title, *choices = summary.question or (summary.words.strip().rpartition("\n\n")[2],)
    return f"{title} ({' · '.join(choices)})" if choices else title


def _outcome(summary: Summary, language: str) -> str:
    if summary.error:
        return text("ended.failed", language)
    if summary.status == "completed" and summary.undone and summary.outcome != "unknown":
        key = "outcome.undone" if summary.outcome == "full" else "terminal.partly_undone"
        return text(key, language, count=len(summary.files))
    if summary.status == "completed" and summary.outcome in ("full", "partial", "unknown"):
        return text(f"outcome.{summary.outcome}", language, count=len(summary.files))
    if summary.status == WAITING:
        return text("terminal.waiting", language)
    if summary.status == "completed" and summary.outcome == "none":
        return text("terminal.not_applied", language)
    return text(f"ended.{summary.status}", language) if summary.status else text("ended.failed", language)
