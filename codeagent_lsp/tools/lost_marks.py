"""Puts secrets back where a text that is to be staged has their marks, and refuses marks that stand for secrets of an
earlier process, of which only the marks are left in the talk, and marks that are written in another way. Where a call
looks for a mark, it is said that nothing has it.

Not here: marks and secrets (`records/masking.py`, `records/mark.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from codeagent_lsp.errors import EditRefused, ToolRetry
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.records.mark import MARK, broken_marks, respelt_marks
from codeagent_lsp.tools.context import Redaction, ToolContext
from codeagent_lsp.tools.permissions.policy import resolved_paths
from codeagent_lsp.tools.traits import ToolTraits

LOST = "{mark} stands for a secret that is not known any more. Read the file again, then write."
RESPELT = (
    "It has the mark of a secret, {mark}, in another spelling: in capitals, or with its signs escaped. Nothing puts "
    "the secret back for that. Write the mark exactly as you read it, or leave what is in the file."
)
BROKEN = (
    "{written} stands in the place of the mark of a secret, and a secret of the file would be lost. Write its mark "
    "exactly as you read it; to take the secret out, write a name for it, such as YOUR_KEY."
)

IN_PATTERN = (
    "Note: {mark} stands for a secret. The text itself has the secret and not the mark, so that nothing was found by "
    "it. Look for what stands around it instead, such as the name before it."
)
# Programs that look for what their arguments say, and the pieces of a command line that have one at their head.
_LOOKS = re.compile(
    r"\b(?:[efz]?grep|rg|ag|ack|sed|[gm]?awk|perl|jq|yq|find|fd|test|case|comby|ast-grep|sg|Select-String|findstr)\b"
    r"|\bgit\b.*\s(?:-S|-G|--grep|-L)|\[\[? "
)
_PIECES = re.compile(r"[\n;]|&&|\s\|\s")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)


def mark_looked_for(redaction: Redaction, arguments: Mapping[str, Any], *, is_command: bool) -> str:
    """Return a note for the model if a call searches for the mark of a secret, which no file contains; '' if it does
    not. In a command (`is_command`), only the arguments of programs that search count.
    """
    for text in _texts(arguments):
        if "<secret:" not in text:
            continue
        pieces = _PIECES.split(_HEREDOC.sub("", text)) if is_command else [text]
        for piece in pieces:
            looks = _LOOKS.search(piece) if is_command else None
            # What stands before the program is given to another one.
            for found in MARK.finditer(piece, looks.end() if looks else 0) if looks or not is_command else ():
                if _reveal(redaction, found[0]) != found[0]:
                    return IN_PATTERN.format(mark=found[0])
    return ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def with_secrets(redaction: Redaction, path: str, before: str | None, text: str) -> str:
    """Return a text that is to be staged with the secrets in place of their marks, the only form in which a model sees
    them. EditRefused for marks of unknown secrets, and for what is written in the place of those of known ones (cut
    off, misspelt, as stars), unless the text `before` had it.
    """
    before = before or ""
    lost = [mark for mark in redaction.lost({"text": text}) if mark not in before]
    if lost:
        raise EditRefused("not_found", LOST.format(mark=lost[0]))
    for mark, written in respelt_marks(text).items():
        if written not in before and _reveal(redaction, mark) != mark:
            raise EditRefused("not_found", RESPELT.format(mark=mark))
    done = _reveal(redaction, text)
    broken = [each for each in broken_marks(text) if each not in before]
    if broken and any(_reveal(redaction, mark) not in done for mark in MARK.findall(redaction.hide(before))):
        raise EditRefused("not_found", BROKEN.format(written=broken[0]))
    return done


def _reveal(redaction: Redaction, text: str) -> str:
    return str(redaction.reveal({"text": text})["text"])


def check_marks(call: ToolCall, traits: ToolTraits, context: ToolContext) -> None:
    """Raise ToolRetry for a call that would write a mark whose secret is not known. A mark that is in the file's own
    text may be written to it. Blocks while reading the file, if the call has marks.
    """
    lost = context.redaction.lost(call.arguments)
    if not lost:
        return
    paths = resolved_paths(traits, call.arguments, context.view.roots)
    own = "".join(context.view.text(path) or "" for path in paths)
    for mark in lost:
        if mark not in own:
            raise ToolRetry(LOST.format(mark=mark))
