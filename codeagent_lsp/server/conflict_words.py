"""Shows the lines that two have changed differently, with those of both. Not here: the questions about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from codeagent_lsp.workspace.changes.changeset import HunkConflict


def both_sides(conflicts: Iterable[HunkConflict], name: Callable[[str], str], yours: str, others: str) -> str:
    """Return the places and both texts of conflicts, as git marks them; `yours` and `others` say whose a text is."""
    return "\n\n".join(_both(name(each.path), each, yours, others) for each in conflicts)


def _both(name: str, conflict: HunkConflict, yours: str, others: str) -> str:
    parts = (
        f"{name}:{conflict.line}",
        f"<<<<<<< {yours}",
        conflict.theirs.rstrip("\n"),
        "=======",
        conflict.ours.rstrip("\n"),
        f">>>>>>> {others}",
    )
    return "\n".join(part for part in parts if part)
