"""Holds one run's conversation with the model: its system prompt, messages and tools, and the agent loop over them.

Not here: the loop itself (`agent/loop.py`), a run's beginning and end (`run.py`), a plan's steps (`plan_execution.py`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from codeagent_lsp import events
from codeagent_lsp.agent.context.compaction import KeptFacts
from codeagent_lsp.agent.context.gather import headed_or_parts, if_it_stands, names_in_code, starting_context
from codeagent_lsp.agent.context.history import (
    READING,
    UNCHANGED,
    WHOLE,
    WORTH_REFERRING,
    FocusedFiles,
    History,
    is_request,
    note,
)
from codeagent_lsp.agent.limits import LoopLimits, limits_for, window_of
from codeagent_lsp.agent.loop import AgentLoop, LoopResult
from codeagent_lsp.agent.prompt import system_prompt, task_message
from codeagent_lsp.agent.subagents import NOT_YET, Subset
from codeagent_lsp.errors import AgentError
from codeagent_lsp.llm.model import Model
from codeagent_lsp.messages import Message, ToolSpec
from codeagent_lsp.session.conversation.prompt_context import PromptContext
from codeagent_lsp.session.conversation.situation import situation
from codeagent_lsp.session.conversation.tool_selection import (
    PLANNING_TOOLS,
    FixedTools,
    ToolSelection,
    tool_selection_for,
)
from codeagent_lsp.session.decisions import decisions
from codeagent_lsp.session.replay import message_to_dict
from codeagent_lsp.session.request import ANSWERS, Planning, RunRequest
from codeagent_lsp.session.run_output import PLANNING_CALL
from codeagent_lsp.session.run_parts import RunParts, hear, remember, selection_of
from codeagent_lsp.session.run_planner import RunPlanner
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import Compacted
from codeagent_lsp.session.toolbox import commands_line
from codeagent_lsp.tools.context import Reader, TaskWords, ToolContext
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.files.read_tools import LARGE_FILE_LINES, render
from codeagent_lsp.tools.permissions.policy import Mode, effects_of
from codeagent_lsp.tools.plan.plan import Planner
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.traits import ToolGroups
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.excerpts import keywords_of
from codeagent_lsp.workspace.text.position import split_lines
from codeagent_lsp.workspace.text.visible import one_line

NAMED_CHARS = 40_000
"""Characters of files that a task names, for a capable model."""
FOREIGN_TOOLS = 3
"""Divisor of the window in tokens: so many characters of tools added by the user are offered from the start.
That is less than a tenth of the window."""
REASON = 300
PLANNING = "The tool {tool!r} cannot be called while a plan is made. Read what you need, then call create_plan."
# The heading of `whole_file`: `The whole file src/a.py, as it is now:`. A part of a large file has another one.
_GIVEN = re.compile(rf"^{WHOLE} (.+), as it is now:$", re.MULTILINE)


class Conversation:
    """The conversation of one run with the model. Call `open` once, before everything else but `window` and `limits`;
    each `loop` continues after the last one.
    """

    def __init__(self, parts: RunParts, model: Model, planning: Planning, planner: RunPlanner) -> None:
        self._parts = parts
        self._model = model
        self._planning = planning
        self._planner = planner
        self._kind = parts.record.kind
        self._history = History()
        self._base, self._generation = 0, 0
        self._context: ToolContext | None = None
        # Again in `open`: secrets cannot be masked before the toolbox is open.
        self._focusing = _focusing(parts, parts.toolbox.context())
        self._small = model  # for summaries and short questions
        self._mode = RunMode(self._kind, planner, parts.services.user.mode)
        registry, heads = parts.services.registry, parts.session.context.tool_heads
        capable = model.info.capable
        without = PLANNING_TOOLS if planning == "never" else ()
        self._fixed = FixedTools(registry, self._mode.offered, heads, without) if capable else None
        self._tool_selection: ToolSelection | FixedTools = self._fixed or ToolSelection(registry, self._mode.offered)
        self._availability = Availability(parts.services.registry, parts.output.emit)
        self._prompt_context = PromptContext(parts, model, "ask" if self._kind in ANSWERS else "direct", self._mode.now)

    @property
    def window(self) -> int:
        """The model's context window in tokens."""
        return window_of(self._model.info)

    @property
    def limits(self) -> LoopLimits:
        """The limits of each loop that names none of its own, from the settings and the model's window."""
        return self._limits(None)

    async def open(self, request: RunRequest | None = None, also: str = "") -> None:
        """Begin the conversation: the system prompt, the session's earlier messages, and the request with the note
        `also` before it. `request` is None if a run is resumed. May take seconds: it looks how commands run and waits
        for the repo map.
        """
        parts, known = self._parts, self._parts.session.context
        # First: it says how commands run here, which the system prompt tells.
        await parts.toolbox.open()
        commands = commands_line(parts.toolbox.isolation, parts.toolbox.no_shell)
        known.environment = replace(parts.services.workspace.environment(), commands=commands)
        kind = "ask" if self._kind in ANSWERS else "agent" if self._model.info.capable else "system"
        system = Message("system", system_prompt(kind, known.environment, await self._prompt_context.prompt()))
        # A compaction replaces just what this run has copied; the session may go on meanwhile by another run.
        said, self._base, self._generation = known.conversation, len(known.conversation), known.generation
        self._history = History([system, *said], partial(remember, parts), self._store_compacted)
        small, registry = self._model.info.known_small, parts.services.registry
        room = 0 if small else self.window // FOREIGN_TOOLS
        self._tool_selection = self._fixed or tool_selection_for(
            registry, self._mode.offered, said, self._planning, system.content, small=small, room=room
        )
        self._small = await parts.models.small(self._model)
        context = parts.toolbox.context(self._model, self.limits.reply_tokens, self._small)
        planner = None if self._planning == "never" else self._planner
        reader = Reader(self.window)
        asked = next((message.content for message in reversed(said) if is_request(message)), "")
        about = TaskWords(keywords_of(request.task if request is not None else asked))
        own = (Planner, planner), (ToolGroups, self._tool_selection), (Reader, reader), (TaskWords, about)
        context = context.having(*own)
        self._context = self._prompt_context.equipped(context, self._tools)
        self._focusing = _focusing(parts, context)
        if request is not None:
            await self._request(request, also)

    async def _request(self, request: RunRequest, also: str) -> None:
        """Append the user's request in their own words, after a note with context that helps with it now. The first
        compaction removes the note and keeps the request.
        """
        shown = await self._prompt_context.map_for(request) if self._has_tools and self._asks_for(request) else ""
        # A map names the files better than a list; a capable model in a later request has seen either already.
        listed = not shown and not (self._model.info.capable and self._base)
        files = await asyncio.to_thread(self._files, request, listed=listed)
        # As late as possible: the user may have decided about a change since the last run ended.
        became = await decisions(self._parts)
        now = await situation(self._parts, request, self.limits.iterations) if self._model.info.capable else ""
        before = (await self._prompt_context.before(request), self._availability.opening(), shown, files, became, now)
        if helpful := "\n\n".join(filter(None, (*before, *request.given, also))):
            self.tell(helpful)
        # Last, so that notes stand before it: models answer what stands at the end.
        self._history.append(Message("user", _task(request, self._parts), images=request.images))
        await self._focusing.given(files)

    def _asks_for(self, request: RunRequest) -> bool:
        """Return whether a request needs to be shown where in the code it may be about. A capable model that has talked
        about it already is shown that only where the words name something that has not been talked of.
        """
        if not self._model.info.capable or not self._base:
            return True
        said = "\n".join(message.content for message in self._history.messages)
        return any(name not in said for name in names_in_code(request.instruction))

    def tell(self, words: str) -> None:
        """Append a note from the program to the model, in the user's role. The model reads it with the next call."""
        self._history.append(note(words))

    def answer(self, words: str) -> None:
        """Append the user's answer to the question with which the model ended its last reply. The next call of the loop
        sends it.
        """
        self._history.append(Message("user", words))

    async def loop(
        self,
        *,
        iterations: int | None = None,
        only: tuple[str, ...] | None = None,
        reading: bool = False,
    ) -> LoopResult:
        """Run the agent loop until the model answers, makes a plan, or reaches a limit, and return its result.
        `iterations` limits the model calls (None: the setting); `only` are the names of the tools it may call (None:
        all that are offered); with `reading` it may neither change nor run anything. ModelError if the model fails;
        cancelling leaves a well-formed conversation.
        """
        assert self._context is not None, "a conversation is opened first"
        self._mode.reading = reading
        services, planner = self._parts.services, self._planner
        approvals, language = self._parts.session.context.approvals, services.user.language()
        # The model still sees all tools, which keeps its prompt cache; others than `only` are refused when they are
        # called.
        registry = services.registry
        if only is not None:
            registry = Subset(registry, lambda: only, NOT_YET)
        elif reading:
            registry = Subset(registry, partial(_reading, registry), PLANNING)
        executor = ToolExecutor(registry, self._context, self._mode.now, approvals, language)
        loop = AgentLoop(
            self._model,
            executor,
            self._history,
            self._tools,
            self._parts.output.emit,
            self._limits(iterations),
            self._after_tools,
            self._kept_facts,
            lambda: planner.made,
            only,
            self._small,
            partial(hear, self._parts),
            self._also,
        )
        return await loop.run()

    @property
    def reads_first(self) -> bool:
        """Whether the model may read before it makes a plan: others use up their few calls by that."""
        return self._model.info.capable

    async def plan(self, calls: int) -> LoopResult:
        """Let the model make a plan, or change it, and return the loop's result, which may have none; errors as for
        `loop`; one that does not read first has so many `calls` for it.
        """
        if self.reads_first:
            return await self.loop(reading=True)
        return await self.loop(iterations=calls, only=(PLANNING_CALL,))

    async def _after_tools(self) -> str:
        """Apply staged changes in the style `live`; return notes for the model after its tool calls, '' for none."""
        # First: what is applied now is no longer staged, and focus and baselines look at what is there.
        told = await self._parts.proposal.apply_live()
        await self._focusing.after(self._history.messages)
        relative = self._parts.proposal.view.roots.relative
        self._parts.toolbox.baselines.changing(map(relative, self._parts.record.changed_paths))
        below = await self._prompt_context.below(self._history.messages)
        return "\n\n".join(filter(None, (told, below, self._availability.news())))

    def _store_compacted(self, messages: tuple[Message, ...]) -> None:
        """Store the compacted messages, with which the next run begins, too."""
        record = self._parts.record
        # Each run makes its own system prompt; a stored one would stand there twice.
        said = tuple(message for message in messages if message.role != "system")
        # With what it replaces: another run of the session may have compacted or added to the same messages meanwhile.
        record.compacted = Compacted(said, len(record.messages), self._base, self._generation)
        self._parts.output.emit(
            events.ConversationCompacted(
                messages=tuple(map(message_to_dict, said)), base=self._base, generation=self._generation
            )
        )
        self._prompt_context.compacted(messages)

    def _tools(self, only: tuple[str, ...] | None = None) -> tuple[ToolSpec, ...]:
        """Return the specs of the offered tools; none if a small model explains code, which its prompt contains."""
        return self._tool_selection.specs(only) if self._has_tools else ()

    def _also(self) -> tuple[ToolSpec, ...]:
        """Return the specs of tools that may be called although the prompt does not describe them."""
        return self._fixed.also() if self._fixed is not None and self._has_tools else ()

    @property
    def _has_tools(self) -> bool:
        return self._kind != "explain" or not self._model.info.known_small

    async def _kept_facts(self) -> KeptFacts:
        """Return the facts that every compaction repeats, with the files in focus reloaded."""
        await self._focusing.refresh()
        parts = self._parts
        return parts.session.context.kept(parts.record, parts.proposal.view.roots.relative)

    def _files(self, request: RunRequest, *, listed: bool) -> str:
        """Return the files that the task needs at the beginning, as text; with `listed`, the names of files, too."""
        skip = [request.target.file.path] if request.target is not None else []
        skip += [path for path, _ in request.files]
        view, stands = self._parts.proposal.view, partial(self._focusing.stands, self._history.messages)
        # As many characters as the window has tokens: about a quarter of it, for code.
        room = max(0, self.window - sum(len(text) for _, text in request.files))
        if self._model.info.capable:
            shown = headed_or_parts(request.task)
            found = starting_context(
                view, request.task, min(room, NAMED_CHARS), skip, listed=listed, stands=stands, headed=shown
            )
        else:
            found = starting_context(view, request.task, room, skip, listed=listed, stands=stands)
        relative = view.roots.relative
        given = (if_it_stands(relative(path), text, stands) or text for path, text in request.files)
        return "\n\n".join(filter(None, (found, *given)))

    def _limits(self, iterations: int | None) -> LoopLimits:
        return limits_for(self._parts.services.user.settings(), self._model.info, iterations)


