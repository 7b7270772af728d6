"""What was tried on exactly the proposed text: tests and diagnostics, each with the digest of the state it ran on.

Pure values. Not here: collecting them (`proofs.py`), trying things for their sake (`session/own_runs.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.text.document import text_digest

MAX_NAMES = 50
_PARTS = ("needed", "unneeded")

Words = Callable[..., str]
"""Returns a sentence of the catalogue in the user's language."""


@dataclass(frozen=True, slots=True)
class TestsProof:
    """A test run on a run's changes: counts, and at most 50 names of tests that fail, and of those that failed on the
    user's own text and pass now. `digest` is that of the tested state; `whole` is False if not every result is known.

    `before` counts the failing ones that failed in the same way on the user's own text; their names (`as_before`) are
    not in `failing`.
    """

    digest: str
    passed: int
    failed: int
    whole: bool = True
    failing: tuple[str, ...] = ()
    now_passing: tuple[str, ...] = ()
    before: int = 0
    as_before: tuple[str, ...] = ()
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class DiagnosticsProof:
    """Diagnostics that the changes make (`new`) and remove (`fixed`), counted; `digest` is that of the checked state.
    `lines` describe them for the user; `unknown` counts files that could not be checked in time, and `sources` name
    what has checked the others, besides their syntax.
    """

    digest: str
    new: int
    fixed: int
    unknown: int = 0
    lines: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MinimalProof:
    """The smallest part of the changes that keeps the same tests passing: `needed` and `unneeded` are pairs of a path
    and the 0-based number of a hunk (-1: the whole file), found in `runs` test runs; `whole` is False if not everything
    could be tried.
    """

    digest: str
    needed: tuple[tuple[str, int], ...]
    unneeded: tuple[tuple[str, int], ...]
    runs: int
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ProposalProof:
    """All results of what was tried on a proposal, None for what was not."""

    tests: TestsProof | None = None
    diagnostics: DiagnosticsProof | None = None
    minimal: MinimalProof | None = None

    def data(self, now: str) -> dict[str, Any] | None:
        """Return the proof as plain data for an event, `{tests, diagnostics, minimal}` without what was not tried, with
        `outdated` for results on another state than `now`, a digest; None if nothing was tried.
        """
        found: dict[str, Any] = {}
        if (tests := self.tests) is not None:
            found["tests"] = {
                "passed": tests.passed,
                "failed": tests.failed,
                "whole": tests.whole,
                "failing": list(tests.failing),
                "now_passing": list(tests.now_passing),
                "before": tests.before,
                "as_before": list(tests.as_before),
                "skipped": tests.skipped,
                **_state(tests.digest, now),
            }
        if (seen := self.diagnostics) is not None:
            counts = {"new": seen.new, "fixed": seen.fixed, "unknown": seen.unknown}
            found["diagnostics"] = {
                **counts,
                "lines": list(seen.lines),
                "sources": list(seen.sources),
                **_state(seen.digest, now),
            }
        if (minimal := self.minimal) is not None:
            parts = zip(_PARTS, (minimal.needed, minimal.unneeded), strict=True)
            told = {key: [{"path": path, "hunk": hunk} for path, hunk in each] for key, each in parts}
            counted = {"runs": minimal.runs, "whole": minimal.whole}
            found["minimal"] = {**told, **counted, **_state(minimal.digest, now)}
        return found or None

    def words(self, now: str, text: Words) -> tuple[str, ...]:
        """Return a sentence for the user on each result, () for none; `text` returns a sentence of the catalogue; those
        on another state than `now`, a digest, are marked as outdated.
        """
        said: list[tuple[str, str]] = []
        if (tests := self.tests) is not None:
            new = tests.failed - tests.before
            key = "failed" if new else "passed" if tests.whole else "unclear" if tests.passed else "none"
            key = "new_failed" if tests.before and new else key
            line = text(f"tests.{key}", passed=tests.passed, failed=new)
            if tests.before:
                line = f"{line} {text('tests.as_before', count=tests.before)}"
            if tests.skipped:
                line = f"{line} {text('tests.skipped', count=tests.skipped)}"
            if tests.now_passing:
                line = f"{line} {text('proof.now_passing', count=len(tests.now_passing))}"
            said.append((tests.digest, line))
        if (seen := self.diagnostics) is not None and (seen.new or seen.fixed or (seen.sources and not seen.unknown)):
            key = "proof.diagnostics" if seen.new or seen.fixed else "proof.clean"
            said.append((seen.digest, text(key, new=seen.new, fixed=seen.fixed)))
        if (minimal := self.minimal) is not None and minimal.unneeded:
            said.append((minimal.digest, text("proof.minimal", count=len(minimal.unneeded))))
        return tuple(line if digest == now else text("proof.outdated", line=line) for digest, line in said)


def proof_from(data: Mapping[str, Any]) -> ProposalProof:
    """Return the proof from the result of `ProposalProof.data`. KeyError or TypeError if it is malformed."""
    proof = ProposalProof()
    if tests := data.get("tests"):
        names = tuple(tests["failing"]), tuple(tests["now_passing"])
        before = tests.get("before", 0), tuple(tests.get("as_before", ()))
        more = *names, *before, tests.get("skipped", 0)
        made = TestsProof(tests["digest"], tests["passed"], tests["failed"], tests["whole"], *more)
        proof = replace(proof, tests=made)
    if seen := data.get("diagnostics"):
        counts, texts = (seen["new"], seen["fixed"], seen["unknown"]), (tuple(seen["lines"]), tuple(seen["sources"]))
        proof = replace(proof, diagnostics=DiagnosticsProof(seen["digest"], *counts, *texts))
    if minimal := data.get("minimal"):
        needed, unneeded = (tuple((each["path"], each["hunk"]) for each in minimal[key]) for key in _PARTS)
        made_minimal = MinimalProof(minimal["digest"], needed, unneeded, minimal["runs"], minimal["whole"])
        proof = replace(proof, minimal=made_minimal)
    return proof


def state_digest(
    changeset: Changeset, own: Callable[[str], str | None], name: Callable[[str], str], accepted: Iterable[str] = ()
) -> str:
    """Return a digest (SHA-256 in hexadecimal) of the files that a run has changed: those staged, with its changes, and
    those that the user has `accepted` (paths), as they are now. Accepting a change does not alter it. `own` returns a
    file's present text, `name` its path relative to the workspace, so that the workspace's place does not matter.
    """
    parts = {name(path): _digest(own(path)) for path in accepted}
    for change in changeset:
        present = own(change.moved_from or change.path)
        if change.moved_from:
            parts[name(change.moved_from)] = _digest(None)
        parts[name(change.path)] = _digest(change.text)
        # What the user has written since goes into the file as well: the same change over it is another state.
        if present not in (change.base, change.text):
            parts[name(change.path)] += _digest(present)
    told = (f"{path}\0{digest}" for path, digest in sorted(parts.items()))
    return hashlib.sha256("\0".join(told).encode("utf-8", "surrogatepass")).hexdigest()


def _digest(text: str | None) -> str:
    return "-" if text is None else text_digest(text)


def _state(digest: str, now: str) -> dict[str, Any]:
    return {"digest": digest, "outdated": digest != now}
