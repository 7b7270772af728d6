"""Finds what belongs to a reply or a call and not to the text of a file: a fence around the text, marks of search and
replace blocks and of conflicts, tags that end a call, tokens that end a reply, numbers of lines, and the escapes of
HTML or JSON in the place of the signs themselves.

Only lines that a change adds count, outside of the file's literals and comments, where all of it may be meant. Pure
functions. Not here: lines that stand for code (`placeholders.py`), what of a reply is code (`direct/fences.py`).
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index import grammars
from codeagent_lsp.index.comments import is_document
from codeagent_lsp.index.grammars import Grammar, is_prose, is_source
from codeagent_lsp.index.literals import COMMENTS, STRINGS, Language, language_of, literals
from codeagent_lsp.index.placeholders import filled_lines
from codeagent_lsp.index.remarks import without_remarks
from codeagent_lsp.workspace.edits.line_matching import runs_of
from codeagent_lsp.workspace.text.position import content_of, split_lines

# All the ways to begin a search and replace block or a conflict: `<<<< ORIGINAL`, `<<<<<<< HEAD`, `------- SEARCH`,
# `[SEARCH]`.
_OPENS_BLOCK = re.compile(
    r"^[ \t]*(?:<{3,} *(?i:search|original|old|before|current|head|ours|find)\b.*|<{7}(?: .*)?|-{3,} *SEARCH\b.*"
    r"|(?i:\[search\]|<search>)|SEARCH:?)[ \t]*$",
    re.MULTILINE,
)
_CLOSES_BLOCK = re.compile(
    r"^[ \t]*(?:>{3,} *(?i:replace|updated?|new|after|incoming|theirs|end)\b.*|>{7}(?: .*)?|\+{3,} *REPLACE\b.*"
    r"|<{3,} *END\b.*|(?i:\[/?replace\]|</?replace>)|REPLACE:?)[ \t]*$",
    re.MULTILINE,
)
_ONE_MARK = re.compile(r"^[ \t]*(?:<{3,} *SEARCH|>{3,} *REPLACE)\b.*$", re.MULTILINE | re.IGNORECASE)

_FENCE = re.compile(r"[ \t]*(?:`{3,6}|~{3,6})(?!~)[^`]*")
# `</content>`, `</parameter>`, `</invoke>`: with its opening in the text, it is an element of that.
_CALL_END = re.compile(
    r"[ \t]*</(?P<name>(?:\w+:)?(?:content|parameter|invoke|function(?:_calls)?|tool_calls?|arg_value|file_text"
    r"|new_str(?:ing)?|write_to_file|write_file|replace_in_file|create_file|edit_file))>[ \t]*"
)
_CALL_START = re.compile(
    r"[ \t]*<(?P<name>content|parameter|file_text|new_str(?:ing)?|file"
    r"|code|new_code|answer|replacement|updated_code|edit)(?: (?:name|path)=[^<>]*)?>"
)
_CALL_CLOSE = re.compile(r"</(?P<name>parameter|invoke|file_text|new_str(?:ing)?)>[ \t]*\Z")
_REPLY_END = re.compile(r"(?:<\|(?:im_end|endoftext|eot_id|eom_id|end|return|call)\|>|<｜end▁of▁sentence｜>)[ \t]*\Z")
# `    12\t…` (cat, Claude Code), `12→…`, `12 | …`.
_NUMBER = re.compile(r"[ ]{0,6}(\d{1,6})(?:\t|\u2192| ?[|\u2502])")
_ANY_NUMBER = re.compile(r"[ ]{0,6}(\d{1,6})(?:\t|\u2192| ?[|\u2502]|:(?: |$))")
_FEWEST_NUMBERS = 3
_LISTED = frozenset(("csv", "tsv", "psv", "tab", "list", "lst", "conf", "dat", "log", "out", "diff", "patch", "rej"))
"""Endings of texts whose lines may begin with numbers, signs or tags."""
_ESCAPED = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#x27|#34);")
# No address of a variable `lt`, as `p = &lt;` in C.
_ESCAPED_SIGN = re.compile(r"[-=]&gt;|&(?:lt|gt|amp|quot);(?=[ \t]*[^\s)])")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`")
_REMARK = re.compile(r"^\s*(?:#(?!include|if|define|pragma|import)|//|--|\*|/\*|;|%).*|(?:\s//|\s#\s|/\*).*")
_ENDED = re.compile(r"\\r?\\n|\\n")
_SEVERAL_LINES = re.compile(r"\\n(?: {2,}|\t|\\[nt]).*\\n")
_WITH_BACKSLASHES = frozenset(("pl", "pm", "hs", "elm"))
"""Endings of languages in which `\\n` may stand outside of literals."""
_MARKUP = frozenset("html htm xhtml xml svg xsd xsl xslt vue svelte astro plist csproj xaml pom".split())  # noqa: SIM905
_FENCED = frozenset(("typ", "livemd", "qmd", "rmd", "ipynb"))
"""Endings of documents with fences, beside those of prose."""
_SCRIPTS = frozenset(
    ("dockerfile", "containerfile", "makefile", "gnumakefile", "jenkinsfile", "vagrantfile", "gemfile", "rakefile")
)
"""Names without an ending that are no documents."""
_TEXTS = COMMENTS | {"jsx_text", "html_character_reference", "text"}
"""Nodes beside the literals of a language that hold words, also with the escapes of HTML."""

_LEFT = (
    "{line!r} would stand in the text of {path}, and seems to be no part of it: it is {what}. Give the text alone, as "
    "it is to stand in the file."
)
_DIFF_LEFT = "a line of a diff, with its sign in front"
_FENCE_LEFT = "a code fence around it"
_MARK_LEFT = "a mark of a search and replace block or of a conflict"
_CALL_LEFT = "the end of a tool call"
_ENDING_LEFT = "the end of a reply"
_NUMBER_LEFT = "a line with its number in front"
_REMARK_LEFT = "a remark about it"
_HTML_LEFT = "escaped as in HTML, such as `&lt;` for `<`"
_JSON_LEFT = "escaped twice, so that `\\n` stands for the end of a line"


def refuse_wrapped(path: str, before: str, after: str) -> None:
    """Raise EditRefused if a change would put a part of the reply or call around a text into the text itself, such as a
    code fence, or its escapes. What `before` has, `after` may have.
    """
    bare = without_remarks(path, after, before)
    if len(bare.strip()) < len(after.strip()):
        given, left = filled_lines(after), filled_lines(bare)
        said = given[0] if given[0] != left[0] else given[-1]
        raise EditRefused("not_found", _LEFT.format(line=said[:80], path=path, what=_REMARK_LEFT))
    lines, own = split_lines(after), split_lines(before)
    # Most changes have none of them, and need neither a comparison nor a parse.
    if not any(_may_be_left(content_of(line)) for line in set(lines).difference(own)):
        return
    rows, old = ([content_of(line) for line in text] for text in (lines, own))
    ending = path.rpartition(".")[2].lower()
    code = ending not in _LISTED | {"json", "jsonl", "ndjson", "ipynb"} and not is_document(path)
    one_line = "\n" not in after.strip() and after.count("\\n") >= _FEWEST_NUMBERS < before.count("\n")
    if code and (one_line or _is_json_text(after.strip())) and not _is_json_text(before.strip()):
        raise EditRefused("not_found", _LEFT.format(line=after.strip()[:80], path=path, what=_JSON_LEFT))
    fresh = [number for run in runs_of(old, rows) for number in range(run.new_start, run.new_end)]
    language = language_of(path, after)
    # A fence opens a template in some languages, and a conflict a heredoc.
    plain = "\n".join("" if _is_mark(line) else line for line in rows)
    inside = {line for each in literals(plain, language) for line in range(each.first, each.last + 1)}
    rest = [rows[number] for number in fresh if number not in inside]
    around = _around_lines(path, old, rows, [number for number in fresh if number not in inside])
    if found := around or _wrapping(path, before, rows, fresh, inside) or _escapes(path, before, after, rest, language):
        line, what = found
        raise EditRefused("not_found", _LEFT.format(line=line.strip()[:80], path=path, what=what))


def block_mark(text: str) -> str:
    """Return the first line of a search and replace block or of a merge conflict in a text, however its marks are
    written; '' if it has none.
    """
    found = _ONE_MARK.search(text) or _OPENS_BLOCK.search(text)
    if found is None or (not _ONE_MARK.match(found[0]) and not _CLOSES_BLOCK.search(text, found.end())):
        return ""
    return found[0].strip()


def _is_mark(line: str) -> bool:
    return any(each.match(line) for each in (_FENCE, _ONE_MARK, _OPENS_BLOCK, _CLOSES_BLOCK, _CALL_END))


def _may_be_left(line: str) -> bool:
    """Return whether a line may be a wrapping, or hold escapes."""
    ends = "\\n" in line and ('\\"' in line or _ENDED.search(_bare(line)) is not None)
    return (
        ends
        or _is_mark(line)
        or line[:1] in ("+", "-", '"', "{")
        or line.count("\\n") >= _FEWEST_NUMBERS
        or _ANY_NUMBER.match(line) is not None
        or _CALL_START.match(line) is not None
        or line.rstrip().endswith("</s>")
        or _CALL_CLOSE.search(line) is not None
        or _REPLY_END.search(line) is not None
        or _ESCAPED.search(line) is not None
    )


def _wrapping(
    path: str, before: str, rows: Sequence[str], fresh: Sequence[int], inside: set[int]
) -> tuple[str, str] | None:
    """Return one of the `fresh` lines that belongs around the text, and what it is; None for none."""
    ending = path.rpartition(".")[2].lower()
    # A list of packages is no document, whatever its ending is.
    script = path.rpartition("/")[2].lower() in _SCRIPTS or (ending == "txt" and not is_document(path))
    document = (is_prose(path) and not script) or ending in _FENCED
    code = script or grammars.grammar_of(path) is not None or is_source(path)
    edges = _edges(rows, fresh)
    for line in (rows[number] for number in fresh if number not in inside):
        # In code no line is one; of other texts those with which a new part begins or ends.
        if not document and _FENCE.fullmatch(line) and (code or line in edges):
            return line, _FENCE_LEFT
        end = _CALL_END.fullmatch(line)
        if end is not None and not any(f"<{end['name']}" in each for each in rows):
            return line, _CALL_LEFT
        token = _REPLY_END.search(line)
        if token is not None and (not line[: token.start()].strip() or line in edges):
            return line, _ENDING_LEFT
    if code and (number := _first_numbered(rows, [number for number in fresh if number not in inside])):
        return number, _NUMBER_LEFT
    # A document may show such marks, between fences or indented.
    shown = inside | _between_fences(rows) if document else inside
    outside = "\n".join("" if number in shown else line for number, line in enumerate(rows))
    mark = block_mark(outside)
    return (mark, _MARK_LEFT) if mark and not block_mark(before) else None


def _around_lines(path: str, old: Sequence[str], rows: Sequence[str], fresh: Sequence[int]) -> tuple[str, str] | None:
    """Return an added line that has a number, a sign of a diff or a tag of a call around what is a line of the file,
    and what it is; None for none. Only in files in which no line begins so.
    """
    ending = path.rpartition(".")[2].lower()
    filled = [number for number in fresh if rows[number].strip()]
    if not filled or ending in _LISTED or is_document(path):
        return None
    first, last = rows[filled[0]], rows[filled[-1]]
    # Each line has the number of its place.
    pattern = _ANY_NUMBER if len(filled) >= _FEWEST_NUMBERS and ending not in ("yaml", "yml") else _NUMBER
    numbers = [pattern.match(rows[number]) for number in filled]
    if all(each and int(each[1]) == number + 1 for each, number in zip(numbers, filled, strict=True)):
        return None if any(map(_NUMBER.match, old)) else (first, _NUMBER_LEFT)
    if sign := _signed(old, rows, filled):
        return sign, _DIFF_LEFT
    if ending in _MARKUP or ending in ("tsx", "jsx", "js", "mdx"):
        return None
    opens = _CALL_START.match(first)
    if opens is not None and last.rstrip().endswith(f"</{opens['name']}>"):
        return first, _CALL_LEFT
    closes = _CALL_CLOSE.search(last)
    if closes is not None and not any(f"<{closes['name']}" in line for line in rows):
        return last, _CALL_LEFT
    return (last, _ENDING_LEFT) if last.strip() == "</s>" and not any("<s>" in line for line in rows) else None


def _signed(old: Sequence[str], rows: Sequence[str], filled: Sequence[int]) -> str:
    """Return the first added line that has the sign of a diff in front; '' for none."""
    lost = Counter(old) - Counter(rows)
    for number, after in itertools.pairwise(filled):
        line = rows[number]
        if after == number + 1 and line[:1] == "-" and line[1:].strip() and line[1:] in lost and rows[after][:1] == "+":
            return line
    added = [rows[number] for number in filled]
    # Lines of a diff without those that go: one blank more in front of what is kept.
    signs = {line[:1] for line in added}
    if signs == {"+", " "} and any(line[:1] == " " and line[1:] in lost for line in added):
        return next(line for line in added if line[:1] == "+")
    # `+ b` at the beginning of a line goes on with the one above.
    plus = all(line[:1] == "+" and not re.match(r"\+(?: \S|\+)", line) for line in added)
    return added[0] if plus and len(added) > 1 and not any(line[:1] == "+" for line in old) else ""


def _first_numbered(rows: Sequence[str], fresh: Iterable[int]) -> str:
    """Return the first of several lines, one below the other, that begin with their numbers; '' if there are none."""
    found: list[tuple[int, int]] = []
    for number in fresh:
        match = _NUMBER.match(rows[number])
        if match is None:
            found = found if not rows[number].strip() else []
        elif found and (number, int(match[1])) != (found[-1][0] + 1, found[-1][1] + 1):
            found = [(number, int(match[1]))]
        else:
            found.append((number, int(match[1])))
        if len(found) == _FEWEST_NUMBERS:
            return rows[found[0][0]]
    return ""


def _edges(rows: Sequence[str], fresh: Collection[int]) -> set[str]:
    """Return the lines that are the first or the last of a run of fresh ones, blank lines aside."""
    new = set(fresh)
    filled = [number for number, line in enumerate(rows) if line.strip()]
    flags = [False, *(number in new for number in filled), False]
    return {rows[number] for number, *near in zip(filled, flags, flags[2:], strict=False) if not all(near)}


def _between_fences(rows: Sequence[str]) -> set[int]:
    """Return the lines of a document that are shown: those between fences, and indented ones."""
    found, within = set(), False
    for number, line in enumerate(rows):
        if _FENCE.fullmatch(line):
            within = not within
        elif within or line.startswith(("    ", "\t")):
            found.add(number)
    return found


def _escapes(path: str, before: str, after: str, rest: Sequence[str], language: Language) -> tuple[str, str] | None:
    """Return an added line that is escaped, and how; None for none."""
    ending = path.rpartition(".")[2].lower()
    escaped = [line for line in rest if _ESCAPED.search(line)]
    if escaped and ending in _MARKUP:
        # All of it, as any element has the sign itself.
        alone = "<" not in after and "&lt;" in after
        return (escaped[0], _HTML_LEFT) if alone and (not before.strip() or "<" in before) else None
    if found := _escaped_as_html(path, after, escaped, language):
        return found, _HTML_LEFT
    joined = [line for line in rest if _ENDED.search(line)]
    found = _escaped_as_json(path, before, after, joined, language) if joined else ""
    return (found, _JSON_LEFT) if found else None


def _escaped_as_html(path: str, after: str, escaped: Sequence[str], language: Language) -> str:
    """Return one of the lines with an escape of HTML, in a text that is no markup, where it must be a sign of the text;
    '' for none.
    """
    if escaped and path.rpartition(".")[2].lower() == "php" and "<?" not in after and "&lt;?" in after:
        return escaped[0]
    plain = {line: html.unescape(line) for line in escaped}
    if escaped and isinstance(language, Grammar) and _parses_only(after, plain, language):
        return escaped[0]
    return _amid_code(path, after, escaped, language)


def _escaped_as_json(path: str, before: str, after: str, joined: Sequence[str], language: Language) -> str:
    """Return a line, of those with `\\n` in them, or the whole text, if its escapes must be line ends; '' for none."""
    ending = path.rpartition(".")[2].lower()
    if isinstance(language, Grammar):
        ended = {line: _unescape(line) for line in joined if _ENDED.search(_bare(line)) or '\\"' in line}
        if ended and _parses_only(after, ended, language):
            return joined[0]
    elif is_source(path) and ending not in _WITH_BACKSLASHES and any(map(_SEVERAL_LINES.search, map(_bare, joined))):
        return joined[0]
    # All of a text in one line, which is none in data of one line.
    whole = after.strip()
    if "\n" in whole or len(_ENDED.findall(whole)) < 2:
        return ""
    if ending == "json":
        return whole if not _is_json(whole) and _is_json(_unescape(whole)) else ""
    several = before.strip().count("\n") > 1 or "\\n\\n" in whole or whole.endswith("\\n")
    # The first line of a script is no remark that goes on to the end.
    bare = _bare(whole.removeprefix("#!"))
    return whole if several and len(_ENDED.findall(bare)) > 1 else ""


def _amid_code(path: str, text: str, lines: Collection[str], language: Language) -> str:
    """Return one of the lines that has an escaped sign outside of literals and comments; '' for none."""
    marked = [line for line in lines if _ESCAPED_SIGN.search(line)]
    if not marked or not isinstance(language, Grammar):
        return next((line for line in marked if is_source(path) and _ESCAPED_SIGN.search(_bare(line))), "")
    words, place = STRINGS[language.name] | _TEXTS, 0
    root = grammars.tree_of(language, text.encode("utf-8", "replace")).root_node
    for line in split_lines(text):
        for sign in _ESCAPED_SIGN.finditer(line) if content_of(line) in marked else ():
            start = place + len(line[: sign.start()].encode("utf-8", "replace"))
            node = root.descendant_for_byte_range(start, start + 1)
            while node is not None and node.type not in words:
                node = node.parent
            if node is None:
                return line
        place += len(line.encode("utf-8", "replace"))
    return ""


def _bare(line: str) -> str:
    """Return a line of code without its texts and remarks."""
    return _REMARK.sub("", _QUOTED.sub('""', line))


def _unescape(line: str) -> str:
    """Return a line with the escapes of JSON undone; also one with quotes that are not escaped."""
    try:
        return str(json.loads(f'"{line}"', strict=False))
    except ValueError:
        return _ENDED.sub("\n", line).replace('\\"', '"').replace("\\t", "\t")


def _parses_only(text: str, plain: dict[str, str], language: Grammar) -> bool:
    """Return whether a text can be parsed only with some of its lines replaced."""
    if not grammars.tree_of(language, text.encode("utf-8", "replace")).root_node.has_error:
        return False
    lines = "\n".join(plain.get(content_of(line), content_of(line)) for line in split_lines(text))
    return not grammars.tree_of(language, f"{lines}\n".encode("utf-8", "replace")).root_node.has_error


def _is_json_text(text: str) -> bool:
    """Return whether a text is a string of JSON of several lines, or an object with the argument of a call."""
    if text[:1] not in ('"', "{"):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if isinstance(value, dict):
        value = value.get("content") if len(value) == 1 else None
    return isinstance(value, str) and "\n" in value.strip()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
