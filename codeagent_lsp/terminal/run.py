"""The commands `codeagent-lsp run`, one task from the terminal, `codeagent-lsp apply`, a decision about what a run has
staged, and `codeagent-lsp undo`: from the options to the exit code.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from codeagent_lsp.errors import UsageError
from codeagent_lsp.language_servers.json_rpc import Refused
from codeagent_lsp.lsp_client.connection import ConnectionLost
from codeagent_lsp.lsp_client.disk import FileWrite
from codeagent_lsp.system import call_on_stop
from codeagent_lsp.terminal.client import Client, NothingStaged
from codeagent_lsp.terminal.display import in_terminal, short_path, user_locale, visible
from codeagent_lsp.terminal.options import RunOptions, folder_of, from_namespace
from codeagent_lsp.terminal.questions import Decision, Keyboard, accepted
from codeagent_lsp.terminal.summary import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, Summary, account
from codeagent_lsp.texts import choose_language, text

if TYPE_CHECKING:
    from codeagent_lsp.terminal.screen import Screen


class JsonLines:
    """The `Face` for programs: events as lines of JSON on stdout, messages on stderr. `folder` is that of the run, None
    for the current one.
    """

    def __init__(
        self, language: str, folder: Path | None = None, *, accept_all: bool = False, out: TextIO | None = None
    ) -> None:
        self.summary = Summary()
        self._folder = folder or Path.cwd()
        self._language = language
        self._accept_all = accept_all
        self._out = out or sys.stdout

    def open(self, title: str, place: str) -> None:
        """Do nothing: `response_start` is the first line."""

    def close(self, note: str = "", written: Sequence[FileWrite] = ()) -> None:
        """Print on stderr `note` if the run had no proper end, and how to get what is staged; the rest is in the
        events.
        """
        if note:
            self.message(note)
        if self.summary.staged:
            for line in account(self.summary, written, self._folder, self._language):
                self.message(line.plain)

    def event(self, event: Mapping[str, Any]) -> None:
        """Print an event, plain data in the form of the protocol, as one line of JSON and add it to `summary`."""
        self.summary = self.summary.after(event)
        print(json.dumps(event), file=self._out, flush=True)

    def message(self, words: str) -> None:
        """Print a warning or an error, a sentence in the user's language that is no event of the run, on stderr."""
        print(visible(words), file=sys.stderr, flush=True)

    async def choose(self, title: str, choices: tuple[str, ...]) -> str | None:
        """Return the choice that accepts, with `--yes`; else None at once, and count a question that nobody
        answered.
        """
        if self._accept_all:
            return accepted(choices)
        self._nobody()
        return None

    async def decide(self, diff: str) -> Decision | None:
        """Return None, for no decision: nobody is asked."""
        return None

    async def ask(self, title: str, detail: str, *, secret: bool) -> str | None:
        """Return None at once, and count a question that nobody answered."""
        self._nobody()
        return None

    def _nobody(self) -> None:
        self.summary = self.summary.unasked()
        self.message(text("terminal.unasked", self._language))


Work = Callable[[Client, "Screen | JsonLines", str], Awaitable[object]]
"""What is done with a client and a face, in the user's language."""


def run_task(namespace: Namespace) -> int:
    """Run the task of a parsed command line and return the exit code: 0 done, 1 failed, 2 usage, 3 rejected, 130
    interrupted. Blocks until the run has ended.
    """
    return _command("run", lambda: from_namespace(namespace), lambda client, face, language: client.run(face))


def apply_run(namespace: Namespace) -> int:
    """Show what a run has staged, ask, and apply or discard it. Return the exit code as `run_task`; with `--yes` it is
    applied without asking.
    """

    def options() -> RunOptions:
        folder = folder_of(namespace.workspace)
        return RunOptions(f"apply {namespace.run_id}", folder, accept_all=namespace.yes, width=namespace.width)

    async def decide(client: Client, face: Screen | JsonLines, language: str) -> None:
        title, apply, discard = (text(key, language) for key in ("terminal.write", "choice.apply", "choice.discard"))

        async def ask(diff: str) -> Decision | None:
            face.event({"type": "approval_requested", "title": title, "detail": diff})
            answer = await face.choose(title, (apply, discard))
            if answer not in (apply, discard):
                return await face.decide(diff) if answer else None
            return Decision(apply={}) if answer == apply else Decision(discard={})

        try:
            await client.decide(face, namespace.run_id, ask)
        except NothingStaged as error:
            raise Refused(text("terminal.no_changes", language, run=namespace.run_id)) from error

    return _command("apply", options, decide)


def undo_run(namespace: Namespace) -> int:
    """Take back what a run has changed; about lines that were changed since it is asked. Return the exit code as
    `run_task`; with `--yes` they are taken back as well.
    """

    def options() -> RunOptions:
        folder = folder_of(namespace.workspace)
        return RunOptions(f"undo {namespace.run_id}", folder, accept_all=namespace.yes, width=namespace.width)

    return _command("undo", options, lambda client, face, language: client.undo(face, namespace.run_id))


def _command(name: str, options: Callable[[], RunOptions], work: Work) -> int:
    try:
        given = options()
    except UsageError as error:
        language = choose_language("auto", user_locale())
        sys.stderr.write(f"codeagent-lsp {name}: {error.localized(language)}\n")
        return EXIT_USAGE
    try:
        return asyncio.run(_serve(given, work))
    except BrokenPipeError:  # the reader of our output is gone
        return EXIT_FAILED
    finally:
        _let_go_of_stdout()


async def _serve(options: RunOptions, work: Work) -> int:
    language = choose_language(str(dict(options.settings).get("language", "auto")), user_locale())
    interrupted = asyncio.Event()
    call_on_stop(asyncio.get_running_loop(), interrupted.set, (signal.SIGINT, signal.SIGTERM))
    client = Client(options, interrupted)
    with suppress(ConnectionLost):  # tried once more, and told, when it is needed
        await client.start()
    face, note, failed = _face(options, language), "", False
    try:
        face.open(options.task, short_path(options.workspace))
        await work(client, face, language)
    except ConnectionLost as error:
        note, failed = text("terminal.lost", language, reason=str(error)).replace("  ", " "), True
    except Refused as error:
        note, failed = text("terminal.refused", language, reason=in_terminal(str(error))), True
    finally:
        await client.close()  # also where nothing can be shown any more
        if interrupted.is_set() and not face.summary.status:
            note = text("ended.cancelled", language)
        face.close(note, client.written)
    if interrupted.is_set():
        return EXIT_INTERRUPTED
    return EXIT_FAILED if failed else face.summary.exit_code


def _face(options: RunOptions, language: str) -> Screen | JsonLines:
    if options.as_json:
        return JsonLines(language, options.workspace, accept_all=options.accept_all)
    from codeagent_lsp.terminal.screen import Screen  # late: what draws takes long to load, and so does the server
    from codeagent_lsp.terminal.stage import Stage, console  # late: the same

    stage = Stage(console(options.width))
    return Screen(stage, Keyboard(), language, options.workspace, accept_all=options.accept_all)


def _let_go_of_stdout() -> None:
    """Redirect stdout to nowhere if it cannot be flushed, so that the exit does not fail."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
