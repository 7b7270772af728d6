"""The answer form `function`: puts whole definitions in the place of those with the same name and scope. Pure
functions.

Definitions that the file does not have are added beside their neighbours; imports that it lacks are added to its
imports. Everything else of the file stays byte for byte. Not here: finding the code in a reply (`answer.py`),
which definition is meant (`pairing.py`), the imports (`imports.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from codeagent_lsp.direct.balance import lost_partner
from codeagent_lsp.direct.entries import completed
from codeagent_lsp.direct.imports import with_imports
from codeagent_lsp.direct.members import WITH_MEMBERS, code_of, methods_alone, parsed, values_alone, with_initialiser
from codeagent_lsp.direct.pairing import TYPES, Given, address, is_method, placed
from codeagent_lsp.direct.restoring import docstring_splice
from codeagent_lsp.direct.type_parts import lacks_statements
from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.literal_signs import Signs
from codeagent_lsp.index.literals import language_of, loose_comments
from codeagent_lsp.index.symbols import CALLABLE
from codeagent_lsp.tools.code.ast_edit import AstEdit, edited
from codeagent_lsp.tools.code.extent import extent_of, indentation
from codeagent_lsp.tools.code.shift import dedented, unmoved
from codeagent_lsp.tools.code.source import Definition, SourceFile, find_one, source_of
from codeagent_lsp.tools.code.splices import applied, has_body, is_sound, problem
from codeagent_lsp.tools.diagnostics.syntax import data_errors
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.text.position import with_newlines

_WITH_TYPES = WITH_MEMBERS | {"c", "go", "ruby", "rust"}
_MARKED_DOC = re.compile(r"/\*\*|///|//!")


def with_definitions(path: str, text: str, code: str, preferred: Sequence[str] = ()) -> str:
    """Return the file's `text` with the definitions of `code` put in place, and the imports it lacks added. The suffix
    of `path` gives the language. `preferred` are dotted names that win if a bare name fits several definitions.

    EditRefused, in English for the model, if the code has a syntax error, defines nothing, or a name is ambiguous.
    """
    source = parsed(path, text)
    reply = completed(source, _reply(path, code, source))
    given = (methods_alone(path, reply, source) or values_alone(path, reply, source)) if reply.faults else []
    if not given and (done := with_initialiser(path, reply, source)):
        return done
    # A file with faults of its own uses something that the grammar does not know, and so may the reply.
    if reply.faults and not source.faults and not given:
        line = reply.line(reply.faults[0].start_byte)
        advice = " What stands in a type only, give with the whole type." if source.language in _WITH_TYPES else ""
        raise EditRefused("not_found", f"The code for {path} has a syntax error in its line {line}.{advice}")
    # Code that was copied with its indentation comes from inside of something.
    indent = code[: len(code) - len(code.lstrip())].rpartition("\n")[2]
    given = given or _find_given(reply, source, indented=bool(indent))
    # `f = () => {};` is also a statement outside of a class.
    given = given or [each for each in methods_alone(path, reply, source) if each.definition.symbol.kind in CALLABLE]
    given = given or values_alone(path, reply, source)
    if not given:
        raise EditRefused(
            "not_found",
            f"The code for {path} has no whole function, method or class in it. Give the whole function, method or "
            "class in which something changes.",
        )
    for each in given:
        body = each.definition.body
        # Python's grammar takes the head alone for a whole definition.
        if body is not None and not each.reply.slice(body.start_byte, body.end_byte).strip():
            raise EditRefused("not_found", f"{each.name} is cut behind its first line. Give the whole definition.")
    done = _replace(path, source, given, preferred)
    imported = with_imports(path, done, reply)
    # An import in a form that the grammar does not know: the change itself is worth more.
    return done if syntax_problem(path, done, imported) else imported


def lost_definitions(path: str, before: str, after: str) -> tuple[str, ...]:
    """Return the dotted names of functions and types that `before` defines and `after` lacks, without the last ones, as
    many as `after` has new names, since these may be renames.
    """
    old, new = _names(path, before), _names(path, after)
    lost = tuple((old - new).elements())
    return lost[: max(0, len(lost) - sum(name not in old for name in new.elements()))]


_WITH_MACROS = ("c", "cpp", "csharp", "objc")


def syntax_problem(path: str, before: str, after: str) -> str:
    """Return what is wrong with the syntax of `after` that was not wrong with `before`, in English; '' for nothing.

    A file with faults that uses macros as syntax is not judged, and without a grammar for its language only its
    comments and, in some, its brackets are. Data is what its program can read.
    """
    # One without an end goes on to that of the next, and the code between them is none any more: no parser complains.
    if loose_comments(path, after) > loose_comments(path, before):
        return "a comment has no beginning or no end"
    if (unread := data_errors(path, after)) is not None:
        return unread[0].message if unread and not data_errors(path, before) else ""
    if isinstance(language_of(path, before or after), Signs):
        return lost_partner(path, before, after)
    if is_sound(path, after):
        return ""
    source = source_of(path, before) or source_of(path, "\n")
    if source is not None and source.faults and source.language in _WITH_MACROS:
        return ""
    return (problem(source, after) or "") if source is not None and after.strip() else ""


def _reply(path: str, code: str, source: SourceFile) -> SourceFile:
    plain = dedented(unmoved(with_newlines(code, "\n"), source), source.parsed.grammar, source.text)
    # Without the tag all of it is text to the grammar; one behind a `?>` only ends the text within a function.
    if source.language == "php" and "<?" not in plain.partition("?>")[0]:
        plain = f"<?php\n{plain}"
    return parsed(path, plain)


def _names(path: str, text: str) -> Counter[str]:
    source = source_of(path, text)
    found = source.definitions if source is not None else ()
    kept = [each for each in found if each.symbol.kind in TYPES | CALLABLE]
    whole = [each for each in kept if has_body(each)]  # a prototype beside its function is none that can be lost
    return _count(whole) | Counter({each.qualified for each in kept})


def _find_given(reply: SourceFile, source: SourceFile, *, indented: bool) -> list[Given]:
    """Return the definitions to put in place: the outermost ones, or only the members of a type given in part."""
    known = {each.qualified for each in source.definitions}
    found: list[Given] = []
    taken = 0
    for each in reply.definitions:
        # Definitions come in order, inner ones after the outer one that has them.
        if each.outer.start_byte < taken:
            continue
        taken = each.outer.end_byte
        members = _members(reply, each.qualified)
        owner = _type_named(source, each.qualified) if each.symbol.kind in TYPES else ""
        if owner and (
            _is_part(members, _members(source, owner)) or lacks_statements(source, owner, reply, each.qualified)
        ):
            found += [_as_given(reply, other, owner) for other in members]
        elif each.symbol.kind != "variable" or each.qualified in known:  # a new variable is an example of use
            found.append(_as_given(reply, each, each.symbol.parent))
    return [replace(each, indented=True) for each in found] if indented else found


def _as_given(reply: SourceFile, definition: Definition, parent: str) -> Given:
    name = f"{parent}.{definition.symbol.name}" if parent else definition.symbol.name
    return Given(name, code_of(reply, definition), parent, reply, definition)


def _type_named(source: SourceFile, name: str) -> str:
    """Return the dotted name of a type in the file: `name`, else the only one in a namespace; '' for none."""
    types = {each.qualified: each.symbol for each in source.definitions if each.symbol.kind in TYPES}
    # In Rust a module is a place of its own, and a name given alone is not one inside of it.
    spaces = {other for other, symbol in types.items() if symbol.kind == "module" and source.language != "rust"}
    inner = [other for other, symbol in types.items() if symbol.name == name and symbol.parent in spaces]
    return name if name in types else inner[0] if len(inner) == 1 else ""


def _is_part(members: Sequence[Definition], own: Sequence[Definition]) -> bool:
    """Return whether a type of the reply lacks members that the file's has, so that it cannot replace all of it."""
    given, there = (Counter(name.rpartition(".")[2] for name in _count(each).elements()) for each in (members, own))
    return bool(given) and bool(there - given)


