"""Resolution of a name like `Class.method` or `Class.method#2` to a definition in one text.

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
    """Return the definitions that a dotted name refers to: exact matches, else those whose dotted name ends with it.

    A definition inside another match, such as a constructor with its class's name, must be named with its parent.
    """
    plain = normal(name)
    exact = tuple(each for each in definitions if each.qualified == plain)
    ending = exact or tuple(each for each in definitions if each.qualified.endswith(f".{plain}"))
    names = {each.qualified for each in ending}
    return tuple(each for each in ending if each.symbol.parent not in names)


def normal(name: str) -> str:
    """Return a name with dots as separators, whatever separators its language uses."""
    return _SEPARATORS.sub(".", name.strip().removesuffix("()")).strip(".").replace("$", "")


def find_all(source: SourceFile, target: str) -> tuple[Definition, ...]:
    """Return all definitions that `target` refers to, at least one. EditRefused, with similar
    names, if there is none.
    """
    found = _ORDINAL.match(target.strip())
    name, number = (found[1], int(found[2])) if found else (target, 0)
    candidates = matching(source.definitions, name)
    if not candidates or number > len(candidates):
        raise EditRefused("not_found", _not_found(source, target, candidates))
    return (candidates[number - 1],) if number else candidates


def find_one(source: SourceFile, target: str) -> Definition:
    """Return the one definition that `target` refers to. EditRefused, with all candidates, if there
    is none or several.
    """
    candidates = find_all(source, target)
    if len(candidates) == 1:
        return candidates[0]
    raise EditRefused("ambiguous", ambiguous(source.path, target, candidates))


def ambiguous(path: str, target: str, candidates: Sequence[Definition]) -> str:
    """Return a message that lists the candidates for `target` and how to name each."""
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
