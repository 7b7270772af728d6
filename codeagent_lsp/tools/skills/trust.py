"""The user's trust in what a workspace brings (skills, commands, agents, hooks, own tools), by a hash of its content,
and the questions about it: about one thing, or about all that the workspace brings at once.

Stored in the user's state folder, never in the workspace; changed content needs a new approval. Whichever of these
things would be used first, the user is asked about all of them that are not trusted yet, and may decide about each by
itself. Not here: finding what a workspace brings (`session/memory/knowledge.py`).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

from codeagent_lsp.state import changing, read_json, replace_text
from codeagent_lsp.tools.asking import Asker, Question
from codeagent_lsp.tools.permissions.approvals import MAX_SUBJECT, exactly
from codeagent_lsp.workspace.text.visible import ends_of, one_line, visible

MAX_KEPT = 1000
"""Most approvals of a workspace: as much as it can bring, or it would be asked about for ever."""

ItemKind = Literal["skills", "commands", "agents", "hooks", "tools"]


@dataclass(frozen=True, slots=True)
class WorkspaceItem:
    """One thing that a workspace brings, such as a hook or a skill, and that is used only if the user trusts its
    present content, of which `digest` is the hash. `path` is the path as the user is shown it; `line` says what it
    does, `detail` is its whole text.
    """

    kind: ItemKind
    name: str
    path: str
    digest: str
    line: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Vouched:
    """Content that the user trusts: its SHA-256 in hex, its name at the time, and since when, in seconds since the Unix
    epoch.
    """

    digest: str
    name: str
    since: float


class Trust:
    """The approved hashes of one workspace; read from disk each time, as several editors share them.

    `asking` is held while the user is asked about all that the workspace brings. What was declined then, in this
    process, is in `declined`; what is to be asked about one by one, in `singly`.
    """

    def __init__(self, file: Path) -> None:
        self.asking = asyncio.Lock()
        self.declined: set[str] = set()
        self.singly: set[str] = set()
        self._file = file
        self._kept_here: set[str] = set()

    def covers(self, digest: str) -> bool:
        """Return whether exactly this content, by its digest, was approved; False also if the file cannot be read.
        Blocks.
        """
        return digest in self._kept_here or digest in read_json(self._file)

    def add(self, digest: str, name: str) -> None:
        """Approve this content; see `add_all`."""
        self.add_all({digest: name})

    def add_all(self, names: Mapping[str, str]) -> None:
        """Approve these contents, `names` by their hashes, and write that to the file once; if it cannot be written,
        for the life of this process. Above 1,000, the oldest approvals are dropped.
        """
        # first, so that the consent holds even where nothing can be written
        self._kept_here |= names.keys()
        since = round(time.time(), 3)
        try:
            with changing(self._file):
                known = {
                    **read_json(self._file),
                    **{key: {"name": name, "since": since} for key, name in names.items()},
                }
                self._write(dict(list(known.items())[-MAX_KEPT:]))
        except OSError:
            return

    def reconsider(self, items: Iterable[WorkspaceItem]) -> None:
        """Forget which of these the user has declined in this process, so that they are asked about again; trust once
        given stays.
        """
        digests = {item.digest for item in items}
        self.declined -= digests
        self.singly -= digests

    def all(self) -> tuple[Vouched, ...]:
        """Return all approvals in the file, oldest first; none if it cannot be read."""
        return tuple(_vouched_row(digest, row) for digest, row in read_json(self._file).items())

    def revoke(self, digest: str | None = None) -> int:
        """Revoke one approval, or all of them without a digest; return how many were revoked. Approvals of this process
        alone count, too. OSError if the file cannot be written.
        """
        with changing(self._file):
            known = read_json(self._file)
            kept = {name: row for name, row in known.items() if digest is not None and name != digest}
            if len(kept) != len(known):
                self._write(kept)
        gone = {name for name in (*known, *self._kept_here) if digest in (None, name)}
        self._kept_here -= gone
        return len(gone)

    def _write(self, known: dict[str, object]) -> None:
        # In ASCII: a name may have bytes that are no UTF-8.
        replace_text(self._file, json.dumps(known, ensure_ascii=True, indent=1))


def _vouched_row(digest: str, row: object) -> Vouched:
    name, since = (row.get("name"), row.get("since")) if isinstance(row, Mapping) else ("", 0.0)
    return Vouched(digest, str(name), since if isinstance(since, int | float) else 0.0)


MOST_NAMED = 20
LINE_CHARS, DETAIL_CHARS = 300, 10_000

Brings = Callable[[], Sequence[WorkspaceItem]]
"""Returns all that the workspace brings, trusted or not. Blocks."""

_ONE: Mapping[ItemKind, str] = MappingProxyType(
    {
        "skills": "skills.trust",
        "commands": "commands.trust",
        "agents": "agents.trust",
        "hooks": "hooks.trust",
        "tools": "own.trust",
    }
)
_NAMES: Mapping[ItemKind, str] = MappingProxyType(
    {
        "skills": "trust.skill",
        "commands": "trust.command",
        "agents": "trust.agent",
        "hooks": "trust.hooks",
        "tools": "trust.tool",
    }
)


class Translator(Protocol):
    """Port: returns sentences of the catalogue in the user's language."""

    def __call__(self, key: str, /, **values: object) -> str: ...


