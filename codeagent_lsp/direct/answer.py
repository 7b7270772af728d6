"""Turns a model's reply into the new texts of files: fences, definitions, search and replace blocks, or diffs. Pure
functions.

The content of the reply decides how it is read; the form that was asked for only settles ambiguous cases. A reply that
leaves parts out, cuts a file short or breaks its syntax is refused with a sentence for the model. Not here: asking the
model, staging (`direct/solver.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codeagent_lsp.agent.context.gather import is_copy
from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.completeness import has_blocks, holds_all, lost_frame, lost_head, lost_use, stands_for_all
from codeagent_lsp.direct.definitions import syntax_problem, with_definitions
from codeagent_lsp.direct.fences import Fence, ReplyParts, is_path_comment, only_path, parts_of, path_in
from codeagent_lsp.errors import EditRefused, PatchRefused
from codeagent_lsp.index.grammars import grammar_of, is_prose, is_source, is_test
from codeagent_lsp.index.indentation import in_style_of
from codeagent_lsp.index.literals import refuse_altered
from codeagent_lsp.index.other_texts import refuse_other
from codeagent_lsp.index.placeholders import left_out
from codeagent_lsp.index.remarks import without_remarks
from codeagent_lsp.index.symbols import CALLABLE, SymbolInfo
from codeagent_lsp.index.wrappings import block_mark, refuse_wrapped
from codeagent_lsp.tools.code.source import source_of
from codeagent_lsp.tools.code.splices import has_body
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.edits.line_matching import likeness
from codeagent_lsp.workspace.edits.match import replace, replace_lines
from codeagent_lsp.workspace.edits.patch import apply_patch, paths_of, without_signs
from codeagent_lsp.workspace.edits.patch_unified import unwrap
from codeagent_lsp.workspace.text.position import (
    content_of,
    ending_of,
    split_lines,
    with_newlines,
    without_line_numbers,
)

if TYPE_CHECKING:
    from tree_sitter import Node

# `<<<<<<< SEARCH` … `>>>>>>> REPLACE` in the first column, with three to twelve signs, as models miscount.
_BLOCK = re.compile(
    r"^(?P<marks><{3,12}) *SEARCH\b[^\n]*\n(?P<body>.*?)^>{3,12} *REPLACE\b[^\n]*$", re.MULTILINE | re.DOTALL
)
_MARKER = re.compile(r"^(?:<{3,12} *SEARCH|>{3,12} *REPLACE)\b", re.MULTILINE)
_DIFF = re.compile(r"^(?:--- |\*\*\* Begin Patch|diff --git )", re.MULTILINE)
_DIFF_SIGN = re.compile(r"^(?:\+\+\+ |@@|\*\*\* Begin Patch)", re.MULTILINE)
_FENCE_LINE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_ENDINGS = """
    json jsonc json5 jsonl yaml yml toml ini cfg conf env properties xml html htm css scss sass less svg csv tsv
    graphql gql proto astro fish zsh ksh bat cmd ps1 mk mak cmake make gradle groovy tf tfvars hcl nix lock example
    template tmpl j2 jinja jinja2 erb ejs hbs mustache vue svelte po pot ipynb plist service mod sol vim el lisp
    awk sed diff patch asm vhd sv bib pm cxx kts mli fs fsx vb csproj sln xaml razor cshtml
"""
_DATA = frozenset(_ENDINGS.split())
_NAMES = """
    node.js next.js vue.js nuxt.js react.js express.js three.js d3.js chart.js discord.js alpine.js angular.js
    ember.js backbone.js moment.js socket.io asp.net require.js nest.js solid.js deno.js bun.js p5.js
    res.json resp.json response.json req.json request.json r.json
