"""Refuses to write marks that stand for secrets of an earlier process, of which only the marks are left in the talk.

Not here: marks and secrets (`records/masking.py`).
"""

from __future__ import annotations

from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.permissions.policy import resolved_paths
from codeagent_lsp.tools.traits import ToolTraits


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
            raise ToolRetry(f"{mark} stands for a secret that is not known any more. Read the file again, then write.")
