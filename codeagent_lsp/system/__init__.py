"""What differs between systems: opening files so that no link is followed, locks, rights, process trees, terminals.

`posix.py` and `windows.py` have the same names side by side; the rest of the package asks here, and imports no module
that only one system has. Not here: the isolation of commands (`shadow/`), and what names mean on which system
(`workspace/files/uris.py`).
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from codeagent_lsp.system.windows import (
        OWN_GROUP,
        STOP_SIGNALS,
        Folder,
        bash,
        belongs_to_us,
        call_on_stop,
        copy_new,
        drop_typed,
        end_after,
        end_tree,
        group_id,
        hidden_input,
        is_alive,
        is_superuser,
        is_terminal,
        limit_memory,
        lock,
        lower_priority,
        memory_bytes,
        open_appending,
        open_following,
        open_new,
        open_reading,
        peer_user,
        read_at,
        set_mode,
        unread_bytes,
        user_id,
    )
else:
    from codeagent_lsp.system.posix import (
        OWN_GROUP,
        STOP_SIGNALS,
        Folder,
        bash,
        belongs_to_us,
        call_on_stop,
        copy_new,
        drop_typed,
        end_after,
        end_tree,
        group_id,
        hidden_input,
        is_alive,
        is_superuser,
        is_terminal,
        limit_memory,
        lock,
        lower_priority,
        memory_bytes,
        open_appending,
        open_following,
        open_new,
        open_reading,
        peer_user,
        read_at,
        set_mode,
        unread_bytes,
        user_id,
    )

__all__ = [
    "OWN_GROUP",
    "STOP_SIGNALS",
    "Folder",
    "bash",
    "belongs_to_us",
    "call_on_stop",
    "copy_new",
    "drop_typed",
    "end_after",
    "end_tree",
    "group_id",
    "hidden_input",
    "is_alive",
    "is_superuser",
    "is_terminal",
    "limit_memory",
    "lock",
    "lower_priority",
    "memory_bytes",
    "open_appending",
    "open_following",
    "open_new",
    "open_reading",
    "peer_user",
    "read_at",
    "set_mode",
    "unread_bytes",
    "user_id",
]
