"""Holds the environment variables of every session of a server, with one keyring for the workspace.

Not here: their use in commands (`tools/variables/variables.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from codeagent_lsp.tools.variables.variables import Variables, Vault, open_keyring


class SessionVariables:
    """The variables of all sessions, kept until the server stops, or in the keyring. `open_vault` opens the keyring and
    blocks; `environ` is our own environment.
    """

    def __init__(self, open_vault: Callable[[], Vault | None], environ: Mapping[str, str]) -> None:
        self._open_vault = open_vault
        self._environ = environ
        self._sessions: dict[str, Variables] = {}

    def of(self, session_id: str) -> Variables:
        """Return the variables of a session; a value set in one session is not in another."""
        if session_id not in self._sessions:
            self._sessions[session_id] = Variables(self._open_vault, self._environ)
        return self._sessions[session_id]


def session_variables(folders: Sequence[str]) -> SessionVariables:
    """Return the variables of a workspace's sessions, over the keyring of the system and our own environment."""
    workspace = ":".join(folders)
    return SessionVariables(lambda: open_keyring(workspace), os.environ)
