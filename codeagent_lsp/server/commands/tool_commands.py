"""The commands of `codeagent.tools.*`, `codeagent.approvals.*` and `codeagent.mode.set`.

Not here: permissions of tools (`tools/permissions`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from codeagent_lsp.server.commands.arguments import Arguments, Table
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.tools.registry import RegisteredTool
    from codeagent_lsp.tools.skills.trust import Trust


AGENT = "agent:"
"""Begins the id of what was decided about another agent, in the list of approvals."""


class ToolCommands:
    """The handlers of these commands."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._registry = backend.registry

    def table(self) -> Table:
        """Return the handlers by command name."""
        registry = self._registry
        return {
            "codeagent.tools.list": lambda given: [self._listed(entry) for entry in registry.entries()],
            "codeagent.tools.stats": self._stats,
            "codeagent.tools.enable": lambda given: _switched(given, registry.enable),
            "codeagent.tools.disable": lambda given: _switched(
                given, lambda name: registry.disable(name, "by the user")
            ),
            "codeagent.mode.set": self._set_mode,
            "codeagent.approvals.list": self._approvals,
            "codeagent.approvals.revoke": self._revoke,
        }

    def _listed(self, entry: RegisteredTool) -> dict[str, Any]:
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
        """Change the permission mode at once."""
        self._backend.front.settings_link.choose("permissions.mode", given["mode"])
        return {"mode": given["mode"]}

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
            ("agent", f"{AGENT}{row['client']}", "editor-mcp", self._decided(row["client"], row["allow"]), 0.0)
            for row in decided
        ]
        return [dict(zip(names, row, strict=True)) for row in (*calls, *contents, *agents)]

    def _decided(self, client: str, decision: str) -> str:
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


def _switched(given: Arguments, change: Callable[[str], None]) -> dict[str, str]:
    change(given["name"])
    return {"name": given["name"]}
