"""Parameters of functions as values, what became of each in a changed signature, and the arguments of a call after what
it calls has changed so. Pure.

Not here: reading parameters from a syntax tree (`declarations.py`), which calls (`sites.py`), whether the result is
right (`finishing.py` asks the language server).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
Spread = Literal["", "places", "names"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as it is written. `kind` says how it is given: `positional` (by place alone), `either`, `keyword` (by
    name alone), `rest` (`*args`, `...args`) or `rest_keywords` (`**kwargs`). `optional` says that a call may leave it
    out; `annotation` and `default` are '' if there is none.
    """

    name: str
    kind: ParameterKind = "either"
    optional: bool = False
    annotation: str = ""
    default: str = ""

    @property
    def is_needed(self) -> bool:
        """Whether every call has to give a value for it: it has no default and is none for the rest."""
        return not self.optional and self.kind not in ("rest", "rest_keywords")


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function, in order, without the object of a method (`self`)."""

    parameters: tuple[Parameter, ...] = ()

    def get(self, name: str) -> Parameter | None:
        """Return a parameter by its name, without stars; None if there is none."""
        return next((each for each in self.parameters if each.name == name), None)

    @property
    def by_place(self) -> tuple[Parameter, ...]:
        """The parameters that can be given by their place, in order, without the rest."""
        return tuple(each for each in self.parameters if each.kind in ("positional", "either"))

    def has(self, kind: ParameterKind) -> bool:
        """Return whether there is a parameter of a kind, such as `rest`."""
        return any(each.kind == kind for each in self.parameters)


def renamed_parameters(old: Signature, new: Signature, bodies: tuple[str, str]) -> Mapping[str, str] | None:
    """Return the new names of renamed parameters by their old names. A parameter is left out unless exactly one new one
    takes its place; None if two would get the same new name. `bodies` are the texts of the function before and after.
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
    """Return the value for nothing that the type of a parameter allows: `None` in Python, `undefined` or `null` in
    JavaScript and TypeScript (`script`); '' if it allows none, and always for Go.
    """
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


