"""Lines whose leading blanks are content: those that begin inside a string, a heredoc, a raw text or a comment. Code
can be moved to another indentation, these cannot; comments and docstrings only as a whole, together with the code.

They are found by the syntax tree, in languages without a grammar by `literal_signs.py`. Text in JSX does not count, as
its lines are trimmed. Not here: how code is moved (`tools/code/shift.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index import grammars
from codeagent_lsp.index.grammars import Grammar, text_of
from codeagent_lsp.index.literal_signs import (
    Signs,
    Span,
    begun_within,
    is_unclear,
    loose_comment_signs,
    signs_of,
    spans,
)
from codeagent_lsp.workspace.text.position import content_of, split_lines

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_SHOWN = 80
_SCRIPT = ("string", "template_string", "regex")
STRINGS: dict[str, frozenset[str]] = {
    "python": frozenset(("string",)),
    "javascript": frozenset(_SCRIPT),
    "typescript": frozenset((*_SCRIPT, "template_literal_type")),
    "tsx": frozenset((*_SCRIPT, "template_literal_type")),
    "go": frozenset(("raw_string_literal", "interpreted_string_literal", "rune_literal")),
    "rust": frozenset(("string_literal", "raw_string_literal", "char_literal")),
    "java": frozenset(("string_literal", "character_literal")),
    "c": frozenset(("string_literal", "char_literal", "system_lib_string")),
    "cpp": frozenset(("string_literal", "raw_string_literal", "char_literal", "system_lib_string")),
    "csharp": frozenset(
        (
            "string_literal",
            "verbatim_string_literal",
            "raw_string_literal",
            "interpolated_string_expression",
            "character_literal",
        )
    ),
    "ruby": frozenset(
        (
            "string",
            "subshell",
            "regex",
            "delimited_symbol",
            "bare_string",
            "bare_symbol",
            "character",
            "heredoc_body",
            "uninterpreted",
        )
    ),
    "php": frozenset(("string", "encapsed_string", "heredoc", "nowdoc", "shell_command_expression")),
    "bash": frozenset(
        (
            "string",
            "raw_string",
            "ansi_c_string",
            "translated_string",
            "heredoc_redirect",
            "heredoc_body",
            "heredoc_end",
            "regex",
        )
    ),
}
"""The kinds of nodes that are literals, by the name of the grammar: no part of one is code that may be moved."""
_NESTING = frozenset(("rust",))
"""Grammars of languages whose comments are within one another."""
COMMENTS = frozenset(("comment", "line_comment", "block_comment", "html_comment"))
EMBEDDED = {("php", "text"): "a.html", ("c", "preproc_arg"): "a.c", ("cpp", "preproc_arg"): "a.cpp"}
"""The kinds of nodes with text of another language, and a name of a file in that."""
_GAPS = {"bash": "a.bash", "cpp": "a.cpp"}
"""Grammars that fail at the second heredoc of a line and at a raw string in a macro: then the signs of these names
count, too.
"""
_BODIES = frozenset(("heredoc_body", "heredoc_end", "uninterpreted"))
"""Literals that begin with a line: also the blanks in front of their first word are content."""


class _Margin(NamedTuple):
    """Literals of which a language takes away the blanks that their lines share: what their first line ends with, what
    is on their last line, and what in them makes this uncertain, as it is filled in before the blanks are taken away.
    """

    opening: str
    closing: str = ""
    filled: str = ""


_CALLED = r"(?:\b(?:textwrap\.)?dedent|\b(?:inspect\.)?cleandoc)\(\s*[rR]?(?:\"\"\"|''')\\?"
_MARGINS: dict[str, tuple[_Margin, ...]] = {
    "java": (_Margin(r'"""'),),
    "csharp": (_Margin(r'\$*"{3,}'),),
    "python": (_Margin(_CALLED, r"(?:\"\"\"|''')\s*,?\s*(?:\)|$)"),),
    "ruby": (_Margin(r"(?:(?!<<).)*<<~[\"'`]?\w+[\"'`]?(?:(?!<<).)*"),),
    "php": (_Margin(r"<<<[ \t]*[\"']?\w+[\"']?", r"[ \t]+\w+\b"),),
    **dict.fromkeys(("swift", "jl", "graphql", "gql"), (_Margin(r'"""'),)),
    **dict.fromkeys(("ex", "exs"), (_Margin(r'(?:~[A-Za-z])?(?:"""|\'\'\')'),)),
    **dict.fromkeys(("kt", "kts"), (_Margin(r'"""', r'"""\s*\.trim(?:Indent|Margin)\(\)', r"\$"),)),
    **dict.fromkeys(("scala", "sc"), (_Margin(r'(?<![A-Za-z])"""\|?.*', r'"""\s*\.stripMargin\b(?!\()'),)),
    **dict.fromkeys(("groovy", "gradle"), (_Margin(r'"""\\?', r'"""\s*\.strip(?:Indent|Margin)\(\)', r"\$"),)),
    "nix": (_Margin(r"''"),),
    **dict.fromkeys(("pl", "pm", "t"), (_Margin(r"(?:(?!<<).)*<<~[\"']?\w+[\"']?(?:(?!<<).)*"),)),
    **dict.fromkeys(("tf", "tfvars", "hcl"), (_Margin(r"(?:(?!<<).)*<<-\w+"),)),
}
"""By the name of the grammar or the signs. Python's functions take the blanks of a text away that is not filled in."""


