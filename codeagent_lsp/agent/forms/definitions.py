"""The answer form `function`: puts whole definitions in the place of those with the same name and scope. Pure
functions.

Definitions that the file does not have are added beside their neighbours; imports that it lacks are added to its
imports. Everything else of the file stays byte for byte. Not here: finding the code in a reply (`answer.py`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from codeagent_lsp.errors import EditRefused, ToolFailed
from codeagent_lsp.tools.code.ast_edit import AstEdit, edited
from codeagent_lsp.tools.code.source import Definition, SourceFile, required, source_of
from codeagent_lsp.tools.code.splices import problem
from codeagent_lsp.workspace.edits import merge

_METHOD = re.compile(r"(?:@[^\n]*\n)*(?:async )?def \w+\((?:self|cls)\b")
_TYPES = frozenset(("class", "struct", "interface", "enum", "module"))
_IMPORTS = frozenset(
    ("import_statement", "import_from_statement", "future_import_statement", "import_declaration", "use_declaration",
     "preproc_include", "using_directive", "namespace_use_declaration")
)  # fmt: skip
_LEADING = frozenset(("comment", "line_comment", "block_comment", "hash_bang_line", "package_clause", "php_tag"))


@dataclass(frozen=True, slots=True)
class _Given:
    """A definition in the reply: its dotted name, its code, and the type around it where the reply gives that."""

    name: str
    code: str
    parent: str = ""


def with_definitions(path: str, text: str, code: str, preferred: Sequence[str] = ()) -> str:
    """Return the file's `text` with the definitions of `code` put in place. The ending of `path` gives the language.

    `preferred` are dotted names that win where a bare name fits several definitions. EditRefused, in English for the
    model, when the code has a syntax error, defines nothing, or a name is ambiguous.
    """
    source = _parsed(path, text)
    reply = _parsed(path, textwrap.dedent(code))
    if reply.faults and not source.faults:
        line = reply.line(reply.faults[0].start_byte)
        raise EditRefused("not_found", f"The code for {path} has a syntax error in its line {line}.")
    given = _given(reply, source)
    if not given:
        raise EditRefused("not_found", f"The code for {path} has no whole function, method or class in it.")
    done = _replaced(path, source, given, preferred)
    return _with_imports(path, done, reply)


def lost_definitions(path: str, before: str, after: str) -> tuple[str, ...]:
    """Return dotted names of functions and types that `after` lacks and `before` defines, less as many as are new."""
    old, new = _names(path, before), _names(path, after)
    lost = tuple(name for name in old if name not in new)
    return lost[: max(0, len(lost) - len([name for name in new if name not in old]))] if lost else ()


_WITH_MACROS = ("c", "cpp", "csharp", "objc")


def syntax_problem(path: str, before: str, after: str) -> str:
    """Return what is wrong with the syntax of `after` that was not wrong with `before`, in English; '' for nothing.

    A file that uses macros as syntax is not understood before either: it is not judged.
    """
    source = source_of(path, before) or source_of(path, "\n")
    if source is not None and source.faults and source.language in _WITH_MACROS:
        return ""
    return (problem(source, after) or "") if source is not None and after.strip() else ""


def _parsed(path: str, text: str) -> SourceFile:
    try:
        return required(path, text)
    except ToolFailed as error:
        raise EditRefused("not_found", f"{path} is no code that can be changed by function: {error}") from error


def _names(path: str, text: str) -> tuple[str, ...]:
    source = source_of(path, text)
    if source is None:
        return ()
    kinds = (*_TYPES, "function", "method")
    return tuple(dict.fromkeys(each.qualified for each in source.definitions if each.symbol.kind in kinds))


def _given(reply: SourceFile, source: SourceFile) -> list[_Given]:
    """Return the definitions to put in place: the outermost ones, or only the members of a type given in part."""
    known = {each.qualified for each in source.definitions}
    found: list[_Given] = []
    taken = 0
    for each in reply.definitions:
        if each.outer.start_byte < taken:
            continue
        taken = each.outer.end_byte
        members = [other for other in reply.definitions if other.symbol.parent == each.qualified]
        if each.symbol.kind in _TYPES and each.qualified in known and _is_part(each, members, source):
            found += [_Given(other.qualified, _code(reply, other), each.qualified) for other in members]
        elif each.symbol.kind != "variable" or each.qualified in known:  # a new variable is an example of use
            found.append(_Given(each.qualified, _code(reply, each), each.symbol.parent))
    return found


def _is_part(given: Definition, members: Sequence[Definition], source: SourceFile) -> bool:
    """Return whether a type of the reply lacks members that the file's has, so that it cannot replace all of it."""
    own = [each for each in source.definitions if each.symbol.parent == given.qualified]
    names = {each.symbol.name for each in members}
    return bool(members) and any(each.symbol.name not in names for each in own)


def _code(reply: SourceFile, definition: Definition) -> str:
    start = reply.line_start(definition.outer.start_byte)
    indent = reply.slice(start, definition.outer.start_byte)
    start = start if not indent.strip() else definition.outer.start_byte
    return textwrap.dedent(reply.slice(start, reply.trimmed(definition.outer.end_byte)))


