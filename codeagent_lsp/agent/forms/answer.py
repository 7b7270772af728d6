"""Turns a model's reply into the new texts of files: fences, definitions, search and replace blocks, or diffs. Pure
functions.

The content of the reply decides how it is read; the form that was asked for only settles ambiguous cases. A reply that
leaves parts out, cuts a file short or breaks its syntax is refused with a sentence for the model. Not here: asking the
model, staging (`agent/solving`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from codeagent_lsp.agent.forms.definitions import lost_definitions, syntax_problem, with_definitions
from codeagent_lsp.agent.forms.fences import Fence, ReplyParts, parts_of, path_in
from codeagent_lsp.agent.forms.form import TextForm
from codeagent_lsp.agent.forms.line import line_pair, with_line
from codeagent_lsp.errors import EditRefused, PatchRefused
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.tools.code.source import source_of
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.edits.match import replace
from codeagent_lsp.workspace.edits.patch import apply_patch, paths_of
from codeagent_lsp.workspace.text.lines import split_lines, with_newlines, without_line_numbers

LEAST_SHARE = 0.5
"""For a language without a grammar: a new text with less than this share of the file's lines was cut short."""

_BLOCK = re.compile(
    r"^<{5,9} ?SEARCH[^\n]*\n(?P<old>.*?)^={5,9}[ \t]*\n(?P<new>.*?)^>{5,9} ?REPLACE[^\n]*$", re.MULTILINE | re.DOTALL
)
_MARKER = re.compile(r"^(?:<{5,9} ?SEARCH|>{5,9} ?REPLACE)\b", re.MULTILINE)
_DIFF = re.compile(r"^(?:--- |\*\*\* Begin Patch|diff --git )", re.MULTILINE)
_ELISION = re.compile(
    r"^\s*(?:#|//|--|/\*|<!--|;|%|\.\.\.|…)[^\n]*?(?:\brest of\b|\bremain(?:s|ing|der)?\b|\bexisting\b|\bunchanged\b"
    r"|\bomitted\b|\bother (?:functions?|methods?|code|imports?|classes)\b|\bsame as (?:before|above)\b|保持不变|其余"
    r"|其他代码|省略)"
    r"[^\n]*$|^\s*(?:#|//)?\s*(?:\.\.\.|…)\s*$",
    re.MULTILINE | re.IGNORECASE,
)
_FENCE_LINE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply as read: new texts by path (only of files that change), the prose around them, and `problem`, a sentence
    for the model, where code could not be used. `unknown` are paths it wants to change that were not shown to it.
    `declined` is the reason why nothing has to change, where the model says so in the form asked for.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    prose: str = ""
    problem: str = ""
    unknown: tuple[str, ...] = ()
    has_code: bool = False
    declined: str = ""


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a reply may change, with whole texts by path; `preferred` are dotted names of the definitions it
    is about, `creates` says whether it may make new files. What a reply gives for the `fixed` files is ignored.
    """

    texts: Mapping[str, str]
    preferred: Sequence[str] = ()
    creates: bool = True
    fixed: Sequence[str] = ()


def read_answer(reply: str, files: Files, form: TextForm) -> Answer:
    """Read a reply as new texts of files. Never raises: where it cannot be used, `problem` says why and there are no
    texts.
    """
    parts = parts_of(reply)
    prose = parts.prose
    try:
        if _MARKER.search(reply):
            prose = _BLOCK.sub("", "\n".join(_without_fences(prose))).strip()
            texts = _from_blocks(reply, files)
        elif form == "line" and (pair := line_pair(reply)) is not None:
            prose, texts = "", _from_line(*pair, files)
        elif (diff := _diff_in(reply, parts)) is not None:
            texts = _from_diff(diff, files)
        elif not parts.fences:
            return Answer(prose=prose)
        else:
            texts = _from_fences(parts, files, form)
        texts = {path: text for path, text in texts.items() if text != files.texts.get(path)}
        for path, text in texts.items():
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
        super().__init__(f"It is not clear which file the code belongs to. The files that may change: {shown}.")


def _without_fences(text: str) -> list[str]:
    return [line for line in text.split("\n") if not _FENCE_LINE.match(line) and not path_in(line)]


def _from_fences(parts: ReplyParts, files: Files, form: TextForm) -> dict[str, str]:
    """Return the texts of fenced blocks; several blocks for one file are applied one after the other."""
    texts: dict[str, str] = {}
    for fence in _worth_reading(parts.fences, files):
        if fence.path and _known_path(fence.path, files.fixed) and not _known_path(fence.path, list(files.texts)):
            continue
        path = _path_of(fence, files)
        if not fence.closed:
            raise EditRefused("not_found", "The reply was cut before its code ended. Give less code.")
        now = texts.get(path, files.texts.get(path))
        code = _without_path_line(fence, path)
        texts[path] = code if now is None else _changed(path, now, code, files, form)
    return texts


def _worth_reading(fences: Sequence[Fence], files: Files) -> list[Fence]:
    """Return the fences without the shell commands and outputs that models add, if other blocks are code."""
    shell = ("sh", "bash", "shell", "console", "text", "output", "plaintext", "")
    code = [each for each in fences if each.path or each.info.split(" ")[0].lower() not in shell]
    return code or list(fences)


def _path_of(fence: Fence, files: Files) -> str:
    """Return the file that a block belongs to: the one it names, else the only one, else the one that defines its
    names.
    """
    known = list(files.texts)
    if fence.path and (found := _known_path(fence.path, known)):
        return found
    shared = {path: _shared(path, files.texts[path], fence.code) for path in known}
    if fence.path and _may_be_new(fence.path, files) and not any(shared.values()):
        return fence.path
    most = [path for path in known if shared[path] and shared[path] == max(shared.values())]
    if len(known) == 1 or len(most) == 1:
        return (most or known)[0]
    raise _UnknownFile([fence.path] if fence.path else [], known)


def _may_be_new(path: str, files: Files) -> bool:
    return files.creates and bool(PurePosixPath(path).suffix) and not path.startswith(("/", "../")) and ":" not in path


def _known_path(path: str, known: Sequence[str]) -> str:
    """Return the one known path that `path` means: the same, or one that ends with it or that it ends with; '' for
    none.
    """
    if path in known:
        return path
    ending = [each for each in known if each.endswith(f"/{path}") or path.endswith(f"/{each}")]
    same_name = [each for each in known if PurePosixPath(each).name == PurePosixPath(path).name]
    return ending[0] if len(ending) == 1 else same_name[0] if len(same_name) == 1 and not ending else ""


def _shared(path: str, text: str, code: str) -> int:
    """Return how many names both the file and `code` define."""
    one, other = source_of(path, text), source_of(path, code)
    if one is None or other is None:
        return 0
    names = {each.symbol.name for each in one.definitions}
    return len(names.intersection(each.symbol.name for each in other.definitions))


def _without_path_line(fence: Fence, path: str) -> str:
    """Return the code without a first line that is only a comment with its path."""
    first, _, rest = fence.code.partition("\n")
    named = first.strip(" #/-*;%<!>\t")
    is_path = bool(named) and (named == path or path.endswith(f"/{named}") or named == f"path: {path}")
    return rest.removeprefix("\n") if is_path and first.strip() != named else fence.code


def _changed(path: str, now: str, code: str, files: Files, form: TextForm) -> str:
    """Return the file with the code of one block applied: as its whole new text, or as some of its definitions."""
    plain = without_line_numbers(code) if without_line_numbers(now) == now else code
    elided = [found for found in _ELISION.findall(plain) if found.strip() and found.strip() not in now]
    known = grammar_of(path, now[:200].encode("utf-8", "replace")) is not None
    whole = not elided and _stands_for_all(path, now, plain, known=known)
    if whole and (form != "function" or not known or not _only_definitions(path, now, plain, files)):
        return _ended_like(now, merge.with_line_ends_of(now, plain))
    if not known:
        raise EditRefused(
            "not_found", f"Parts of {path} are missing. Give the file whole, from its first to its last line."
        )
    done = with_definitions(path, now, plain, files.preferred)
    new = [found for found in _ELISION.findall(done) if found.strip() and found.strip() not in now]
    if new:
        raise EditRefused("not_found", f"Code is left out at {new[0].strip()!r}. Give every function whole.")
    return done


def _stands_for_all(path: str, now: str, code: str, *, known: bool) -> bool:
    """Return whether `code` can be the whole new text of a file, i.e. does not lose what the file defines."""
    if not now.strip():
        return True
    if known:
        return not lost_definitions(path, now, code) and _keeps_head(path, now, code)
    return len(split_lines(code)) >= LEAST_SHARE * len(split_lines(now))


def _keeps_head(path: str, now: str, code: str) -> bool:
    """Return whether at least half of the top-level lines beside definitions (imports, constants) remain: one function
    alone may define all that the file defines, and yet not be the file.
    """
    source = source_of(path, now)
    definitions = source.definitions if source is not None else ()
    heads = {each.symbol.line_start for each in definitions if each.symbol.kind != "variable"}
    top = [words[0] for line, words in _top_lines(now) if line not in heads]
    kept = {words[0] for _, words in _top_lines(code)}
    return sum(word in kept for word in top) >= LEAST_SHARE * len(top)


def _top_lines(text: str) -> list[tuple[int, list[str]]]:
    """Return the lines that are not indented, by 1-based number, split into words."""
    lines = enumerate(with_newlines(text, "\n").split("\n"), 1)
    return [(number, line.split()) for number, line in lines if line.strip() and not line[0].isspace()]


def _only_definitions(path: str, now: str, code: str, files: Files) -> bool:
    """Return whether `code` can be applied definition by definition."""
    try:
        with_definitions(path, now, code, files.preferred)
    except EditRefused:
        return False
    return True


def _ended_like(now: str, text: str) -> str:
    """Return `text` with the line ends at its end that `now` has."""
    ending = now[len(now.rstrip("\r\n")) :]
    return text.rstrip("\r\n") + ending if now.strip() else text


def _from_blocks(reply: str, files: Files) -> dict[str, str]:
    """Return the texts after search and replace blocks, each matched by the edit engine."""
    unified = with_newlines(reply, "\n")
    texts: dict[str, str] = {}
    blocks = list(_BLOCK.finditer(unified))
    if not blocks or len(_MARKER.findall(unified)) != 2 * len(blocks):
        raise EditRefused("not_found", "A block is not complete. It needs <<<<<<< SEARCH, =======, >>>>>>> REPLACE.")
    last = ""
    end = 0
    for block in blocks:
        named = _named_before(unified[end : block.start()])
        end = block.end()
        path = last = _block_path(named, last, block["old"], {**files.texts, **texts}, files)
        now = texts.get(path, files.texts.get(path))
        if now is None or not now:
            texts[path] = block["new"]
            continue
        texts[path] = replace(now, block["old"].removesuffix("\n"), block["new"].removesuffix("\n")).text
    return texts


def _from_line(wrong: str, right: str, files: Files) -> dict[str, str]:
    """Return the text of the first file that has the wrong line, corrected."""
    refusal: EditRefused | None = None
    for path, text in files.texts.items():
        try:
            return {path: with_line(path, text, wrong, right, files.preferred)}
        except EditRefused as error:
            refusal = refusal or error
    raise refusal or _UnknownFile([], [])


def _named_before(text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip() and not _FENCE_LINE.match(line)]
    opening = [path for line in text.split("\n") if _FENCE_LINE.match(line) and (path := path_in(line.strip("`~ ")))]
    return (path_in(lines[-1]) if lines else "") or (opening[-1] if opening else "")


def _block_path(named: str, last: str, old: str, texts: Mapping[str, str], files: Files) -> str:
    known = list(texts)
    if named and (found := _known_path(named, known)):
        return found
    if named and not old.strip() and files.creates:
        return named
    having = [path for path in known if old.strip() and old.strip() in texts[path]]
    if last and last in having:
        return last
    if len(having) == 1:
        return having[0]
    if len(known) == 1:
        return known[0]
    raise _UnknownFile([named] if named else [], list(files.texts))


def _diff_in(reply: str, parts: ReplyParts) -> str | None:
    """Return the diff of a reply; None where it has none."""
    fenced = [
        fence.code for fence in parts.fences if fence.info.startswith(("diff", "patch")) or _DIFF.match(fence.code)
    ]
    if fenced:
        return "".join(fenced)
    return reply if not parts.fences and _DIFF.search(reply) else None


def _from_diff(diff: str, files: Files) -> dict[str, str]:
    """Return the texts after a unified diff or a `*** Begin Patch` patch."""
    named = paths_of(diff)
    renamed = {path: _known_path(path, list(files.texts)) or path for path in named}
    unknown = [path for path in named if renamed[path] not in files.texts and not files.creates]
    if unknown:
        raise _UnknownFile(unknown, list(files.texts))
    before = {path: files.texts.get(renamed[path]) for path in named}
    after = apply_patch(before, diff)
    gone = [path for path, text in after.items() if text is None and before.get(path) is not None]
    if gone:
        raise PatchRefused(f"{gone[0]} would be deleted. Change only what is in the files.")
    return {renamed.get(path, path): text for path, text in after.items() if text is not None}
