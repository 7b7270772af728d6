"""Masking between the model and the workspace: marks in what the model reads, secrets in what it writes.

So a model can edit a file next to a key that it never saw. Not here: finding secrets (`sanitizer.py`), records on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from codeagent_lsp.records.mark import MARK, Marker
from codeagent_lsp.records.own import OwnSecrets
from codeagent_lsp.records.sanitizer import CACHED_TEXT, Sanitizer

MOST = 10_000
MOST_PASSES = 4
FEW = 50  # secrets that are looked for one by one
LEAST_REPEATED = 12  # characters of a secret that is looked for where nothing names it


class Masking:
    """Masks the secrets in everything that a model reads, and puts them back in what it writes. One per server, so that
    marks are the same everywhere; it remembers the last 10,000 secrets in memory only.

    `secrets` are this program's own keys, of at least 8 characters; `own` finds these; `sanitizer` masks the secrets of
    one text at a time, for texts that are stored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.marker = _Remembering()
        self.own = OwnSecrets(secrets)
        self.sanitizer = Sanitizer(secrets=self.own, identities=False, homes=(), marker=self.marker)

    def hide(self, text: str) -> str:
        """Return `text` with its secrets replaced by marks, also repetitions of a secret without a telling name beside
        them.

        Texts of at most 65,536 characters are searched again until no more secrets are found, as a mark may reveal one
        beside it; so hiding twice changes nothing.
        """
        masked = self._hidden(text)
        for _ in range(MOST_PASSES if "<secret:" in masked and len(masked) <= CACHED_TEXT else 0):
            before, masked = masked, self._hidden(masked)
            if masked == before:
                break
        return masked

    def _hidden(self, text: str) -> str:
        masked = self.sanitizer.text(text)
        if "<secret:" not in masked:
            return masked
        marks = dict.fromkeys(MARK.findall(masked))
        secrets = {secret: mark for mark in marks if len(secret := self.marker.known.get(mark, "")) >= LEAST_REPEATED}
        return _with_marks(masked, secrets)

    def clean(self, value: Any) -> Any:
        """Return a copy of any value, nested in any way, with its secrets replaced by marks; ids and paths are kept,
        sets become lists, other objects the name of their type. Never raises.
        """
        return self.sanitizer.sanitize(value)

    def reveal(self, value: Any) -> Any:
        """Return a copy of the value, nested in mappings, lists and tuples, with marks replaced by the secrets. Marks
        whose secret is not known stay.
        """
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

    def lost(self, value: Any) -> tuple[str, ...]:
        """Return the marks in a value, nested in mappings, lists and tuples, whose secrets this process does not know,
        such as those of an earlier process; () for none.
        """
        if isinstance(value, str):
            marks = MARK.findall(value) if "<secret:" in value else []
            return tuple(mark for mark in marks if mark not in self.marker.known)
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, list | tuple):
            return tuple(mark for item in value for mark in self.lost(item))
        return ()


def _with_marks(text: str, secrets: Mapping[str, str]) -> str:
    """Return a text with secrets, each with its mark, replaced wherever they stand; the longest at a place.

    In one pass by their beginnings: a file of settings may have thousands, and a search for each would take a time of
    its square.
    """
    if len(secrets) <= FEW and not any(secret in text for secret in secrets):
        return text
    begin: dict[str, list[str]] = {}
    for secret in sorted(secrets, key=len, reverse=True):
        begin.setdefault(secret[:LEAST_REPEATED], []).append(secret)
    pieces, end = [], 0
    for at in range(len(text) - LEAST_REPEATED + 1):
        if (word := text[at : at + LEAST_REPEATED]) in begin and at >= end:
            found = next((secret for secret in begin[word] if text.startswith(secret, at)), None)
            if found is not None:
                pieces += [text[end:at], secrets[found]]
                end = at + len(found)
    return "".join((*pieces, text[end:]))


class _Remembering(Marker):
    """A marker that remembers the secrets of its marks.

    In memory only, the oldest of more than `MOST` are forgotten.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, str] = {}

    def __call__(self, secret: str) -> str:
        """Return the mark of `secret`, in which a part may be marked already; never that of another secret."""
        if MARK.fullmatch(secret):
            return secret
        # Parts that are marked already are put back first, so that a secret has one mark, whichever layer found it.
        whole = MARK.sub(lambda match: self.known.get(match[0], match[0]), secret)
        mark, again = super().__call__(whole), whole
        while self.known.setdefault(mark, whole) != whole:  # six digits: two secrets may have the same ones
            again += "\0"
            mark = super().__call__(again)
        while len(self.known) > MOST:
            del self.known[next(iter(self.known))]
        return mark
