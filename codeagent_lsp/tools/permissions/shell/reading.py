"""The lenient parser: every command in a script, wherever it occurs, as far as the text determines it. Pure functions.

For denial, for ask and deny rules and for display; it never gives permission (that is `plain.py`). It also reads
malformed scripts. Not here: what commands run other commands (`wrappers.py`), what is denied (`denied.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeagent_lsp.tools.permissions.shell.decoding import fields, unquoted, value
from codeagent_lsp.tools.permissions.shell.printing import printed
from codeagent_lsp.tools.permissions.shell.syntax import NodePlace, parse, walk

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

MAX_TEXT = 4_096
MAX_COMMANDS = 2_000
_COMMANDS = frozenset(("command", "declaration_command", "unset_command", "test_command"))
_SKIPPED = frozenset(("file_redirect", "herestring_redirect", "heredoc_redirect", "variable_assignment", "comment"))
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", "<>", ">&"))
_RUN_BY_OTHERS = re.compile(
    r"\w*PAGER|\w*EDITOR|VISUAL|GIT_\w*(?:SSH_COMMAND|ASKPASS|EXTERNAL_DIFF)|PROMPT_COMMAND|BROWSER"
)
"""Variables whose values other programs run as commands."""
_SPLIT = re.compile(r"[;&|\n(){}`]+")
_BRACED = re.compile(r"(?<!\$)\{([^{}\s]*,[^{}\s]*)\}")
_IFS = re.compile(r"\$(?:\{IFS\}|IFS)")
_WRITE = re.compile(r">[>|&]?[ \t]{0,9}([^\s;|&<>()]+)")


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command with its decoded words. `stdin` is its input, if the script holds it."""

    words: tuple[str, ...]
    text: str
    stdin: str | None = None

    @property
    def name(self) -> str:
        """Return the command's name without its folder, in lower case."""
        return self.words[0].rsplit("/", 1)[-1].casefold() if self.words else ""


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed script. `tree` is None if parsing took too long; `cut` is True if commands beyond the limit were
    dropped.
    """

    text: str
    invocations: tuple[Invocation, ...]
    writes: tuple[str, ...]
    reads: tuple[str, ...]
    tree: Tree | None
    cut: bool = False


def read(text: str) -> Script:
    """Parse a script and return its commands and redirections in the order of the text."""
    tree = parse(text.encode("utf-8", "replace"))
    found = _Found({})
    if tree is not None:
        for place in walk(tree.root_node):
            found.visit(place)
    # The grammar loses its way at an `$IFS` in the middle of a word.
    if tree is None or tree.root_node.has_error or "IFS" in text:
        found.invocations.extend(_rough(text))
        found.writes.extend(_rough_writes(text))
    cut = len(found.invocations) > MAX_COMMANDS
    return Script(text, tuple(found.invocations[:MAX_COMMANDS]), tuple(found.writes), tuple(found.reads), tree, cut)


class _Found:
    """Collects commands, redirections and variables during a walk over the tree."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.invocations: list[Invocation] = []
        self.writes: list[str] = []
        self.reads: list[str] = []
        self._variables = variables

    def visit(self, place: NodePlace) -> None:
        node = place.node
        if node.type in _COMMANDS:
            self._command(place)
        elif node.type == "file_redirect":
            self._redirect(node)
        elif node.type == "variable_assignment":
            self._assign(node)
        elif node.type == "for_statement":
            self._loop(node)

    def _command(self, place: NodePlace) -> None:
        node = place.node
        words: list[str] = []
        for child in node.named_children:
            if child.type not in _SKIPPED:
                words.extend(fields(child, self._variables))
        keyword = node.children[0].type if node.type in ("declaration_command", "unset_command") else ""
        if keyword:
            words.insert(0, keyword)
        if node.type == "test_command":
            words = ["["]
        if words:
            self.invocations.append(Invocation(tuple(words), _cut(node), self._stdin(place)))

    def _redirect(self, node: Node) -> None:
        operators = {child.type for child in node.children if not child.is_named}
        for child in node.named_children:
            if child.type != "file_descriptor":
                target = self.writes if operators & _WRITES else self.reads
                target.extend(fields(child, self._variables))

    def _assign(self, node: Node) -> None:
        name, given = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        text = self._variables[_cut(name)] = value(given, self._variables) if given is not None else ""
        if text and _RUN_BY_OTHERS.fullmatch(_cut(name)):
            self.invocations.append(Invocation(("sh", "-c", text), text[:MAX_TEXT]))

    def _loop(self, node: Node) -> None:
        """Assign the first value of a `for` loop to its variable, as in `for x in /; do rm -r $x; done`."""
        name, given = node.child_by_field_name("variable"), node.children_by_field_name("value")
        if name is not None and given:
            self._variables[_cut(name)] = value(given[0], self._variables)

    def _stdin(self, place: NodePlace) -> str | None:
        """Return the input from a here-string, a here-document or a command before the pipe; None if unknown."""
        above = place.above
        holder = above if above is not None and above.node.type == "redirected_statement" else None
        for child in (*place.node.named_children, *(holder.node.named_children if holder else ())):
            if child.type == "herestring_redirect" and child.named_children:
                return value(child.named_children[-1], self._variables)
            if child.type == "heredoc_redirect":
                return "\n".join(_cut(part) for part in child.named_children if part.type == "heredoc_body")
        return self._piped(holder or place)

    def _piped(self, place: NodePlace) -> str | None:
        """Return the text that comes through the pipe, if the command before it only passes on a text of the script."""
        piped = place.above is not None and place.above.node.type == "pipeline" and place.later
        if not piped or not self.invocations:
            return None
        before = self.invocations[-1]
        return printed(before.name, before.words[1:], before.stdin)


def _cut(node: Node) -> str:
    """Return the text of a node, shortened if long, since nested nodes would be copied repeatedly."""
    if node.end_byte - node.start_byte > MAX_TEXT:
        return _head(node)
    return (node.text or b"").decode(errors="replace")


def _head(node: Node) -> str:
    """Return the first words of a long node."""
    parts: list[str] = []
    for child in node.named_children[:64]:
        if child.end_byte - child.start_byte < MAX_TEXT:
            parts.append((child.text or b"").decode(errors="replace"))
    return " ".join(parts)[:MAX_TEXT]


def _rough(text: str) -> Iterator[Invocation]:
    """Yield the commands of a script that cannot be parsed: split at every separator, ignoring quotes."""
    text = _IFS.sub(" ", _BRACED.sub(lambda match: match[1].replace(",", " "), text))
    for piece in _SPLIT.split(text):
        words = tuple(unquoted(word) for word in piece.split())
        if words:
            yield Invocation(words, piece.strip()[:MAX_TEXT])


def _rough_writes(text: str) -> Iterator[str]:
    return (unquoted(target) for target in _WRITE.findall(text))
