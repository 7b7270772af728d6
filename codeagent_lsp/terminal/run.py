"""The command `codeagent-lsp run`: one task from the terminal, from the options to the exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from argparse import Namespace
from pathlib import Path

from codeagent_lsp.errors import UsageError
from codeagent_lsp.terminal.client import Client
from codeagent_lsp.terminal.connection import ConnectionLost, Refused
from codeagent_lsp.terminal.jsonlines import JsonLines
from codeagent_lsp.terminal.locales import user_locale
from codeagent_lsp.terminal.options import RunOptions, from_namespace
from codeagent_lsp.terminal.questions import Keyboard
from codeagent_lsp.terminal.screen import Screen
from codeagent_lsp.terminal.stage import Stage, console
from codeagent_lsp.terminal.summary import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE
from codeagent_lsp.texts import choose_language, text


def run_task(namespace: Namespace) -> int:
    """Run the task and return the exit code: 0 done, 1 failed, 2 usage, 3 rejected, 130 interrupted."""
    try:
        options = from_namespace(namespace)
    except UsageError as error:
        language = choose_language("auto", user_locale())
        sys.stderr.write(f"codeagent-lsp run: {error.localized(language)}\n")
        return EXIT_USAGE
    try:
        return asyncio.run(_run(options))
    except BrokenPipeError:  # the reader of our output is gone
        return EXIT_FAILED
    finally:
        _let_go_of_stdout()


async def _run(options: RunOptions) -> int:
    language = choose_language(str(dict(options.settings).get("language", "auto")), user_locale())
    face = _face(options, language)
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    face.open(options.task, _short(options.workspace))
    note, failed = "", False
    try:
        await Client(options, face, interrupted).run()
    except ConnectionLost as error:
        note, failed = text("terminal.lost", language, reason=str(error)).replace("  ", " "), True
    except Refused as error:
        note, failed = text("terminal.refused", language, reason=str(error)), True
    finally:
        if interrupted.is_set() and not face.summary.status:
            note = text("ended.cancelled", language)
        face.close(note)
    if interrupted.is_set():
        return EXIT_INTERRUPTED
    return EXIT_FAILED if failed else face.summary.exit_code


def _face(options: RunOptions, language: str) -> Screen | JsonLines:
    if options.as_json:
        return JsonLines(language, accept_all=options.accept_all)
    return Screen(Stage(console(options.width)), Keyboard(), language, accept_all=options.accept_all)


def _let_go_of_stdout() -> None:
    """Redirect stdout to nowhere if it cannot be flushed, so that the exit does not fail."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _short(path: Path) -> str:
    """Return a path with `~` for the home folder."""
    try:
        return str(Path("~") / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)
