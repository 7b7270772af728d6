"""A run holds as many changes from outside as fit into memory and its session's file; the others are named."""

from __future__ import annotations

from codeagent_lsp.foreign.whose import DiskChange
from codeagent_lsp.server.foreign_changes import MOST_CHARACTERS, _as_many_as_fit


def test_what_does_not_fit_is_named() -> None:
    large = "x" * (MOST_CHARACTERS // 2)
    changes = [
        DiskChange("/ws/a", large, "a", is_foreign=True),
        DiskChange("/ws/b", None, large, is_foreign=True),
        DiskChange("/ws/c", large, large, is_foreign=False),
    ]
    assert _as_many_as_fit(changes, 0) == ((changes[0], changes[2]), ("/ws/b",))
    assert _as_many_as_fit(changes, MOST_CHARACTERS) == ((changes[2],), ("/ws/a", "/ws/b"))
