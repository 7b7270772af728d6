"""Which definition of a file each definition of a reply takes the place of.

Overloads, and getters beside setters, share one dotted name: they are told apart by their headers. What stays unclear
is refused, so that the model is asked again. Pure functions. Not here: the edits themselves (`definitions.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.symbols import CALLABLE
from codeagent_lsp.tools.code.extent import extent_of, statement_of
from codeagent_lsp.tools.code.source import Definition, SourceFile
from codeagent_lsp.tools.code.splices import has_body

if TYPE_CHECKING:
    from tree_sitter import Node

# `def f(self`, `async def f[T](cls`, or a decorator that only methods have.
_PYTHON_METHOD = re.compile(
    r"^(?:async )?def \w+(?:\[[^\]]*\])?\(\s*(?:self|cls)\b|^@(?:static|class)method\b", re.MULTILINE
)
# `fn f(&self`, `fn f<'a>(&'a mut self`, `fn f(mut self`.
_RUST_METHOD = re.compile(r"fn \w+(?:<[^(]*>)?\(\s*(?:&\s*)?(?:'\w+ )?(?:mut )?self\b")
TYPES = frozenset(("class", "struct", "interface", "enum", "module"))
VALUES = frozenset(("variable", "constant"))
_ONLY_METHODS = ("java", "csharp")  # a function at their top level was taken out of its class
_WITH_ACCESSORS = ("python", "javascript", "typescript", "tsx")
_EACH_HOLDS = ("go", "rust", "c", "cpp", "java", "csharp")
_ONE_BODY = ("typescript", "tsx")  # among overloads only the last one has a body
_PYTHON_ROLE = re.compile(r"@[\w.]+\.(?:setter|getter|deleter|register\b[^\n]*)")
_ACCESSOR = re.compile(r"(?:static\s+)?(get|set)\s+[\w#$\[]")
_ASSIGNED = re.compile(r"#?[\w$]+\s*=[^=>]")  # a field may become one that holds a function
# Blanks and a trailing comma: formatters put them in and take them out.
_SPACE = re.compile(r"\s+|,(?=\s*[)\]>])")
# C nests declarators: a pointer to a function that returns an array.
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Given:
    """A definition that a reply gives: its dotted name, its code, and the name of the type around it ('' if the reply
    has none); `indented` says that the reply had it below something.
    """

    name: str
    code: str
    parent: str
    reply: SourceFile
    definition: Definition
    indented: bool = False


@dataclass(frozen=True, slots=True)
class _Header:
    """What tells definitions of one name apart, without blanks: what stands above them, all up to the body, the
    parameters. `role` keeps those apart that never replace each other, such as a setter and a getter.
    """

    attributes: str
    whole: str
    parameters: str
    role: str


def placed(source: SourceFile, given: Sequence[Given], preferred: Sequence[str]) -> list[tuple[str, Given]]:
    """Return what to write, in the reply's order: each definition with the address (see `address`) of the one that it
    replaces, '' for a new one. EditRefused, in English for the model, if it is not clear which definition is meant.
    """
    names = [_resolve(source, each, preferred) for each in given]
    paired: list[tuple[str, Given]] = []
    for name in dict.fromkeys(names):
        group = [each for each, own in zip(given, names, strict=True) if own == name]
        paired += _pair(source, name, group) if name else [("", each) for each in group]
    # In the order of the reply, in which new ones stand beside their neighbours.
    return sorted(paired, key=lambda pair: pair[1].definition.node.start_byte)


def is_method(language: str, code: str) -> bool:
    """Return whether the code of a function shows on its own that it is a method, such as by a `self` parameter; always
    True for Java and C#.
    """
    if language == "rust":
        return bool(_RUST_METHOD.search(code.partition("{")[0]))
    return language in _ONLY_METHODS or (language == "python" and bool(_PYTHON_METHOD.search(code)))


def address(source: SourceFile, definition: Definition) -> str:
    """Return the name that means this definition alone: its dotted name, followed by `#` and its number among those
    that share it, counted from 1, such as `#2`.
    """
    alike = [each for each in source.definitions if each.qualified == definition.qualified]
    return f"{definition.qualified}#{alike.index(definition) + 1}" if len(alike) > 1 else definition.qualified


def _resolve(source: SourceFile, given: Given, preferred: Sequence[str]) -> str:
    """Return the dotted name that the file has for a definition of the reply; '' for a new one."""
    found = _of_its_kind(source, given)
    method = given.indented or is_method(source.language, given.code)
    if not given.parent and not (found and _fits(source, given, found)):
        found = _of_bare_name(source, given, preferred, method=method) or found
    names = list(dict.fromkeys(each.qualified for each in found))
    # What was shown as a piece is what the model was asked about.
    wanted = [name for name in names if name in preferred]
    names = wanted if len(wanted) == 1 else names
    if len(names) > 1:
        listed = ", ".join(names[:5])
        raise EditRefused("ambiguous", f"{given.name} may be any of {listed}: give it inside its class.")
    return names[0] if names else ""


def _of_its_kind(source: SourceFile, given: Given) -> list[Definition]:
    """Return the definitions of the file with the dotted name of a given one. A constructor alone has the name of its
    type, and takes no type's place: EditRefused where that has none.
    """
    found = [each for each in source.definitions if each.qualified == given.name]
    if given.definition.symbol.kind not in CALLABLE or not found or any(each.symbol.kind in CALLABLE for each in found):
        return found
    inside = f"{given.name}.{given.definition.symbol.name}"
    constructors = [each for each in source.definitions if each.qualified == inside]
    if constructors or all(each.symbol.kind not in TYPES for each in found):
        return constructors or found
    raise EditRefused(
        "ambiguous",
        f"{given.name} is a type in {source.path}, and the code for it is a function. Give the type whole, with the "
        "function inside it.",
    )


def _fits(source: SourceFile, given: Given, found: Sequence[Definition]) -> bool:
    """Return whether definitions at the top level may be meant: a Python method is no function outside, nor is a field
    that is given with its indentation.
    """
    # What is valid only inside of a type or an object was read as one of its members.
    alone = bool(given.definition.symbol.parent) and "method" in given.definition.node.type
    if given.indented and (alone or given.definition.symbol.kind in VALUES):
        return not any(each.symbol.parent and each.symbol.name == given.name for each in source.definitions)
    if source.language != "python" or not is_method("python", given.code):
        return True
    return any(is_method("python", source.slice(each.outer.start_byte, each.outer.end_byte)) for each in found)


def _of_bare_name(source: SourceFile, given: Given, preferred: Sequence[str], *, method: bool) -> list[Definition]:
    """Return the definitions inside others that a name without its class or function may mean: where the file has none
    of that name outside, a copy of the code outside would be dead.
    """
    kinds = {each.qualified: each.symbol.kind for each in source.definitions}
    alone = all(each.symbol.parent or each.symbol.name != given.name for each in source.definitions)
    parameters = _header(given.reply, given.definition).parameters
    found = []
    for each in source.definitions:
        if each.symbol.name != given.name or not each.symbol.parent:
            continue
        around, chosen = kinds.get(each.symbol.parent, ""), each.qualified in preferred
        # A property is known by its name alone, and only where it is taken out of its type.
        if each.symbol.kind in VALUES:
            if given.definition.symbol.kind not in VALUES and not _ASSIGNED.match(given.code):
                continue
            in_space = around == "module" and source.language != "rust"
            if not given.indented and alone and around not in CALLABLE and not in_space:
                whole = each.symbol.parent
                raise EditRefused("ambiguous", f"{given.name} is inside {whole}: give {whole} whole, with it inside.")
            if given.indented or (alone and in_space):
                found.append(each)
            continue
        is_called = each.symbol.kind in CALLABLE
        same = alone and is_called and _header(source, each).parameters == parameters
        local = around in ("function", "method")  # it says nothing about a function of the same name outside
        if same and local:
            found.append(each)
        elif (local and (chosen or alone)) or (alone and not is_called and not chosen and around != "module"):
            whole = each.symbol.parent
            raise EditRefused("ambiguous", f"{given.name} is inside {whole}: give {whole} whole, with it inside.")
        elif not local and (method or chosen or same or (around == "module" and source.language != "rust")):
            found.append(each)
    return found


def _pair(source: SourceFile, name: str, group: Sequence[Given]) -> list[tuple[str, Given]]:
    """Return the definitions of the reply that mean `name`, each with the address of the one it replaces."""
    own = [(each, _header(source, each).role) for each in source.definitions if each.qualified == name]
    known, roles = [each for each, _ in own], [role for _, role in own]
    asked = [(each, _role_meant(source, each, own)) for each in group]
    new = [each for each, role in asked if _is_other_role(source, role, roles)]
    # A method of a trait that the file implements nowhere: which `impl` it belongs to is not said.
    if source.language == "rust" and new:
        raise _unclear(source, known)
    pairs: list[tuple[str, Given]] = [("", replace(each, parent=each.parent or known[0].symbol.parent)) for each in new]
    old = [(each, role) for each, role in asked if each not in new]
    for role in dict.fromkeys(role for _, role in old):
        alike = [each for each, other in own if other == role] or known
        pairs += _join(_of_one_role(source, [each for each, other in old if other == role], alike))
    return pairs


def _of_one_role(source: SourceFile, group: Sequence[Given], own: Sequence[Definition]) -> Iterator[tuple[str, Given]]:
    """Yield the pairs among definitions of one name and role; '' for an overload that the file does not have."""
    targets = [_alike(source, each, own) for each in group]
    free = [each for each in own if each not in targets]
    # As many as the file has: those whose headers were changed take the places that are left, in order.
    if len(group) == len(own):
        rest = iter(free)
        targets = [target or next(rest, None) for target in targets]
    taken = [target for target in targets if target]
    for target, each in zip(targets, group, strict=True):
        _refuse_second(source, each, target, own)
    # Two for one place, or fewer places found than code given while others are free: it could be any of them.
    if len(set(map(id, taken))) < len(taken) or (len(taken) < len(group) and (free or not taken)):
        raise _unclear(source, own)
    for target, each in zip(targets, group, strict=True):
        yield address(source, target) if target else "", each


def _join(pairs: Iterable[tuple[str, Given]]) -> list[tuple[str, Given]]:
    """Return the pairs with an address, with the code of those without one beside it: overloads stay together."""
    done: list[tuple[str, Given]] = []
    waiting: list[str] = []
    for target, each in pairs:
        if target:
            done.append((target, replace(each, code="\n\n".join([*waiting, each.code]))))
            waiting = []
        else:
            waiting.append(each.code)
    if waiting:
        # New overloads behind the last known one stay behind it.
        target, last = done[-1]
        done[-1] = target, replace(last, code="\n\n".join([last.code, *waiting]))
    return done


def _unclear(source: SourceFile, own: Sequence[Definition]) -> EditRefused:
    lines = "\n".join(f"  line {each.symbol.line_start}: {each.symbol.signature}" for each in own[:5])
    times = "once" if len(own) == 1 else f"{len(own)} times"
    return EditRefused(
        "ambiguous",
        f"{source.path} defines {own[0].qualified} {times}, and it is not clear which of them the code replaces. "
        f"Give each one once, with the decorators and parameters that it has in the file:\n{lines}",
    )


def _role_meant(source: SourceFile, given: Given, own: Sequence[tuple[Definition, str]]) -> str:
    """Return the role of a definition of the reply. One that is given without the decorator or the word that tells a
    setter from a getter is known by the number of its parameters: EditRefused where that does not tell.
    """
    header = _header(given.reply, given.definition)
    roles = {role for _, role in own}
    if header.role or header.attributes or len(roles) == 1 or source.language not in _WITH_ACCESSORS:
        return header.role
    number = _number(given.definition)
    fitting = [role for each, role in own if _number(each) == number]
    if "" in fitting:
        return ""
    # The word `set` is no decorator that stays: without it the code is a method.
    if len(fitting) != 1 or source.language != "python":
        raise _unclear(source, [each for each, _ in own])
    return fitting[0]


def _number(definition: Definition) -> int:
    found = definition.node.child_by_field_name("parameters")
    return found.named_child_count if found is not None else 0


def _refuse_second(source: SourceFile, given: Given, target: Definition | None, own: Sequence[Definition]) -> None:
    """Refuse code that would define what the file only declares in that place, and defines in another one."""
    if source.language not in ("c", "cpp") or target is None or has_body(target) or not has_body(given.definition):
        return
    parameters = _header(source, target).parameters
    there = [each for each in own if has_body(each) and _header(source, each).parameters == parameters]
    if there:
        [whole, *_] = there
        raise EditRefused(
            "ambiguous",
            f"{whole.qualified} is only declared in line {target.symbol.line_start} of {source.path}, and defined in "
            f"line {whole.symbol.line_start}: {whole.symbol.signature}. Give it as it is defined, outside of its type.",
        )


def _is_other_role(source: SourceFile, role: str, roles: Sequence[str]) -> bool:
    """Return whether the file has only the counterparts of an accessor, so that it is new."""
    return bool(role) and role not in roles and (source.language in ("python", "rust") or all(roles))


def _alike(source: SourceFile, given: Given, own: Sequence[Definition]) -> Definition | None:
    """Return the definition whose header is that of the given one; None where none or several have it."""
    header = _header(given.reply, given.definition)
    headers = [(each, _header(source, each)) for each in own]
    same = [each for each, other in headers if other == header]
    # Looser step by step: the same but for the result's type, then but for decorators.
    same = same or [
        each
        for each, other in headers
        if (other.attributes, other.parameters) == (header.attributes, header.parameters)
    ]
    if len(same) > 1 and all(_block(each) == _block(same[0]) for each in same):
        same = [each for each in same if has_body(each)] or same
        # Defined again in the same block: the last one holds, or, as with `init` in Go, each of them.
        if len(same) == 1 or source.language not in _EACH_HOLDS:
            return same[-1]
    same = same or [each for each, other in headers if other.parameters == header.parameters]
    if len(same) != 1 and (same or source.language in _ONE_BODY) and has_body(given.definition):
        same = [each for each in same or [other for other, _ in headers] if has_body(each)]
    return same[0] if len(same) == 1 else None


def _block(definition: Definition) -> Node | None:
    return statement_of(definition.outer).parent


def _header(source: SourceFile, definition: Definition) -> _Header:
    extent = extent_of(source, definition)
    starts = [*(part.start for part in extent.parts), extent.core]
    above = [
        source.slice(part.start, end)
        for part, end in zip(extent.parts, starts[1:], strict=True)
        if part.kind == "attribute"
    ]
    body = definition.body
    whole = source.slice(extent.core, body.start_byte if body is not None else extent.end)
    return _Header(
        _SPACE.sub("", "".join(above)),
        _SPACE.sub("", whole).rstrip(":{;"),
        _SPACE.sub("", _parameters(source, definition.node)),
        _role(source, definition, "".join(above), whole),
    )


def _parameters(source: SourceFile, node: Node | None) -> str:
    for _ in range(_DEPTH):
        if node is None:
            break
        found = node.child_by_field_name("parameters")
        if found is not None:
            return source.slice(found.start_byte, found.end_byte)
        node = node.child_by_field_name("declarator") or node.child_by_field_name("value")
    return ""


def _role(source: SourceFile, definition: Definition, above: str, whole: str) -> str:
    """Return what an accessor does, or the trait that a Rust method implements; '' for other definitions."""
    if source.language == "python":
        return " ".join(_PYTHON_ROLE.findall(above))
    if source.language in ("javascript", *_ONE_BODY):
        found = _ACCESSOR.match(whole)
        return found[1] if found else ""
    around = definition.outer.parent
    around = around.parent if around is not None and around.type == "declaration_list" else None
    trait = around.child_by_field_name("trait") if around is not None and around.type == "impl_item" else None
    return source.slice(trait.start_byte, trait.end_byte) if trait is not None else ""
