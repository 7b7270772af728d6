"""Parameters of functions as values, what became of each in a changed signature, and the value of a new one. Pure.

Not here: reading them from a syntax tree (`declarations.py`), what calls need (`calls.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

ParameterKind = Literal["positional", "either", "keyword", "rest", "rest_keywords"]
"""Given by place alone, by place or name, by name alone; `*args` (`...args`), `**kwargs`."""

Family = Literal["python", "script", "go"]
"""The rules of calls: of Python; of JavaScript and TypeScript; of Go."""

FAMILIES: Mapping[str, Family] = {
    "python": "python",
    "typescript": "script",
    "tsx": "script",
    "javascript": "script",
    "go": "go",
}
"""The rules by the name of the grammar."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as it is written. `optional`: a call may leave it out; `annotation` and `default` may be ''."""

    name: str
    kind: ParameterKind = "either"
    optional: bool = False
    annotation: str = ""
    default: str = ""

    @property
    def is_needed(self) -> bool:
        """Whether every call has to give it."""
        return not self.optional and self.kind not in ("rest", "rest_keywords")


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function, without the object of a method."""

    parameters: tuple[Parameter, ...] = ()

    def get(self, name: str) -> Parameter | None:
        """Return a parameter by its name."""
        return next((each for each in self.parameters if each.name == name), None)

    @property
    def by_place(self) -> tuple[Parameter, ...]:
        """The parameters that can be given by their place, in order, without the rest."""
        return tuple(each for each in self.parameters if each.kind in ("positional", "either"))

    def has(self, kind: ParameterKind) -> bool:
        """Return whether there is a parameter of a kind."""
        return any(each.kind == kind for each in self.parameters)


def renamed_parameters(old: Signature, new: Signature, bodies: tuple[str, str]) -> Mapping[str, str] | None:
    """Return the new names of parameters that have another one, by their old names; None where it is not plain which is
    which. `bodies` are the texts of the function before and after.
    """
    gone = [each for each in old.parameters if new.get(each.name) is None]
    come = [each for each in new.parameters if old.get(each.name) is None]
    found: dict[str, str] = {}
    for one in gone:
        alike = [other for other in come if other.kind == one.kind and _stands_alike(one, other, old, new)]
        alike = [other for other in alike if _is_used_alike(one, other, bodies)]
        if len(alike) == 1:
            found[one.name] = alike[0].name
    return found if len(set(found.values())) == len(found) else None


def _stands_alike(one: Parameter, other: Parameter, old: Signature, new: Signature) -> bool:
    """Return whether two parameters are of the same type and follow the same parameter, or precede it."""
    if " ".join(one.annotation.split()) != " ".join(other.annotation.split()):
        return False
    if len(old.parameters) == len(new.parameters):
        return old.parameters.index(one) == new.parameters.index(other)
    return any(_next(one.name, old, step) == _next(other.name, new, step) != "" for step in (1, -1))


def _next(name: str, signature: Signature, step: int) -> str:
    names = ["", *(each.name for each in signature.parameters), ""]
    return names[names.index(name) + step]


def _is_used_alike(one: Parameter, other: Parameter, bodies: tuple[str, str]) -> bool:
    """Return whether the new body uses the one name as the old body used the other one."""
    before, after = bodies
    if not before.strip() or before == after:
        return bool(one.annotation)
    old_name, new_name = (re.compile(rf"\b{re.escape(each.name)}\b") for each in (one, other))
    as_renamed = {" ".join(old_name.sub(other.name, line).split()) for line in before.splitlines()}
    uses = [" ".join(line.split()) for line in after.splitlines() if new_name.search(line)]
    same = sum(line in as_renamed for line in uses)
    return bool(uses) and 2 * same >= len(uses) and not old_name.search(after)


_NONE = re.compile(r"\bOptional\s*\[|\|\s*None\b|\bNone\s*\||^\s*None\s*$")
_UNDEFINED = re.compile(r"\|\s*undefined\b|\bundefined\s*\|")
_NULL = re.compile(r"\|\s*null\b|\bnull\s*\|")


def empty_value(parameter: Parameter, family: Family) -> str:
    """Return the value that says nothing, where the type of a parameter has one; '' where it has none."""
    annotation = parameter.annotation
    if family == "python":
        # `list[int | None]` is no optional list.
        outside = annotation if annotation.lstrip().startswith(("Optional", "typing.Optional")) else _top(annotation)
        return "None" if _NONE.search(outside) else ""
    if family == "script":
        outside = _top(annotation)
        return "undefined" if _UNDEFINED.search(outside) else "null" if _NULL.search(outside) else ""
    return ""


def _top(annotation: str) -> str:
    """Return a type without what is in brackets."""
    depth, kept = 0, []
    for char in annotation:
        depth -= char in "])}>"
        if depth <= 0:
            kept.append(char)
        depth += char in "[({<"
    return "".join(kept)


def shown(name: str, signature: Signature) -> str:
    """Return a signature in a line, without types."""
    marks = {"rest": "*", "rest_keywords": "**"}
    names: Sequence[str] = [marks.get(each.kind, "") + each.name for each in signature.parameters]
    return f"{name}({', '.join(names)})"