def _members(source: SourceFile, name: str) -> list[Definition]:
    """Return what the type `name` has inside it, without methods that its language puts beside it."""
    types = [each.outer for each in source.definitions if each.qualified == name and each.symbol.kind in TYPES]
    return [
        each
        for each in source.definitions
        if each.symbol.parent == name
        and any(outer.start_byte <= each.outer.start_byte < outer.end_byte for outer in types)
    ]


def _count(definitions: Sequence[Definition]) -> Counter[str]:
    """Return how often each name is defined. Overloads count each, a variable that is set again does not."""
    found = Counter(each.qualified for each in definitions if each.symbol.kind in CALLABLE)
    return found | Counter({each.qualified for each in definitions})


def _replace(path: str, source: SourceFile, given: Sequence[Given], preferred: Sequence[str]) -> str:
    edits: list[AstEdit] = []
    after: dict[str, list[str]] = {}
    anchor = ""
    for target, each in placed(source, given, preferred):
        code = _with_parts(source, target, each)
        if target:
            edits.append(AstEdit(target, "replace", code))
            anchor = target.partition("#")[0]
        else:
            after.setdefault(each.parent or _owner(source, each, preferred) or anchor, []).append(code)
    text = source.text
    if edits:
        try:
            text = edited(path, text, edits).text
        except EditRefused as refusal:
            # What exists is given unchanged beside something new: only the new part is left to do.
            if refusal.reason != "already_applied" or not after:
                raise
    for beside, codes in after.items():
        text = _add(path, text, beside, "\n\n".join(code.strip("\n") for code in codes))
    return text


