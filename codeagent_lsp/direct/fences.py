"""Splits a model's Markdown reply into fenced code blocks and the prose around them, and reads the envelope of a quick
action's answer: one block with the new code, or `NO CHANGE:` and the reason. Pure functions.

A block's path is taken from its info string, from the line before it, or from a comment in its first line. In an
envelope nothing else is code: words without a fence, several fences, a diff, words inside the fence, a block that
leaves parts out each get a sentence for the model, which is asked again. Not here: which file the code belongs to and
how it is read (`answer.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from codeagent_lsp.agent.context.gather import COPY, is_copy
from codeagent_lsp.index.comments import comment_of, is_document
from codeagent_lsp.index.other_texts import is_words, other_text
from codeagent_lsp.index.placeholders import filled_lines, left_out
from codeagent_lsp.index.remarks import PAGES, is_remark_alone, without_remarks
from codeagent_lsp.index.wrappings import block_mark
from codeagent_lsp.tools.diagnostics.syntax import is_data
from codeagent_lsp.workspace.edits.line_matching import likeness
from codeagent_lsp.workspace.text.position import with_newlines, without_line_numbers

MAX_PATH = 200

# At most three blanks before it, as in CommonMark; a fence in an item of a list is taken out of it first.
_OPENING = re.compile(r"^(?P<lead> {0,3})(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_IN_LIST = re.compile(r"^(?P<lead>[ \t]+)(?:`{3,}|~{3,})")
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]")
# With the signs of routes: `+page.ts` and `$id.tsx` stand beside `page.ts` and `id.tsx`.
_PATH = re.compile(r"[\w./\\+$-]*\w\.[A-Za-z0-9]{1,10}")
_ASCII_PATH = re.compile(
    r"(?<![A-Za-z0-9_./\\+$-])[A-Za-z0-9_./\\+$-]*[A-Za-z0-9_]\.[A-Za-z0-9]{1,10}(?![A-Za-z0-9_/\\-])"
)
_MIXED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff][A-Za-z0-9_.]*\.")  # words of a sentence run into a name
# What stands around a path: `**File: src/a.py**`, `### 1. src/a.py`, `文件名：a.py`, `a.py (new)`.
_DECORATION = re.compile(
    r"^[\s>#*`'\"\-]*(?:\d{1,2}[.)]\s+)?[*`]*"
    r"(?:(?:(?:new |create )?(?:file(?:name)?|path)|create|in|(?:新建?)?文件名?|路径)"
    r"(?=[\s:\uff1a*`'\"])\s*[:\uff1a]?)?[\s*`'\"]*"
    r"|[\s*`'\"]*(?:[(\uff08](?:new|new file|新建|新文件)[)\uff09])?[\s*`'\":\uff1a,\uff0c]*$",
    re.IGNORECASE,
)
_DOCUMENTS = ("md", "markdown", "mdx", "rst")
_COMMENTED = re.compile(r"-?\s*(?:(?:file(?:name)?|path)\s*:\s*)?(?P<path>\S+?)(?:\s+[#*;%-]+)?\s*", re.IGNORECASE)
NO_CHANGE = "NO CHANGE:"
CUT = "It was cut at its length limit. Give less: only the definitions that change."
NO_FENCE = f"It had no code block. Answer with one fenced code block, or with `{NO_CHANGE}` and the reason."
SEVERAL = "It had several code blocks. Answer with one fenced code block that holds all of the new code."
DIFF = "It was a diff. Answer with one fenced code block that holds the new code itself."
BLOCKS = "It held search and replace blocks. Answer with one fenced code block that holds the new code itself."
WORDS = "Its code block held words, not code. Answer with the new code, or with `NO CHANGE:` and the reason."
FENCES = (
    "The code to rewrite has code fences of its own, and the new code has none. Answer with all of the new code, its "
    "fences too, between two lines of four backticks."
)
NO_CODE = "Its code block held no code of the file. Answer with one fenced code block that holds the new code itself."
ELISION = "It left code out. Give all of the new code, without placeholders."

_FENCE = re.compile(
    r"^ {0,3}(?P<marks>```+|~~~+)[^\n`]*\n(?P<body>.*)^ {0,3}(?P=marks)[ \t]*$", re.MULTILINE | re.DOTALL
)
_FENCE_LINE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_LONG_FENCE = re.compile(r"^ {0,3}(?:````|~~~~)", re.MULTILINE)
# `NO CHANGE: it is right already`, also with Markdown around it: `**NO CHANGE:** …`.
_DECLINED = re.compile(
    r"\A[\s*_`#>-]*NO[ _]CHANGES?\b[*_`]*\s*[:.\uff1a-]?[*_`]*\s*(?P<reason>.*)", re.IGNORECASE | re.DOTALL
)
_MARKS = re.compile(r"[ \t]*(`{3,}|~{3,})")
_SHORT = 3  # marks of a usual fence
_NUMBERED = re.compile(r"[ ]{0,6}(\d{1,6})(?:\t|\u2192| ?[|\u2502](?: |$)|\|)")  # as tools and models show lines
_LINE_MARK = re.compile(r"[ ]{0,6}L?\d{1,6}(?:\t|[:.|\u2502\u2192] ?| [|\u2502\u2192] ?)")
_FEWEST_NUMBERED = 3
_LISTS = (".csv", ".tsv", ".psv", ".tab", ".list", ".log", ".txt")
_SURE_KEYS = ("code", "new_code", "replacement")
_BEFORE_PATH = re.compile(r"(?:file(?:name)?|path|in)\s*:\s*", re.IGNORECASE)
_CODE_KEYS = ("code", "new_code", "content", "replacement", "text", "result", "selection", "rewritten", "new_str")
_BESIDE_CODE = frozenset(
    "explanation description reason language lang notes note summary changes comment path file filename start end line"  # noqa: SIM905
    " start_line end_line title thoughts reasoning".split()
)
_ALIKE = 0.5
_THOUGHT = re.compile(
    r"\s*<(?P<name>think|thinking|thought|reasoning|scratchpad|analysis|plan)>.*?</(?P=name)>[ \t]*\n?", re.DOTALL
)
_TAGGED = re.compile(
    r"\s*(?:<(?P<name>code|answer|new_code|result|output|response|replacement|rewritten|updated_code|solution|content"
    r"|new_str|file_content|final|final_answer|code_block|edit)>(?:[ \t]*\n)?(?P<code>.*?)\n?[ \t]*</(?P=name)>"
    r"|<!\[CDATA\[[ \t]*\n?(?P<data>.*?)\n?[ \t]*\]\]>)\s*",
    re.DOTALL,
)
_TOKEN = re.compile(r"<\|[a-z_]{2,20}\|>[ \t]*|<\uff5c[\w\u2581]{2,30}\uff5c>[ \t]*")
_DIFF_HEAD = re.compile(r"^(?:@@ -\d|--- \S|\+\+\+ \S|diff --git |\*\*\* (?:Begin|Update) )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fence:
    """One fenced block of a reply: its text with LF line ends, the path that the reply gives for it ('' for none), its
    info string, and whether its closing fence was written. `mentioned` says that the path was taken from a sentence
    before it.
    """

    code: str
    path: str = ""
    info: str = ""
    closed: bool = True
    mentioned: bool = False


@dataclass(frozen=True, slots=True)
class ReplyParts:
    """A reply split up: the blocks in order, and as `prose` the text outside of them with LF line ends, without the
    lines that only give a path.
    """

    fences: tuple[Fence, ...]
    prose: str


def parts_of(reply: str, known: Collection[str] = ()) -> ReplyParts:
    """Split a reply into its fenced blocks and its prose. A nested block is part of the outer one if it has a language
    or the outer one is a document. `known` are paths that the reply may name.
    """
    prose: list[str] = []
    found: list[Fence] = []
    lines = with_newlines(reply, "\n").split("\n")
    at = 0
    while at < len(lines):
        if lead := _lead_in_list(lines, at):
            _take_out(lines, at, lead)
        opening = _OPENING.match(lines[at])
        if opening is None:
            prose.append(lines[at])
        elif not opening["info"].strip() and _holds_only_path(lines, at):
            prose.append(lines[at := at + 1])  # a fence that held only the path and was not closed
        else:
            end = _end_of(lines, at, opening["marks"], opening["info"].strip())
            closed = end < len(lines)
            code = _dedent(lines[at + 1 : end], opening["lead"])
            found.append(_fence(code, opening["info"].strip(), prose, known, closed=closed))
            at = end
        at += 1
    return ReplyParts(tuple(found), "\n".join(prose).strip())


def _lead_in_list(lines: Sequence[str], at: int) -> str:
    """Return the blanks before a fence that stands deeper than others may, in an item of a list; '' for all others."""
    found = _IN_LIST.match(lines[at])
    if found is None or len(found["lead"].expandtabs(4)) < 4:
        return ""
    depth = len(found["lead"].expandtabs(4))
    for line in reversed(lines[:at]):
        here = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        if line.strip() and here < depth:
            if _ITEM.match(line):
                return found["lead"]
            depth = here
        if not depth:
            break
    return ""


def _take_out(lines: list[str], at: int, lead: str) -> None:
    """Remove the blanks of the list around it from the lines of the block that opens at line `at`."""
    inside = [_without(lead, line) for line in lines[at:]]
    if opening := _OPENING.match(inside[0]):
        end = _end_of(inside, 0, opening["marks"], opening["info"].strip()) + 1
        lines[at : at + end] = inside[:end]


def _without(lead: str, line: str) -> str:
    """Return a line without the blanks of the list around it, as many as it has of them."""
    return (
        line.removeprefix(lead)
        if line.startswith(lead)
        else line.lstrip(" \t")
        if line[: len(lead)].isspace()
        else line
    )


def _dedent(code: list[str], lead: str) -> list[str]:
    """Return the lines of a block without the blanks before its fence, if all have them."""
    if lead and all(line.startswith(lead) or not line.strip() for line in code):
        return [line.removeprefix(lead) for line in code]
    return code


def path_in(line: str, known: Collection[str] = ()) -> str:
    """Return the path that a line of prose names, with `/` between its parts, a `known` one first; '' if it names none
    or more than one.
    """
    if copy := COPY.search(line):  # first, as the name of the file itself is a part of it
        return copy[0].replace("\\", "/")
    shown = max((path for path in known if _has(line, path)), key=len, default="")
    if shown:
        # A line that names two files says of neither that the block is of it.
        others = {_tidy(found) for found in _ASCII_PATH.findall(line.replace(shown, " "))}
        return shown if others <= {shown} else ""
    if len(line) > 2 * MAX_PATH:  # the pattern is slow on long runs of its signs
        return ""
    bare = _DECORATION.sub("", line)
    if _is_path(bare):
        return _tidy(bare)
    named = {_tidy(found) for found in _ASCII_PATH.findall(line)}
    return named.pop() if len(named) == 1 else ""


def only_path(line: str, path: str) -> bool:
    """Return whether a line has nothing but this path, with `/` between its parts, and decoration, such as backticks,
    stars or a colon.
    """
    return len(line) <= 2 * MAX_PATH and _tidy(_DECORATION.sub("", line)) == path


def is_path_comment(line: str, path: str) -> bool:
    """Return whether a line is a comment that says nothing but the path of the file, or a part of it: models begin code
    with one.
    """
    comment = comment_of(line.strip())
    said = _BEFORE_PATH.sub("", comment.said.strip()).strip("`\"' ").replace("\\", "/") if comment else ""
    name = path.replace("\\", "/")
    return bool(said) and (f"/{name}".endswith(f"/{said}") or f"/{said}".endswith(f"/{name}"))


def _has(line: str, path: str) -> bool:
    """Return whether a line holds a path that is not a part of a longer name; one like a word has to be set off."""
    # A file `makefile` or `test`: the same word in a sentence is no name of a file.
    if path.islower() and not re.search(r"[./]", path):
        return f"`{path}`" in line or only_path(line, path)
    return re.search(rf"(?<![A-Za-z0-9_./\\+$-]){re.escape(path)}(?![A-Za-z0-9_/\\-]|\.\w)", line) is not None


def _is_path(bare: str) -> bool:
    if not bare or len(bare) > MAX_PATH or re.search(r"\s", bare) or _MIXED.search(bare):
        return False
    return _PATH.fullmatch(bare) is not None or (bare.isascii() and ("." in bare or "/" in bare))


def _holds_only_path(lines: Sequence[str], at: int) -> bool:
    """Return whether the fence at line `at` holds a path, and then another fence begins."""
    if at + 2 >= len(lines) or not path_in(lines[at + 1]):
        return False
    inner = _OPENING.match(lines[at + 2])
    return inner is not None and bool(inner["info"].strip())


def _end_of(lines: Sequence[str], at: int, marks: str, info: str) -> int:
    """Return the line that closes the block which opens at line `at`; the number of lines where none does."""
    fences = [
        (number, bool(inner["info"].strip()))
        for number, line in enumerate(lines[at + 1 :], at + 1)
        if (inner := _OPENING.match(line)) and inner["marks"].startswith(marks)
    ]
    # Inside of a document, fences without a language are common, so the first bare one does not close it.
    if re.split(r"[\s:=]", info.lower())[0].rpartition(".")[2] in _DOCUMENTS:
        return _end_of_document(lines, fences)
    depth = 0
    for number, opens in fences:
        # A fence with a language can only open one, a bare one closes what is open.
        if not opens and not depth:
            return number
        depth += 1 if opens else -1
    return len(lines)


def _end_of_document(lines: Sequence[str], fences: Sequence[tuple[int, bool]]) -> int:
    """Return the line that closes a document: the last bare fence that is left when inner ones are paired, or the one
    after which a path tells that another block begins.
    """
    bare: list[int] = []
    inside = False
    for number, opens in fences:
        may_end = len(bare) % 2 == 1 and not inside
        if may_end and any(only_path(line, path_in(line)) for line in _last_words(lines, bare[-1] + 1, number)):
            break
        if inside or opens:
            inside = opens
        else:
            bare.append(number)
    return bare[-1] if len(bare) % 2 == 1 else len(lines)


def _last_words(lines: Sequence[str], start: int, end: int) -> list[str]:
    return [line for line in lines[start:end] if line.strip()][-1:]


def _fence(code: list[str], info: str, prose: list[str], known: Collection[str], *, closed: bool) -> Fence:
    text = "".join(f"{line}\n" for line in code)
    path, mentioned = _in_info(info), False
    if not path:
        path, mentioned = _before(prose, known)
    if not path:
        path = _in_comment(code)
    return Fence(text, path, info, closed, mentioned)


def _in_info(info: str) -> str:
    """Return the path of ```` ```python path=a.py ````, ```` ```a.py ```` or ```` ```python:a.py ````; '' for none."""
    if copy := COPY.search(info):
        return copy[0]
    words = re.split(r"[\s:=]+", info)
    return next((_tidy(word) for word in words if _PATH.fullmatch(word.strip("\"'{}"))), "")


def _before(prose: list[str], known: Collection[str]) -> tuple[str, bool]:
    """Return the path in the last non-empty line before the block, and whether that is a sentence; a line with nothing
    else leaves the prose.
    """
    # At most one blank line between a path and its block.
    for index in range(len(prose) - 1, max(-1, len(prose) - 3), -1):
        if not prose[index].strip():
            continue
        path = path_in(prose[index], known)
        mentioned = bool(path) and not only_path(prose[index], path)
        if path and not mentioned:
            del prose[index]
        return path, mentioned
    return "", False


def _in_comment(code: Iterable[str]) -> str:
    first = next(iter(code), "")
    found = comment_of(first.strip())
    comment = _COMMENTED.fullmatch(found.said) if found else None
    return _tidy(comment["path"]) if comment and (_PATH.fullmatch(comment["path"]) or is_copy(comment["path"])) else ""


def _tidy(path: str) -> str:
    return path.strip("\"'`*{} ").replace("\\", "/").removeprefix("./")


