"""The sanitizer: any JSON-like value in, the same value out with secrets and identities masked.

Layers, in this order: our own keys, blocks, tokens of known formats, contexts (URLs, headers, command lines,
assignments), paths; and, for mappings, the names of keys. Never changes its argument, never raises on
cycles or odd values, and is idempotent. Not here: the layers themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from codeagent_lsp.records.assignments import mask_assignments
from codeagent_lsp.records.blocks import mask_blocks
from codeagent_lsp.records.command_lines import mask_command_lines
from codeagent_lsp.records.headers import mask_headers
from codeagent_lsp.records.mark import MARK, Marker
from codeagent_lsp.records.own import OwnSecrets
from codeagent_lsp.records.places import Paths
from codeagent_lsp.records.structure import Structure
from codeagent_lsp.records.urls import mask_urls
from codeagent_lsp.records.vendors import mask_vendor_tokens

SHORTEST = 6  # no secret is shorter than this, with its name
CACHED_TEXT = 65_536
_CALL_ID = re.compile(r"(?<![\w-])call_(?=[0-9]*[A-Za-z])(?=(?:[A-Za-z]*[0-9]){3})[A-Za-z0-9]{10,64}(?![\w-])")
_UNSEEN = re.compile("(?<=[\\w-])[\u200b-\u200d\u2060\ufeff\u00ad](?=[\\w-])")


class Sanitizer:
    """Masks secrets. `secrets` are our own keys, or the object that finds them.

    `enabled=False` returns values unchanged.

    With `identities`, ids, sessions and paths are shortened as well, for records but not for a model.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        secrets: Iterable[str] | OwnSecrets = (),
        identities: bool = True,
        homes: Iterable[str] | None = None,
        marker: Marker | None = None,
    ) -> None:
        self.enabled = enabled
        self._identities = identities
        self._mark = marker or Marker()
        self._own = secrets if isinstance(secrets, OwnSecrets) else OwnSecrets(secrets)
        self._paths = Paths([os.path.expanduser("~")] if homes is None else homes)  # noqa: PTH111 - never raises
        self._cached = lru_cache(maxsize=512)(lambda text, version: self._clean(text))
        self._structure = Structure(self.text, self._mark, identities=identities)

    @property
    def hold_back(self) -> int:
        """The number of characters that a stream must keep back, as one of our own keys may continue in them."""
        return self._own.longest

    def sanitize(self, value: Any) -> Any:
        """Return `value` with secrets masked in texts, bytes, mappings and sequences, nested in any way."""
        return self._structure.walk(value) if self.enabled else value

    def text(self, text: str) -> str:
        """Return a text with secrets masked."""
        if not self.enabled or len(text) < SHORTEST:
            return text
        return self._cached(text, self._own.version) if len(text) <= CACHED_TEXT else self._clean(text)

    def for_model(self) -> Sanitizer:
        """Return a sanitizer for what a model reads: the same marks for secrets, but ids and paths are kept."""
        return Sanitizer(self.enabled, secrets=self._own, identities=False, homes=(), marker=self._mark)

    def _clean(self, text: str) -> str:
        """Return a text masked, and where unseen characters hide a secret's name, without them."""
        masked = self._masked(text)
        if _UNSEEN.search(text) is None:
            return masked
        plain = self._masked(_UNSEEN.sub("", text))
        return plain if len(MARK.findall(plain)) > len(MARK.findall(masked)) else masked

    def _masked(self, text: str) -> str:
        text = self._own.mask(text, self._mark)
        text = mask_blocks(text, self._mark)
        text = mask_vendor_tokens(text, self._mark)
        text = mask_urls(text, self._mark)
        text = mask_headers(text, self._mark)
        text = mask_command_lines(text, self._mark)
        text = mask_assignments(text, self._mark, sessions=self._identities)
        if not self._identities:
            return text
        if "call_" in text:
            text = _CALL_ID.sub(lambda match: self._mark(match[0]), text)
        return self._paths.shorten(text)