"""
_PRODUCTS = frozenset(_NAMES.split())
"""Names of products and calls that look like files, unless such a file is shown."""


_BOM = "\ufeff"
_CUT = "The reply was cut before its code ended. Give less code."
_MARKS_LEFT = (
    "In the text of {path} the marks of search and replace blocks would be left ({mark!r}). Write each block with the "
    "lines <<<<<<< SEARCH, ======= and >>>>>>> REPLACE, which begin in the first column, or give the whole file "
    "without any marks."
)
_STILL_USED = (
    "The code for {path} still uses {name}, but what defines it in the file is missing. Give the file whole, from its "
    "first to its last line."
)
_OTHER_MARKS = (
    "The answer has the mark {mark!r}, which is none of a block. Write each block with the lines <<<<<<< SEARCH, "
    "======= and >>>>>>> REPLACE, which begin in the first column."
)
# `WRONG:` and `RIGHT:`, each with its text in the same line or below; the right one ends at a blank line or a fence.
_PAIR = re.compile(
    r"^[ \t>*-]*WRONG:[ \t]*\n?(?P<wrong>.*?)\n+[ \t>*-]*RIGHT:[ \t]*\n?(?P<right>.*?)\s*(?=\n```|\n\s*\n|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_NAME = re.compile(r"[^\W\d]\w*")
_RUNS = frozenset(
    (
        "expression_statement",
        "assert_statement",
        "call",
        "echo_statement",
        "command",
        "global_statement",
        "if_statement",
    )
)
_TEST_NAME = re.compile(r"test(?=_|[A-Z])|Test(?=s?$|[A-Z_])|\w+Tests?$")
_LABEL = re.compile(r"^\s*(?:RIGHT|CORRECT(?:ED)?)(?: LINE)?:\s*", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}```[^\n]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was read from a reply: new texts by path relative to the workspace (only of files that change), the prose
    around them, and `problem`, a sentence for the model if its code could not be used. `unknown` are paths it wants to
    change that were not shown to it. `declined` is the model's reason for changing nothing, if it gave one in the form
    asked for; `has_code` is also True for code that could not be used.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    prose: str = ""
    problem: str = ""
    unknown: tuple[str, ...] = ()
    has_code: bool = False
    declined: str = ""


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a reply may change, with their whole texts by path relative to the workspace.

    `preferred` are dotted names of the definitions that the task is about; `creates` allows new files. What a reply
    gives for the `fixed` paths is ignored.
    """

    texts: Mapping[str, str]
    preferred: Sequence[str] = ()
    creates: bool = True
    fixed: Sequence[str] = ()


def read_answer(reply: str, files: Files, form: TextForm) -> Answer:
    """Read a reply as new texts of files. Never raises: if it cannot be used, `problem` says why and there are no
    texts. A reply without code has neither texts nor a problem.
    """
    # A model never sees the byte-order mark, so it cannot give it again.
    marked = {path for path, text in files.texts.items() if text.startswith(_BOM)}
    if not marked:
        return _read(reply, files, form)
    bare = {path: text.removeprefix(_BOM) for path, text in files.texts.items()}
    answer = _read(reply, replace_fields(files, texts=bare), form)
    texts = {path: _BOM * (path in marked) + text.removeprefix(_BOM) for path, text in answer.texts.items()}
    return replace_fields(answer, texts=texts)


def _read(reply: str, files: Files, form: TextForm) -> Answer:
    parts = parts_of(reply, (*files.texts, *files.fixed))
    prose = parts.prose
    try:
        # By content, in the order of how unlikely it is to mean something else: marks, then a pair, a diff, fences.
        if _MARKER.search(reply):
            prose = _BLOCK.sub("", "\n".join(_without_fences(prose))).strip()
            texts = _from_blocks(reply, files)
        elif form == "line" and (pair := line_pair(reply)) is not None:
            prose, texts = "", _from_line(*pair, files)
        elif (diff := _diff_in(reply, parts)) is not None:
            texts = _from_diff(diff, files)
        elif not parts.fences:
            if (mark := block_mark(reply)) and not any(map(block_mark, files.texts.values())):
                raise EditRefused("not_found", _OTHER_MARKS.format(mark=mark))
            return Answer(prose=prose)
        else:
            texts = _from_fences(parts, files, form)
        # Files given again without a change are not judged: their own faults are not the model's.
        texts = {path: text for path, text in texts.items() if text != files.texts.get(path)}
        for path, text in texts.items():
            if path in files.texts and (gap := left_out(files.texts[path], text, path)):
                raise EditRefused("not_found", f"Code is left out at {gap!r}. Give every function whole.")
            _refuse_marks(path, files.texts.get(path, ""), text)
            refuse_other(path, files.texts.get(path, ""), text)
            refuse_wrapped(path, files.texts.get(path, ""), text)
            if wrong := syntax_problem(path, files.texts.get(path, ""), text):
                raise EditRefused("not_found", f"{path} would be broken: {wrong}.")
    except _UnknownFile as error:
        return Answer({}, prose, str(error), error.paths, has_code=True)
    except (EditRefused, PatchRefused) as refusal:
        return Answer({}, prose, str(refusal), has_code=True)
    return Answer(texts, prose, has_code=True)


