"""The diagnostics of staged changes against the user's own texts, and what a tool result says about them.

Sources in order: language servers of our own, on the staged texts; linters that check one file quickly, in the shadow;
the syntax alone. The user's own texts are checked once, and again only when they change. Not here: comparing
(`diagnostics/difference.py`), when it is asked for and which results get the remark (`executor.py`, the proposal).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import AgentError
from codeagent_lsp.tools.code.codebase import Codebase
from codeagent_lsp.tools.code.source import source_of
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.diagnostics.difference import (
    Diagnostic,
    Difference,
    ServersWithDiagnostics,
    describe_difference,
    difference,
    from_lsp,
    since,
)
from codeagent_lsp.tools.diagnostics.syntax import broken_comments, broken_syntax, moved_entries, syntax_errors
from codeagent_lsp.tools.tool import ToolOutput
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.document import text_digest
from codeagent_lsp.workspace.text.excerpts import join_names
from codeagent_lsp.workspace.text.position import split_lines

if TYPE_CHECKING:
    from codeagent_lsp.language_servers.session_servers import FoundDiagnostics


MAX_CHANGED = 200
MAX_BESIDE = 20

Found = Mapping[str, tuple[Diagnostic, ...] | None]
"""Diagnostics by absolute path; None: not known in time. A file that nothing checks is left out."""

Lint = Callable[[FileView, Sequence[str], float], Awaitable[Found]]
"""Checks files as a view has them with quick linters, within some seconds."""

REMARK_SECONDS = 2.0
SECONDS_AGAIN = 0.3
"""How long a call waits when one before it has waited in vain: a server that starts takes its time."""
ONLY_SYNTAX = "only the syntax was checked, as no language server and no linter for it runs here"
_MAX_NAMED = 3
MAX_NAMES = 10
MAX_FILES = 20
DEPENDENTS_SECONDS = 0.5
_SHORTEST = 3


@dataclass(frozen=True, slots=True)
class BeforeAndAfter:
    """The workspace as the user has it, and with the staged texts."""

    base: FileView
    staged: FileView


@dataclass(slots=True)
class _Found:
    """Diagnostics of the user's own texts and of the staged ones; `late` are files of which too little is known."""

    before: dict[str, tuple[Diagnostic, ...] | None] = field(default_factory=dict)
    after: dict[str, tuple[Diagnostic, ...] | None] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)