async def is_trusted(
    trust: Trust, item: WorkspaceItem, asker: Asker, words: Translator, brings: Brings = tuple
) -> bool:
    """Return whether the user trusts this exact content, by an earlier answer or by asking now. No answer means no.
    Waits for the user, if they have to be asked.
    """
    return bool(await ask_trust(trust, item, asker, words, brings))


async def ask_trust(
    trust: Trust, item: WorkspaceItem, asker: Asker, words: Translator, brings: Brings = tuple
) -> bool | None:
    """Return whether the user trusts this exact content, by an earlier answer or by asking now: about it alone, or with
    all that the workspace `brings`. None without an answer.
    """
    answer = await among_all(trust, item.digest, asker, words, brings)
    return await ask_one(trust, item, asker, words) if answer == "singly" else answer


async def among_all(
    trust: Trust, digest: str, asker: Asker, words: Translator, brings: Brings
) -> bool | Literal["singly"] | None:
    """Return whether the user trusts this content, by an earlier answer or by asking now about all that the workspace
    brings, if this is a part of it; None without an answer; `singly` if the user is to be asked about this alone.
    """
    # Who comes while another one asks waits, and then finds the answer.
    async with trust.asking:
        if trust.covers(digest):
            return True
        if digest in trust.declined:
            return False
        open_ones = [
            item for item in await asyncio.to_thread(undecided_items, trust, brings) if item.digest not in trust.singly
        ]
        if len(open_ones) < 2 or all(item.digest != digest for item in open_ones):
            return "singly"
        return await ask_all(trust, open_ones, asker, words)


async def ask_all(
    trust: Trust, items: Sequence[WorkspaceItem], asker: Asker, words: Translator
) -> bool | Literal["singly"] | None:
    """Ask about all of these at once, wait, keep the answer in `trust` and return it: whether they are trusted,
    `singly` if each is to be asked about by itself, None without an answer.
    """
    deny, singly, every = words("choice.deny"), words("choice.singly"), words("choice.trust_all")
    title = words("trust.all", what=_names_line(items, words))
    if any(item.kind == "tools" for item in items):
        title = f"{title} {words('trust.tools_can')}"
    detail = "\n\n".join(
        f"{name_of(item, words)}: {item.path}, {item.digest[:12]}\n{ends_of(visible(item.detail), DETAIL_CHARS)}"
        for item in items
    )
    answer = await asker.ask(Question("approval", title, (deny, singly, every), detail=detail, danger=True))
    digests = {item.digest for item in items}
    if answer == (every,):
        trust.add_all({item.digest: item.name for item in items})
        return True
    if answer == (singly,):
        trust.singly |= digests
        return "singly"
    if answer is None:
        return None
    trust.declined |= digests
    return False


async def ask_one(
    trust: Trust, item: WorkspaceItem, asker: Asker, words: Translator, *, lasting: bool = False
) -> bool | None:
    """Ask whether the user trusts this exact content, once or for good, and return the answer; the latter is kept in
    `trust`; with `lasting`, only the latter is offered. None without an answer.
    """
    deny, once, always = (words(f"choice.{key}") for key in ("deny", "once", "trust"))
    line = ends_of(exactly(item.line), MAX_SUBJECT)
    title = words(_ONE[item.kind], name=item.name, path=item.path, hooks=line)
    choices = (deny, always) if lasting else (deny, once, always)
    answer = await asker.ask(Question("approval", title, choices, detail=item.detail, danger=True))
    if answer == (always,):
        trust.add(item.digest, item.name)
    return None if answer is None else answer in ((once,), (always,))


def undecided_items(trust: Trust, brings: Brings) -> list[WorkspaceItem]:
    """Return what the workspace brings that the user has not decided about. Blocks."""
    return [item for item in brings() if not trust.covers(item.digest) and item.digest not in trust.declined]


def name_of(item: WorkspaceItem, words: Translator) -> str:
    """Return the kind of an item and its name, in the user's language, on one line."""
    return words(_NAMES[item.kind], name=one_line(item.name, 80))


def named(items: Sequence[WorkspaceItem], name: str) -> list[WorkspaceItem]:
    """Return those that have this name or path; all of them for ''."""
    return [item for item in items if name in ("", item.name, item.path)]


def said_of(trust: Trust, items: Sequence[WorkspaceItem], words: Translator) -> str:
    """Return one or two sentences for the user on which of these are trusted now and which are not; '' for none."""
    sorted_out: dict[bool, list[str]] = {True: [], False: []}
    for item in items:
        sorted_out[trust.covers(item.digest)].append(name_of(item, words))
    keys = {True: "trust.done", False: "trust.open"}
    return " ".join(words(keys[yes], names=", ".join(names)) for yes, names in sorted_out.items() if names)


def _names_line(items: Sequence[WorkspaceItem], words: Translator) -> str:
    """Return the names of items in one line, and of hooks also the commands that they run."""
    shown = []
    for item in items[:MOST_NAMED]:
        line = f" ({ends_of(exactly(item.line), LINE_CHARS)})" if item.kind == "hooks" else ""
        shown.append(f"{name_of(item, words)}{line}")
    more = len(items) - MOST_NAMED
    return "; ".join(shown) + (f"; {words('trust.more', count=more)}" if more > 0 else "")
