"""Groups what a server knows besides the files (skills, agents, commands, hooks, memory) into one value, and finds what
of it a workspace brings, which the user has to trust before it is used.

Not here: asking for trust (`tools/skills/desk.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from codeagent_lsp.agent.agent_files import AgentShelf
from codeagent_lsp.agent.custom_commands import CommandShelf
from codeagent_lsp.config import PermissionsSettings, Settings
from codeagent_lsp.session.memory.memory_store import MemoryStore
from codeagent_lsp.tools.hooks.hook_files import HookConsent, HookShelf, hook_items
from codeagent_lsp.tools.own.tool_sources import tool_items
from codeagent_lsp.tools.skills.shelf import SkillShelf
from codeagent_lsp.tools.skills.trust import Trust, WorkspaceItem
from codeagent_lsp.workspace.files.file_view import FileView


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The skills, agents, commands, hooks and memory of one workspace; `consent` is what the user has said of the hooks
    to a run, for its attempts; `permissions` returns the rules by which files may be read.
    """

    skills: SkillShelf
    agents: AgentShelf
    commands: CommandShelf
    hooks: HookShelf
    memory: MemoryStore
    consent: HookConsent | None = None
    permissions: Callable[[], PermissionsSettings] = PermissionsSettings

    @property
    def trust(self) -> Trust:
        """Return the user's trust in what the workspace brings."""
        return self.skills.trust

    def brought(self, view: FileView) -> tuple[WorkspaceItem, ...]:
        """Return the skills, commands, agents, hooks and own tools of the workspace, trusted or not. Blocks."""
        shelves = (self.skills.items(view), self.commands.items(view), self.agents.items(view))
        return (*chain.from_iterable(shelves), *hook_items(self.hooks, view), *tool_items(view.roots))


def knowledge_for(settings: Callable[[], Settings], own: Path, state: Path) -> Knowledge:
    """Return the knowledge of a server, which follows its settings. See `knowledge_in` for the folders."""
    others = (Path.home() / ".claude",)
    paths, remembers = lambda: settings().skills.paths, lambda: settings().memory.enabled
    return knowledge_in(own, state, paths, remembers, others, lambda: settings().permissions)


def knowledge_in(
    own: Path,
    state: Path,
    skill_paths: Callable[[], Sequence[str]],
    memory_enabled: Callable[[], bool],
    others: Sequence[Path] = (),
    permissions: Callable[[], PermissionsSettings] = PermissionsSettings,
) -> Knowledge:
    """Return the knowledge stored in `own`, the folder of all our state, and `state`, that of this workspace; `others`
    are more folders of the user, with commands in `commands` and hooks in `settings.json`.
    """
    trust = Trust(state / "trusted.json")
    return Knowledge(
        SkillShelf(own / "skills", trust, skill_paths),
        AgentShelf(own / "agents", trust),
        CommandShelf((own / "commands", *(other / "commands" for other in others)), trust),
        HookShelf((own / "hooks.json", *(other / "settings.json" for other in others)), trust),
        MemoryStore(state / "memory.json", memory_enabled),
        permissions=permissions,
    )