class EditDiagnostics:
    """Checks what the changes of one run made worse and better, and keeps the results for the user's own texts.
    `servers` and `lint` are None if none can run.
    """

    def __init__(self, views: BeforeAndAfter, servers: ServersWithDiagnostics | None, lint: Lint | None) -> None:
        self._views = views
        self._servers = servers
        self._lint = lint
        self._base: dict[str, tuple[Diagnostic, ...]] = {}
        self._base_state: object = None
        self._used: set[str] = set()
        self.only_syntax: set[str] = set()
        """The files, by path, of which nothing but the syntax was checked, as no server and no linter for them runs."""

    async def of(self, changeset: Changeset, beside: Iterable[str], seconds: float) -> Difference:
        """Return the difference that a changeset makes, within about `seconds`; what is not known by then is in
        `unknown`. `beside` are files, at most 20 of them, that it does not change but may break, absolute paths.

        What changed comes first. Of each file, the staged text is checked first: one without problems has no new ones,
        whatever it had before.
        """
        deadline = time.monotonic() + seconds
        every = [change for change in changeset if not change.empty]
        changed, more = every[:MAX_CHANGED], every[MAX_CHANGED:]
        texts = {change.path: (change.base or "", change.text or "") for change in changed}
        others = [path for path in beside if path not in texts][:MAX_BESIDE]
        found = _Found()
        await self._compare(found, _new(changed), _old(changed), deadline)
        # after the changed ones, which matter more where the time is short
        await self._compare(found, others, others, deadline)
        # last, since it only shows what got better: files without problems now may have had some
        rest = [path for path in (*_old(changed), *others) if path not in found.before]
        found.before.update(await self._of_base(rest, deadline))
        late = found.late | {change.path for change in more}
        late |= await asyncio.to_thread(_typed_in, self._views.base, changed)
        before, after = _flat(found.before, late), _flat(found.after, late)
        for path, (old, new) in texts.items():
            after += await asyncio.to_thread(moved_entries, path, old, new) if path not in late else ()
            if comments := await asyncio.to_thread(broken_comments, path, old, new):
                after += comments
                self.only_syntax.update({path} - found.after.keys())
            if (
                path not in found.after
                and (broken := await asyncio.to_thread(broken_syntax, path, old, new)) is not None
            ):
                after += broken
                self.only_syntax.add(path)
        return difference(before, after, texts, sorted(late), sorted(self._used))

    async def _compare(self, found: _Found, new: Sequence[str], old: Sequence[str], deadline: float) -> None:
        """Check the staged texts of some files, and the user's own of those that have problems."""
        found.after.update(await self._check(self._views.staged, new, deadline))
        needed = [path for path in old if found.after.get(path)]
        found.before.update(await self._of_base(needed, deadline) if needed else {})
        found.late |= {path for path in new if path in found.after and found.after[path] is None}
        found.late |= {path for path in needed if found.before.get(path) is None}

    async def _of_base(self, paths: Sequence[str], deadline: float) -> Found:
        """Return the diagnostics of the user's own texts, from memory where they have not changed."""
        state = await asyncio.to_thread(_state, self._views.base)
        if state != self._base_state:
            self._base, self._base_state = {}, state
        missing = [path for path in paths if path not in self._base]
        found = await self._check(self._views.base, missing, deadline) if missing else {}
        # what was not known in time is asked for again
        self._base.update({path: each for path, each in found.items() if each is not None})
        return {**found, **{path: self._base[path] for path in paths if path in self._base}}

    async def _check(self, view: FileView, paths: Sequence[str], deadline: float) -> Found:
        if not paths:
            return {}
        found: dict[str, tuple[Diagnostic, ...] | None] = {}
        if self._servers is not None:
            answers = await self._servers.diagnostics(view, paths, deadline - time.monotonic())
            found.update({path: _read(path, answer) for path, answer in answers.items()})
            self._used |= {each.server for answer in answers.values() for each in answer or ()}
        rest = [path for path in paths if path not in found]
        if rest and self._lint is not None:
            linted = await self._lint(view, rest, deadline - time.monotonic())
            found.update(linted)
            self._used |= {"linters"} if linted else set()
        for path in paths:
            if path not in found and (errors := await asyncio.to_thread(_syntax, view, path)) is not None:
                found[path] = errors
                self.only_syntax.add(path)
        return found


def _read(path: str, answers: Iterable[FoundDiagnostics] | None) -> tuple[Diagnostic, ...] | None:
    if answers is None:
        return None
    return tuple(item for each in answers for item in from_lsp(each.items, path, each.text, each.encoding))


def _old(changed: Iterable[FileChange]) -> list[str]:
    return [change.path for change in changed if change.base is not None and change.moved_from is None]


def _new(changed: Iterable[FileChange]) -> list[str]:
    return [change.path for change in changed if change.text is not None]


def _typed_in(view: FileView, changed: Iterable[FileChange]) -> set[str]:
    """Return the changed files whose text the user has changed since: their lines are other ones now."""
    return {
        change.path
        for change in changed
        if change.base is not None and view.text(change.moved_from or change.path) != change.base
    }


def _flat(found: Found, unknown: Collection[str]) -> list[Diagnostic]:
    return [item for path, each in found.items() if each is not None and path not in unknown for item in each]


def _state(view: FileView) -> tuple[Any, ...]:
    """Return a value that changes with the texts of open documents."""
    return tuple(
        (path, text_digest(text)) for path in sorted(view.over_disk()) if (text := view.text(path)) is not None
    )


def _syntax(view: FileView, path: str) -> tuple[Diagnostic, ...] | None:
    text = view.text(path)
    return syntax_errors(path, text) if text is not None else None