class _UnknownFile(Exception):
    """Raised when the reply changes files that were not shown to the model."""

    def __init__(self, paths: Sequence[str], known: Sequence[str]) -> None:
        self.paths = tuple(paths)
        shown = ", ".join(known) or "none"
        super().__init__(
            f"It is not clear which file the code belongs to. The files that may change: {shown}. "
            "Give the path of each block, alone on the line before it."
        )


def _without_fences(text: str) -> list[str]:
    return [line for line in text.split("\n") if not _FENCE_LINE.match(line) and not path_in(line)]


def _from_fences(parts: ReplyParts, files: Files, form: TextForm) -> dict[str, str]:
    """Return the texts of fenced blocks; several blocks for one file are applied one after the other."""
    texts: dict[str, str] = {}
    unchanged: EditRefused | None = None
    # Tests that judge the change are often given back unchanged, or changed so that they pass.
    fences = [each for each in _worth_reading(parts.fences) if not _is_fixed(each.path, files)]
    for fence in fences:
        path = _path_of(fence, files)
        if not fence.closed:
            raise EditRefused("not_found", _CUT)
        now, own = texts.get(path, files.texts.get(path)), files.texts.get(path)
        code = _without_path_line(fence, path)
        _refuse_marks(path, now or "", code)
        if now is None or own is None:
            texts[path] = code
            continue
        if len(fences) > 1 and _is_example(path, own, fence, [each for each in fences if each is not fence]):
            continue
        try:
            same = len(fences) > 1 and _apply_block(path, own, code, files, form) == own
            # What stood there before the change, which models show beside it.
            texts[path] = now if same else _apply_block(path, now, code, files, form)
        except EditRefused as refusal:
            if refusal.reason != "already_applied" or len(fences) == 1:
                raise
            unchanged = unchanged or refusal
    if unchanged is not None and all(text == files.texts.get(path) for path, text in texts.items()):
        raise unchanged
    return texts


def _is_example(path: str, own: str, fence: Fence, others: Sequence[Fence]) -> bool:
    """Return whether a block only shows how to use or test what another block of the reply gives: it names no file, and
    defines nothing but tests, or nothing at all, while it calls what the other defines.
    """
    block = source_of(path, fence.code)
    if fence.path or block is None:
        return False
    known = source_of(path, own)
    names = {each.symbol.name for each in block.definitions}
    if known is not None and names & {each.symbol.name for each in known.definitions}:
        return False
    given = {
        each.symbol.name
        for other in others
        if (source := source_of(path, other.code)) is not None
        for each in source.definitions
        if each.symbol.kind in CALLABLE or has_body(each)
    }
    # One of the file's own tests is no example.
    if is_test(path) or not given or not given & set(_NAME.findall(fence.code)):
        return False
    defined = [each.symbol for each in block.definitions if each.symbol.kind != "variable" or not each.symbol.parent]
    if all(each.kind in ("variable", "constant") for each in defined):
        # What only gives names a value, as a table of the functions, belongs to the file.
        return any(map(_is_run, block.root.children))
    there = known.definitions if known is not None else ()
    return all(map(_is_test, defined)) and not any(_is_test(each.symbol) for each in there)


def _is_run(statement: Node) -> bool:
    """Return whether a statement calls something or tests it, and does not only give a name its value."""
    inner = statement.named_children[0].type if statement.named_children else ""
    return statement.type in _RUNS and "assignment" not in inner


def _is_test(symbol: SymbolInfo) -> bool:
    return bool(_TEST_NAME.match(symbol.name) or _TEST_NAME.match(symbol.parent))


def _refuse_marks(path: str, before: str, text: str) -> None:
    """Refuse a text with the marks of blocks (EditRefused), unless the file has such marks itself."""
    if (mark := block_mark(text)) and not block_mark(before):
        raise EditRefused("not_found", _MARKS_LEFT.format(path=path, mark=mark))


