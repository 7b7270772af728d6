"""What the user has decided about other agents that want to use the editor, by name, in a file of the workspace.

Not here: asking (`lender.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from codeagent_lsp.state import replace_json

DECISIONS = ("always", "never")
MOST = 200


class AllowedClients:
    """The decisions of one workspace; read from the disk each time, as several editors share them."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> dict[str, str]:
        """Return `always` or `never` by the names of clients; nothing if the file cannot be read."""
        try:
            values = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        known = values.items() if isinstance(values, dict) else ()
        return {name: decision for name, decision in known if decision in DECISIONS}

    def of(self, name: str) -> str | None:
        """Return the decision about a client; None if there is none."""
        return self.all().get(name)

    def set(self, name: str, decision: str) -> None:
        """Store a decision; the oldest ones are dropped. OSError if it cannot be written."""
        others = {other: kept for other, kept in self.all().items() if other != name}
        kept = [*others.items(), (name, decision)][-MOST:]
        replace_json(self._file, dict(kept))

    def forget(self, names: Iterable[str]) -> None:
        """Drop the decisions about these clients. OSError if that cannot be written."""
        known, gone = self.all(), set(names)
        if gone & known.keys():
            replace_json(self._file, {name: kept for name, kept in known.items() if name not in gone})
