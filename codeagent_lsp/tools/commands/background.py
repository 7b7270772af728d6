"""The background commands of one run: started, listened to, and ended with it at the latest.

Each has a private view of the workspace of its own, as it is when the command starts, so that others need not wait for
it; what it writes becomes staged changes when it ends or is stopped. Commands can be run beside it, in the same view
and on the same loopback network. Not here: the tools (`command_tools.py`).
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import AgentError, ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.shadow.guard_messages import KILLED
from codeagent_lsp.shadow.shell import Command, CommandResult, RecordCommand, Shell, Stream
from codeagent_lsp.tools.variables.variables import Variables

MOST_AT_ONCE = 4
MOST_UNREAD = 64_000
"""Characters of output that are kept until they are asked for; of more, the beginning is lost."""
MOST_PARTIAL = 4096
MOST_SECONDS = 600.0

MOST_BESIDE = 200_000
"""Bytes of the output of one command beside; the rest is dropped."""
MOST_PRINTED = 64 << 20
"""Bytes that a background command and those beside it may print together."""

# Descriptor 3 is our channel. It is closed for every command (`3<&-`): one that reads it would swallow the next ones.
_SUPERVISOR = """
exec 3<&0 </dev/null
( ( eval "$main" ) 2>&1; printf '\\n%s done %s\\n' "$mark" $? ) 3<&- &
while IFS= read -r -d '' -u 3 number && IFS= read -r -d '' -u 3 script; do
  (
    ( eval "$script" ) 2>&1 | { head -c "$most"; cat >/dev/null; } |
      while IFS= LC_ALL=C.UTF-8 read -r -n "$piece" line || [ -n "$line" ]; do
        bar='|'; [ "${#line}" -lt "$piece" ] || bar='+'
        printf '%s%s%s%s\\n' "$mark" "$number" "$bar" "$line"
      done 2>/dev/null
    printf '%s%s ended %s\\n' "$mark" "$number" "${PIPESTATUS[0]}"
  ) 3<&- &
