"""Puts secrets back where a text that is to be staged has their marks, and refuses marks that stand for secrets of an
earlier process, of which only the marks are left in the talk, and marks that are written in another way.

Not here: marks and secrets (`records/masking.py`, `records/mark.py`).
"""

from __future__ import annotations

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
    "{written} looks like a part of the mark of a secret, and a secret of the file would be lost. Write its mark "
    "exactly as you read it."
)


def with_secrets(redaction: Redaction, path: str, before: str | None, text: str) -> str:
    """Return a text that is to be staged with the secrets in place of their marks: a command writes what the model has
    written, which sees marks only. EditRefused for marks that stand for nothing, and for those of known secrets in
    another spelling or cut off, unless the file had them.
    """
    before = before or ""
    lost = [mark for mark in redaction.lost({"text": text}) if mark not in before]
    if lost:
        raise EditRefused("not_found", LOST.format(mark=lost[0]))
    for mark, written in respelt_marks(text).items():
        if written not in before and _revealed(redaction, mark) != mark:
            raise EditRefused("not_found", RESPELT.format(mark=mark))
    done = _revealed(redaction, text)
    broken = [each for each in broken_marks(text) if each not in before]
    if broken and any(_revealed(redaction, mark) not in done for mark in MARK.findall(redaction.hide(before))):
        raise EditRefused("not_found", BROKEN.format(written=broken[0]))
    return done


def _revealed(redaction: Redaction, text: str) -> str:
    return str(redaction.reveal({"text": text})["text"])


def check_marks(call: ToolCall, traits: ToolTraits, context: ToolContext) -> None:
    """Raise ToolRetry for a call that would write a mark in place of a secret. A mark in the file's own text may be
    written to it. Blocks only where there are marks.
    """
    lost = context.redaction.lost(call.arguments)
    if not lost:
        return
    paths = resolved_paths(traits, call.arguments, context.view.roots)
    own = "".join(context.view.text(path) or "" for path in paths)
    for mark in lost:
        if mark not in own:
            raise ToolRetry(LOST.format(mark=mark))
