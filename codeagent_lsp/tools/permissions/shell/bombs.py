"""Detection of fork bombs in any spelling: code that unconditionally starts itself concurrently. Pure functions.

An ordinary recursive function is none: it calls itself under a condition, and waits for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codeagent_lsp.tools.permissions.shell.reading import Script
from codeagent_lsp.tools.permissions.shell.syntax import NodePlace, walk

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_FUNCTIONS = 40
MAX_DEPTH = 64
_CONDITIONS = frozenset(("if_statement", "case_statement", "list"))
_BESIDE = frozenset(("pipeline", "subshell", "command_substitution", "process_substitution"))
_SPELLED = re.compile(
    r"(?<![^\s(){};|&])(?P<name>[^\s(){};|&]{1,200})\s{0,9}\(\s{0,9}\)\s{0,9}[{(]\s{0,9}(?P=name)\s{0,9}[|&]\s{0,9}(?P=name)"
)
_ITSELF = re.compile(
    r"(?:^|[\s;(])(?:\w{0,9}sh\s{1,9})?(?:\"?\$0\"?|\$BASH_SOURCE)\s{0,9}(?:[|&](?!&)\s{0,9})(?:\w{0,9}sh\s{1,9})?\"?\$0"
)
_ENDLESS = re.compile(
    r"while\s+(?:true|:|\[ 1 \]|\(\(\s*1?\s*\)\))\s*$|until\s+false\s*$|for\s*\(\(\s*;\s*;\s*\)\)\s*$"
)
_FED = re.compile(r"\b(?:yes|cat[ \t]+/dev/(?:zero|u?random))\b[^|;&\n]{0,200}\|[ \t\n]*while\b")
_READS = re.compile(r"\s*while\s+(?:IFS=\S*\s+)?read\b")
_PROGRAM = re.compile(
    r"fork\s{0,9}(?:\(\s{0,9}\))?\s{0,9}while\s{0,9}(?:\(?\s{0,9}(?:1|true|fork)\b)"
    r"|while\s{0,9}\(?\s{0,9}(?:1|true)\s{0,9}\)?\s{0,9}[:{;]?\s{0,9}(?:do\s{1,9})?(?:os\.|posix\.)?fork\b"
    r"|loop\s{0,9}(?:\{|do)?\s{0,9}fork\b",
    re.IGNORECASE,
)


def is_bomb(script: Script) -> bool:
    """Return whether the script is a fork bomb."""
    text = script.text
    if "&" not in text and "|" not in text and "$(" not in text and "`" not in text and "(" not in text:
        return False
    if _SPELLED.search(text) or _ITSELF.search(text):
        return True
    if script.tree is None or ("(" not in text and "function" not in text and "do" not in text):
        return False
    places = list(walk(script.tree.root_node))
    return _calls_itself(places) or any(_endless_spawn(place.node, fed=bool(_FED.search(text))) for place in places)


def is_program_bomb(code: str) -> bool:
    """Return whether a program in another language, given on the command line, forks endlessly."""
    return bool(_PROGRAM.search(code))


def _calls_itself(places: list[NodePlace]) -> bool:
    """Return whether a function reaches itself by concurrent calls that no condition guards."""
    calls: dict[str, set[str]] = {}
    for place in places:
        if place.node.type == "command_name" and (function := _free_in(place)) is not None:
            calls.setdefault(_name(function), set()).add(_text(place.node))
    return any(_reaches(calls, name) for name in list(calls)[:MAX_FUNCTIONS])


def _reaches(calls: dict[str, set[str]], name: str) -> bool:
    reached: set[str] = set()
    waiting = set(calls[name])
    while waiting:
        called = waiting.pop()
        if called == name:
            return True
        reached.add(called)
        waiting |= calls.get(called, set()) - reached
    return False


def _free_in(place: NodePlace) -> Node | None:
    """Return the function that runs a command concurrently and unconditionally; None if there is none."""
    above, beside = place.above, False
    for _ in range(MAX_DEPTH):
        if above is None or above.node.type in _CONDITIONS:
            return None
        if above.node.type == "function_definition":
            return above.node if beside else None
        beside = beside or above.node.type in _BESIDE or above.following == "&"
        above = above.above
    return None


def _endless_spawn(node: Node, *, fed: bool) -> bool:
    """Return whether a node is an endless loop that starts background processes and never waits.

    `fed`: a program that never stops feeds the loops that read.
    """
    if node.type not in ("while_statement", "c_style_for_statement"):
        return False
    body = node.child_by_field_name("body") or next((part for part in node.children if part.type == "do_group"), None)
    if body is None or body.end_byte - body.start_byte > 1_024:
        return False
    head = (node.text or b"")[: body.start_byte - node.start_byte].decode(errors="replace").rstrip().rstrip(";")
    spawns = any(part.node.type == "&" for part in walk(body))
    waits = re.search(r"\b(?:wait|sleep|read|break|exit|return)\b", _text(body))
    endless = _ENDLESS.search(head.strip()) or (fed and _READS.match(head))
    return bool(spawns and not waits and endless)


def _name(function: Node) -> str:
    name = function.child_by_field_name("name")
    return _text(name) if name is not None else ""


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")
