"""The changes of declarations between the texts before and after: signatures, names, places. Pure.

Not here: the callers of what has changed (`sites.py`).
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from codeagent_lsp.inline.finish_change.calls import (
    FAMILIES,
    Family,
    SignatureChange,
    renamed_parameters,
    render_signature,
)
from codeagent_lsp.inline.finish_change.declarations import Declaration, declarations
from codeagent_lsp.inline.next_edit.parsed_text import ParsedText

ALIKE = 0.7
"""The least share of the same tokens in two declarations of which one is the other under a new name."""
MOST_TOKENS = 3000
MOST_CHANGES = 12

_Whole = tuple[Family, str, Declaration]
"""A declaration of a file's own, no member: the rules of its language, the file, and what is declared."""

_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Change:
    """One declaration before and after a change by the user, in the files `was_in` and `path`, which differ if it was
    moved. `signature` is what changed of its parameters, None for nothing.
    """

    family: Family
    was_in: str
    path: str
    before: Declaration
    after: Declaration
    signature: SignatureChange | None = None

    @property
    def is_renamed(self) -> bool:
        """Whether the declaration has another name after the change."""
        return self.before.name != self.after.name

    @property
    def is_moved(self) -> bool:
        """Whether it is in another file now than before."""
        return self.was_in != self.path

    @property
    def word(self) -> str:
        """The old name, by which callers use it; for a constructor that of its class."""
        return self.before.called

    @property
    def title(self) -> str:
        """The change on one line for the user, such as `f(a) → f(a, b)`."""
        old, new = self.before.called, self.after.called
        if self.signature is not None:
            return f"{render_signature(old, self.signature.old)} → {render_signature(new, self.signature.new)}"
        if self.is_moved:
            return f"{new}: {PurePath(self.was_in).name} → {PurePath(self.path).name}"
        return f"{old} → {new}"


def changes_of(pairs: Iterable[tuple[ParsedText, ParsedText]]) -> tuple[Change, ...]:
    """Return at most 12 changes of declarations in some files, each given by its texts before and after. A file that
    has new syntax errors is left out, as the user is still typing there.
    """
    found: list[Change] = []
    gone: list[_Whole] = []
    come: list[_Whole] = []
    for before, after in pairs:
        family = FAMILIES.get(after.language)
        if family is None or before.text == after.text or (after.root.has_error and not before.root.has_error):
            continue
        file = _File(family, after.path, declarations(before), declarations(after))
        found += file.changes()
        gone += [(family, after.path, each) for each in file.gone if not each.owner]
        come += [(family, after.path, each) for each in file.come if not each.owner]
    found += _find_moves(gone, come)
    return tuple(found[:MOST_CHANGES])


def _find_moves(gone: Sequence[_Whole], come: Sequence[_Whole]) -> Iterator[Change]:
    for family, was_in, before in gone:
        to = [(path, after) for _, path, after in come if after.name == before.name and after.kind == before.kind]
        if len(to) == 1 and to[0][0] != was_in and family in ("python", "script"):
            path, after = to[0]
            if likeness(before, after) >= ALIKE:
                yield Change(family, was_in, path, before, after)