def _with_parts(source: SourceFile, target: str, given: Given) -> str:
    """Return the code of a definition with the attributes and the doc comment above it. Words that a model writes above
    an old function, such as the name of the file, are no doc comment of a language that does not mark them, unless the
    function has some.
    """
    given = _with_docstrings(source, target, given)
    reply, outer = given.reply, given.definition.outer
    extent = extent_of(reply, given.definition)
    parts = [part for part in extent.parts if part.start < outer.start_byte]
    has_comment = not target or extent_of(source, find_one(source, target)).has("comment")
    name = source.path.replace("\\", "/").rpartition("/")[2]
    while parts and parts[0].kind == "comment":
        line = reply.slice(parts[0].start, reply.line_end(parts[0].start))
        if name not in line and (has_comment or _MARKED_DOC.match(line)):
            break
        parts.pop(0)
    if not parts:
        return given.code
    *lines, front = reply.slice(reply.line_start(parts[0].start), outer.start_byte).split("\n")
    indent = indentation(reply, outer.start_byte)
    above = [line.removeprefix(indent) for line in lines]
    # An attribute in front on the same line.
    return "\n".join((*above, front.lstrip(" \t") + given.code))


def _with_docstrings(source: SourceFile, target: str, given: Given) -> Given:
    """Return a class or function of Python, and those inside it, with the docstrings that they have in the file, where
    they are given without one and something else changes: models give code for what it does.
    """
    if source.language != "python" or not target or given.definition.symbol.kind not in TYPES | CALLABLE:
        return given
    whole = find_one(source, target)
    known, reply = _documentable(source), parsed(source.path, given.code)
    pairs: list[tuple[Definition, Definition]] = []
    for name, given_here in _documentable(reply).items():
        known_here = known.get(f"{whole.symbol.parent}.{name}" if whole.symbol.parent else name, [])
        if whole in known_here:
            pairs.append((whole, given_here[0]))
        # A property and its setter have one name: which of several is which, their number and order say.
        elif len(known_here) == len(given_here):
            pairs += zip(known_here, given_here, strict=True)
    splices = [splice for there, own in pairs if (splice := docstring_splice(source, there, reply, own)) is not None]
    code = applied(reply, splices) if splices else reply.text
    was = source.slice(whole.outer.start_byte, whole.outer.end_byte)
    return given if code.split() == was.split() else replace(given, code=code)


def _documentable(source: SourceFile) -> dict[str, list[Definition]]:
    found: dict[str, list[Definition]] = {}
    for each in source.definitions:
        if each.symbol.kind in TYPES | CALLABLE:
            found.setdefault(each.qualified, []).append(each)
    return found


def _owner(source: SourceFile, given: Given, preferred: Sequence[str]) -> str:
    """Return the class of a new Python method that was given without its class; '' for none, or where that is
    ambiguous.
    """
    if source.language != "python" or not is_method("python", given.code):
        return ""
    classes = [each.qualified for each in source.definitions if each.symbol.kind == "class"]
    shown = dict.fromkeys(name.rpartition(".")[0] for name in preferred)
    near = [name for name in shown if name in classes] or classes
    return near[0] if len(near) == 1 else ""


def _add(path: str, text: str, beside: str, code: str) -> str:
    """Return `text` with new code after the definition `beside`, inside the type `beside`, or at the end."""
    source = parsed(path, text)
    inside = [each for each in source.definitions if each.symbol.parent == beside and beside]
    is_type = any(each.qualified == beside and each.symbol.kind in TYPES for each in source.definitions)
    if is_type and inside:
        return edited(path, text, [AstEdit(address(source, _last(inside)), "insert_after", code)]).text
    top = [each for each in source.definitions if not each.symbol.parent and each.symbol.kind not in ("variable",)]
    near = [each for each in source.definitions if each.qualified == beside] or top
    if near:
        return edited(path, text, [AstEdit(address(source, _last(near)), "insert_after", code)]).text
    return merge.with_line_ends_of(text, f"{text.rstrip()}\n\n\n{code}\n" if text.strip() else f"{code}\n")


def _last(definitions: Sequence[Definition]) -> Definition:
    return max(definitions, key=lambda each: each.outer.end_byte)