# The envelope of a quick action's answer: one fenced block with the new code, or `NO CHANGE:` and the reason. Pure.


@dataclass(frozen=True, slots=True)
class Envelope:
    """What was read from the answer of a quick action: the new code, or the reason for none (`declined`), or what is
    wrong (`problem`, for the model); `code` is None in the last two. `prose` is what the model says outside of the
    code.
    """

    code: str | None = None
    prose: str = ""
    declined: str = ""
    problem: str = ""


def read_envelope(reply: str, selected: str, path: str = "", *, amid_words: bool = False) -> Envelope:
    """Read the answer to a request for the new version of `selected`, a part of the file `path` ('' for code of an
    unknown language); where it stands `amid_words`, as in a string, it may be any. Never raises: an answer that cannot
    be used has a `problem`.
    """
    unified = with_newlines(reply, "\n")
    prose = parts_of(unified).prose
    if not _FENCE_LINE.search(unified):
        return _find_refusal(unified, prose) or Envelope(prose=prose, problem=NO_FENCE)
    code, problem = _read_fence(unified, nested=_FENCE_LINE.search(selected) is not None)
    if problem or code is None:
        return Envelope(prose=prose, problem=problem)
    if not code.strip():
        return Envelope(prose=prose, problem=NO_FENCE)
    code = _unwrapped(_unpacked(code, selected, path), selected, path)
    code = without_remarks(path, code, selected)
    if refused := _find_refusal(code, prose):
        return refused
    wrong = _wrong_content(code, selected, path, amid_words=amid_words)
    # A reply without an envelope: the fences that it has are the document's own, and what stands around is no prose.
    if not wrong and _FENCE_LINE.search(selected) and not _FENCE_LINE.search(code) and not _LONG_FENCE.search(unified):
        wrong = FENCES
    if wrong:
        return Envelope(prose="\n".join(filter(None, (prose, code.strip() if wrong == WORDS else ""))), problem=wrong)
    return Envelope(code, prose)