def _worth_reading(fences: Sequence[Fence]) -> list[Fence]:
    """Return the fences without the shell commands and outputs that models add, if other blocks are code."""
    shell = ("sh", "bash", "shell", "console", "text", "output", "plaintext", "")
    code = [
        each for each in fences if (each.path and not _is_command(each)) or each.info.split(" ")[0].lower() not in shell
    ]
    return code or list(fences)


def _is_command(fence: Fence) -> bool:
    """Return whether a block is a command that a sentence such as `Run a test with this:` explains by a file."""
    is_shell = fence.info.split(" ")[0].lower() in ("sh", "bash", "shell", "console")
    return is_shell and fence.mentioned and not fence.path.endswith((".sh", ".bash"))


def _is_fixed(path: str, files: Files) -> bool:
    return bool(path) and any(ends_alike(path, each) for each in files.fixed) and not meant(path, files.texts)


def _path_of(fence: Fence, files: Files) -> str:
    """Return the file that a block belongs to: the one it names, else the only one, else the one that defines its
    names. A block that names another file is none of theirs.
    """
    found = meant(fence.path, files.texts) if fence.path else ()
    if not found and _is_beside(fence.path, files.texts):
        raise _UnknownFile([fence.path], list(files.texts))
    if not found and is_file_name(fence.path):
        # A name within a sentence may only explain the code below it.
        if files.creates and may_be_new(fence.path) and not fence.mentioned:
            return fence.path
        raise _UnknownFile([fence.path], list(files.texts))
    known = found or list(files.texts)
    if len(known) == 1:
        return known[0]
    shared = {path: _count_shared(path, files.texts[path], fence.code) for path in known}
    # The block without a name of its file belongs where most of its definitions are.
    most = [path for path in known if any(shared[path]) and shared[path] == max(shared.values())]
    if len(most) == 1:
        return most[0]
    raise _UnknownFile([fence.path] if fence.path else [], list(files.texts))


def _count_shared(path: str, text: str, code: str) -> tuple[int, int]:
    """Return how many names both the file and `code` define with a body, and how many at all: a header only declares
    what another file defines.
    """
    one, other = source_of(path, text), source_of(path, code)
    if one is None or other is None:
        return 0, 0
    bodies = (
        {each.symbol.name for each in source.definitions if has_body(each) and each.symbol.kind in CALLABLE}
        for source in (one, other)
    )
    names = ({each.symbol.name for each in source.definitions} for source in (one, other))
    return len(set.intersection(*bodies)), len(set.intersection(*names))


def _without_path_line(fence: Fence, path: str) -> str:
    """Return the code without a first line that is only a comment with its path."""
    first, _, rest = fence.code.partition("\n")
    return rest.removeprefix("\n") if is_path_comment(first, path) else fence.code


def _apply_block(path: str, now: str, code: str, files: Files, form: TextForm) -> str:
    """Return the file with the code of one block applied: as its whole new text, or as some of its definitions."""
    # Numbers as the file was shown with; unless the file itself has lines that begin so.
    plain = without_line_numbers(code) if without_line_numbers(now) == now else code
    plain = without_remarks(path, plain, now)
    known = grammar_of(path, now[:200].encode("utf-8", "replace")) is not None
    gap = left_out(now, plain, path)
    whole = not gap and stands_for_all(path, now, plain)
    source = source_of(path, now)
    parts = source is not None and has_blocks(source)
    # Asked for functions, a model that gives a file of one function most likely means the function.
    if whole and (form != "function" or not parts or not _only_definitions(path, now, plain, files)):
        return _as_whole(path, now, plain, files)
    if parts:
        return merge.with_line_ends_of(now, with_definitions(path, now, plain, files.preferred))
    try:
        done = merge.with_line_ends_of(now, with_definitions(path, now, plain, files.preferred)) if known else now
    except EditRefused:
        done = now
    # Lines that belong to no definition would be dropped without a word.
    if done == now or not holds_all(done, plain):
        where = f", at {gap!r}" if gap else ""
        raise EditRefused(
            "not_found", f"Parts of {path} are missing{where}. Give the file whole, from its first to its last line."
        )
    return done


