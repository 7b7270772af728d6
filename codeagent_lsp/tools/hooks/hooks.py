"""Runs the hooks of one run: the trusted ones, one after the other, in a private view of the workspace of their own.
What commands of the model leave in theirs, outside the files that are staged, changes no hook.

What they write is staged like the writing of any command. A denial is final; nothing that a hook says allows more than
the rules do. A hook that fails or takes too long denies nothing, and the user is told. Not here: the files
(`hook_files.py`), what hooks are told and answer (`hook_protocol.py`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import PermissionDenied, SettingError, ToolFailed
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.shadow.shell import Command, CommandResult, Finished, Shell, Stream
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.files.edit_tools import WriteFile
from codeagent_lsp.tools.files.patch_tools import DeleteFile
from codeagent_lsp.tools.hooks.hook_files import Hook, HookConsent, HookEvent, HookFile, HookLibrary, SessionSource
from codeagent_lsp.tools.hooks.hook_protocol import (
    MOST_WORDS,
    HookAnswer,
    answer_of,
    as_json,
    command_line,
    foreign_name,
    names_of,
    subjects,
    tells_content,
    told_path,
    tool_input,
)
from codeagent_lsp.tools.permissions.policy import Decision, asking
from codeagent_lsp.tools.skills.trust import Brings
from codeagent_lsp.tools.tool import Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.text.excerpts import join_names
from codeagent_lsp.workspace.text.visible import one_line

MOST_QUESTIONS = 5
"""How often one event asks for trust; hooks that change whenever they are asked about do not run."""

MOST_ROUNDS = 5
"""How often what is written meanwhile is judged before the changes count as never at rest."""

START_SECONDS = 60.0
"""What the hooks at the beginning of a session may take together: its first request waits for them."""

MOST_NAMES = 20
MOST_LEFT_OUT = 3

_HOME = re.compile(r"(?:^|[\s\"'=])(?:~|\$HOME\b|\$\{HOME\})")
_AROUND_TOOLS: tuple[HookEvent, ...] = ("PreToolUse", "PostToolUse")
_DENYING_NOTHING: tuple[HookEvent, ...] = ("SessionStart", "RunEnd")
_WORDS_ARE_CONTEXT: tuple[HookEvent, ...] = ("SessionStart", "UserPromptSubmit")
"""The events at which plain words on stdout are for the model."""


Tell = Callable[..., None]
"""Tells the user a sentence of the catalogue, once in a run: the context, its key and its values."""
_NEVER = object()


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts about a run that its hooks are sent. `mode` returns the mode of permissions; `writes` whether the run
    may change files.
    """

    session_id: str
    run_id: str
    mode: Callable[[], str]
    writes: Callable[[], bool]


