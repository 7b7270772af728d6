"""The location of user state: one folder per workspace under the platform's state folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

STATE_VARIABLE = "CODEAGENT_STATE_DIR"


def state_root() -> Path:
    """Return the folder of all our state; `CODEAGENT_STATE_DIR` overrides the platform's choice."""
    override = os.environ.get(STATE_VARIABLE)
    if override:
        return Path(override)
    from platformdirs import user_state_path  # late: not needed before the first run, and start-up must be fast

    return user_state_path("codeagent-lsp")


def workspace_state(folders: Sequence[str]) -> Path:
    """Return the state folder of one workspace; its name has the first folder's name and a hash of all folders."""
    key = "\n".join(folders) or "no-workspace"
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    name = "".join(char if char.isalnum() else "-" for char in Path(folders[0]).name)[:40] if folders else "none"
    return state_root() / "workspaces" / f"{name or 'root'}-{digest}"
