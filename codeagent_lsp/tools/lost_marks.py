"""Puts secrets back where a text that is to be staged has their marks, and refuses marks that stand for secrets of an
earlier process, of which only the marks are left in the talk.

Not here: marks and secrets (`records/masking.py`).
"""

from __future__ import annotations

from codeagent_lsp.errors import EditRefused, ToolRetry
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.tools.context import Redaction, ToolContext
from codeagent_lsp.tools.permissions.policy import resolved_paths
from codeagent_lsp.tools.traits import ToolTraits

LOST = "{mark} stands for a secret that is not known any more. Read the file again, then write."


def with_secrets(redaction: Redaction, path: str, before: str | None, text: str) -> str:
    """Return a text that is to be staged with the secrets in place of their marks: a command writes what the model has
    written, which sees marks only. EditRefused for marks that stand for nothing, unless the file had them.
    """
    lost = [mark for mark in redaction.lost({"text": text}) if mark not in (before or "")]
    if lost:
        raise EditRefused("not_found", LOST.format(mark=lost[0]))
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