class Literal(NamedTuple):
    """The 0-based lines `first` to `last` of a text that begin inside one literal. `moves` says that it is a comment or
    a docstring, which is indented as the code is.
    """

    first: int
    last: int
    moves: bool = False


Language = Grammar | Signs
"""A language, by its grammar or by the signs that open and close its literals."""


def literals(text: str, language: Language, rows: tuple[int, int] | None = None) -> tuple[Literal, ...]:
    """Return the literals and comments of a text that span several lines, in order, none inside another. With `rows`, a
    first and a last line (0-based), those outside of them may be left out, which is much faster.
    """
    if "\n" not in text and "\r" not in text:
        return ()
    if isinstance(language, Signs):
        return tuple(_by_signs(text, spans(text, language)))
    data = text.encode("utf-8", "replace")
    root = grammars.tree_of(language, data).root_node
    found = tuple(_in_tree(root, language.name, rows or (0, root.end_point.row)))
    if language.name not in _GAPS or not root.has_error:
        return found
    return _join_overlapping((*found, *literals(text, signs_of(_GAPS[language.name]))))


def literals_of_piece(code: str, language: Language) -> tuple[Literal, ...]:
    """Return the literals of a piece of code, as `literals` does; for PHP, `<?php` need not be before it."""
    if not isinstance(language, Grammar) or language.name != "php":
        return literals(code, language)
    # For PHP all is text up to `<?php`; the line that is put in front is counted off.
    return tuple(
        each._replace(first=each.first - 1, last=each.last - 1) for each in literals(f"<?php\n{code}", language)
    )


def literal_lines(text: str, inside: Iterable[Literal]) -> Counter[str]:
    """Return how often each line occurs among those that begin inside the literals `inside` of a text; lines are given
    without their ends, and blank ones are left out.
    """
    lines = [content_of(line) for line in split_lines(text)]
    return Counter(line for each in inside for line in lines[each.first : each.last + 1] if line.strip())


def fixed_lines(inside: Iterable[Literal]) -> frozenset[int]:
    """Return the 0-based numbers of the lines of these literals whose indentation is content, so that they do not move
    with the code around them; those of comments and docstrings are not among them.
    """
    return frozenset(line for each in inside if not each.moves for line in range(max(each.first, 0), each.last + 1))


def language_of(path: str, text: str) -> Language:
    """Return the language of a file, by its path or its first line: its grammar, else the signs of its literals, which
    may be those of an unknown language.
    """
    return grammars.grammar_of(path, text[:200].encode("utf-8", "replace")) or signs_of(path)


def loose_comments(path: str, text: str) -> int:
    """Return how many comments of a text have lost their beginning or their end. In a language with a grammar only
    those that extend to the end of the next one are counted, as the grammar accepts them.
    """
    language = language_of(path, text)
    if isinstance(language, Signs):
        return loose_comment_signs(text, language)
    if language.name in _NESTING or text.count("/*") == text.count("*/"):
        return 0
    pending, loose = [grammars.tree_of(language, text.encode("utf-8", "replace")).root_node], 0
    while pending:
        node = pending.pop()
        if node.type in COMMENTS:
            loose += begun_within(text_of(node))
        elif node.end_point.row > node.start_point.row:  # no other comment begins a line within it
            pending.extend(node.children)
    return loose