class _File:
    """The declarations of one file before and after. `gone` and `come` are those without a counterpart."""

    def __init__(self, family: Family, path: str, before: list[Declaration], after: list[Declaration]) -> None:
        self._family = family
        self._path = path
        self._all = (before, after)
        counts = [Counter((each.owner, each.name) for each in side) for side in self._all]
        # Of overloads and accessors nobody knows which is which.
        self._many = {key for count in counts for key, number in count.items() if number > 1}
        keys = [{(each.owner, each.name) for each in side} for side in self._all]
        self.gone = [each for each in before if (each.owner, each.name) not in keys[1]]
        self.come = [each for each in after if (each.owner, each.name) not in keys[0]]

    def changes(self) -> Iterator[Change]:
        """Yield the changes; what was renamed is no longer `gone` or `come`."""
        yield from self._renamed_classes()
        now = {(each.owner, each.name): each for each in self._all[1]}
        for each in self._all[0]:
            key = (each.owner, each.name)
            if key in now and key not in self._many and (change := self._change(each, now[key])).signature is not None:
                yield change
        yield from self._find_renames()

    def _renamed_classes(self) -> Iterator[Change]:
        classes = [[each for each in side if each.kind == "class"] for side in (self.gone, self.come)]
        for before, after in self._pairs(*classes):
            self._take(before, after)
            yield self._change(before, after)
            # What is inside of it has a counterpart by the new name of the class.
            old, new = _inner(before), _inner(after)
            inside = {(each.owner.replace(old, new, 1), each.name): each for each in self.gone if _is_in(each, old)}
            for member in [each for each in self.come if _is_in(each, new)]:
                known = inside.get((member.owner, member.name))
                if known is not None:
                    self._take(known, member)
                    change = self._change(known, member)
                    if change.signature is not None:
                        yield change

    def _find_renames(self) -> Iterator[Change]:
        for owner in dict.fromkeys(each.owner for each in self.gone):
            sides = [
                [each for each in side if each.owner == owner and (owner, each.name) not in self._many]
                for side in (self.gone, self.come)
            ]
            for before, after in self._pairs(*sides):
                self._take(before, after)
                yield self._change(before, after)

    def _pairs(self, gone: Sequence[Declaration], come: Sequence[Declaration]) -> list[tuple[Declaration, Declaration]]:
        found = []
        for before in gone:
            alike = [each for each in come if each.kind == before.kind and self._is_renamed(before, each)]
            if len(alike) == 1:
                found.append((before, alike[0]))
        # Where two could be the same one, neither is plain.
        taken = Counter(id(after) for _, after in found)
        return [(before, after) for before, after in found if taken[id(after)] == 1]

    def _is_renamed(self, before: Declaration, after: Declaration) -> bool:
        if before.is_constructor or after.is_constructor or likeness(before, after) < ALIKE:
            return False
        # Short ones are like many others: then the neighbours tell.
        return len(_TOKEN.findall(before.text)) > 20 or self._has_neighbours(before, after)

    def _has_neighbours(self, before: Declaration, after: Declaration) -> bool:
        names = []
        for side, each in zip(self._all, (before, after), strict=True):
            siblings = ["", *(other.name for other in side if other.owner == each.owner), ""]
            at = siblings.index(each.name)
            names.append((siblings[at - 1], siblings[at + 1]))
        # The ends of a list are like those of all others.
        return names[0] == names[1] or any(one == other != "" for one, other in zip(*names, strict=True))

    def _take(self, before: Declaration, after: Declaration) -> None:
        self.gone = [each for each in self.gone if each is not before]
        self.come = [each for each in self.come if each is not after]

    def _change(self, before: Declaration, after: Declaration) -> Change:
        made = Change(self._family, self._path, self._path, before, after)
        if before.signature is None or after.signature is None or before.is_property or after.is_property:
            return made
        if before.signature == after.signature:
            return made
        renamed = renamed_parameters(before.signature, after.signature, (before.body, after.body))
        if renamed is None:
            return made
        return replace(made, signature=SignatureChange(before.signature, after.signature, renamed))


def likeness(before: Declaration, after: Declaration) -> float:
    """Return how similar two declarations are, from 0 to 1, as the ratio of difflib over their first tokens, without
    regard to their names.
    """
    name = re.compile(rf"\b{re.escape(before.name)}\b")
    old, new = (_TOKEN.findall(text)[:MOST_TOKENS] for text in (name.sub(after.name, before.text), after.text))
    return difflib.SequenceMatcher(None, old, new, autojunk=False).ratio()


def _inner(each: Declaration) -> str:
    return f"{each.owner}.{each.name}" if each.owner else each.name


def _is_in(each: Declaration, owner: str) -> bool:
    return each.owner == owner or each.owner.startswith(f"{owner}.")
