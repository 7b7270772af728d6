"""Builds the workspace's part of a run's prompts: background, repo map, news, nested instructions, subagents.

Not here: these texts themselves (`../memory/knowledge.py`), the conversation (`conversation.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from codeagent_lsp import events
from codeagent_lsp.agent.agent_files import Profile, item_of
from codeagent_lsp.agent.limits import window_of
from codeagent_lsp.agent.prompt import agent_prompt
from codeagent_lsp.agent.subagents import Parent, Subagents
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.llm.model import Model
from codeagent_lsp.messages import Message, ToolSpec
from codeagent_lsp.session.conversation.repo_maps import RepoMaps, budgets
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.orchestration.orchestration_tools import Delegates
from codeagent_lsp.tools.permissions.policy import Mode, resolved_paths
from codeagent_lsp.tools.skills.skill_library import RunSkills
from codeagent_lsp.tools.skills.trust import is_trusted

if TYPE_CHECKING:
    from codeagent_lsp.session.run_parts import RunParts


class PromptContext:
    """What a run's prompts say of the workspace: instructions, skills, memory, maps. One per run. `mode` is `direct` or
    `ask`; `allowed` returns the permission mode.
    """

    def __init__(self, parts: RunParts, model: Model, mode: str, allowed: Callable[[], Mode]) -> None:
        self._parts = parts
        self._model = model
        self._mode = mode
        self._allowed = allowed
        self._background = parts.session.context.background
        self._view = parts.proposal.view
        self._knowledge = parts.services.knowledge
        setting = parts.services.user.settings().repo_map.max_tokens
        tokens = budgets(setting, self._window, capable=model.info.capable)
        self._maps = RepoMaps(parts.toolbox.index, parts.session.context.overviews, tokens)
        # Kept for `_unseen`, which is called in a thread that has no loop.
        self._loop = asyncio.get_running_loop()

    async def prompt(self, mode: str = "") -> str:
        """Return the system prompt's part about this workspace, with the repo map; the same text for a whole session,
        '' for none. `mode` is the name of a subagent, '' for the run itself.
        """
        background = await asyncio.to_thread(
            self._background.prompt, self._knowledge, self._view, mode or self._mode, self._window, self._unseen
        )
        return "\n\n".join(filter(None, (background, await self._maps.overview())))

    async def before(self, request: RunRequest) -> str:
        """Return the note before a task: changed background, fitting skills, instructions for its file; '' for none."""
        news = await asyncio.to_thread(
            self._background.news,
            *(self._knowledge, self._view, self._mode, self._window, self._unseen, request.instruction),
        )
        below = await self._below([request.target.file.path]) if request.target is not None else ""
        return "\n\n".join(filter(None, (news, below)))

    async def map_for(self, request: RunRequest) -> str:
        """Return the repo map for a request, with the changes to the overview; '' for none, also if the index fails.
        Waits a few seconds at most.
        """
        target = request.target.file.path if request.target is not None else None
        names = [self._view.roots.relative(target)] if target is not None else []
        context = self._parts.session.context
        edited = [self._view.roots.relative(path) for run in context.runs.values() for path in run.changed_paths]
        return await self._maps.before(request, (*names, *context.focused.paths), edited)

    async def below(self, messages: Sequence[Message]) -> str:
        """Return nested instructions for the files of the model's last calls in `messages`, unless they were sent as
        they are now; '' for none.
        """
        last = next((message for message in reversed(messages) if message.role == "assistant"), None)
        return await self._below(self._worked_on(last)) if last is not None else ""

    def compacted(self, messages: Sequence[Message]) -> None:
        """Forget which nested instructions were sent, so that they are sent again: a compaction has removed them."""
        self._background.forgotten()

    def equipped(
        self,
        context: ToolContext,
        tools: Callable[[tuple[str, ...] | None], tuple[ToolSpec, ...]],
    ) -> ToolContext:
        """Return the tools' context with the subagents that the model can delegate to; `tools` returns the specs of
        these names, None for all.
        """

        async def prompt(profile: Profile) -> str:
            where = parts.session.context.environment
            # A reader is offered no commands, so it is not told how they run.
            where = replace(where, commands="") if profile.reads_only else where
            return agent_prompt(profile.instructions, where, await self.prompt(profile.name))

        async def profiles() -> tuple[Profile, ...]:
            return await asyncio.to_thread(self._knowledge.agents.profiles, self._view)

        parts, services = self._parts, self._parts.services
        skills = context.get(RunSkills)
        context = context.having((RunSkills, replace(skills, mode=self._mode) if skills else None))
        parent = Parent(
            services.registry,
            context,
            tools,
            self._allowed,
            parts.session.context.approvals,
            services.user.language(),
            parts.output.emit,
            self._open,
            prompt,
            self._is_trusted,
            self._maps.for_task,
        )
        return context.having((Delegates, Subagents(profiles, parent)))

    @property
    def _window(self) -> int:
        return window_of(self._model.info)

    def _worked_on(self, message: Message) -> list[str]:
        """Return the absolute paths that the tool calls of a message name."""
        registry = self._parts.services.registry
        found: list[str] = []
        for call in message.tool_calls:
            try:
                traits = registry.get(call.name).traits
            except ToolFailed:  # no such tool, or it is off
                continue
            found.extend(resolved_paths(traits, call.arguments, self._view.roots))
        return found

    async def _below(self, paths: Sequence[str]) -> str:
        if not paths:
            return ""
        return await asyncio.to_thread(
            self._background.below, self._knowledge, self._view, paths, self._window, self._unseen
        )

    async def _open(self, name: str) -> Model:
        return await self._parts.models.named(name) if name else self._model

    async def _is_trusted(self, profile: Profile) -> bool:
        if profile.approved:
            return True
        output, brings = self._parts.output, partial(self._knowledge.brought, self._view)
        return await is_trusted(self._knowledge.agents.trust, item_of(profile), output, output.text, brings)

    def _unseen(self, name: str) -> None:
        """Warn the user that the instruction file `name` has invisible characters. Called in a worker thread, while
        events belong to the event loop.
        """
        words = self._parts.output.text("instructions.unseen", name=name)
        self._loop.call_soon_threadsafe(self._parts.output.emit, events.StatusChanged(message=words))
