"""Builds the pool of our own language servers for one server: where they run, and which are known.

Not here: the servers that the editor lends (`lent_servers.py`), the pool itself (`language_servers/`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from codeagent_lsp.language_servers.known import with_own
from codeagent_lsp.language_servers.pool import LanguageServerPool
from codeagent_lsp.state import state_root

if TYPE_CHECKING:
    from codeagent_lsp.server.front import Front
    from codeagent_lsp.shadow.copying import CopyLayer
    from codeagent_lsp.shadow.probe import Isolator


def language_servers(front: Front) -> LanguageServerPool:
    """Return the pool; it starts nothing, and does not even look at the machine, before a run needs a server."""

    @cache
    def isolator() -> Isolator:
        from codeagent_lsp.shadow.probe import Isolator  # late: an idle server does without all that isolates

        return Isolator(str(state_root()))

    def open_copy(folders: Sequence[str]) -> CopyLayer:
        return isolator().open_copy(front.settings().shell, folders)

    return LanguageServerPool(open_copy, lambda: with_own(front.settings().language_servers))
