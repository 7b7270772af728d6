"""Drafts from the text itself on lines that real commits added, typed from the left: offered, exact, characters saved.

    python -m tests.bench.drafts --repo PATH:.py [--repo PATH:.go …] [--commits N] [--seed N] [--show N]

The text is that of the commit, without what the same hunk adds below the line. The first draft of a line counts, as
that is what the user sees. `--show` prints wrong ones.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from codeagent_lsp.inline.context import DRAFT_CHARS, Place, draft_of

MOST_ADDED = 30
LONGEST_DIFF = 20_000
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


def git(folder: str, *words: str) -> str:
    """The output of a git command."""
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace")


def typed_lines(folder: str, ending: str, commits: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Each added line with the text before it, up to its indentation, and the text after it."""
    names = git(folder, "log", "--no-merges", "--format=%H", "-n", "3000").split()
    random.Random(seed).shuffle(names)
    for commit in names:
        if commits == 0:
            return
        used = False
        for diff in re.split(
            r"^diff --git ", git(folder, "show", "--format=", "-U0", "--no-renames", commit), flags=re.M
        ):
            path = re.search(r"^\+\+\+ b/(.*)$", diff, re.MULTILINE)
            if path is None or not path[1].endswith(ending) or len(diff) > LONGEST_DIFF:
                continue
            lines = git(folder, "show", f"{commit}:{path[1]}").splitlines()
            for hunk in _HUNK.finditer(diff):
                start, count = int(hunk[1]) - 1, int(hunk[2] or 1)
                if not 0 < count <= MOST_ADDED:
                    continue
                used = True
                after = "\n".join(["", *lines[start + count :]])
                for at in range(start, min(start + count, len(lines))):
                    yield "\n".join([*lines[:at], ""]), lines[at], after
        commits -= used


def first_draft(before: str, line: str, after: str) -> tuple[str, str]:
    """The first draft that a line gets while it is typed, and what came there; '' for none."""
    begins = len(line) - len(line.lstrip())
    for typed in range(begins + DRAFT_CHARS, len(line)):
        text = before + line[:typed]
        draft = draft_of(Place("x", text + after, len(text)))
        if draft:
            return draft, line[typed:]
    return "", ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repo", action="append", required=True)
    parser.add_argument("--commits", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--show", type=int, default=0)
    options = parser.parse_args()
    print(f"{'history':20} {'lines':>6} {'offered':>8} {'exact':>6} {'precision':>9}  characters saved")
    for repo in options.repo:
        folder, _, ending = repo.rpartition(":")
        lines = chars = offered = exact = saved = 0
        for before, line, after in typed_lines(folder, ending, options.commits, options.seed):
            if len(line.strip()) <= DRAFT_CHARS:
                continue
            lines, chars = lines + 1, chars + len(line.strip())
            draft, came = first_draft(before, line, after)
            if not draft:
                continue
            offered += 1
            if draft == came.rstrip():
                exact, saved = exact + 1, saved + len(draft)
            elif options.show:
                options.show -= 1
                print(f"{line.strip()!r}: {draft!r}")
        name = Path(folder).parent.name.partition("+")[2] or Path(folder).name
        share = f"{exact / max(1, offered):9.2f}  {saved / max(1, chars):.1%}"
        print(f"{name:20} {lines:6} {offered:8} {exact:6} {share}")


if __name__ == "__main__":
    main()