def _replaced(path: str, source: SourceFile, given: Sequence[_Given], preferred: Sequence[str]) -> str:
    edits: list[AstEdit] = []
    after: dict[str, list[str]] = {}
    anchor = ""
    for each in given:
        target = _target(source, each, preferred)
        if target:
            edits.append(AstEdit(target, "replace", each.code))
            anchor = target
        else:
            after.setdefault(each.parent or _owner(source, each, preferred) or anchor, []).append(each.code)
    text = source.text
    if edits:
        try:
            text = edited(path, text, edits).text
        except EditRefused as refusal:
            if refusal.reason != "already_applied" or not after:
                raise
    for beside, codes in after.items():
        text = _added(path, text, beside, "\n\n".join(code.strip("\n") for code in codes))
    return text


def _target(source: SourceFile, given: _Given, preferred: Sequence[str]) -> str:
    """Return the address of the definition that this one replaces; '' when the file has none."""
    exact = [each for each in source.definitions if each.qualified == given.name]
    bare = [each for each in source.definitions if each.symbol.name == given.name] if "." not in given.name else []
    found = exact or bare
    if len(found) > 1:
        wanted = [each for each in found if each.qualified in preferred]
        found = wanted if len(wanted) == 1 else found
    if len(found) > 1 and len({each.qualified for each in found}) > 1:
        names = ", ".join(each.qualified for each in found[:5])
        raise EditRefused("ambiguous", f"{given.name} may be any of {names}: give it inside its class.")
    if len(found) > 1:  # defined twice: the last one holds
        return f"{found[-1].qualified}#{len(found)}"
    return found[0].qualified if found else ""


def _owner(source: SourceFile, given: _Given, preferred: Sequence[str]) -> str:
    """Return the class of a new Python method that was given without its class; '' for none, or where that is
    ambiguous.
    """
    if source.language != "python" or not _METHOD.match(given.code):
        return ""
    classes = [each.qualified for each in source.definitions if each.symbol.kind == "class"]
    shown = dict.fromkeys(name.rpartition(".")[0] for name in preferred)
    near = [name for name in shown if name in classes] or classes
    return near[0] if len(near) == 1 else ""


def _added(path: str, text: str, beside: str, code: str) -> str:
    """Return `text` with new code after the definition `beside`, inside the type `beside`, or at the end."""
    source = _parsed(path, text)
    inside = [each for each in source.definitions if each.symbol.parent == beside and beside]
    is_type = any(each.qualified == beside and each.symbol.kind in _TYPES for each in source.definitions)
    if is_type and inside:
        return edited(path, text, [AstEdit(_last(inside).qualified, "insert_after", code)]).text
    top = [each for each in source.definitions if not each.symbol.parent and each.symbol.kind not in ("variable",)]
    if beside and any(each.qualified == beside for each in source.definitions):
        return edited(path, text, [AstEdit(beside, "insert_after", code)]).text
    if top:
        return edited(path, text, [AstEdit(_last(top).qualified, "insert_after", code)]).text
    return merge.with_line_ends_of(text, f"{text.rstrip()}\n\n\n{code}\n" if text.strip() else f"{code}\n")


def _last(definitions: Sequence[Definition]) -> Definition:
    return max(definitions, key=lambda each: each.outer.end_byte)


def _with_imports(path: str, text: str, reply: SourceFile) -> str:
    """Return `text` with the import statements of the reply that it does not have yet."""
    source = _parsed(path, text)
    known = {" ".join(statement.split()) for statement in _imports(source)}
    new = [statement for statement in _imports(reply) if " ".join(statement.split()) not in known]
    if not new:
        return text
    place = _import_place(source)
    lines = "".join(f"{statement.rstrip()}\n" for statement in new)
    before, after = source.slice(0, place), source.slice(place, len(source.data))
    if before and not before.endswith(("\n", "\r")):
        before += "\n"
    gap = "" if _imports(source) or not after.strip() or after.startswith(("\n", "\r")) else "\n"
    done = merge.with_line_ends_of(text, f"{before}{lines}{gap}{after}")
    return text if syntax_problem(path, text, done) else done


def _imports(source: SourceFile) -> list[str]:
    """Return the import statements at the top level of a text, as they are written."""
    nodes = (child for child in source.root.named_children if child.type in _IMPORTS)
    return [source.slice(node.start_byte, source.trimmed(node.end_byte)) for node in nodes]


def _import_place(source: SourceFile) -> int:
    """Return the byte offset for the next import: after the last one, else after the leading comments and the
    docstring.
    """
    place = 0
    leading = True
    for child in source.root.children:
        if child.type in _IMPORTS:
            place = source.line_after(source.trimmed(child.end_byte) - 1)
            leading = False
        elif leading and (
            child.type in _LEADING or _is_docstring(child.type, source.slice(child.start_byte, child.end_byte))
        ):
            place = source.line_after(source.trimmed(child.end_byte) - 1)
        elif leading:
            leading = False
    return place


def _is_docstring(kind: str, text: str) -> bool:
    return kind == "expression_statement" and text.lstrip("rRuU").startswith(('"', "'"))