class AfterEdits:
    """Port: for one run, the remark on new and fixed diagnostics that follows the result of a call that edits."""

    def __init__(self, diagnostics: EditDiagnostics) -> None:
        self._diagnostics = diagnostics
        self._told = Difference()
        self._late: frozenset[str] = frozenset()
        self._unchecked: set[str] = set()  # suffixes of files

    @property
    def late(self) -> bool:
        """Whether diagnostics of earlier edits were not ready in time and are still to be reported."""
        return bool(self._late)

    async def of(self, context: ToolContext, changeset: Changeset, seconds: float) -> Difference:
        """Return the difference that all of these changes make, also in files that depend on them, within `seconds`."""
        return await self._diagnostics.of(changeset, await dependents(context, changeset), seconds)

    async def remark(self, context: ToolContext, changeset: Changeset) -> str:
        """Return what is new and what is fixed in all that the run has staged, as far as no earlier remark said it; ''
        if there is nothing to say. Waits 2 s at most; what is not known by then is left to the next remark.
        """
        if not changeset:
            return ""
        name = context.view.roots.relative
        found, before = await self.of(context, changeset, SECONDS_AGAIN if self._late else REMARK_SECONDS), self._told
        news, waited = since(found, before), self._late
        self._late = frozenset(found.unknown)
        if self._late:  # what is missing may be neither fixed nor said before
            self._told = replace(before, new=(*before.new, *news.new))
            late = "" if self._late <= waited else _files_line(sorted(self._late), name, "not known yet")
            return "\n".join(filter(None, (describe_difference(replace(news, fixed=()), name), late)))
        self._told = found
        if before.new and not found.new:
            return "Diagnostics: no new problems any more."
        line, left = describe_difference(news, name), len(found.new) - len(news.new)
        line = f"{line}\n({left} new from your earlier edits are left.)" if line and left else line
        if waited and not line:
            line = "Diagnostics: no new problems."
        return "\n".join(filter(None, (line, self._only_syntax(changeset, name))))

    def _only_syntax(self, changeset: Changeset, name: Callable[[str], str]) -> str:
        """Return once for each kind of file that more than its syntax is not checked: silence would read as clean."""
        paths = [path for path in changeset.paths if path in self._diagnostics.only_syntax]
        new = [path for path in paths if PurePath(path).suffix not in self._unchecked]
        self._unchecked |= {PurePath(path).suffix for path in new}
        return _files_line(new, name, ONLY_SYNTAX)


async def with_remark(context: ToolContext, run: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
    """Run a call and return its output, with the remark on diagnostics added if it has staged something; for that it
    waits 2 s at most. Errors as of `run`.
    """
    after, before = context.get(AfterEdits), context.staging.changeset
    output = await run()
    if after is None or (context.staging.changeset == before and not after.late):
        return output
    remark = await after.remark(context, context.staging.changeset)
    return replace(output, text=f"{output.text}\n{remark}") if remark else output


def _files_line(paths: Sequence[str], name: Callable[[str], str], what: str) -> str:
    return f"Diagnostics of {join_names(map(name, paths), _MAX_NAMED)}: {what}." if paths else ""


# The files that a change may break without changing them: those that use a name whose definition it changed.


async def dependents(context: ToolContext, changeset: Changeset) -> tuple[str, ...]:
    """Return the absolute paths of files, at most 20, that use names which a changeset changes; () if finding them
    takes longer than 0.5 s or fails.
    """
    try:
        async with asyncio.timeout(DEPENDENTS_SECONDS):
            names = await asyncio.to_thread(_changed_names, changeset)
            codebase, changed = Codebase(context), set(changeset.paths)
            found: dict[str, None] = {}
            for name in names[:MAX_NAMES]:
                found.update(dict.fromkeys(path for path in await codebase.using(name) if path not in changed))
            return tuple(found)[:MAX_FILES]
    except (TimeoutError, AgentError):
        return ()


def _changed_names(changeset: Changeset) -> list[str]:
    """Return the names whose definitions are gone or have another first line, the longest first."""
    names: set[str] = set()
    for change in changeset:
        runs = merge.runs(change.base or "", change.text or "")
        before = _signatures(change.path, change.base, [(run.old_start, run.old_end) for run in runs])
        after = _signatures(change.path, change.text, [(run.new_start, run.new_end) for run in runs])
        names |= {name for name, lines in before.items() if after.get(name) != lines}
    return sorted((name for name in names if len(name) >= _SHORTEST), key=lambda name: (-len(name), name))


def _signatures(path: str, text: str | None, changed: Sequence[tuple[int, int]]) -> dict[str, frozenset[str]]:
    """Return the signatures by name of what the changed lines (0-based) are a part of: all others are the same."""
    if text is None or not changed:
        return {}
    lines = split_lines(text)
    start, end = max(0, changed[0][0] - 1), changed[-1][1] + 1  # a line more: what was taken out has none of its own
    first = len("".join(lines[:start]).encode("utf-8", "replace"))
    source = source_of(path, text, (first, first + len("".join(lines[start:end]).encode("utf-8", "replace"))))
    found: dict[str, set[str]] = {}
    for definition in source.definitions if source is not None else ():
        found.setdefault(definition.symbol.name, set()).add(definition.symbol.signature)
    return {name: frozenset(lines) for name, lines in found.items()}
