"""The strict parser of plain scripts, in which every character is understood; all others are refused. Pure functions.

A plain script is a list of simple commands in pipelines, made of literal words, without expansions, assignments or
writes. Two parsers must agree: the one here, of a small language that bash cannot read in another way, and the full
grammar. Not here: scripts that are not plain (`reading.py`), what a command does (`harmless.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeagent_lsp.tools.permissions.shell.syntax import walk

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

_KINDS = frozenset(
    """
    program list pipeline command command_name word number string string_content raw_string concatenation
    redirected_statement file_redirect file_descriptor comment && || | ; < > &> >& " $
    heredoc_redirect heredoc_start heredoc_body heredoc_end <<
    test_command unary_expression binary_expression test_operator [ ] = == != !
    """.split()  # noqa: SIM905 - a word list reads better as text
) | {"\n"}
_RESERVED = frozenset(
    "if then else elif fi for while until do done case esac select function time coproc in".split()  # noqa: SIM905
)

_BARE = re.compile(r"[A-Za-z0-9_./,:@%+=^*-]+")
_RAW = re.compile(r"'([^']*)'")
# A dollar sign is literal only before these; backticks never are, and a backslash before a line end joins lines.
_STRING = re.compile(r'"((?:[^"\\`$]|\\[^\n`]|\$(?=["|) ]))*)"')
_ESCAPE = re.compile(r'\\([\\"$])')
# Words made of signs that are literal only alone: `[ a != b ]`, `\( -name x \)`.
_ALONE = re.compile(r"(?:!=?|==?|\[|\]|\\[()!])(?=[ \t\n;|&]|$)")
_BLANKS = re.compile(r"[ \t]+")
_COMMENT = re.compile(r"#[^\n]*")
# Without `|&` and `;;`, which then match nothing and are refused.
_JOIN = re.compile(r"&&|\|\||\|(?!&)|;(?![;&])|\n")
# The only redirections that write: `2>/dev/null`, `&>/dev/null`, `2>&1`.
_DROPPED = re.compile(r"(?:[12]?>[ \t]*/dev/null|&>[ \t]*/dev/null|[12]?>&[12])(?=[ \t\n;|]|&&|$)")
# Only with a quoted end word: in such a document nothing is expanded.
_HEREDOC = re.compile(r"<<[ \t]*(?:'(\w+)'|\"(\w+)\")(?=[ \t\n|;]|&&)")
_INPUT = re.compile(r"<(?![<>&(])[ \t]*")
_ASSIGNMENT = re.compile(r"\w+\+?=")


@dataclass(frozen=True, slots=True)
class Word:
    """A literal word: its value, its written form, and whether bash expands it as a pattern of file names."""

    value: str
    written: str
    glob: bool = False


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple command: its words, the files that it reads by `<`, its text, and the quoted here-document it reads."""

    words: tuple[Word, ...]
    inputs: tuple[Word, ...]
    text: str
    document: str | None = None


class NotPlain(Exception):
    """Raised for a script that is not plain; the message is the reason in English."""


def plain_commands(script: str, tree: Tree) -> tuple[Simple, ...]:
    """Return the simple commands of a plain script, in order, at least one; `tree` is its parse by `syntax.parse`.
    NotPlain, with the reason, if it is not plain.
    """
    commands = tuple(_commands(script))
    if not commands:
        raise NotPlain("It has no command.")
    _agree(script, tree, commands)
    return commands


def _commands(script: str) -> Iterator[Simple]:
    place, open_join = 0, False
    skipped: dict[int, int] = {}
    while place < len(script):
        command, place = _command(script, place, skipped)
        join = _JOIN.match(script, place)
        if command is None and (join is None or join[0] != "\n"):
            if join is None and place == len(script) and not open_join:
                return
            raise NotPlain("A command is missing.")
        if command is not None:
            yield command
            open_join = False
        if join is None:
            if place < len(script):
                raise NotPlain("It has shell syntax beyond plain words.")
            return
        # Lines may end behind these, but the script may not.
        open_join = open_join or join[0] in ("&&", "||", "|")
        # The line end behind a here-document's marker leads past the document.
        place = skipped.get(join.start(), join.end())