def grammar(fence: str) -> str:
    """Return a GBNF grammar (llama.cpp) of one block of code between lines of `fence` (three backticks or more). It
    does not allow `NO CHANGE:`, which small models choose too often; only a second request, without the grammar, offers
    it.
    """
    # A line may begin with fewer backticks than the fence has, and then go on with something else.
    starts = " | ".join(
        [*(f'"{"`" * count}" [^`\\n] rest' for count in range(len(fence)) if count), "[^`\\n] rest", '""']
    )
    return "\n".join(
        (
            f'root ::= "{fence}" [a-zA-Z0-9+#-]* "\\n" (line "\\n")+ "{fence}"',
            f"line ::= {starts}",
            "rest ::= [^\\n]*",
        )
    )


def _find_refusal(text: str, prose: str) -> Envelope | None:
    said = _DECLINED.match(text)
    return Envelope(prose=prose, declined=said["reason"].strip() or prose) if said else None


def _wrong_content(code: str, selected: str, path: str, *, amid_words: bool) -> str:
    """Return what is wrong with the content of a block, for the model; '' for nothing."""
    # What the selection has itself, such as a diff in a test, is code in the answer too.
    if (_DIFF_HEAD.search(code) and not _DIFF_HEAD.search(selected)) or _is_signed(code, selected):
        return DIFF
    if block_mark(code) and not block_mark(selected):
        return BLOCKS
    if not amid_words and (is_remark_alone(path, code, selected) or is_words(path, code, selected)):
        return WORDS
    # A part of a line may become any value; several lines do not.
    if selected.strip().count("\n") and other_text(path, selected, code):
        return NO_CODE
    return ELISION if left_out(selected, code, path or "a.py") else ""


