"""Collects what is tried on one run's changes, and tells what of it still holds for the present text.

Not here: the values (`proof.py`), trying things (`session/own_runs.py`, the tools).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from codeagent_lsp.session.proving.proof import (
    MAX_NAMES,
    DiagnosticsProof,
    MinimalProof,
    ProposalProof,
    TestsProof,
    Words,
    state_digest,
)
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.tools.context import Tally
from codeagent_lsp.tools.diagnostics.difference import Difference, new_lines
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.files.file_view import FileView, own_text


class Proofs:
    """Collects what was tried on the changes of one run (tests, diagnostics, which part the tests need) and keeps it in
    the run's record. `view` shows the user's own texts by `FileView.base`.

    Results are kept by the digest of the changes: a state that was tested and is staged again later still has its
    result.
    """

    def __init__(self, record: RunRecord, view: FileView) -> None:
        self._record = record
        self._view = view
        self._failed_before: frozenset[str] = frozenset()
        self._tests: dict[str, TestsProof] = {}  # by digest
        self._green: dict[str, frozenset[str]] = {}

    def tested(self, tally: Tally, changeset: Changeset, digest: str) -> None:
        """Record a test run on these changes, in the state with this digest. A run without changes is one on the user's
        own text: later runs may have repaired what fails in it. A run of fewer tests on the same state is dropped,
        unless more fail in it.
        """
        if not changeset:
            self._failed_before = tally.failing
            return
        now_passing = sorted((self._failed_before & tally.passing) | tally.mended)
        made = TestsProof(
            digest,
            tally.passed,
            tally.failed,
            tally.whole,
            tuple(sorted(tally.failing - tally.as_before)[:MAX_NAMES]),
            tuple(now_passing[:MAX_NAMES]),
            len(tally.as_before),
            tuple(sorted(tally.as_before)[:MAX_NAMES]),
            tally.skipped,
        )
        # Added up: the tests of one state run file by file.
        self._green[digest] = self._green.get(digest, frozenset()) | tally.green
        known = self._tests.get(digest)
        if known is not None and _says_more(known, made):
            passing = sorted({*known.now_passing, *made.now_passing})
            made = replace(known, now_passing=tuple(passing[:MAX_NAMES]))
        self._tests[digest] = made
        self._keep(replace(self._record.proof, tests=made))

    def diagnosed(self, found: Difference, changeset: Changeset) -> None:
        """Record the diagnostics that these changes make and remove, in place of earlier ones, with the digest of the
        present state.
        """
        lines = new_lines(found, self._view.roots.relative)
        counts = len(found.new), len(found.fixed), len(found.unknown)
        made = DiagnosticsProof(self.state(changeset), *counts, lines, found.sources)
        self._keep(replace(self._record.proof, diagnostics=made))

    def minimized(self, minimal: MinimalProof) -> None:
        """Record which parts of the changes matter, in place of an earlier result. It counts only for the texts whose
        digest it has.
        """
        self._keep(replace(self._record.proof, minimal=minimal))

    def data(self, changeset: Changeset, text: Words) -> dict[str, Any] | None:
        """Return the proof of these changes as an event carries it (`ProposalProof.data`), with `words` for the user;
        None if nothing was tried.
        """
        now = self.state(changeset)
        proof = self._of(now)
        data = proof.data(now)
        return None if data is None else {**data, "words": list(proof.words(now, text))}

    def unneeded(self, changeset: Changeset) -> tuple[str, ...]:
        """Return the parts of these changes that their tests do not need, as `path#id`, or the path of a whole file; ()
        once the text has changed, or if that was not tried.
        """
        minimal = self._record.proof.minimal
        if minimal is None or minimal.digest != self.state(changeset):
            return ()
        name = self._view.roots.relative
        ids = {change.path: change.hunk_ids() for change in changeset}
        parts = [(path, ids.get(path, ())[hunk : hunk + 1] if hunk >= 0 else ()) for path, hunk in minimal.unneeded]
        return tuple("#".join((name(path), *known)) for path, known in parts)

    def words(self, changeset: Changeset, text: Words) -> tuple[str, ...]:
        """Return sentences for the user on the proof of these changes; () if nothing was tried."""
        now = self.state(changeset)
        return self._of(now).words(now, text)

    def green(self, changeset: Changeset) -> frozenset[str]:
        """Return what is green in the state of these changes, as `Tally` names it: files and folders whose tests all
        passed; empty if none ran. Blocks, as it reads the user's files.
        """
        return self._green.get(self.state(changeset), frozenset())

    def look_at(self, view: FileView) -> None:
        """Take the user's own texts from another view from now on."""
        self._view = view

    def state(self, changeset: Changeset) -> str:
        """Return the digest of the state that these changes make with the user's present texts. Blocks for reading
        them.
        """
        changes = (change for part in self._record.applied for change in part.changeset)
        accepted = {path for change in changes for path in (change.path, change.moved_from) if path}
        return state_digest(changeset, partial(own_text, self._view), self._view.roots.relative, accepted)

    def _of(self, now: str) -> ProposalProof:
        """Return the proof with the tests of this state, or else with the last ones."""
        proof = self._record.proof
        return replace(proof, tests=self._tests.get(now, proof.tests))

    def _keep(self, proof: ProposalProof) -> None:
        self._record.proof = proof


def _says_more(known: TestsProof, made: TestsProof) -> bool:
    larger = known.passed + known.failed > made.passed + made.failed
    return larger and (known.whole or not made.whole) and set(made.failing) <= set(known.failing)