def render_signature(name: str, signature: Signature) -> str:
    """Return a function's name and parameter names on one line, such as `f(a, *rest)`, without types and defaults."""
    marks = {"rest": "*", "rest_keywords": "**"}
    names: Sequence[str] = [marks.get(each.kind, "") + each.name for each in signature.parameters]
    return f"{name}({', '.join(names)})"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as it is written: its value, its name ('' for one by place), whether it spreads a list (`places`) or
    a mapping (`names`), '' for neither, and whether computing it may have side effects.
    """

    value: str
    name: str = ""
    spread: Spread = ""
    effects: bool = False


@dataclass(frozen=True, slots=True)
class Placed:
    """An argument of the new call: the old one with this index (0-based; None for a new one with `value`), under this
    name ('' for one by place).
    """

    number: int | None
    name: str = ""
    value: str = ""


@dataclass(frozen=True)
class SignatureChange:
    """The signatures of one function before and after, and the new names of its parameters by the old ones."""

    old: Signature
    new: Signature
    renamed: Mapping[str, str] = field(default_factory=dict)

    def now(self, name: str) -> Parameter | None:
        """Return the new form of a parameter, renamed or not, by its old name; None if it was removed."""
        return self.new.get(self.renamed.get(name, name))

    @property
    def retyped(self) -> bool:
        """Whether a parameter that was kept has another annotation; blanks do not count."""
        kept = ((each, self.now(each.name)) for each in self.old.parameters)
        return any(now is not None and was.annotation.split() != now.annotation.split() for was, now in kept)

    @property
    def added(self) -> tuple[Parameter, ...]:
        """The parameters that are new, not renamed."""
        known = {self.renamed.get(each.name, each.name) for each in self.old.parameters}
        return tuple(each for each in self.new.parameters if each.name not in known)


def repair_arguments(
    arguments: Sequence[Argument], change: SignatureChange, family: Family, in_scope: Callable[[str], bool]
) -> tuple[Placed, ...] | None:
    """Return the arguments of a call, in order, for the new signature; None if they are not clear, or if an argument
    with side effects would be left out. `in_scope` returns whether a name is that of a variable at the call.
    """
    bound = _bound(arguments, change)
    if bound is None:
        return None
    kept: dict[str, int] = {}
    for name, number in bound.by_parameter.items():
        now = change.now(name)
        if now is not None and now.kind not in ("rest", "rest_keywords"):
            kept[now.name] = number
        # To leave it out would leave out what it does; and another parameter may be there for it now.
        elif arguments[number].effects or change.added or change.retyped:
            return None
    unknown = [name for name in bound.unknown_names if change.new.get(name) is None]
    if unknown and not change.new.has("rest_keywords"):
        return None
    values: dict[str, str] = {}
    for each in change.added:
        if each.optional or each.kind in ("rest", "rest_keywords") or each.name in bound.unknown_names:
            continue
        # What is spread may have it, and nobody knows.
        value = each.name if in_scope(each.name) else empty_value(each, family)
        if not value or bound.spreads:
            return None
        values[each.name] = value
    given = _Given(kept, values, bound, family)
    if family == "python":
        placed = _PythonCall(arguments, change.new, given).placed()
    else:
        placed = _by_place(arguments, change.new, given)
    return None if placed is None or _is_reordered(arguments, placed) else placed


@dataclass(frozen=True)
class _Bound:
    """Which argument each old parameter has, by numbers; `rest` are those of `*args`, `others` those kept as they are
    (of `**kwargs`, or spread), `unknown_names` the names among these.
    """

    by_parameter: Mapping[str, int]
    rest: tuple[int, ...]
    others: tuple[int, ...]
    unknown_names: frozenset[str]
    spreads: bool


@dataclass(frozen=True)
class _Given:
    kept: Mapping[str, int]
    values: Mapping[str, str]
    bound: _Bound
    family: Family


def _bound(arguments: Sequence[Argument], change: SignatureChange) -> _Bound | None:
    places = change.old.by_place
    found: dict[str, int] = {}
    rest: list[int] = []
    others: list[int] = []
    unknown: set[str] = set()
    # How many places `*items` fills is known only when it runs.
    spreads_places = any(each.spread == "places" for each in arguments)
    if spreads_places and not _same_places(change):
        return None
    at = 0
    for number, each in enumerate(arguments):
        if each.spread:
            others.append(number)
        elif each.name:
            known = change.old.get(each.name)
            # The name of a parameter that is positional only is free for `**rest`.
            if known is None or known.kind == "positional":
                if not change.old.has("rest_keywords"):
                    return None
                others.append(number)
                unknown.add(each.name)
            elif each.name in found:
                return None  # given twice, by place and by name: it was no right call before
            else:
                found[each.name] = number
        elif any(before.spread == "places" for before in arguments[:number]):
            others.append(number)
        elif at < len(places):
            found[places[at].name] = number
            at += 1
        elif change.old.has("rest"):
            rest.append(number)
        # JavaScript lets a call have more than there are parameters.
        else:
            return None
    spreads = any(each.spread for each in arguments)
    if not spreads and any(each.name not in found for each in change.old.parameters if each.is_needed):
        return None  # it was no right call before
    return _Bound(found, tuple(rest), tuple(others), frozenset(unknown), spreads)


def _same_places(change: SignatureChange) -> bool:
    """Return whether nothing has changed in what is given by place."""
    before = [change.renamed.get(each.name, each.name) for each in change.old.by_place]
    return before == [each.name for each in change.new.by_place]


class _PythonCall:
    """The arguments of one call in Python for a new signature: first those by place, then those by name."""

    def __init__(self, arguments: Sequence[Argument], new: Signature, given: _Given) -> None:
        self._arguments, self._new, self._given = arguments, new, given
        self._spreads_places = any(arguments[number].spread == "places" for number in given.bound.others)
        self._has_names = any(each.name for each in arguments)
        self._needed_later = _needs_places(arguments, new, given)
        self._by_place: list[Placed] = []
        self._by_name: list[Placed] = []
        self._open_places = True  # behind an argument by name, none can be given by place

    def placed(self) -> tuple[Placed, ...] | None:
        """Return the arguments in their order; None where one cannot be given. Called once."""
        rest = self._given.bound.rest
        if not all(map(self._give, self._new.by_place)):
            return None
        if rest and not (self._open_places and self._new.has("rest")):
            return None
        self._by_place += [Placed(number) for number in rest]
        if not all(self._give_named(each) for each in self._new.parameters if each.kind == "keyword"):
            return None
        return (*self._by_place, *self._named())

    def _give(self, each: Parameter) -> bool:
        """Give a parameter that has a place, there or by its name; return whether that is possible."""
        number, value, bound = self._given.kept.get(each.name), self._given.values.get(each.name), self._given.bound
        only_by_place = each.kind == "positional"
        if number is not None:
            fits = only_by_place or not self._arguments[number].name
            # Not by name: it has none to callers, or arguments of `*rest` come behind it.
            must = only_by_place or (bool(bound.rest) and not self._arguments[number].name)
        elif value is not None:
            fits = only_by_place or each.name in self._needed_later or not self._has_names
            must = only_by_place
        else:
            return self._leave_out(each)
        written = "" if number is not None else value or ""
        if self._open_places and fits:
            self._by_place.append(Placed(number, "", written))
        elif must:
            return False
        else:
            self._open_places = False
            self._by_name.append(Placed(number, each.name, written))
        return True

    def _leave_out(self, each: Parameter) -> bool:
        """Leave out a parameter, or what is spread gives it; return whether that is possible."""
        if each.optional or self._spreads_places or self._given.bound.spreads:
            # Only a spread list keeps the places behind it filled.
            self._open_places = self._open_places and self._spreads_places
            return True
        return each.name in self._given.bound.unknown_names

    def _give_named(self, each: Parameter) -> bool:
        """Give a parameter that has no place; return whether that is possible."""
        number = self._given.kept.get(each.name)
        if number is not None:
            self._by_name.append(Placed(number, each.name))
        elif each.name in self._given.values:
            self._by_name.append(Placed(None, each.name, self._given.values[each.name]))
        else:
            return each.optional or each.name in self._given.bound.unknown_names or self._given.bound.spreads
        return True

    def _named(self) -> Iterator[Placed]:
        """Yield the arguments by name and those that are spread: old ones in their order, new ones behind them, but
        before a dictionary that is spread.
        """
        spread = [Placed(number, self._arguments[number].name) for number in self._given.bound.others]
        kept = (each for each in self._by_name if each.number is not None)
        old = sorted((*kept, *spread), key=lambda each: each.number or 0)
        names = (at for at, each in enumerate(old) if self._arguments[each.number or 0].spread == "names")
        tail = next(names, len(old))
        yield from old[:tail]
        yield from (each for each in self._by_name if each.number is None)
        yield from old[tail:]


def _needs_places(arguments: Sequence[Argument], new: Signature, given: _Given) -> frozenset[str]:
    """Return the parameters behind which another one is given by its place."""
    places, needed, later = new.by_place, set[str](), bool(given.bound.rest)
    for each in reversed(places):
        if later:
            needed.add(each.name)
        number = given.kept.get(each.name)
        later = later or (number is not None and not arguments[number].name)
    return frozenset(needed)


def _by_place(arguments: Sequence[Argument], new: Signature, given: _Given) -> tuple[Placed, ...] | None:
    """Return the arguments where all are given by their places."""
    bound = given.bound
    if bound.spreads:
        return tuple(map(Placed, range(len(arguments)))) if not given.values else None
    placed: list[Placed] = []
    waiting = 0
    for each in new.by_place:
        number = given.kept.get(each.name)
        if number is None and each.name not in given.values:
            if not each.optional:
                return None
            waiting += 1
            continue
        if waiting and given.family != "script":
            return None
        placed += [Placed(None, "", "undefined")] * waiting
        waiting = 0
        placed.append(Placed(number) if number is not None else Placed(None, "", given.values[each.name]))
    if bound.rest:
        if not new.has("rest"):
            return None
        if waiting and given.family != "script":
            return None
        placed += [Placed(None, "", "undefined")] * waiting
        placed += [Placed(number) for number in bound.rest]
    return tuple(placed)


def _is_reordered(arguments: Sequence[Argument], placed: Sequence[Placed]) -> bool:
    """Return whether what has effects would be computed in another order."""
    order = [each.number for each in placed if each.number is not None and arguments[each.number].effects]
    return order != sorted(order)


def needs_nothing(arguments: Sequence[Argument], placed: Sequence[Placed]) -> bool:
    """Return whether a repaired call has the same arguments as before, in the same order and under the same names."""
    return [(each.number, each.name) for each in placed] == [(at, each.name) for at, each in enumerate(arguments)]