def _read_fence(reply: str, *, nested: bool) -> tuple[str | None, str]:
    """Return the code of the only fence, and what is wrong instead. Code that is `nested` has fences of its own."""
    if nested:
        outer = _FENCE.search(reply)
        if outer is None or _leaves_open(outer["body"]):
            return None, CUT
        # A longer fence than those of the document ends at the first one like it.
        inner = any(line.startswith(outer["marks"]) for line in map(str.strip, outer["body"].split("\n")))
        return (None, SEVERAL) if inner and len(outer["marks"]) > _SHORT else (outer["body"], "")
    fences = parts_of(reply).fences
    if any(not fence.closed for fence in fences):
        return None, CUT
    if len(fences) != 1:
        return None, SEVERAL if fences else NO_FENCE
    if fences[0].info.split(" ")[0].lower() in ("diff", "patch", "udiff"):
        return None, DIFF
    return fences[0].code, ""


def _leaves_open(document: str) -> bool:
    """Return whether a fence of a document has no end: what was taken for the end of the reply's fence is its own."""
    opened = ""
    for line in document.split("\n"):
        marks = _MARKS.match(line)
        if marks is None:
            continue
        if not opened:
            opened = marks[1]
        elif marks[1].startswith(opened) and not line[marks.end() :].strip():
            opened = ""
    return bool(opened)


