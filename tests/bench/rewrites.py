"""How many real rewrites a quick action takes: `python -m tests.bench.rewrites --repo PATH[:SUFFIX] …`.

Each hunk of a repository's history is a selection (its old lines) and an answer (its new lines in one fence, with words
around it as models write them). Prints for each repository how many are taken as they were meant, and why others are
not. Not here: the generated replies that hold no code (`tests/direct/prose_replies.py`).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from codeagent_lsp.agent.replacement import replaced
from codeagent_lsp.direct.definitions import syntax_problem
from codeagent_lsp.direct.fences import read_envelope
from tests.workspace.perturbations import Hunk, hunks_from_git

WORDS = ("", "Here is the new version:\n\n", "Sure!\n")


def outcome(hunk: Hunk, name: str, number: int) -> str:
    """Return `taken`, `other` (another text than meant), or why the answer is refused."""
    start = hunk.text.index(hunk.old)
    fence = "`" * 4 if "```" in hunk.old + hunk.new else "```"
    reply = f"{WORDS[number % 3]}{fence}\n{hunk.new.rstrip(chr(10))}\n{fence}\n"
    found = read_envelope(reply, hunk.old)
    if found.code is None:
        return found.problem or "declined"
    new = replaced(hunk.text, start, start + len(hunk.old), found.code)
    if syntax_problem(name, hunk.text, new):
        return "a new syntax error" + (", as meant" if syntax_problem(name, hunk.text, hunk.expected) else "")
    if _lines(new) == _lines(hunk.expected):
        return "taken"
    stripped = [[line.strip() for line in _lines(text)] for text in (new, hunk.expected)]
    return "indented otherwise" if stripped[0] == stripped[1] else "other"


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n") if line.strip()]


def main(arguments: list[str] | None = None) -> int:
    """Print one line for each repository; 0 when every rewrite is taken."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rewrites", description=__doc__)
    parser.add_argument("--repo", action="append", required=True, help="a git repository and a suffix: PATH:.go")
    parser.add_argument("--limit", type=int, default=400, help="hunks per repository")
    parser.add_argument("--show", type=int, default=0, help="print so many that are not taken")
    chosen = parser.parse_args(arguments)
    total: Counter[str] = Counter()
    for named in chosen.repo:
        path, _, suffix = named.rpartition(":")
        counts: Counter[str] = Counter()
        for number, hunk in enumerate(hunks_from_git(Path(path), chosen.limit, suffix=suffix, shortest=2, longest=40)):
            result = outcome(hunk, f"file{suffix}", number)
            counts[result] += 1
            if result != "taken" and counts.total() - counts["taken"] <= chosen.show:
                print(f"--- {result}\n{hunk.old}--- becomes\n{hunk.new}")
        total += counts
        print(f"{Path(path).parent.name} {suffix}: {dict(counts)}")
    print(f"all: {total['taken']} of {total.total()} taken; {dict(total)}")
    return 0 if total["taken"] == total.total() else 1


if __name__ == "__main__":
    sys.exit(main())
