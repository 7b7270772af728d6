"""The decision whether the model may read a file without asking; the same for every tool that shows its text.

Cheap, as maps and searches call it for every file. Not here: other calls (`policy.py`), reading
(`files/read_tools.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from codeagent_lsp.config import PermissionsSettings
from codeagent_lsp.tools.permissions.decision import Decision
from codeagent_lsp.tools.permissions.policy import decide
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.files.paths import Roots

READ_FILE = ToolTraits(
    "read_file",
    "Read a file with line numbers, as the user sees it now (unsaved text included).",
    "read",
    path_parameters=("path",),
    result="file",
    hook_name="Read",
)
READ_NAMES = ("read", "file_read")
"""Other names of `read_file`."""


def reading(path: str, settings: PermissionsSettings, roots: Roots) -> Decision:
    """Return the decision for `read_file` on one file."""
    return decide(READ_FILE, {"path": path}, settings, roots, names=READ_NAMES)


def may_read(settings: PermissionsSettings, roots: Roots) -> Callable[[str], bool]:
    """Return a predicate for whether a file (absolute path) may be read without asking the user."""
    return lambda path: reading(path, settings, roots).verdict == "allow"