def _command(script: str, place: int, skipped: dict[int, int]) -> tuple[Simple | None, int]:
    """Return the command at `place`, None for an empty or comment line, and the offset of its end.

    `skipped` gets, for the end of a line with a here-document, the offset behind that document.
    """
    words: list[Word] = []
    inputs: list[Word] = []
    start, end = place, place
    document: str | None = None
    while place < len(script):
        if blanks := _BLANKS.match(script, place) or _COMMENT.match(script, place):
            place = blanks.end()
            continue
        if dropped := _DROPPED.match(script, place):
            place = end = dropped.end()
            continue
        if marker := _HEREDOC.match(script, place):
            if skipped:
                raise NotPlain("It has several here-documents.")
            document, line, behind = _document(script, marker)
            skipped[line] = behind
            place = end = marker.end()
            continue
        if source := _INPUT.match(script, place):
            word, place = _word(script, source.end())
            inputs.append(word)
        elif _JOIN.match(script, place):
            break
        else:
            word, place = _word(script, place)
            # The text of a command begins with its first word, not with a redirection before it.
            start = start if words else place - len(word.written)
            words.append(word)
        end = place
    if not words:
        if inputs or end > start:
            raise NotPlain("A redirection has no command.")
        return None, place
    if words[0].value in _RESERVED or _ASSIGNMENT.match(words[0].value):
        raise NotPlain("It has shell syntax beyond plain words.")
    return Simple(tuple(words), tuple(inputs), script[start:end], document), place


def _document(script: str, marker: re.Match[str]) -> tuple[str, int, int]:
    """Return a here-document with a quoted end word, the offset of its line's end, and the offset behind it.

    The rest of the line must be free of quotes, so that its end is the next one. NotPlain if it is not, or nothing ends
    the document.
    """
    line = script.find("\n", marker.end())
    rest = script[marker.end() : line]
    end = re.compile(rf"\n{marker[1] or marker[2]}(?=\n|\Z)").search(script, line) if line >= 0 else None
    if end is None or any(char in rest for char in "<'\"\\`#"):
        raise NotPlain("It has a here-document that is not plain.")
    return script[line + 1 : end.start() + 1], line, end.end()


def _word(script: str, place: int) -> tuple[Word, int]:
    """Return the word at `place` and the offset of its end. NotPlain if the next character cannot end a word."""
    if alone := _ALONE.match(script, place):
        return Word(alone[0].lstrip("\\"), alone[0]), alone.end()
    start, value, glob = place, "", False
    while place < len(script):
        if bare := _BARE.match(script, place):
            if start == place and bare[0][0] == "=":
                break
            value, glob, place = value + bare[0], glob or "*" in bare[0], bare.end()
        elif raw := _RAW.match(script, place):
            value, place = value + raw[1], raw.end()
        elif string := _STRING.match(script, place):
            value, place = value + _ESCAPE.sub(r"\1", string[0][1:-1]), string.end()
        else:
            break
    if start == place or script[place : place + 1] not in ("", " ", "\t", "\n", ";", "|", "&"):
        raise NotPlain("It has an expansion or a metacharacter outside quotes.")
    return Word(value, script[start:place], glob), place


def _agree(script: str, tree: Tree, commands: tuple[Simple, ...]) -> None:
    """Check that the grammar sees exactly the same words in the same commands. NotPlain if not."""
    if tree.root_node.has_error:
        raise NotPlain("It is not well-formed.")
    seen: list[list[str]] = []
    documents: list[str] = []
    source = script.encode()
    for place in walk(tree.root_node):
        node = place.node
        if node.type not in _KINDS or node.is_missing:
            raise NotPlain("It has shell syntax beyond plain words.")
        if node.type == "heredoc_body":
            documents.append(_text(source, node))
        if node.type == "command":
            seen.append([_text(source, part) for part in node.children])
        elif node.type == "test_command":
            seen.append(_text(source, node).split())
    expected = [command.document for command in commands if command.document is not None]
    if seen != [_written_words(command) for command in commands] or documents != expected:
        raise NotPlain("It can be read in more than one way.")


def _written_words(command: Simple) -> list[str]:
    """Return the words of a command as written; for `[`, split at blanks, as the grammar parses the
    expression inside.
    """
    words = [word.written for word in command.words]
    return " ".join(words).split() if words[0] == "[" else words


def _text(source: bytes, node: Node) -> str:
    return source[node.start_byte : node.end_byte].decode()