def may_hold_more(code: str, language: Language) -> bool:
    """Return whether code may hold literals over several lines that `literals` does not find, as its language is not
    known.
    """
    return isinstance(language, Signs) and is_unclear(code, language)


def kept_literal_lines(
    lines: Sequence[str], inside: Iterable[Literal], known: Counter[str], move: Callable[[str], str]
) -> dict[int, str]:
    """Return, by 0-based number, the lines inside literals as they have to be after the code around them was changed by
    `move`: as given, unless a model has moved them with the code, which shows if they are `known` only after `move`.
    Lines of comments move, unless they are `known` as given.
    """
    found: dict[int, str] = {}
    for each in inside:
        given = list(lines[each.first : each.last + 1])
        moved = [move(line) for line in given]
        if each.moves:
            pairs = zip(given, moved, strict=True)
            chosen = [line if line in known and other not in known else other for line, other in pairs]
        elif _same(moved, known) > _same(given, known):
            chosen = [_only_like(line, known) or line for line in moved]
        else:  # one line may be moved with the code all the same, such as the end of a heredoc
            pairs = zip(given, moved, strict=True)
            chosen = [other if other in known and line not in known else line for line, other in pairs]
        found |= dict(enumerate(chosen, each.first))
    return found


def _only_like(line: str, known: Counter[str]) -> str:
    """Return the one known line that a line differs from by the blanks at its ends only; "" if it is known itself, or
    there is none or more than one.
    """
    alike = () if line in known or not line.strip() else [each for each in known if each.strip() == line.strip()]
    return alike[0] if len(alike) == 1 else ""


def refuse_altered(path: str, before: str, after: str, given: Iterable[str]) -> None:
    """Raise EditRefused if a line inside a literal of `after` is neither in `before` nor in one of the texts that were
    `given` for the change, since then fitting it into the file has altered that line.
    """
    language = language_of(path, before or after)
    fixed = [each for each in literals(after, language) if not each.moves]
    # Counted, so that one more copy of a line is new as well.
    new = literal_lines(after, fixed) - literal_lines(before, literals(before, language)) if fixed else Counter[str]()
    said = {content_of(line) for text in (before, *given) for line in split_lines(text)} if new else set()
    wrong = next((line for line in new if line not in said), None)
    if wrong is not None and not _only_shifted(
        after, fixed, language, given, {line for line in new if line not in said}
    ):
        raise EditRefused(
            "not_found",
            "The old text is not indented as in the file, so that other blanks would come into a string than were "
            f"given for it: {wrong[:_MOST_SHOWN]!r}. Copy the old lines with the file's indentation.",
        )


def _only_shifted(
    after: str, fixed: Iterable[Literal], language: Language, given: Iterable[str], wrong: Collection[str]
) -> bool:
    """Return whether the lines of a text that are `wrong` are given ones, moved with all others of their literals, and
    the language takes the common blanks of these away: then the literals say what was meant.
    """
    lines = [content_of(line) for line in split_lines(after)]
    told: dict[str, set[str]] = {}
    for line in (content_of(line) for text in given for line in split_lines(text)):
        told.setdefault(line.lstrip(" \t"), set()).add(line)
    for each in fixed:
        filled = [line for line in lines[each.first : each.last + 1] if line.strip()]
        altered = [line for line in filled if line in wrong]
        if not altered:
            continue
        if not _loses_margin(lines, each, language.name):
            return False
        shifts = set.intersection(*(_shifts(line, told) for line in altered))
        # A line of brackets alone is found everywhere, so it shows no shift.
        kept = [line for line in filled if line not in wrong and any(map(str.isalnum, line))]
        if not shifts or (kept and not any(shifts & _shifts(line, told) for line in kept)):
            return False
    return True


def _shifts(line: str, told: Mapping[str, Collection[str]]) -> set[tuple[str, str]]:
    """Return by which blanks more, or less, a line stands deeper than the same lines of what was given."""
    found: set[tuple[str, str]] = set()
    for given in told.get(line.lstrip(" \t"), ()):
        if line.endswith(given):
            found.add((line.removesuffix(given), ""))
        elif given.endswith(line):
            found.add(("", given.removesuffix(line)))
    return found