done
"""
"""Runs `main`, and what comes on its standard input beside it, by number; ends with its input, and then all ends. Lines
are passed on in pieces that no other process writes into: `+` if the line goes on, `|` at its end.
"""
_PIECE = 900
"""Characters; with four bytes each, a piece is written to a pipe at once (`PIPE_BUF` is 4096 bytes)."""

_OF_BESIDE = re.compile(r"(\d+)([|+])")

OpenShell = Callable[[str], Awaitable[Shell]]
CloseShell = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Heard:
    """What a background command has printed since the last call, and whether it still `runs`. `code` is None if it has
    not ended by itself; `result` is set once it has ended and what it wrote is staged. `ready` is False if the text
    that was waited for was not printed.
    """

    name: str
    text: str
    runs: bool = True
    code: int | None = None
    result: CommandResult | None = None
    ready: bool = True


@dataclass(slots=True)
class _Beside:
    """A command that runs beside: its output, and its end."""

    pieces: list[str] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    code: int | None = None


class BackgroundCommands:
    """Port: the background commands of one run, at most 4 at once, which `close` ends with it. `open_shell` opens a
    private view by name, `close_shell` removes it; `record` receives every command; the values of `variables` are
    masked in what is heard.
    """

    def __init__(
        self,
        open_shell: OpenShell,
        close_shell: CloseShell,
        record: RecordCommand = lambda words, folder, level, code: None,
        variables: Variables | None = None,
    ) -> None:
        self._open_shell = open_shell
        self._close_shell = close_shell
        self._record = record
        self._variables = variables or Variables()
        self._known: dict[str, _Running] = {}
        self._tasks = BackgroundTasks()

    async def start(self, command: Command, ready: str, seconds: float) -> Heard:
        """Start a command and return what it prints until `ready` is in it, it has ended, or `seconds` are over; it
        then runs on. Its name, for the other methods, is in the result. ToolFailed if 4 run already.
        """
        if sum(running.at_work for running in self._known.values()) >= MOST_AT_ONCE:
            message = f"{MOST_AT_ONCE} commands run in the background already. Stop one first."
            raise ToolFailed(message, ErrorCode.INVALID_PARAM)
        # Of all that were started, so that no name comes twice in a run.
        name = f"bg{len(self._known) + 1}"
        running = self._known[name] = _Running(name, command, self._variables)
        self._tasks.start(self._run(running, command))
        await running.until(lambda: bool(ready) and running.has_printed(ready), seconds)
        is_ready = running.has_printed(ready)
        return replace(running.heard(), ready=is_ready)

    async def output(self, name: str, seconds: float) -> Heard:
        """Return what a command has printed since it was asked last; if that is nothing, wait for more or its end, at
        most `seconds`. At most 64,000 unread characters are kept. ToolRetry if there is none of this name.
        """
        running = self._get(name)
        await running.until(running.has_news, seconds)
        return running.heard()

    async def beside(self, name: str, script: str, seconds: float) -> tuple[str, int]:
        """Run a shell script in the private view of a background command; return its output, masked, and its exit code.
        ToolFailed if it takes longer than `seconds`, ToolRetry if there is none of this name.
        """
        running = self._get(name)
        self._record(script, running.command.cwd, running.level, None)
        code = KILLED
        try:
            text, code = await running.beside(script, seconds)
        finally:
            self._record(script, running.command.cwd, running.level, code)
        return text, code

    def network(self, name: str) -> bool:
        """Return whether a command may use the network. ToolRetry if there is none of this name."""
        return self._get(name).command.network

    async def stop(self, name: str) -> Heard:
        """End a command and everything that it has started, and wait up to 600 s for that; return what it printed since
        it was asked last, and what became of what it wrote. ToolRetry if there is none of this name.
        """
        running = self._get(name)
        # The supervisor ends when its input does, and all below it with it; what was written can be staged then.
        running.finish()
        await running.until(lambda: False, MOST_SECONDS)
        return running.heard()

    def close(self) -> None:
        """Cancel all commands without waiting for their end; what they wrote since they started is dropped."""
        self._tasks.cancel()

    async def _run(self, running: _Running, command: Command) -> None:
        limits = f"most={MOST_BESIDE}; piece={_PIECE}"
        script = f"main={shlex.quote(command.words)}; mark={running.mark}; {limits}{_SUPERVISOR}"
        try:
            shell = await self._open_shell(running.name)
            running.level = shell.isolation.level
            self._record(command.words, command.cwd, running.level, None)
            guarded = replace(command, script=script, stdin=running.said(), apart=False, output_bytes=MOST_PRINTED)
            running.result = await shell.run(guarded, running.hear)
        except AgentError as problem:
            running.failed(str(problem))
        finally:
            running.over()
            if running.level:
                code = KILLED if running.code is None else running.code
                self._record(command.words, command.cwd, running.level, code)
            with suppress(AgentError):
                await self._close_shell(running.name)

    def _get(self, name: str) -> _Running:
        if name not in self._known:
            raise ToolRetry(f"There is no background command {name!r}. There are: {', '.join(self._known) or 'none'}.")
        return self._known[name]


class _Running:
    """One background command."""

    def __init__(self, name: str, command: Command, variables: Variables) -> None:
        self.name = name
        self.command = command
        self.level = ""
        self.code: int | None = None
        self._variables = variables
        self._held = ""  # what may be the beginning of a value that is to be masked
        # Random, so that no command can print a line of the supervisor.
        self.mark = f"[{os.urandom(9).hex()}]"
        self.unread = ""
        self.result: CommandResult | None = None
        self.partial = ""  # the line that has no end yet
        self._ended = False
        self._lost = False  # more was printed than is kept
        self._changed = asyncio.Event()
        self._words: asyncio.Queue[bytes | None] = asyncio.Queue()  # what is said to the supervisor; None ends it
        self._beside: dict[str, _Beside] = {}
        self._count = 0  # commands beside, which have these numbers

    @property
    def at_work(self) -> bool:
        """Return whether it has not ended."""
        return not self._ended

    def hear(self, stream: Stream, text: str) -> None:
        """Take what it prints: lines with the mark are not its own."""
        whole, end, self.partial = (self.partial + text).rpartition("\n")
        if self.mark not in whole:
            self._add(whole + end)
        else:
            # The mark may stand behind the beginning of a line: a program that prints without a line end shares it with
            # ours.
            for line in whole.split("\n"):
                own, mark, ours = line.partition(self.mark)
                if own or not mark:
                    self._add(f"{own}\n")
                if mark:
                    self._take_line(ours)
        if len(self.partial) > MOST_PARTIAL:
            self._begin_line()
        if self.mark not in self.partial:
            self._changed.set()

    async def until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait until the condition holds, the command has ended, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._ended and not condition():
                    self._changed.clear()
                    await self._changed.wait()

    def has_printed(self, words: str) -> bool:
        """Return whether these words are in the output that `heard` has not returned yet, also in an unended line."""
        return words in self.unread + self.partial

    def has_news(self) -> bool:
        """Return whether it has printed something since it was asked last."""
        return bool(self.unread.strip()) and self.unread != self._held

    def heard(self) -> Heard:
        """Return what was printed since the last call, without what may be a part of a value that is to be masked."""
        self._begin_line()
        text, self.unread = self._variables.masked(self.unread), ""
        if not self._ended:
            text, self.unread = _divide(text, self._held, self._variables.longest)
        text, self._held = text.strip("\n"), self.unread
        if self._lost:
            text, self._lost = f"(the beginning is left out)\n{text}", False
        return Heard(self.name, text, not self._ended, self.code if self._ended else None, self.result)

    async def beside(self, script: str, seconds: float) -> tuple[str, int]:
        """Run a command beside it."""
        if self._ended or self.code is not None:
            raise ToolFailed(f"The background command {self.name} has ended.", ErrorCode.NOT_FOUND)
        self._count += 1
        number, one = str(self._count), _Beside()
        self._beside[number] = one
        self._words.put_nowait(f"{number}\0{script}\0".encode("utf-8", "replace"))
        try:
            async with asyncio.timeout(seconds):
                await one.ended.wait()
        except TimeoutError:
            message = f"It took longer than {seconds:g} s and runs on. Stop {self.name} with stop_command."
            raise ToolFailed(message, ErrorCode.TIMEOUT) from None
        finally:
            del self._beside[number]  # of one that runs on, nothing is heard any more
        text = self._variables.masked("".join(one.pieces).removesuffix("\n"))  # also of one that fails
        if one.code is None:
            raise ToolFailed(f"{text}\nThe background command {self.name} has ended meanwhile, and this one with it.")
        return text, one.code

    async def said(self) -> AsyncIterator[bytes]:
        """Yield what is said to its supervisor, until the end."""
        while (words := await self._words.get()) is not None:
            yield words

    def finish(self) -> None:
        """Have it end."""
        self._words.put_nowait(None)

    def failed(self, problem: str) -> None:
        """Note that it could not run."""
        self.code = self.code if self.code is not None else 1
        self._add(f"{problem}\n")

    def over(self) -> None:
        """Note that it has ended."""
        self._add(self.partial)
        self._ended = True
        for one in self._beside.values():
            one.ended.set()
        self._changed.set()

    def _take_line(self, ours: str) -> None:
        """Take a line of the supervisor: output or end of a command beside, or the end of the command itself."""
        if piece := _OF_BESIDE.match(ours):
            if one := self._beside.get(piece[1]):
                one.pieces.append(ours[piece.end() :] + ("\n" if piece[2] == "|" else ""))
            return
        number, _, rest = ours.strip().rpartition(" ")
        name, _, kind = number.partition(" ")
        if kind == "ended" and name in self._beside:
            self._beside[name].code = int(rest)
            self._beside[name].ended.set()
        elif name == "done":
            self.code = int(rest)
            self.finish()

    def _begin_line(self) -> None:
        """Take the beginning of a line of its own as heard, but for what may be the beginning of the mark."""
        if self.mark not in self.partial:
            at = self.partial.rfind(self.mark[0])
            held = self.partial[at:] if at >= 0 and self.mark.startswith(self.partial[at:]) else ""
            self._add(self.partial.removesuffix(held))
            self.partial = held

    def _add(self, text: str) -> None:
        self.unread += text
        if len(self.unread) > 2 * MOST_UNREAD:  # not at every line
            at = self.unread.find("\n", len(self.unread) - MOST_UNREAD) + 1  # no half of a value stays
            self.unread, self._lost = self.unread[at or -MOST_UNREAD :], True
        self._changed.set()


def _divide(text: str, held: str, longest: int) -> tuple[str, str]:
    """Return what can be shown, and the end of a line that may be a part of a value of up to `longest` characters. A
    question stands there for longer, and is shown when it is met a second time, as `held`.
    """
    until = max(len(text) - max(0, longest - 1), text.rfind("\n") + 1)
    return (text, "") if text[until:] == held else (text[:until], text[until:])
