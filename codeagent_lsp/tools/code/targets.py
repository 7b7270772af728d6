"""Which definition a name like `Class.method` or `Class.method#2` means in one text.

Not here: what belongs to a definition (`extent.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.code.source import Definition, SourceFile

_ORDINAL = re.compile(r"^(.*)#(\d+)$", re.DOTALL)
_SEPARATORS = re.compile(r"::|->|#|\\")
_MOST_SHOWN = 20


def matching(definitions: Sequence[Definition], name: str) -> tuple[Definition, ...]:
    """The definitions a dotted name means: those called exactly so, else those whose dotted name ends with it.

    What is called like what it stands in, as a constructor, has to be named with that.
    """
    plain = normal(name)
    exact = tuple(each for each in definitions if each.qualified == plain)
    ending = exact or tuple(each for each in definitions if each.qualified.endswith(f".{plain}"))
    names = {each.qualified for each in ending}
    return tuple(each for each in ending if each.symbol.parent not in names)


def normal(name: str) -> str:
    """A dotted name, whatever its language puts between the parts."""
    return _SEPARATORS.sub(".", name.strip().removesuffix("()")).strip(".").replace("$", "")


def find_all(source: SourceFile, target: str) -> tuple[Definition, ...]:
    """All definitions that `target` means, at least one. EditRefused if there is none, with similar names."""
    found = _ORDINAL.match(target.strip())
    name, number = (found[1], int(found[2])) if found else (target, 0)
    candidates = matching(source.definitions, name)
    if not candidates or number > len(candidates):
        raise EditRefused("not_found", _not_found(source, target, candidates))
    return (candidates[number - 1],) if number else candidates


def find_one(source: SourceFile, target: str) -> Definition:
    """The one definition that `target` means. EditRefused if there is none or more than one, with all candidates."""
    candidates = find_all(source, target)
    if len(candidates) == 1:
        return candidates[0]
    raise EditRefused("ambiguous", ambiguous(source.path, target, candidates))


def ambiguous(path: str, target: str, candidates: Sequence[Definition]) -> str:
    """A sentence that lists what `target` could mean, and how to say which."""
    shown = "\n".join(
        f"  {normal(target)}#{number}: line {each.symbol.line_start}: {each.symbol.signature}"
        for number, each in enumerate(candidates[:_MOST_SHOWN], 1)
    )
    return f"{target} means {len(candidates)} definitions in {path}. Name one of them:\n{shown}"


def _not_found(source: SourceFile, target: str, candidates: Sequence[Definition]) -> str:
    if candidates:
        return ambiguous(source.path, normal(target.rpartition("#")[0]), candidates)
    known = {each.qualified: each.symbol.line_start for each in source.definitions}
    last = normal(target).rpartition(".")[2]
    lasts = {name: name.rpartition(".")[2] for name in known}
    alike = {last, *get_close_matches(last, lasts.values(), 5)}
    near = [name for name in known if lasts[name] in alike] or get_close_matches(normal(target), known, 5)
    if near:
        listed = ", ".join(f"{name} (line {known[name]})" for name in near[:5])
        return f"{source.path} defines no {target}. Similar: {listed}."
    listed = ", ".join(list(known)[:_MOST_SHOWN])
    return f"{source.path} defines no {target}. It defines: {listed}." if listed else f"{source.path} defines nothing."
