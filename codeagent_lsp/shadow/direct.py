"""Level `direct`: commands run in the real folders, so nothing is isolated and nothing becomes a proposal.

Used only if it was chosen or nothing else works. Not here: that it is asked first and told (`tools/`, `workspace.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from codeagent_lsp.shadow.environment import scrubbed
from codeagent_lsp.shadow.folder import LayerFolder, remove_tree
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command, Isolation, Launch, Writings

_REASON = (
    "Commands run in the real folders: what they write is written at once, they do not see unsaved or proposed text, "
    "and nothing is hidden from them."
)


def direct_isolation(reason: str = "") -> Isolation:
    """Return the isolation of this level; `reason` is why it is not a better level."""
    text = f"{_REASON} {reason}".strip()
    return Isolation("direct", confined=False, offline=False, hidden=False, reason=text)


class DirectLayer:
    """A layer without a private view; `folder` holds the reports and is removed at the end."""

    def __init__(self, folder: LayerFolder, reason: str = "") -> None:
        self._folder = folder
        self._isolation = direct_isolation(reason)

    @property
    def isolation(self) -> Isolation:
        """Return the isolation, which guarantees nothing."""
        return self._isolation

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Do nothing: commands see the saved files."""

    def launch(self, command: Command) -> Launch:
        """Return the command itself, run in the user's folders."""
        return plain_launch(command, command.cwd, self._folder, scrubbed(os.environ))

    def writings(self) -> Writings:
        """Return no writings: they are on the disk already."""
        return Writings()

    def close(self) -> None:
        """Remove the folder of the reports."""
        self._folder.close()


def plain_launch(command: Command, cwd: str, folder: LayerFolder, environment: Mapping[str, str]) -> Launch:
    """Return a launch of a command as a plain process of the user, with an empty folder for its reports in `folder`."""
    remove_tree(f"{folder.path}/reports")
    reports = folder.make("reports")
    argv = ("bash", "-c", command.script) if isinstance(command.script, str) else command.script
    return Launch(argv, cwd, {**environment, **command.environment, REPORT_VARIABLE: reports}, reports)
