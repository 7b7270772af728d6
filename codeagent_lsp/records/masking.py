"""Keeps secrets from the model and gives them back to its edits: marks where it reads, secrets where it writes.

A file with a key in it can so be edited next to the key by a model that never saw it. Not here: finding secrets
(`sanitizer.py`), what is written to disk as a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from codeagent_lsp.records.mark import MARK, Marker
from codeagent_lsp.records.own import OwnSecrets
from codeagent_lsp.records.sanitizer import Sanitizer

MOST = 10_000


class Masking:
    """One for a server; marks are the same everywhere in it. `secrets` are our own keys.

    `own` finds those, for whoever else has to; `sanitizer` is for texts that are kept.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.marker = _Remembering()
        self.own = OwnSecrets(secrets)
        self.sanitizer = Sanitizer(secrets=self.own, identities=False, homes=(), marker=self.marker)

    def hide(self, text: str) -> str:
        """`text` with marks where it has secrets."""
        return self.sanitizer.text(text)

    def clean(self, value: Any) -> Any:
        """Any value, in any nesting, with marks where it has secrets."""
        return self.sanitizer.sanitize(value)

    def reveal(self, value: Any) -> Any:
        """The same value, in any nesting of mappings and sequences, with the secrets that our marks stand for."""
        if isinstance(value, str):
            return (
                MARK.sub(lambda match: self.marker.known.get(match[0], match[0]), value)
                if "<secret:" in value
                else value
            )
        if isinstance(value, Mapping):
            return {key: self.reveal(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.reveal(item) for item in value)
        return value


class _Remembering(Marker):
    """A marker that knows what its marks stand for; in memory only, the oldest are forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, str] = {}

    def __call__(self, secret: str) -> str:
        mark = super().__call__(secret)
        if mark != secret:
            self.known.setdefault(mark, secret)
            while len(self.known) > MOST:
                del self.known[next(iter(self.known))]
        return mark