class OwnView:
    """A private view of the workspace for the hooks of one run: opened for the first hook; call `leave` when the run
    ends.
    """

    def __init__(self, opened: Callable[[], Awaitable[Shell]], close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._opened = opened
        self._close = close
        self._opening = asyncio.Lock()
        self._shell: Shell | None = None
        self._ending = BackgroundTasks()

    async def shell(self) -> Shell | None:
        """Return the shell that the hooks run in, opened at the first call; None if it cannot be opened, and the next
        call tries again.
        """
        # Two calls at once must not open two views.
        async with self._opening:
            if self._shell is None:
                with suppress(ToolFailed, SettingError):
                    self._shell = await self._opened()
        return self._shell

    def leave(self) -> None:
        """Close the view in the background, if it is open; what was written there is dropped. Returns at once."""
        if self._shell is not None:
            # First, so that a hook that is late opens a new view and does not use one that is closing.
            self._shell = None
            self._ending.start(self._close())


class Hooks:
    """Port: the hooks of one run. `own_view` is the view in which they run (None: that of the run's commands),
    `consent` is what the user has said already; `brings` returns what else of the workspace needs trust.
    """

    def __init__(
        self,
        library: HookLibrary,
        facts: RunFacts,
        own_view: OwnView | None = None,
        consent: HookConsent | None = None,
        brings: Brings = tuple,
    ) -> None:
        self._library = library
        self._facts = facts
        self.own_view = own_view
        self._consent = consent or HookConsent(library, facts.session_id, brings)
        self._told: set[str] = set()  # keys of the sentences that were said in this run
        self._seen = SeenChanges()
        self._judged = (Changeset(), "")  # what the hooks were asked about last, and their objection
        self._before: dict[str, str] = {}  # what hooks add before a call, by its id, until its output is there

    async def decided(self, context: ToolContext) -> HookConsent:
        """Ask the user now about all hooks that they have not decided about; wait, and return the answers, for runs
        that cannot ask.
        """
        shell = await self._shell(context)
        for file in await asyncio.to_thread(self._library.files, context.view) if shell is not None else ():
            if file.hooks and shell is not None:
                await self._consent.ask(context, file, shell)
        return self._consent

    async def on_session(self, context: ToolContext, source: SessionSource) -> str:
        """Run the hooks for the start of a session, 60 s in all, and return the text that they add to its first
        request, '' for none. None of them can deny anything.
        """
        return (await self._run(context, "SessionStart", {"source": source}, source=source)).context

    async def on_prompt(self, context: ToolContext, words: str) -> str:
        """Run the hooks for the user's words and return the text that they add, '' for none. PermissionDenied with the
        reason if one denies them.
        """
        answer = await self._run(context, "UserPromptSubmit", {"prompt": words})
        if answer.denied is not None:
            raise PermissionDenied(answer.denied)
        return answer.context

    async def before_tool(self, context: ToolContext, call: ToolCall, tool: Tool[Any], decision: Decision) -> Decision:
        """Run the hooks before a call and return the decision about it, given as `decision`, which is a question if a
        hook demands one. PermissionDenied with the reason if a hook denies the call.
        """
        answer = await self._of_tool(context, "PreToolUse", call, tool)
        if answer.denied is not None:
            raise PermissionDenied(f"A hook does not allow this: {answer.denied}")
        if answer.asks:  # also where the user once said always: the rules of this moment are the hook's
            decision = asking("asked.hook", remember=False, firm=True)
        self._before[call.id] = answer.context
        return decision

    async def around(
        self, context: ToolContext, call: ToolCall, tool: Tool[Any], run: Callable[[], Awaitable[ToolOutput]]
    ) -> ToolOutput:
        """Run a call and the hooks after it, and return its output with what they add, objections included: they undo
        nothing. Errors as of `run`, after which no hook runs.
        """
        before = context.staging.changeset
        output = await run()
        response = {"text": output.text, "failed": output.failed}
        staged = context.staging.changeset
        if tool.traits.effect == "write":
            told = staged.get(told_path(call.arguments, context.view.roots))
            shown = told is not None and (told.text is None or tells_content(call.arguments, tool.forms))
            if told is not None and shown and told != before.get(told.path):
                self._seen.add(told.path, told.text)
        answer = await self._of_tool(context, "PostToolUse", call, tool, response)
        objection = "" if answer.denied is None else f"A hook objects: {answer.denied}"
        added = [self._before.pop(call.id, ""), answer.context, objection]
        # A formatter, for instance: the model has to know that the text is no longer the one that it wrote.
        if context.staging.changeset != staged:
            added.append(f"Changed by a hook afterwards: {_names(context, staged)}")
        return replace(output, text="\n".join(filter(None, (output.text, *added))))

    async def before_proposal(self, context: ToolContext) -> str:
        """Return the reason, for the model, why hooks refuse what is staged, '' if they do not. Changes that no tool
        call wrote are first given to the hooks for tools; the same changes are not judged twice.
        """
        # A hook may change what is staged, which is then something else to be judged; two hooks may do so in turn for
        # ever.
        for _ in range(MOST_ROUNDS):
            judged, reason = self._judged
            if judged == context.staging.changeset:
                return reason
            reason = await self._before_proposal(context, again=bool(reason))
            if reason or not self._seen.unseen(context.staging.changeset):
                self._judged = (context.staging.changeset, reason)  # else a command beside has written meanwhile
        judged, reason = self._judged
        return reason if judged == context.staging.changeset else context.words("hooks.still_written")

    async def at_end(self, context: ToolContext, status: str, files: Sequence[str]) -> None:
        """Run the hooks for the end of the run; their answers are ignored and what they write is dropped. `status` is
        how it ended, `files` are absolute paths.
        """
        await self._run(context, "RunEnd", {"status": status, "files": list(files)})

    async def _before_proposal(self, context: ToolContext, *, again: bool) -> str:
        for change in self._seen.unseen(context.staging.changeset):
            if reason := await self._as_written(context, change):
                return reason
        files = [context.view.roots.relative(path) for path in context.staging.changeset.paths]
        answer = await self._run(context, "PreProposal", {"files": files, "stop_hook_active": again})
        return answer.denied or ""

    async def _as_written(self, context: ToolContext, change: FileChange) -> str:
        """Give a change to the hooks for tools, as if a tool had written the file; return the reason of a denial."""
        places = [] if change.moved_from is None else [(change.moved_from, None)]
        self._seen.add(change.path, change.text)
        for path, text in (*places, (change.path, change.text)):
            arguments = {"path": context.view.roots.relative(path), "file_path": path}
            tool = (DeleteFile if text is None else WriteFile).traits
            told = {"tool_input": arguments if text is None else {**arguments, "content": text}}
            for event in _AROUND_TOOLS:
                answer = await self._run(context, event, told, tool=tool)
                if answer.denied is not None:
                    # So that it is judged again once the model has changed it, or tries to propose it as it is.
                    self._seen.forget(change.path)
                    return answer.denied
        return ""

    async def _of_tool(
        self, context: ToolContext, event: HookEvent, call: ToolCall, tool: Tool[Any], response: Any = None
    ) -> HookAnswer:
        told = {"tool_input": tool_input(call.arguments, tool.forms, context.view.roots)}
        if response is not None:
            told["tool_response"] = response
        return await self._run(context, event, told, tool=tool.traits)

    async def _run(
        self,
        context: ToolContext,
        event: HookEvent,
        told: Mapping[str, Any],
        *,
        tool: ToolTraits | None = None,
        source: str = "",
    ) -> HookAnswer:
        """Run all hooks for an event; the first denial ends it, where one counts. Return their answers as one."""
        asks = False
        contexts: list[str] = []
        names = names_of(tool, guards=event == "PreToolUse") if tool else (source,) if source else ()
        about, line = (subjects(told, context.view.roots), command_line(told)) if tool else ((), "")
        trusted = await self._trusted_files(context, event, names)
        # Counted only now: the question for trust may have been open for hours.
        end = time.monotonic() + (START_SECONDS if event == "SessionStart" else float("inf"))
        for file, shell in trusted:
            name = "" if tool is None else foreign_name(tool) if file.foreign else tool.name
            data = _event(self._facts, context, event, told, name)
            folder = context.view.roots.root_of(file.path) or next(iter(context.view.roots.folders), "/")
            for hook in (each for each in file.of(event, names) if source or each.is_met(names, about, line)):
                if (left := end - time.monotonic()) <= 0:
                    self._tell(context, "hooks.late", command=one_line(hook.command, 80))
                    continue
                timed = replace(hook, seconds=min(hook.seconds, left))
                answer = await self._run_one(context, event, timed, folder, data, shell)
                # Later hooks are not run: their effects would be of a call that does not happen.
                if answer.denied is not None and event not in _DENYING_NOTHING:
                    return answer
                if answer.denied is not None and event == "SessionStart":
                    self._tell(context, "hooks.objected", reason=answer.denied)
                asks, contexts = asks or answer.asks, [*contexts, answer.context]
        return HookAnswer(asks=asks, context="\n".join(filter(None, contexts))[:MOST_WORDS])

    async def _run_one(
        self, context: ToolContext, event: HookEvent, hook: Hook, folder: str, data: bytes, shell: Shell
    ) -> HookAnswer:
        """Run one hook in a folder, with `data` on its stdin; return its answer, and note what it has written."""
        command = _command(hook, folder, data, proposes=event != "RunEnd" and self._facts.writes())
        before = context.staging.changeset
        words_are_context = event in _WORDS_ARE_CONTEXT
        answer, result = await _run_hook(context, shell, hook, command, self._tell, words_are_context=words_are_context)
        self._seen.add_written(result.staged, before, context.staging.changeset)
        for path, why in result.left_out[:MOST_LEFT_OUT]:
            self._tell(context, "hooks.not_staged", path=context.view.roots.relative(path), why=why)
        return answer

    async def _trusted_files(
        self, context: ToolContext, event: HookEvent, names: tuple[str, ...]
    ) -> list[tuple[HookFile, Shell]]:
        """Return the files with hooks for an event that the user trusts as they are, read again after each question."""
        for _ in range(MOST_QUESTIONS):
            files = await asyncio.to_thread(self._library.files, context.view)
            for file in files:
                if file.left_out:
                    name = context.view.roots.relative(file.path)
                    self._tell(context, "hooks.left_out", path=name, what=", ".join(file.left_out))
            wanted = [file for file in files if file.of(event, names)]
            shell = await self._shell(context) if wanted else None
            if shell is None:
                return []
            if all(self._consent.decided(file, shell) for file in wanted):
                return [(file, shell) for file in wanted if self._consent.given(file, shell)]
            for file in wanted:
                await self._consent.ask(context, file, shell)
        return []

    async def _shell(self, context: ToolContext) -> Shell | None:
        """Return the shell for hooks. None, told once, where a command could write to the user's files."""
        shell = context.shell
        if shell is not None and shell.isolation.confined and self.own_view is not None:
            shell = await self.own_view.shell()
        if shell is not None and shell.isolation.confined:
            return shell
        self._tell(context, "hooks.nowhere")
        return None

    def _tell(self, context: ToolContext, key: str, **values: object) -> None:
        line = context.words(key, **values)
        if line not in self._told:
            self._told.add(line)
            context.note(line)


def _event(facts: RunFacts, context: ToolContext, event: HookEvent, told: Mapping[str, Any], tool: str) -> bytes:
    return as_json(
        {
            "hook_event_name": event,
            "session_id": facts.session_id,
            "run_id": facts.run_id,
            "cwd": next(iter(context.view.roots.folders), ""),
            "permission_mode": facts.mode(),
            "transcript_path": "",
            **({"tool_name": tool} if tool else {}),
            **told,
        }
    )


def _command(hook: Hook, folder: str, data: bytes, *, proposes: bool) -> Command:
    names = {"CLAUDE_PROJECT_DIR": folder, "CODEAGENT_PROJECT_DIR": folder}
    return Command(hook.command, folder, hook.seconds, environment=names, apart=True, proposes=proposes, stdin=data)


async def _run_hook(
    context: ToolContext, shell: Shell, hook: Hook, command: Command, tell: Tell, *, words_are_context: bool
) -> tuple[HookAnswer, CommandResult]:
    """Run one hook; return its answer, and the result of its command. How it failed is told once."""
    said: dict[Stream, list[str]] = {"stdout": [], "stderr": []}
    name = one_line(hook.command, 80)
    context.note(context.words("hooks.running", command=name))
    try:
        result = await shell.run(command, lambda stream, text: said[stream].append(text))
    except ToolFailed as failed:
        tell(context, "hooks.failed", command=name, problem=str(failed))
        return HookAnswer(problem=str(failed)), CommandResult(Finished(126, str(failed)), shell.isolation)
    out, err = "".join(said["stdout"]), "".join(said["stderr"])
    answer = answer_of(result.finished, out, err, words_are_context=words_are_context)
    if answer.problem:
        hidden = shell.isolation.hidden and _HOME.search(hook.command)
        problem = context.words("hooks.hidden_home") if hidden else answer.problem
        tell(context, "hooks.failed", command=name, problem=problem)
    if answer.notice:
        context.note(answer.notice)
    return answer, result


def _names(context: ToolContext, before: Changeset) -> str:
    """Return the names of the files that are staged in another way than before, or not any more."""
    after = context.staging.changeset
    paths = dict.fromkeys((*after.paths, *before.paths))
    names = [context.view.roots.relative(path) for path in paths if before.get(path) != after.get(path)]
    return join_names(names, MOST_NAMES)


# What hooks were told of, or have written themselves: a change is given to the guards once, as it is.


class SeenChanges:
    """The texts of files, None for a deleted one, as the hooks of one run were last sent them."""

    def __init__(self) -> None:
        self._texts: dict[str, str | None] = {}

    def add(self, path: str, text: str | None) -> None:
        """Note the text of a file (absolute path) that hooks were sent, None for a deletion."""
        self._texts[path] = text

    def forget(self, path: str) -> None:
        """Drop the note on a file (absolute path), so that its change counts as unseen again; nothing if there
        is none.
        """
        self._texts.pop(path, None)

    def add_written(self, paths: Iterable[str], before: Changeset, after: Changeset) -> None:
        """Note that the hooks have seen what one of them wrote in these files (absolute paths), between the states
        `before` and `after`; not for a file in which there was a change before that no hook has seen.
        """
        for path in paths:
            earlier, now = before.get(path), after.get(path)
            if earlier is None or self._is_seen(earlier):
                self._texts[path] = None if now is None else now.text

    def unseen(self, changes: Changeset) -> list[FileChange]:
        """Return the changes whose present text no hook has been sent, in their order; [] for none."""
        return [change for change in changes if not self._is_seen(change)]

    def _is_seen(self, change: FileChange) -> bool:
        return self._texts.get(change.path, _NEVER) == change.text