def _as_whole(path: str, now: str, code: str, files: Files) -> str:
    """Return the new text of a file that is given whole, indented as the file is. Where it lacks what its code uses, or
    what makes a program of it, only its definitions are taken.
    """
    code = lost_head(now, code) + code
    refuse_wrapped(path, now, code)  # as it is given: numbers of lines look like indentation
    text = _ended_like(now, merge.with_line_ends_of(now, in_style_of(path, now, code)))
    lost = lost_use(path, now, text)
    if not lost and not lost_frame(now, text):
        return text
    try:
        done = merge.with_line_ends_of(now, with_definitions(path, now, code, files.preferred))
    except EditRefused:
        done = now
    if done != now and not lost_use(path, now, done):
        return done
    # Nothing else changes: it was taken out on purpose.
    if not lost:
        return text
    raise EditRefused("not_found", _STILL_USED.format(path=path, name=lost))


def _only_definitions(path: str, now: str, code: str, files: Files) -> bool:
    """Return whether `code` can be applied definition by definition."""
    try:
        with_definitions(path, now, code, files.preferred)
    except EditRefused:
        return False
    return True


def _ended_like(now: str, text: str) -> str:
    """Return `text` with the line ends at its end that `now` has."""
    if not text.strip():
        return ""
    ending = now[len(now.rstrip("\r\n")) :]
    return text.rstrip("\r\n") + ending if now.strip() else text


def _from_blocks(reply: str, files: Files) -> dict[str, str]:
    """Return the texts after search and replace blocks, each matched by the edit engine."""
    unified = with_newlines(reply, "\n")
    texts: dict[str, str] = {}
    blocks = list(_BLOCK.finditer(unified))
    # A mark too many: one block has swallowed the next, or has no end.
    if not blocks or len(_MARKER.findall(unified)) != 2 * len(blocks):
        raise EditRefused("not_found", "A block is not complete. It needs <<<<<<< SEARCH, =======, >>>>>>> REPLACE.")
    last = ""
    end = 0
    for block in blocks:
        before = _lines_before(unified[end : block.start()])
        end = block.end()
        old, new = _sides(block)
        path = last = _block_path(before, last, old, {**files.texts, **texts}, files)
        now = texts.get(path, files.texts.get(path))
        if now is None or not now:
            texts[path] = new
            continue
        # Without their last line end they also match a last line that has none; what is deleted goes with its own, and
        # so does what leaves blank lines only, as the last of these would go, too.
        if new.strip("\n") or now.endswith(old.removesuffix("\n")):
            old, new = old.removesuffix("\n"), new.removesuffix("\n")
        done = replace_lines(now, old, new)
        # A looser match may have moved the lines: strings must be what the file or the answer has.
        if done.tier != "exact":
            refuse_altered(path, now, done.text, [new])
        texts[path] = done.text
    return texts


def _sides(block: re.Match[str]) -> tuple[str, str]:
    """Return the old and the new text of a block. A line of signs may also be the underline of a heading: the divider
    is as long as the marker.
    """
    divider = "=" * len(block["marks"])
    lines = split_lines(block["body"])
    places = [number for number, line in enumerate(lines) if line.rstrip() == divider]
    if not places:
        raise EditRefused(
            "not_found", f"A block has no line {divider}, as long as its first marker, between its parts."
        )
    if len(places) > 1:
        raise EditRefused(
            "not_found",
            f"A block has {len(places)} lines {divider}. Write all its markers with another length, such as "
            f"{'<' * 9} SEARCH, {'=' * 9} and {'>' * 9} REPLACE.",
        )
    return "".join(lines[: places[0]]), "".join(lines[places[0] + 1 :])


def _from_line(wrong: str, right: str, files: Files) -> dict[str, str]:
    """Return the text of the first file that has the wrong line, corrected."""
    refusal: EditRefused | None = None
    for path, text in files.texts.items():
        try:
            return {path: with_line(path, text, wrong, right, files.preferred)}
        except EditRefused as error:
            refusal = refusal or error
    raise refusal or _UnknownFile([], [])


def _lines_before(text: str) -> list[str]:
    """Return the lines that may name the file of a block, best first: the last one, and the opening of its fence."""
    lines = [line for line in text.split("\n") if line.strip() and not _FENCE_LINE.match(line)]
    opening = [line.strip("`~ ") for line in text.split("\n") if _FENCE_LINE.match(line)]
    return [*lines[-1:], *reversed(opening)]