def _task(request: RunRequest, parts: RunParts) -> str:
    """Return the request as text for the model, with the selection and the diagnostics."""
    roots = parts.proposal.view.roots
    selection = selection_of(request.target, roots) if request.target is not None else None
    return task_message(request.instruction, selection, request.diagnostics)


def _reading(registry: ToolRegistry) -> tuple[str, ...]:
    """Return the names of the tools that neither change nor run anything."""
    effects = effects_of("readOnly")
    return tuple(entry.tool.traits.name for entry in registry.entries() if entry.tool.traits.effect in effects)


def _focusing(parts: RunParts, context: ToolContext) -> Focusing:
    """Return the files in focus of the run's session, as tools with this context may show them."""
    return Focusing(
        parts.session,
        parts.record.run_id,
        parts.proposal.view,
        parts.services.user.settings().context.focused_files_max_chars,
        context.redaction.hide,
        lambda: parts.proposal.changeset.paths,
    )


# The permission mode of a run, which may be stricter than the user's.


class RunMode:
    """The permission mode of one run of this kind, which may be stricter than the user's. `user` returns the user's
    present mode; `reading` is True while the loop may only read, as when it replans.
    """

    def __init__(self, kind: str, planner: RunPlanner, user: Callable[[], Mode]) -> None:
        self.reading = False
        self._kind = kind
        self._planner = planner
        self._user = user

    def offered(self) -> Mode:
        """Return the mode by which tools are offered: the user's present one, `readOnly` for a run that only
        answers.
        """
        # Read at each call, as the user may change the mode while the run is at work.
        return "readOnly" if self._kind in ANSWERS else self._user()

    def now(self) -> Mode:
        """Return the present mode; `readOnly` also until a plan document is approved, and while `reading`."""
        return "readOnly" if self.reading or self._planner.reading_only else self.offered()