def _loses_margin(lines: Sequence[str], inside: Literal, name: str) -> bool:
    """Return whether the language takes away the blanks that all lines of a literal share."""
    first = inside.first - 1
    if first < 0:
        return False
    # `dedent(` may stand on the line above the quotes, and its bracket on the line below.
    opening = " ".join((lines[first - 1].strip() if first and name == "python" else "", lines[first].rstrip()))
    closing = " ".join((lines[inside.last], *(lines[inside.last + 1 : inside.last + 2] if name == "python" else ())))
    content = "\n".join(lines[inside.first : inside.last + 1])
    return any(
        re.search(rf"(?:{margin.opening})\Z", opening)
        and (not margin.closing or re.search(margin.closing, closing))
        and (not margin.filled or not re.search(margin.filled, content))
        for margin in _MARGINS.get(name, ())
    )


def _same(lines: Iterable[str], known: Counter[str]) -> int:
    return sum(1 for line in lines if line.strip() and line in known)


def _in_tree(root: Node, name: str, rows: tuple[int, int]) -> Iterator[Literal]:
    strings = STRINGS[name]
    pending = [root]
    while pending:
        node = pending.pop()
        begin, end = node.start_point.row, node.end_point.row
        # The line that ends a heredoc has to stay where it is as well.
        if (begin == end and node.type != "heredoc_end") or end < rows[0] or begin > rows[1]:
            continue
        # Ruby's `=begin` counts in column 0 only.
        is_block = node.type == "comment" and (node.text or b"").startswith(b"=begin")
        if (name, node.type) in EMBEDDED:
            text = text_of(node)
            for each in literals(text, signs_of(EMBEDDED[name, node.type])):
                yield each._replace(first=each.first + node.start_point.row, last=each.last + node.start_point.row)
        elif node.type in strings or node.type in COMMENTS:
            begins_line = node.start_point.column == 0 and (is_block or node.type in _BODIES)
            first = node.start_point.row + (0 if begins_line else 1)
            # An end in column 0 is the end of the line before.
            last = node.end_point.row - (0 if node.end_point.column else 1)
            moves = not is_block and (node.type in COMMENTS or _is_docstring(node)) and _moves_with_code(node)
            if last >= first:
                yield Literal(first, last, moves)
        else:
            pending.extend(reversed(node.children))


def _is_docstring(node: Node) -> bool:
    return node.type == "string" and node.parent is not None and node.parent.type == "expression_statement"


def _moves_with_code(node: Node) -> bool:
    """Return whether no line of a comment or docstring stands left of the line in which it begins."""
    lines, depth = (node.text or b"").split(b"\n")[1:], _indentation(node)
    return all(len(line) - len(line.lstrip(b" \t")) >= depth for line in lines if line.strip())


def _indentation(node: Node) -> int:
    """Return how many blanks precede the line in which a node begins."""
    while node.parent is not None and node.parent.start_point.row == node.start_point.row:
        node = node.parent
    while node.prev_sibling is not None and node.prev_sibling.end_point.row == node.start_point.row:
        node = node.prev_sibling
    return node.start_point.column


def _by_signs(text: str, found: Iterable[Span]) -> Iterator[Literal]:
    place = row = 0
    lines = text.split("\n")
    for each in found:
        row += text.count("\n", place, each.start)
        last = row + text.count("\n", each.start, each.end)
        inside = lines[row + 1 : last + 1]
        depth = len(lines[row]) - len(lines[row].lstrip(" \t"))
        moves = each.moves and all(len(line) - len(line.lstrip(" \t")) >= depth for line in inside if line.strip())
        # Then it has no part of the line after it.
        ends_line = text[each.end - 1] == "\n"
        yield Literal(row if each.body else row + 1, last - 1 if ends_line else last, moves)
        place, row = each.end, last


def _join_overlapping(found: Iterable[Literal]) -> tuple[Literal, ...]:
    """Return literals in order, those that overlap as one."""
    made: list[Literal] = []
    for each in sorted(found):
        if made and each.first <= made[-1].last:
            made[-1] = made[-1]._replace(last=max(made[-1].last, each.last), moves=made[-1].moves and each.moves)
        else:
            made.append(each)
    return tuple(made)
