"""What ends a command that does not end by itself. Not here: who enforces it (`guarded.py`, `job.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from codeagent_lsp.shadow.control_group import parent_group
from codeagent_lsp.shadow.guard_messages import INTERVAL_SECONDS
from codeagent_lsp.system import memory_bytes


def half_of_memory() -> int:
    """Return half of the machine's memory in bytes."""
    return memory_bytes() // 2


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """The limits of one command; the first that is exceeded ends it.

    `memory_bytes` is for all processes together. `disk_bytes` is how much the free space of `disk_folder`'s file system
    (default: that of the reports) may shrink while the command runs, whatever the cause. `look_seconds` is the interval
    of the checks. `control_group` is the folder of the group in which each command gets its own; "" for none.
    """

    seconds: float = 300.0
    output_bytes: int = 16 << 20
    memory_bytes: int = field(default_factory=half_of_memory)
    processes: int = 512
    disk_bytes: int = 2 << 30
    disk_folder: str = ""
    look_seconds: float = INTERVAL_SECONDS
    control_group: str = field(default_factory=parent_group)