def _block_path(before: Sequence[str], last: str, old: str, texts: Mapping[str, str], files: Files) -> str:
    known = list(texts)
    line, named = next(((each, path) for each in before if (path := path_in(each, known))), ("", ""))
    found = meant(named, known) if named else ()
    if len(found) == 1:
        return found[0]
    if not found and _is_beside(named, texts):
        raise _UnknownFile([named], list(files.texts))
    if not found and is_file_name(named):
        if files.creates and not old.strip() and may_be_new(named) and only_path(line, named):
            return named
        raise _UnknownFile([named], list(files.texts))
    # Of the files that it may mean, the one that has the lines.
    having = [path for path in found or known if old.strip() and old.strip() in texts[path]]
    # Blocks without a path go on with the file of the one before.
    if last and last in having:
        return last
    if len(having) == 1:
        return having[0]
    if len(known) == 1:
        return known[0]
    raise _UnknownFile([named] if named else [], list(files.texts))


def _diff_in(reply: str, parts: ReplyParts) -> str | None:
    """Return the diff of a reply; None where it has none. EditRefused for one whose end is missing."""
    fenced = [fence for fence in parts.fences if fence.info.startswith(("diff", "patch")) or _is_diff(fence.code)]
    # What it takes out may be there already, and what it puts in not yet.
    if any(not fence.closed for fence in fenced):
        raise EditRefused("not_found", _CUT)
    if fenced:
        return "".join("\n".join((*unwrap(fence.code), "")) for fence in fenced)
    return reply if not parts.fences and _has_diff(reply) else None


def is_bare_diff(reply: str) -> bool:
    """Return whether a reply has a diff and no fence, so that nothing in the reply says where the diff ends."""
    return not parts_of(reply, ()).fences and _has_diff(reply)


def _has_diff(text: str) -> bool:
    return _DIFF.search(text) is not None and _DIFF_SIGN.search(text) is not None


def _is_diff(code: str) -> bool:
    """Return whether code starts as a diff and goes on as one, also in the call of a shell that would apply it: `---
    words` is a comment in Lua.
    """
    plain = "\n".join(unwrap(code))
    return _DIFF.match(plain) is not None and _DIFF_SIGN.search(plain) is not None


def _from_diff(diff: str, files: Files) -> dict[str, str]:
    """Return the texts after a unified diff or a `*** Begin Patch` patch."""
    named = paths_of(diff)
    found = {path: meant(path, files.texts) for path in named}
    renamed = {path: known[0] if len(known) == 1 else path for path, known in found.items()}
    unknown = [path for path in named if renamed[path] not in files.texts and not files.creates]
    if unknown:
        raise _UnknownFile(unknown, list(files.texts))
    before = {path: files.texts.get(renamed[path]) for path in named}
    # All or nothing, as a diff of several hunks is one change.
    after = apply_patch(before, diff)
    # Deleting is not among what an answer in code may do.
    gone = [path for path, text in after.items() if text is None and before.get(path) is not None]
    if gone:
        raise PatchRefused(f"{gone[0]} would be deleted. Change only what is in the files.")
    texts = {path: text for path, text in after.items() if text is not None}
    for path, text in texts.items():
        if (old := before.get(path)) is not None and text != old:
            refuse_altered(path, old, text, [without_signs(diff)])
    return {renamed.get(path, path): text for path, text in texts.items()}


# Tells which file a path in a model's reply means: a known one, a new one, or none. Pure functions.


def ends_alike(one: str, other: str) -> bool:
    """Return whether two paths, with `/` between their parts, are the same, or one ends with all parts of the other."""
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def meant(path: str, known: Collection[str]) -> Sequence[str]:
    """Return the known paths that `path` may mean: itself, those that end with it, or those that it ends with. A path
    with a folder is never a file in the top folder.
    """
    if path in known:
        return (path,)
    # "/home/me/project/a.py" and "C:\project\a.py" are longer than the known path; "src/a.py" is not "a.py".
    absolute = path.startswith("/") or ":" in path
    return tuple(each for each in known if ends_alike(path, each) and (absolute or "/" in each or "/" not in path))


