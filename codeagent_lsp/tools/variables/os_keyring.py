"""The system's keyring as a vault, through the optional library `keyring`. Not here: what is kept in it, and when."""

from __future__ import annotations

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.tools.variables.variables import Vault

RECOMMENDED = 1  # the library gives less to backends that keep values in plain text, or not at all


class KeyringVault:
    """The values of one workspace, separate from those of others."""

    def __init__(self, workspace: str) -> None:
        self._service = f"codeagent-lsp:{workspace}"

    def get(self, name: str) -> str | None:
        """Return the value; None if there is none. ToolFailed if the keyring fails."""
        import keyring  # late: it may be missing, and loads much
        from keyring.errors import KeyringError  # late: likewise

        try:
            return keyring.get_password(self._service, name)
        except KeyringError as error:
            raise ToolFailed(_said(error)) from None

    def set(self, name: str, value: str) -> None:
        """Store a value. ToolFailed if the keyring fails."""
        import keyring  # late: it may be missing, and loads much
        from keyring.errors import KeyringError  # late: likewise

        try:
            keyring.set_password(self._service, name, value)
        except KeyringError as error:
            raise ToolFailed(_said(error)) from None


def open_keyring(workspace: str) -> Vault | None:
    """Return the keyring; None if the library is missing or no backend is safe enough. Blocks."""
    try:
        import keyring  # late: it may be missing, and loads much
    except ImportError:
        return None
    try:
        good = keyring.get_keyring().priority >= RECOMMENDED
    except RuntimeError:  # what was configured does not work here
        return None
    return KeyringVault(workspace) if good else None


def _said(error: Exception) -> str:
    return f"The system's keyring failed: {type(error).__name__}."  # its message may quote what it was given
