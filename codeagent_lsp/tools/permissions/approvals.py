"""The user's approval of a tool call: the question that asks for it, and approvals beyond a single call, for the rest
of a session, or always in this workspace.

The question is written so that the line which every client shows holds all that is approved. Untrusted text in it is
escaped, on one line, and bounded; what is left out is marked with its length. An approval is bound to the exact call
and to how commands are isolated (`CommandEnvironment.terms`). Standing ones are in a file of the user's state folder,
never in the workspace, and can be revoked. Not here: which choices there are and what follows from them
(`tools/executor.py`), deciding (`policy.py`).
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from codeagent_lsp.messages import ToolCall
from codeagent_lsp.state import changing, replace_text
from codeagent_lsp.texts import text
from codeagent_lsp.tools.permissions.policy import CommandEnvironment, Decision, subjects_of
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.text.visible import ends_of, escape_notation, shown_exactly

MAX_SUBJECT = 800
MAX_TERM = 200
SHORT = 120
MAX_NAMED = 1500
_LONG_RUN = re.compile(" {17,}")


def asked_title(
    call: ToolCall, traits: ToolTraits, place: CommandEnvironment, news: str, language: str
) -> tuple[str, bool]:
    """Return (question, whole): the question about a call as one line, and whether it shows the whole call. `news` are
    the changed words of a tool. What a command may do besides is written before the command, so that no command can
    imitate it.
    """
    terms = _terms(call, traits, place, language)
    subject = exactly(_subject(call, traits))
    shown = [ends_of(term, MAX_TERM, language) for term in terms]
    tool = f"{call.name} [{', '.join(shown)}]" if shown else call.name
    title = text("approval.tool", language, tool=tool, subject=ends_of(subject, MAX_SUBJECT, language))
    asked = f"{text('approval.changed', language, words=news)} {title}" if news else title
    return asked, len(subject) <= MAX_SUBJECT and all(len(term) <= MAX_TERM for term in terms)


def about(call: ToolCall, traits: ToolTraits, hide: Callable[[str], str] = str) -> str:
    """Return one line of at most 121 characters about a call, for lists and logs; `hide` masks secrets, before anything
    is cut.
    """
    line = exactly(hide(_subject(call, traits)))
    return line if len(line) <= SHORT else f"{line[: SHORT // 2]}…{line[-SHORT // 2 :]}"


def asked_detail(
    call: ToolCall, traits: ToolTraits, place: CommandEnvironment, decision: Decision, language: str
) -> str:
    """Return paragraphs about a call, in the language `en` or `zh-cn` but for the call itself: the exact call; how it
    would run, if that is unusual; why the user is asked.
    """
    terms = _terms(call, traits, place, language)
    # The reason says the same in better words.
    if decision.key == "asked.network" and terms == [text("approval.network", language)]:
        terms = []
    how = text("approval.terms", language, terms=", ".join(terms)) if terms else ""
    return "\n\n".join(filter(None, (describe(call), how, decision.reason_in(language))))


def describe(call: ToolCall) -> str:
    """Return the exact call for the user, without the arguments that are empty; invisible and bidirectional characters
    are escaped. Nothing is cut.
    """
    given = {name: value for name, value in call.arguments.items() if value not in (None, "", [], {})}
    return f"{call.name}\n{shown_exactly(_arguments(replace(call, arguments=given), indent=2), escape_notation)}"


def exactly(value: str) -> str:
    """Return a text as one line, in which every character can be told from every other: invisible ones are written as
    code points. A long run of blanks is shown by its length: else it would push what follows out of sight.
    """
    line = "".join(escape_notation(char) if char in "\n\t" else char for char in shown_exactly(value, escape_notation))
    return _LONG_RUN.sub(lambda run: f"<U+0020 x {len(run[0])}>", line)


def named_together(names: Iterable[str]) -> list[str]:
    """Return all names, as they are shown, joined to lists of at most about 1,500 characters, for one question each."""
    groups: list[str] = []
    for name in map(exactly, names):
        if groups and len(groups[-1]) + len(name) < MAX_NAMED:
            groups[-1] += f", {name}"
        else:
            groups.append(name)
    return groups


MAX_STANDING = 1000


@dataclass(frozen=True, slots=True)
class StandingApproval:
    """A call that is always allowed. `approval_id` is its fingerprint; `shown` is the call as the user saw it; `since`
    is in seconds since the Unix epoch.
    """

    approval_id: str
    tool: str
    shown: str
    since: float


class StandingApprovals:
    """The approvals of one workspace that outlive sessions; read from disk each time, as several editors share them."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> tuple[StandingApproval, ...]:
        """Return every approval, oldest first, at most 1,000; () if the file cannot be read."""
        try:
            rows = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return ()
        return tuple(item for row in rows if (item := _approval(row))) if isinstance(rows, list) else ()

    def covers(self, approval_id: str) -> bool:
        """Return whether the call with this fingerprint is always allowed; False if the file cannot be read. Blocks."""
        return any(item.approval_id == approval_id for item in self.all())

    def add(self, call: ToolCall, approval_id: str, shown: str) -> None:
        """Allow the exact call with this fingerprint from now on; above 1,000, the oldest approval is dropped. `shown`
        is its line in lists. OSError if it cannot be written.
        """
        with changing(self._file):
            others = [item for item in self.all() if item.approval_id != approval_id]
            added = StandingApproval(approval_id, call.name, shown, round(time.time(), 3))
            self._write([*others, added][-MAX_STANDING:])

    def revoke(self, approval_id: str | None = None) -> int:
        """Revoke one approval, or all of them without an id; return how many were revoked. OSError if it cannot be
        written.
        """
        with changing(self._file):
            known = self.all()
            kept = [item for item in known if approval_id is not None and item.approval_id != approval_id]
            if len(kept) != len(known):
                self._write(kept)
        return len(known) - len(kept)

    def _write(self, approvals: list[StandingApproval]) -> None:
        # In ASCII: what a call names may have bytes of a path that are no UTF-8.
        replace_text(self._file, json.dumps([asdict(item) for item in approvals], ensure_ascii=True, indent=1))