def _is_beside(path: str, known: Collection[str]) -> bool:
    """Return whether a path is that of a copy beside a file, such as `a.py~` or `a.py.bak`: it is none of the files."""
    name = PurePosixPath(path).name
    longer = (PurePosixPath(each).name for each in known)
    return is_copy(path) or (not is_file_name(path) and any(own in name and own != name for own in longer))


def is_file_name(path: str) -> bool:
    """Return whether a path can only mean a file: its suffix is that of a programming language, of text or of data.
    Only the name is looked at, never the disk; names of products such as `Node.js` are none.
    """
    name = PurePosixPath(path).name
    ending = PurePosixPath(path).suffix[1:].lower()
    if not ending or name.lower() in _PRODUCTS or name.startswith(("self.", "this.")):
        return False
    return ending in _DATA or is_source(name) or is_prose(name) or grammar_of(name) is not None


def may_be_new(path: str) -> bool:
    """Return whether a file of this path may be made, by its name alone: it is relative, without `..`, and of a known
    kind.
    """
    parts = PurePosixPath(path).parts
    return is_file_name(path) and not path.startswith("/") and ".." not in parts and ":" not in path


# The answer form `line`: the one line that is wrong, and the corrected line. Pure functions.


def line_pair(reply: str) -> tuple[str, str] | None:
    """Return the lines after `WRONG:` and `RIGHT:` in a reply, in this order, without their decoration; None if it has
    no such pair.
    """
    found = _PAIR.search(reply)
    return (_bare(found["wrong"]), _bare(found["right"])) if found is not None else None


def as_pair(wrong: str, reply: str) -> str:
    """Return the reply to a question about the line `wrong` in the form `WRONG: …` and `RIGHT: …`. As models repeat the
    lines around it, the line of the reply most similar to `wrong` is taken as the corrected one.
    """
    pair = line_pair(reply)
    given = pair[1] if pair is not None else _FENCE.sub("", reply)
    lines = [plain for line in given.splitlines() if (plain := _bare(_LABEL.sub("", line)).strip())]
    nearest = max(lines, key=lambda line: likeness(line, wrong), default="")
    return f"WRONG: {wrong}\nRIGHT: {nearest}"


def named_in(reply: str, lines: Collection[str]) -> str:
    """Return the one of these lines that a reply consists of or names; '' where it names none, or several."""
    given = {_bare(_LABEL.sub("", line)).strip() for line in _FENCE.sub("", reply).splitlines()}
    named = [line for line in lines if line in given]
    return named[0] if len(named) == 1 else ""


def with_line(path: str, text: str, wrong: str, right: str, preferred: Sequence[str] = ()) -> str:
    """Return `text` with the line `wrong` replaced by `right`, with its indentation kept.

    `preferred` are dotted names of definitions that are searched first. EditRefused when `wrong` is empty, or no line
    or more than one matches it.
    """
    if not wrong.strip():
        raise EditRefused("empty", "The line after WRONG: is empty. Copy the line that is wrong.")
    if "\n" in wrong.strip("\n"):
        done = replace(text, wrong, right)
        refuse_altered(path, text, done.text, [right])
        return done.text
    lines = split_lines(text)
    having = [number for number, line in enumerate(lines) if content_of(line).strip() == wrong.strip()]
    near = [number for number in having if number in _inside(path, text, preferred)]
    found = near or having
    if len(found) != 1:
        why = f"{len(found)} lines of {path} are" if found else f"No line of {path} is"
        raise EditRefused("ambiguous" if found else "not_found", f"{why} {wrong.strip()!r}. Copy it exactly.")
    old = lines[found[0]]
    indent = content_of(old)[: len(content_of(old)) - len(content_of(old).lstrip())]
    lines[found[0]] = indent + right.strip() + ending_of(old)
    return "".join(lines)


def _inside(path: str, text: str, names: Sequence[str]) -> frozenset[int]:
    """Return the 0-based numbers of the lines of these definitions."""
    source = source_of(path, text) if names else None
    spans = [each.symbol for each in source.definitions if each.qualified in names] if source is not None else []
    return frozenset(line for each in spans for line in range(each.line_start - 1, each.line_end))


def _bare(text: str) -> str:
    """Return a line without the fences and backticks that models put around it."""
    plain = _FENCE.sub("", text).strip("\n")
    return plain.strip()[1:-1] if re.fullmatch(r"\s*`[^`\n]+`\s*", plain) else plain