# Reports to the model and the user of one run which tools became unavailable, came back, or are new.


class Availability:
    """Compares the registry with its last reported state; made when a run begins. `emit` receives the events."""

    def __init__(self, registry: ToolRegistry, emit: Callable[[events.Event], None]) -> None:
        self._registry = registry
        self._emit = emit
        # What is off at the start is in the note of `opening`; `news` tells only what changes after it.
        self._off = _off(registry)
        self._groups = _groups(registry)

    def opening(self) -> str:
        """Return a note on the tools that the circuit breaker suspends as the run begins; '' for none. Tools that the
        user switched off are not offered anyway.
        """
        resting = {item.name for item in self._registry.circuits.resting()}
        return "\n".join(self._rests(name, reason) for name, reason in self._off.items() if name in resting)

    def news(self) -> str:
        """Return a note for the model on tools suspended or usable again and groups added since the last call, '' for
        none; emit them for the user.
        """
        off, groups = _off(self._registry), _groups(self._registry)
        names = self._registry.names()
        lines = []
        for name, reason in off.items():
            if name not in self._off:
                self._emit(events.ToolDisabled(tool=name, reason=reason))
                lines.append(self._rests(name, reason))
        for name in self._off:
            # One that is gone altogether, as its server was removed, has not come back.
            if name not in off and (name in names or name in groups):
                self._emit(events.ToolEnabled(tool=name))
                lines.append(f"The tool {name} can be used again.")
        new = sorted(groups - self._groups)
        if new:
            lines.append(f"New groups of tools: {', '.join(new)}.")
        self._off, self._groups = off, groups
        return "\n".join(lines)

    def _rests(self, name: str, reason: str) -> str:
        left = next((item.seconds for item in self._registry.circuits.resting() if item.name == name), None)
        if left is None:
            return f"The tool {name} cannot be used now: {reason or 'switched off'}. Go another way."
        when = f"in {left:.0f} s" if left > 0 else "now"
        return f"The tool {name} rests: it {reason}. It can be tried again {when}. Until then go another way."


