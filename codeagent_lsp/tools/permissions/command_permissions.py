"""Permission decisions as values, and those about shell commands, which depend on where a command would run. Pure.

Security rests on isolation, not on command names: in a shadow that lets nothing out, a command needs no question unless
a rule of the user asks for one. Not here: the grammar of shell commands (`shell_policy.py`), rules about paths and
modes (`policy.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.texts import text

if TYPE_CHECKING:  # heavy, and a process that runs no commands does without it
    from codeagent_lsp.shadow.shell import Isolation


Verdict = Literal["allow", "ask", "deny"]
Mode = Literal["ask", "acceptEdits", "readOnly", "bypass"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict about one call with its reason in English. `remember`: an approval may be kept for later calls;
    `firm`: the verdict holds whatever the isolation; `guarded`: a deny rule may cover the call unseen, so that it asks
    in every mode; `key`: of the reason among the texts for the user, '' for one that only English has.
    """

    verdict: Verdict
    reason: str
    remember: bool = True
    firm: bool = False
    guarded: bool = False
    key: str = ""

    def reason_in(self, language: str) -> str:
        """Return the reason for the user."""
        return text(self.key, language) if self.key else self.reason


def asking(key: str, *, remember: bool = True, firm: bool = False) -> Decision:
    """Return the decision to ask, for the reason of this key."""
    return Decision("ask", text(key, "en"), remember, firm, key=key)


@dataclass(frozen=True, slots=True)
class CommandRules:
    """The user's rules for one tool: patterns without the tool's name. A rule that names the tool alone is `*`."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandEnvironment:
    """The shell settings and the isolation of commands; None, with a `reason`, if commands cannot run."""

    shell: ShellSettings
    isolation: Isolation | None
    reason: str = ""

    @property
    def terms(self) -> str:
        """What an approval of a command is bound to, as JSON: the isolation in force, the network, the readable places,
        the image.
        """
        found, shell = self.isolation, self.shell
        kept = [found.level, found.confined, found.offline, found.hidden] if found else []
        return json.dumps([*kept, shell.allow_network, sorted(shell.readable), shell.container_image])


NOWHERE = CommandEnvironment(ShellSettings(), None, "Commands cannot run here.")


class Places(Protocol):
    """Port: says what the words of a command name, seen from the first folder of the workspace."""

    def is_secret(self, word: str) -> bool:
        """Return whether a word names a file that usually holds secrets."""

    def leads_out(self, word: str) -> bool:
        """Return whether a word, as a path or as a pattern of names, leads out of the workspace."""

    def holds_ways_out(self, word: str) -> bool:
        """Return whether the folder that a word names holds links that lead out of the workspace."""

    def is_file(self, word: str) -> bool:
        """Return whether a word names a file of the workspace."""


def judged_command(command: str, rules: CommandRules, places: Places, folder: str = "") -> Decision:
    """Return the decision about a command line by its words alone, wherever it runs; `folder` is the absolute path of
    the folder it starts in. `deny` means that it is never run.

    A `firm` decision (a rule of the user, or the name of a secret) holds under any isolation. Otherwise `allow` means
    that the command only reads, and `ask` that the isolation may decide instead.
    """
    from codeagent_lsp.tools.permissions.shell_policy import (  # late: its tables are large
        covered_by,
        covering_rule,
        followed_folders,
        judge,
        paths_named,
        version_files,
    )

    judgement = judge(command, allow=rules.allow, ask=rules.ask, deny=rules.deny)
    if judgement.decision == "deny":
        return Decision("deny", _first(judgement.reasons))
    if judgement.unread:
        return Decision("ask", _first(judgement.reasons), firm=True, guarded=judgement.unread == "deny")
    if (rule := covering_rule(rules.ask, command)) is not None:
        return Decision("ask", f"The ask rule {rule!r} covers this command.", firm=True)
    named = paths_named(command, folder)
    if any(map(places.is_secret, named or ())):
        return asking("asked.command_secret", firm=True)
    # Allowed by the user and not by its words: links and version files are then the user's matter.
    firm = judgement.decision == "allow" and covered_by(rules.allow, command)
    if judgement.decision == "allow" and not firm:
        if named is None or any(map(places.leads_out, named)):
            return asking("asked.link")
        if any(map(places.holds_ways_out, followed_folders(command, folder))):
            return asking("asked.links")
        if any(map(places.is_file, version_files(command, folder))):
            return asking("asked.version")
    return Decision(judgement.decision, _first(judgement.reasons), firm=firm)


def decide_by_place(
    decision: Decision, arguments: Mapping[str, Any], place: CommandEnvironment, mode: Mode
) -> Decision:
    """Return the decision changed by how the call would run: a rule that allows a command does not allow it the
    network, and without isolation every command asks.
    """
    shell, isolation = place.shell, place.isolation
    if isolation is None:
        return Decision("deny", place.reason)
    # Before rules and settings: nothing of a command in the real folder can be taken back.
    if isolation.level == "direct":
        return asking("asked.direct", remember=False)
    widened = arguments.get("allow_network") and not shell.allow_network and mode != "bypass"
    if decision.firm and not (widened and decision.verdict == "allow"):
        return decision
    if widened:
        return asking("asked.network")
    if shell.confirm == "never":
        return Decision("allow", "The setting shell.confirm asks for nothing.")
    if shell.confirm == "unisolated":
        if isolation.complete and not shell.allow_network:
            return Decision("allow", "It runs in the shadow, without network; nothing it does gets out.")
        return decision
    return asking("asked.confirm")


def _first(reasons: Sequence[str]) -> str:
    return reasons[0] if reasons else ""
