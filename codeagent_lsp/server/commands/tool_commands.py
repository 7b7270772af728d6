"""The commands about what a model may use and know: `codeagent.tools.*`, `codeagent.approvals.*`, `codeagent.mode.set`,
`codeagent.skills.list`, `codeagent.trust.list` and `codeagent.memory.*`.

Not here: permissions of tools (`tools/permissions`); installing a skill and asking for trust, which are runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import UsageError
from codeagent_lsp.server.commands.convert import Arguments, Later, Table
from codeagent_lsp.session.memory.remembering import MemoryEntry
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.tools.registry import RegisteredTool
    from codeagent_lsp.tools.skills.trust import Trust

AGENT = "agent:"
"""Begins the id of what was decided about another agent, in the list of approvals."""
MEMORY_DOCUMENT = "memory.md"


class ToolCommands:
    """The handlers of `codeagent.tools.*`, `codeagent.approvals.*` and `codeagent.mode.set`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._registry = backend.registry

    def table(self) -> Table:
        """Return the handlers by the names of their commands."""
        registry = self._registry
        return {
            "codeagent.tools.list": lambda given: [self._tool_row(entry) for entry in registry.entries()],
            "codeagent.tools.stats": self._stats,
            "codeagent.tools.enable": lambda given: _switch(given, registry.enable),
            "codeagent.tools.disable": lambda given: _switch(given, lambda name: registry.disable(name, "by the user")),
            "codeagent.mode.set": self._set_mode,
            "codeagent.approvals.list": self._approvals,
            "codeagent.approvals.revoke": self._revoke,
        }

    def _tool_row(self, entry: RegisteredTool) -> dict[str, Any]:
        traits = entry.tool.traits
        return {
            "name": traits.name,
            "description": traits.description,
            "effect": traits.effect,
            "group": traits.group,
            "state": entry.state,
            "circuit": self._registry.circuits.state(traits.name),
            "reason": entry.reason,
        }

    def _stats(self, given: Arguments) -> list[dict[str, Any]]:
        return [
            {
                "name": entry.tool.traits.name,
                "calls": entry.stats.calls,
                "errors": entry.stats.errors,
                "totalMs": round(entry.stats.total_ms, 1),
                "total_duration_ms": round(entry.stats.total_ms, 1),
                "meanMs": round(entry.stats.mean_ms, 1),
            }
            for entry in self._registry.entries()
            if given.get("name") in (None, entry.tool.traits.name)
        ]

    def _set_mode(self, given: Arguments) -> dict[str, str]:
        """Change the permission mode at once, where one is given; return the one that holds."""
        if "mode" in given:
            self._backend.front.settings_link.choose("permissions.mode", given["mode"])
        return {"mode": self._backend.front.settings().permissions.mode}

    def _approvals(self, given: Arguments) -> list[dict[str, Any]]:
        """Return the calls that are always allowed, the trusted skills, agents and own tools, and the other agents that
        the user has decided about.
        """
        names = ("kind", "approvalId", "tool", "shown", "since")
        calls = [("call", item.approval_id, item.tool, item.shown, item.since) for item in self._backend.standing.all()]
        trusted = [item for trust in self._trusts() for item in trust.all()]
        contents = [("content", item.digest, "", item.name, item.since) for item in trusted]
        decided = [row for row in self._backend.lender.clients() if row["allow"] != "ask"]
        agents = [
            ("agent", f"{AGENT}{row['client']}", "editor-mcp", self._decision_words(row["client"], row["allow"]), 0.0)
            for row in decided
        ]
        return [dict(zip(names, row, strict=True)) for row in (*calls, *contents, *agents)]

    def _decision_words(self, client: str, decision: str) -> str:
        return text(f"lend.decided.{decision}", self._backend.front.language(), client=client)

    def _revoke(self, given: Arguments) -> dict[str, int]:
        chosen = given.get("approvalId")
        if chosen is not None and chosen.startswith(AGENT):
            return {"revoked": len(self._backend.lender.revoke(chosen.removeprefix(AGENT)))}
        agents = self._backend.lender.revoke(None) if chosen is None else []
        trusted = sum(trust.revoke(chosen) for trust in self._trusts())
        return {"revoked": self._backend.standing.revoke(chosen) + trusted + len(agents)}

    def _trusts(self) -> tuple[Trust, ...]:
        return self._backend.knowledge.trust, self._backend.own.trust


def knowledge_commands(backend: Backend, later: Later) -> Table:
    """Return the handlers of the commands about skills, trust and memory by name; `later` runs work after the
    answer.
    """
    memory = backend.knowledge.memory

    async def show(given: Arguments) -> dict[str, Any]:
        entries = await asyncio.to_thread(memory.entries)
        page = memory_page(entries, backend.front.language(), enabled=memory.enabled())
        backend.own_documents.put(MEMORY_DOCUMENT, page)
        later(backend.own_documents.show(MEMORY_DOCUMENT))
        return {"entries": [_entry_row(entry) for entry in entries], "markdown": page}

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
    """Return rows of plain data for all skills and agents (`kind`, `name`, `description`, `place`, `approved`, …), then
    for those that are broken (`kind` `problem`, `folder`, `reason`). Blocks.
    """
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
    """Return what the workspace brings that needs the user's trust, and whether it has it, as rows of plain data:
    `kind`, `name`, `path`, `digest`, `description`, `trusted`. Blocks.
    """
    trust = backend.knowledge.trust
    return [
        {"kind": item.kind, "name": item.name, "path": item.path, "digest": item.digest, "description": item.line,
         "trusted": trust.covers(item.digest)}
        for item in backend.brought()
    ]  # fmt: skip


def memory_page(entries: tuple[MemoryEntry, ...], language: str, *, enabled: bool) -> str:
    """Return the remembered entries as a Markdown page, the newest first, in the language `en` or `zh-cn`; it says if
    there are none, or memory is not `enabled`.
    """
    lines = [f"# {text('memory.title', language)}", ""]
    lines += [] if enabled else [text("memory.off", language), ""]
    lines += [
        f"- `{entry.entry_id}` {_plain(entry.text)}" + (f" — {_plain(entry.reason)}" if entry.reason else "")
        + f" ({entry.date}, {entry.kind}, {entry.session})"
        for entry in reversed(entries)
    ] or [text("memory.none", language)]  # fmt: skip
    return "\n".join([*lines, ""])


def _switch(given: Arguments, change: Callable[[str], None]) -> dict[str, str]:
    change(given["name"])
    return {"name": given["name"]}


def _entry_row(entry: MemoryEntry) -> dict[str, Any]:
    row = asdict(entry)
    return {"id": row.pop("entry_id"), **row}


def _plain(words: str) -> str:
    """Escape everything that Markdown would load or follow."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>!#|" else char for char in words)