def _off(registry: ToolRegistry) -> dict[str, str]:
    """Return the reasons by the names of unavailable tools; a group that is missing as a whole is one name."""
    off = {
        entry.tool.traits.name: one_line(entry.reason, REASON)
        for entry in registry.entries()
        if entry.state in ("disabled", "error")
    }
    return {**off, **{name: one_line(str(reason), REASON) for name, reason in registry.missing.items()}}


def _groups(registry: ToolRegistry) -> set[str]:
    return {entry.tool.traits.group for entry in registry.entries() if entry.state != "registered"}


# Tracks a session's focused files: those that the model has in its context in full, with their current text.


class Focusing:
    """Keeps the session's focused files, which the user sees, up to date during one run. `limit` is in characters;
    `hide` masks the secrets in a text; `edited` returns the absolute paths of the files that are being changed.
    """

    def __init__(
        self,
        session: Session,
        run_id: str,
        view: FileView,
        limit: int,
        hide: Callable[[str], str],
        edited: Callable[[], Iterable[str]],
    ) -> None:
        self._session = session
        self._run_id = run_id
        self._view = view
        self._limit = limit
        self._hide = hide
        self._edited = edited

    async def given(self, text: str) -> None:
        """Update the focus with the whole files in a text (those below the heading of `whole_file`) that was put into
        the conversation.
        """
        await self._look([(name, text) for name in _GIVEN.findall(text)])

    async def after(self, messages: Sequence[Message]) -> None:
        """Update the focus with the files read by the model's last calls, with whose results `messages` end. Reads
        files in a thread. Nothing happens if there was no call.
        """
        results: dict[str, str] = {}
        for message in reversed(messages):
            if message.role == "assistant":
                await self._look([(path, results.get(call_id, "")) for call_id, path in _read(message)])
                return
            results[message.tool_call_id] = message.content

    async def refresh(self) -> None:
        """Read the files in focus again, in a thread, and store their present texts; files that are gone leave the
        focus.
        """
        paths = self._session.context.focused.paths
        texts = await asyncio.to_thread(lambda: {path: self._text(path)[1] for path in paths})
        self._focus(replace(self._session.context.focused, limit=self._limit).refreshed(texts))

    def stands(self, messages: Sequence[Message], name: str, text: str) -> bool:
        """Return whether the model has this text of the file `name` in its conversation and has seen no other one
        since. False for a text of less than 400 characters.
        """
        seen = self._session.context.focused.get(name)
        if len(text) < WORTH_REFERRING or (seen is not None and seen.text not in ("", text)):
            return False
        return any(text in message.content for message in messages)

    async def _look(self, shown: Sequence[tuple[str, str]]) -> None:
        """Update the focus with pairs of a file's name and the text that the model got; mark the files being edited."""
        now = await asyncio.to_thread(lambda: [self._text(name) for name, _ in shown])
        focused = replace(self._session.context.focused, limit=self._limit)
        for (_, text), (name, current) in zip(shown, now, strict=True):
            # By the text, not by the call: a result may be a part of the file, or be cut to fit the window.
            if current is not None and current in text:
                # Only with exactly this text: after a compaction it stands for what the model has read.
                focused = focused.seen(name, current)
            elif text.startswith(UNCHANGED):
                focused = focused.used(name)
        roots = self._view.roots
        self._focus(focused.editing(map(roots.relative, self._edited())))

    def _focus(self, focused: FocusedFiles) -> None:
        self._session.focus(self._run_id, focused)

    def _text(self, name: str) -> tuple[str, str | None]:
        """Return a file's path in the workspace and its text as `read_file` shows it; None as the text if the file is
        large, cannot be read, or is secret, so that the user would be asked first.
        """
        roots = self._view.roots
        try:
            path = roots.resolve(name)
            if roots.is_secret(path):
                return name, None
            file = self._view.read(path)
        except AgentError:
            return name, None
        if len(split_lines(file.text)) > LARGE_FILE_LINES:
            return roots.relative(path), None
        return roots.relative(path), self._hide(render(file))


def _read(message: Message) -> list[tuple[str, str]]:
    """Return the call id and the path of every `read_file` call in a message."""
    calls = (call for call in message.tool_calls if call.name == READING)
    return [(call.id, str(call.arguments["path"])) for call in calls if "path" in call.arguments]