class Approvals:
    """The approvals of one session; `standing` holds those that outlive it."""

    def __init__(self, standing: StandingApprovals | None = None) -> None:
        self._allowed: set[str] = set()
        self.standing = standing

    def allow_for_session(self, approval_id: str) -> None:
        """Allow this exact call until the session ends."""
        self._allowed.add(approval_id)

    def covers(self, approval_id: str) -> bool:
        """Return whether the call with this fingerprint was allowed, for this session or always."""
        return approval_id in self._allowed or (self.standing is not None and self.standing.covers(approval_id))


def fingerprint(call: ToolCall, scope: str = "") -> str:
    """Return the SHA-256 hash, in hex, of the call's name, arguments and `scope`, the conditions
    under which it runs.
    """
    canonical = json.dumps([call.name, dict(call.arguments), scope], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _terms(call: ToolCall, traits: ToolTraits, place: CommandEnvironment, language: str) -> list[str]:
    """Return what is approved besides the words of a command: where it runs, and what it can reach."""
    if traits.effect != "run":
        return []
    given, isolation = call.arguments, place.isolation
    terms = []
    if isolation and not isolation.confined:
        terms.append(text("approval.unconfined", language))
    if given.get("allow_network") or place.shell.allow_network or (isolation and not isolation.offline):
        terms.append(text("approval.network", language))
    if folder := given.get("working_dir"):
        terms.append(text("approval.folder", language, folder=exactly(str(folder))))
    if names := given.get("env_vars"):
        terms.append(text("approval.variables", language, names=exactly(_list_names(names))))
    if given.get("background"):
        terms.append(text("approval.background", language))
    return terms


def _subject(call: ToolCall, traits: ToolTraits) -> str:
    if traits.command_parameter:
        return str(call.arguments.get(traits.command_parameter, ""))
    named = subjects_of(traits, call.arguments) if traits.path_parameters or traits.subject_parameter else ()
    return ", ".join(named) if any(named) else _arguments(call)


def _list_names(names: Any) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) else str(names)


def _arguments(call: ToolCall, indent: int | None = None) -> str:
    return json.dumps(dict(call.arguments), indent=indent, ensure_ascii=False, default=str)


def _approval(row: Any) -> StandingApproval | None:
    if not isinstance(row, Mapping):
        return None
    approval_id, tool, shown, since = (row.get(name) for name in ("approval_id", "tool", "shown", "since"))
    if not (isinstance(approval_id, str) and isinstance(tool, str) and isinstance(shown, str)):
        return None
    return StandingApproval(approval_id, tool, shown, since if isinstance(since, int | float) else 0.0)
