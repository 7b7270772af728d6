"""The commands `codeagent.skills.list`, `codeagent.trust.list` and `codeagent.memory.*`.

Not here: installing a skill and asking for trust, which are runs.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from codeagent_lsp.agent.memory import MemoryEntry
from codeagent_lsp.errors import UsageError
from codeagent_lsp.server.commands.arguments import Arguments, Later, Table
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend


MEMORY_DOCUMENT = "memory.md"


def knowledge_commands(backend: Backend, later: Later) -> Table:
    """Return the handlers by command name; `later` runs work after the answer."""
    memory = backend.knowledge.memory

    async def show(given: Arguments) -> dict[str, Any]:
        entries = await asyncio.to_thread(memory.entries)
        page = memory_page(entries, backend.front.language(), enabled=memory.enabled())
        backend.own_documents.put(MEMORY_DOCUMENT, page)
        later(backend.own_documents.show(MEMORY_DOCUMENT))
        return {"entries": [_shown(entry) for entry in entries], "markdown": page}

    async def forget(given: Arguments) -> dict[str, int]:
        count = await asyncio.to_thread(memory.forget, given.get("id"))
        if not count and "id" in given:
            raise UsageError("memory.unknown", id=given["id"])
        return {"forgotten": count}

    return {
        "codeagent.skills.list": lambda given: asyncio.to_thread(listed_skills, backend),
        "codeagent.trust.list": lambda given: asyncio.to_thread(listed_items, backend),
        "codeagent.memory.show": show,
        "codeagent.memory.forget": forget,
    }


def listed_skills(backend: Backend) -> list[dict[str, Any]]:
    """Return skills and agents with their state, followed by the broken ones."""
    view = backend.views.plain()
    catalogue = backend.knowledge.skills.catalogue(view)
    profiles, problems = backend.knowledge.agents.look(view)
    skills = [
        {"kind": "skill", "name": skill.name, "description": skill.description, "place": skill.place,
         "folder": skill.folder, "approved": skill.approved, "triggers": list(skill.triggers),
         "files": len(skill.files) + 1}
        for skill in catalogue.skills
    ]  # fmt: skip
    agents = [
        {"kind": "agent", "name": item.name, "description": item.description, "place": item.place,
         "approved": item.approved, "tools": list(item.tools)}
        for item in profiles
    ]  # fmt: skip
    broken = [{"kind": "problem", "folder": item.folder, "reason": item.reason} for item in catalogue.problems]
    return [*skills, *agents, *broken, *({"kind": "problem", "folder": p.path, "reason": p.reason} for p in problems)]


def listed_items(backend: Backend) -> list[dict[str, Any]]:
    """Return what the workspace brings that needs the user's trust, and whether it has it. Blocks."""
    trust = backend.knowledge.trust
    return [
        {"kind": item.kind, "name": item.name, "path": item.path, "digest": item.digest, "description": item.line,
         "trusted": trust.covers(item.digest)}
        for item in backend.brought()
    ]  # fmt: skip


def memory_page(entries: tuple[MemoryEntry, ...], language: str, *, enabled: bool) -> str:
    """Format the remembered entries as Markdown, the newest first."""
    lines = [f"# {text('memory.title', language)}", ""]
    lines += [] if enabled else [text("memory.off", language), ""]
    lines += [
        f"- `{entry.entry_id}` {_plain(entry.text)}" + (f" — {_plain(entry.reason)}" if entry.reason else "")
        + f" ({entry.date}, {entry.kind}, {entry.session})"
        for entry in reversed(entries)
    ] or [text("memory.none", language)]  # fmt: skip
    return "\n".join([*lines, ""])


def _shown(entry: MemoryEntry) -> dict[str, Any]:
    row = asdict(entry)
    return {"id": row.pop("entry_id"), **row}


def _plain(words: str) -> str:
    """Escape everything that Markdown would load or follow."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>!#|" else char for char in words)
