"""What a server knows besides the files, and the background in the prompts of a session that is made of it.

Skills, agents, commands, hooks and memory are one value; what a workspace brings of them, the user has to trust before
it is used. The background is instructions of the project, skills, agents and memory. The system prompt keeps it as it
was in the session's first run, byte for byte, so that prompt caches hold; later changes, and instructions for some
files only, are sent in the latest message. Not here: asking for trust (`tools/skills/trust.py`), the texts (`agent/`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Lock

from codeagent_lsp.agent import agent_files
from codeagent_lsp.agent.agent_files import AgentLibrary
from codeagent_lsp.agent.custom_commands import CommandLibrary
from codeagent_lsp.agent.instructions import (
    INSTRUCTIONS_LIMIT,
    nested_instructions,
    render_instructions,
    root_instructions,
)
from codeagent_lsp.config import PermissionsSettings, Settings
from codeagent_lsp.session.memory import remembering
from codeagent_lsp.session.memory.remembering import MemoryStore
from codeagent_lsp.tools.hooks.hook_files import HookConsent, HookLibrary, hook_items
from codeagent_lsp.tools.own.tool_sources import tool_items
from codeagent_lsp.tools.permissions.policy import may_read
from codeagent_lsp.tools.skills import skill_library
from codeagent_lsp.tools.skills.skill_library import Skill, SkillLibrary
from codeagent_lsp.tools.skills.trust import Trust, WorkspaceItem
from codeagent_lsp.workspace.files.file_view import FileView

LEAST, MOST = 600, 3000

_NAMES = {"instructions": "project instructions", "skills": "skills", "agents": "agents", "memory": "background"}

OnUnseen = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The skills, agents, commands, hooks and memory of one workspace; `consent` has the user's answers about hooks,
    for the attempts at a run; `permissions` returns the rules by which files may be read.
    """

    skills: SkillLibrary
    agents: AgentLibrary
    commands: CommandLibrary
    hooks: HookLibrary
    memory: MemoryStore
    consent: HookConsent | None = None
    permissions: Callable[[], PermissionsSettings] = PermissionsSettings

    @property
    def trust(self) -> Trust:
        """The user's trust in what the workspace brings, shared by all parts."""
        return self.skills.trust

    def brought(self, view: FileView) -> tuple[WorkspaceItem, ...]:
        """Return the skills, commands, agents, hooks and own tools of the workspace, trusted or not, as items for the
        question whether they are trusted; () for none. Blocks.
        """
        libraries = (self.skills.items(view), self.commands.items(view), self.agents.items(view))
        return (*chain.from_iterable(libraries), *hook_items(self.hooks, view), *tool_items(view.roots))


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
        SkillLibrary(own / "skills", trust, skill_paths),
        AgentLibrary(own / "agents", trust),
        CommandLibrary((own / "commands", *(other / "commands" for other in others)), trust),
        HookLibrary((own / "hooks.json", *(other / "settings.json" for other in others)), trust),
        MemoryStore(state / "memory.json", memory_enabled),
        permissions=permissions,
    )


class Background:
    """The background (instructions, memory, skills) that the model was sent in one session, so that only what is new is
    sent. Methods block, and may be called from any thread.
    """

    def __init__(self) -> None:
        self._prompts: dict[tuple[str, int], str] = {}
        self._told: dict[tuple[str, int], dict[str, str]] = {}
        self._nested: dict[str, str] = {}
        self._unseen: set[str] = set()
        self._lock = Lock()

    def prompt(self, knowledge: Knowledge, view: FileView, mode: str, window: int, on_unseen: OnUnseen) -> str:
        """Return the system prompt's part for `mode` (`direct`, `ask` or an agent's name) and a window in tokens; made
        once, so that it stays the same for a session; '' for none. `on_unseen` is called once with the name of each
        instruction file that has invisible characters.
        """
        key = (mode, window)
        # Made once: a prompt cache holds only as long as the prompt begins with the same bytes. Changes are news.
        with self._lock:
            if key not in self._prompts:
                known = knowledge.skills.catalogue(view).skills
                parts = self._parts(knowledge, view, mode, window, on_unseen, known)
                self._told[key] = dict(parts)
                self._prompts[key] = "\n\n".join(filter(None, parts.values()))
            return self._prompts[key]

    def news(self, knowledge: Knowledge, view: FileView, mode: str, window: int, on_unseen: OnUnseen, task: str) -> str:
        """Return the note before a task: parts that changed since they were sent, and skills that fit; '' for none.
        What it returns counts as sent; `mode`, `window` and `on_unseen` are as for `prompt`.
        """
        changed = []
        known = knowledge.skills.catalogue(view).skills
        with self._lock:
            told = self._told.setdefault((mode, window), {})
            for name, text in self._parts(knowledge, view, mode, window, on_unseen, known).items():
                if text != told.get(name, ""):
                    changed.append(f"The {_NAMES[name]} above changed; now:\n{text or '(none)'}")
                    told[name] = text
        hint = skill_library.hint(known, task, mode)
        return "\n\n".join(filter(None, (*changed, hint)))

    def below(
        self, knowledge: Knowledge, view: FileView, paths: Iterable[str], window: int, on_unseen: OnUnseen
    ) -> str:
        """Return the instructions in subfolders that apply to these files (absolute paths) and are new or changed since
        they were sent, for the conversation; '' for none. `window` is in tokens and bounds their bytes to half of it,
        from 600 bytes to 32 KiB.
        """
        limit = min(INSTRUCTIONS_LIMIT, max(LEAST, window // 2))
        found = nested_instructions(view, paths, limit, may_read(knowledge.permissions(), view.roots))
        with self._lock:
            new = [item for item in found if self._nested.get(item.path) != item.text]
            for item in new:
                # Noted with the text: a file of instructions that changes is sent again.
                self._nested[item.path] = item.text
                self._note_unseen(item.name, on_unseen, unseen=item.unseen)
        if not new:
            return ""
        return f"For files below their folder, these count before the general ones:\n{render_instructions(new)}"

    def forgotten(self) -> None:
        """Forget which nested instructions were sent, because messages were removed, so that they are sent again."""
        self._nested.clear()

    def _parts(
        self,
        knowledge: Knowledge,
        view: FileView,
        mode: str,
        window: int,
        on_unseen: OnUnseen,
        known: Iterable[Skill],
    ) -> Mapping[str, str]:
        limit = min(MOST, max(LEAST, window // 8))
        found = root_instructions(view, min(INSTRUCTIONS_LIMIT, window), may_read(knowledge.permissions(), view.roots))
        for item in found:
            self._note_unseen(item.name, on_unseen, unseen=item.unseen)
        return {
            "instructions": render_instructions(found),
            "skills": skill_library.list_skills(known, mode, limit),
            "agents": agent_files.list_agents(knowledge.agents.profiles(view), limit) if mode == "direct" else "",
            "memory": remembering.background(knowledge.memory.offered(), limit),
        }

    def _note_unseen(self, name: str, on_unseen: OnUnseen, *, unseen: bool) -> None:
        if unseen and name not in self._unseen:
            self._unseen.add(name)
            on_unseen(name)
