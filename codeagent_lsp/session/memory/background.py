"""Builds the background in the prompts of one session: project instructions, skills, agents, memory.

The system prompt keeps it as it was in the session's first run, byte for byte, so that prompt caches hold; later
changes, and instructions for some files only, are sent in the latest message. Not here: the texts themselves
(`agent/`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Lock

from codeagent_lsp.agent import agent_files, memory, skills
from codeagent_lsp.agent.instructions import (
    INSTRUCTIONS_LIMIT,
    nested_instructions,
    rendered,
    root_instructions,
)
from codeagent_lsp.session.memory.knowledge import Knowledge
from codeagent_lsp.tools.permissions.policy import may_read
from codeagent_lsp.tools.skills.skill import Skill
from codeagent_lsp.workspace.files.file_view import FileView

LEAST, MOST = 600, 3000

_NAMES = {"instructions": "project instructions", "skills": "skills", "agents": "agents", "memory": "background"}

OnUnseen = Callable[[str], None]


class Background:
    """The background sent so far in one session. Methods block, and may be called from any thread."""

    def __init__(self) -> None:
        self._prompts: dict[tuple[str, int], str] = {}
        self._told: dict[tuple[str, int], dict[str, str]] = {}
        self._nested: dict[str, str] = {}
        self._unseen: set[str] = set()
        self._lock = Lock()

    def prompt(self, knowledge: Knowledge, view: FileView, mode: str, window: int, on_unseen: OnUnseen) -> str:
        """Return the system prompt's part for `mode` (`direct`, `ask` or an agent's name) and a window in tokens.
        `on_unseen` is called once with the name of each instruction file that has invisible characters.
        """
        key = (mode, window)
        with self._lock:
            if key not in self._prompts:
                known = knowledge.skills.catalogue(view).skills
                parts = self._parts(knowledge, view, mode, window, on_unseen, known)
                self._told[key] = dict(parts)
                self._prompts[key] = "\n\n".join(filter(None, parts.values()))
            return self._prompts[key]

    def news(self, knowledge: Knowledge, view: FileView, mode: str, window: int, on_unseen: OnUnseen, task: str) -> str:
        """Return the note before a task: parts that changed since they were sent, and skills that fit; '' for none."""
        changed = []
        known = knowledge.skills.catalogue(view).skills
        with self._lock:
            told = self._told.setdefault((mode, window), {})
            for name, text in self._parts(knowledge, view, mode, window, on_unseen, known).items():
                if text != told.get(name, ""):
                    changed.append(f"The {_NAMES[name]} above changed; now:\n{text or '(none)'}")
                    told[name] = text
        hint = skills.hint(known, task, mode)
        return "\n\n".join(filter(None, (*changed, hint)))

    def below(
        self, knowledge: Knowledge, view: FileView, paths: Iterable[str], window: int, on_unseen: OnUnseen
    ) -> str:
        """Return the instructions in subfolders that apply to these files and are new or changed; '' for none."""
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
        return f"For files below their folder, these count before the general ones:\n{rendered(new)}"

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
            "instructions": rendered(found),
            "skills": skills.listed(known, mode, limit),
            "agents": agent_files.listed(knowledge.agents.profiles(view), limit) if mode == "direct" else "",
            "memory": memory.background(knowledge.memory.offered(), limit),
        }

    def _note_unseen(self, name: str, on_unseen: OnUnseen, *, unseen: bool) -> None:
        if unseen and name not in self._unseen:
            self._unseen.add(name)
            on_unseen(name)
