"""The table of the edit engine: `python -m tests.bench.edits [--repo PATH]... [--limit N]`.

Prints per perturbation how many edits came out as meant, were refused, or changed the file in another way; exits with
1 when a goal is missed. Without `--repo` it makes a history of its own. Times are printed for information only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.workspace.edits.match import replace
from tests.workspace.perturbations import (
    ROWS_APPLIED,
    ROWS_EITHER,
    ROWS_OK,
    ROWS_REFUSED,
    Case,
    Hunk,
    hunks_from_git,
    perturb,
)
from tests.workspace.synthetic_history import build_history

BIG_FILE_LINES = 3000
ROWS_BLANK = ("blank line dropped", *ROWS_APPLIED)  # where the file's blank lines are not known to the edit


@dataclass
class Score:
    """The outcomes of one row, and the cases that came out wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[Case] = field(default_factory=list)
    refused: list[Case] = field(default_factory=list)

    def share(self, outcome: str) -> float:
        """Percent of the cases with this outcome."""
        return 100 * self.counts[outcome] / max(1, sum(self.counts.values()))


def outcome(case: Case) -> str:
    """`ok`, `blank` where only blank lines differ from what was meant, `refused` or `wrong`. A case that must be
    refused is `ok` never.
    """
    try:
        got = replace(case.text, case.old, case.new).text
    except EditRefused:
        return "refused"
    if got == case.expected:
        return "ok"
    meant = case.expected is not None and _with_text(got) == _with_text(case.expected)
    return "blank" if meant and case.row in (*ROWS_BLANK, "two at once") else "wrong"


def _with_text(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def measure(hunks: Iterable[Hunk]) -> dict[str, Score]:
    """The score of every row."""
    scores: dict[str, Score] = {}
    for seed, hunk in enumerate(hunks):
        for case in perturb(hunk, seed):
            score = scores.setdefault(case.row, Score())
            result = outcome(case)
            score.counts[result] += 1
            if result == "wrong":
                score.wrong.append(case)
            elif result == "refused":
                score.refused.append(case)
    return scores


def goal_met(row: str, score: Score) -> bool:
    """Whether the row reaches its goal; nothing may ever come out wrong."""
    if score.counts["wrong"]:
        return False
    if score.share("ok") + score.share("blank") < ROWS_APPLIED.get(row, 0.0):
        return False
    return row not in ROWS_OK or score.share("ok") >= ROWS_OK[row]


def table(scores: dict[str, Score]) -> list[str]:
    """The rows to print."""
    rows = [f"{'perturbation':34}{'n':>6}{'ok %':>8}{'blank %':>9}{'refused %':>11}{'wrong %':>9}  {'goal':22}met"]
    for row in (*ROWS_OK, *ROWS_APPLIED, *ROWS_EITHER, *ROWS_REFUSED):
        score = scores.get(row, Score())
        goal = f"ok >= {ROWS_OK[row]:g}, wrong 0" if row in ROWS_OK else "wrong 0"
        goal = f"applied >= {ROWS_APPLIED[row]:g}" if row in ROWS_APPLIED else goal
        goal = "refused 100" if row in ROWS_REFUSED else goal
        shares = [score.share(name) for name in ("ok", "blank", "refused", "wrong")]
        met = "yes" if goal_met(row, score) else "NO"
        total = sum(score.counts.values())
        rows.append(
            f"{row:34}{total:>6}{shares[0]:>8.1f}{shares[1]:>9.1f}{shares[2]:>11.1f}{shares[3]:>9.1f}  {goal:22}{met}"
        )
    return rows


def latencies(hunks: list[Hunk]) -> list[float]:
    """Milliseconds per edit, sorted, refusals included, each in a file of about 3,000 lines."""
    times = []
    for seed, hunk in enumerate(hunks):
        padding = "".join(other.text for other in hunks[seed + 1 :] + hunks[:seed])
        filler = padding.splitlines(keepends=True)[: max(0, BIG_FILE_LINES - hunk.text.count("\n"))]
        for case in perturb(hunk, seed):
            text = case.text + "\n" + "".join(filler)
            start = time.perf_counter()
            outcome(Case(case.row, text, case.old, case.new, None))
            times.append(1000 * (time.perf_counter() - start))
    return sorted(times)


def main(arguments: list[str] | None = None) -> int:
    """Print the table of each history; 0 when every goal is met."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.edits", description=__doc__)
    parser.add_argument("--repo", type=Path, action="append", default=[], help="a git repository, bare or not")
    parser.add_argument("--limit", type=int, default=450, help="hunks per repository")
    parser.add_argument("--show", type=int, default=0, help="print so many wrong cases per row")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        repos = chosen.repo or [build_history(Path(folder), seed=1)]
        return max([_report(repo, chosen.limit, chosen.show) for repo in repos])


def _report(repo: Path, limit: int, show: int) -> int:
    hunks = hunks_from_git(repo, limit)
    scores = measure(hunks)
    print(f"\n{repo}: {len(hunks)} hunks")
    print("\n".join(table(scores)))
    times = latencies(hunks[:60])
    print(f"{len(times)} edits in {BIG_FILE_LINES} lines: p50 {_at(times, 0.5):.1f} ms, p95 {_at(times, 0.95):.1f} ms")
    for row, score in scores.items():
        for case in score.wrong[:show]:
            print(f"--- wrong: {row}\n{case.old}\n--- new\n{case.new}")
    return 0 if hunks and all(goal_met(row, score) for row, score in scores.items()) else 1


def _at(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


if __name__ == "__main__":
    sys.exit(main())
