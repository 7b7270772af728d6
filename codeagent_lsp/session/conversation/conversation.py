"""Holds one run's conversation with the model: its system prompt, messages and tools, and the agent loop over them.

Not here: the loop itself (`agent/loop.py`), a run's beginning and end (`run.py`), a plan's steps (`plan/execution.py`).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from codeagent_lsp import events
from codeagent_lsp.agent.context.compaction import KeptFacts
from codeagent_lsp.agent.context.gather import headed_or_parts, if_it_stands, names_in_code, starting_context
from codeagent_lsp.agent.context.history import History, is_request, note
from codeagent_lsp.agent.limits import LoopLimits, limits_for, window_of
from codeagent_lsp.agent.loop import AgentLoop, LoopResult
from codeagent_lsp.agent.prompt import system_prompt, task_message
from codeagent_lsp.agent.subset import NOT_YET, Subset
from codeagent_lsp.llm.model import Model
from codeagent_lsp.messages import Message, ToolSpec
from codeagent_lsp.session.conversation.focusing import Focusing
from codeagent_lsp.session.conversation.prompt_context import PromptContext
from codeagent_lsp.session.conversation.run_mode import RunMode
from codeagent_lsp.session.conversation.situation import situation
from codeagent_lsp.session.conversation.tool_availability import Availability
from codeagent_lsp.session.conversation.tool_selection import (
    PLANNING_TOOLS,
    FixedTools,
    ToolSelection,
    tool_selection_for,
)
from codeagent_lsp.session.decisions import decisions
from codeagent_lsp.session.plan.run_planner import RunPlanner
from codeagent_lsp.session.replay import message_to_dict
from codeagent_lsp.session.request import ANSWERS, Planning, RunRequest
from codeagent_lsp.session.run_parts import RunParts, hear, remember, selection_of
from codeagent_lsp.session.state import Compacted
from codeagent_lsp.session.toolbox import commands_line
from codeagent_lsp.tools.context import Reader, TaskWords, ToolContext
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.groups import ToolGroups
from codeagent_lsp.tools.plan.planner_port import Planner
from codeagent_lsp.workspace.text.excerpts import keywords_of

NAMED_CHARS = 40_000
"""Characters of files that a task names, for a capable model."""
FOREIGN_TOOLS = 3
"""Divisor of the window in tokens: so many characters of tools added by the user are offered from the start.
That is less than a tenth of the window."""


class Conversation:
    """The conversation of one run with the model. Call `open` once; each `loop` goes on where the last one ended."""

    def __init__(self, parts: RunParts, model: Model, planning: Planning, planner: RunPlanner) -> None:
        self._parts = parts
        self._model = model
        self._planning = planning
        self._planner = planner
        self._kind = parts.record.kind
        self._history = History()
        self._base, self._generation = 0, 0
        self._context: ToolContext | None = None
        self._focusing = _focusing(parts, parts.toolbox.context())
        self._small = model
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
        """Return the model's context window in tokens."""
        return window_of(self._model.info)

    @property
    def limits(self) -> LoopLimits:
        """Return the limits of each loop that names none of its own."""
        return self._limits(None)

    async def open(self, request: RunRequest | None = None, also: str = "") -> None:
        """Begin the conversation: the system prompt, the session's earlier messages, and the request with the note
        `also` before it. `request` is None if a run is resumed.
        """
        parts, known = self._parts, self._parts.session.context
        await parts.toolbox.open()
        commands = commands_line(parts.toolbox.isolation, parts.toolbox.no_shell)
        known.environment = replace(parts.services.workspace.environment(), commands=commands)
        kind = "ask" if self._kind in ANSWERS else "agent" if self._model.info.capable else "system"
        system = Message("system", system_prompt(kind, known.environment, await self._prompt_context.prompt()))
        said, self._base, self._generation = known.conversation, len(known.conversation), known.generation
        self._history = History([system, *said], partial(remember, parts), self._compacted)
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
        listed = not shown and not (self._model.info.capable and self._base)
        files = await asyncio.to_thread(self._files, request, listed=listed)
        became = await decisions(self._parts)
        now = await situation(self._parts, request, self.limits.iterations) if self._model.info.capable else ""
        before = (await self._prompt_context.before(request), self._availability.opening(), shown, files, became, now)
        if helpful := "\n\n".join(filter(None, (*before, *request.given, also))):
            self.tell(helpful)
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
        """Append a note from the program to the model, in the user's role."""
        self._history.append(note(words))

    def answer(self, words: str) -> None:
        """Append the user's answer to the question with which the model has ended."""
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
        all that are offered); with `reading` it may neither change nor run anything.
        """
        assert self._context is not None, "a conversation is opened first"
        self._mode.reading = reading
        services, planner = self._parts.services, self._planner
        approvals, language = self._parts.session.context.approvals, services.user.language()
        registry = services.registry if only is None else Subset(services.registry, lambda: only, NOT_YET)
        executor = ToolExecutor(registry, self._context, self._mode.now, approvals, language)
        loop = AgentLoop(
            self._model,
            executor,
            self._history,
            self._tools,
            self._parts.output.emit,
            self._limits(iterations),
            self._after_tools,
            self._kept,
            lambda: planner.made,
            only,
            self._small,
            partial(hear, self._parts),
            self._also,
        )
        return await loop.run()

    async def _after_tools(self) -> str:
        """Apply staged changes in the style `live`; return notes for the model after its tool calls, '' for none."""
        told = await self._parts.proposal.apply_live()
        await self._focusing.after(self._history.messages)
        relative = self._parts.proposal.view.roots.relative
        self._parts.toolbox.baselines.changing(map(relative, self._parts.record.changed_paths))
        below = await self._prompt_context.below(self._history.messages)
        return "\n\n".join(filter(None, (told, below, self._availability.news())))

    def _compacted(self, messages: tuple[Message, ...]) -> None:
        """Store the compacted messages, with which the next run begins, too."""
        record = self._parts.record
        said = tuple(message for message in messages if message.role != "system")
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

    async def _kept(self) -> KeptFacts:
        """Return the facts that every compaction repeats, with the files in focus reloaded."""
        await self._focusing.refresh()
        parts = self._parts
        return parts.session.context.kept(parts.record, parts.proposal.view.roots.relative)

    def _files(self, request: RunRequest, *, listed: bool) -> str:
        """Return the files that the task needs at the beginning, as text; with `listed`, the names of files, too."""
        skip = [request.target.file.path] if request.target is not None else []
        skip += [path for path, _ in request.files]
        view, stands = self._parts.proposal.view, partial(self._focusing.stands, self._history.messages)
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