def _unpacked(code: str, selected: str, path: str) -> str:
    """Return the code that a reply gives in an object of JSON, or with numbers before its lines, where the selection
    has neither and the file is none of data or text.
    """
    if is_data(path) or is_document(path) or path.endswith(_LISTS):
        return code
    lines = code.strip("\n")
    if not _NUMBERED.match(selected) and lines.count("\n") + 1 >= _FEWEST_NUMBERED:
        bare = without_line_numbers(lines, _NUMBERED)
        code = code if bare == lines else bare
    marks = [_LINE_MARK.match(line) for line in lines.split("\n")]
    if all(marks) and not _LINE_MARK.match(selected):
        bare = "\n".join(line[each.end() :] for line, each in zip(lines.split("\n"), marks, strict=True) if each)
        # Of a few lines it is told by what stands behind.
        code = bare if likeness(bare.strip(), selected.strip()) >= _ALIKE else code
    if not code.lstrip().startswith("{") or '":' not in code.replace(" ", ""):
        return code
    try:
        given = json.loads(code)
    except (ValueError, RecursionError):
        return code
    key = next((each for each in given if each in _CODE_KEYS), "")
    value = given.get(key)
    if not isinstance(value, str) or f'"{key}"' in selected or not set(given) - {key} <= _BESIDE_CODE:
        return code
    # Of one line, it may be what the selection is to become.
    sure = "\n" in value.strip() or likeness(value.strip(), selected.strip()) >= _ALIKE
    return value if sure or (key in _SURE_KEYS and selected.strip().count(" ")) else code


def _unwrapped(code: str, selected: str, path: str) -> str:
    """Return code without tags, thoughts and marks of a model's own format around it, which the selection has not."""
    thought = _THOUGHT.match(code)
    if thought is not None and f"<{thought['name']}" not in selected:
        code = code[thought.end() :]
    wrapped = _TAGGED.fullmatch(code)
    # A page may have an element of that name: only around what begins as the selection does it is none.
    if wrapped is not None:
        inner = wrapped["code"] if wrapped["name"] else wrapped["data"]
        begins = filled_lines(inner)[:1] == filled_lines(selected)[:1]
        known = f"<{wrapped['name'] or '![CDATA['}" in selected or path.endswith(PAGES) or is_document(path)
        code = inner if begins or not known else code
    return code if _TOKEN.search(selected) else _TOKEN.sub("", code)


def _is_signed(code: str, selected: str) -> bool:
    """Return whether every line begins with the sign of a diff, where the selection has none."""
    filled = [line for line in code.split("\n") if line.strip()]
    signed = [line for line in filled if line[0] in "+-"]
    own = any(line[:1] in ("+", "-") for line in selected.split("\n"))
    both = {line[0] for line in signed} == {"+", "-"}
    return both and not own and all(line[0] in "+- " for line in filled)
