"""The fixed facts of a tool, by which it is offered, judged and run. Light: who only judges loads no tool.

Not here: the tool itself (`tool.py`), the judgement (`permissions/policy.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Effect = Literal["read", "write", "run", "net", "ask"]


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """The fixed facts of a tool.

    `timeout` is in seconds, None for a tool that sees to it itself, "setting" for `tools.timeoutSeconds`.
    `max_output_bytes` is for a tool that shall say less than `tools.maxOutputBytes` allows.
    `command_parameter` names the parameter that holds a shell command, `subject_parameter` the one that rules and
    questions speak of where it is no path and no command; '' when there is none. Of tools that others
    wrote, `pin` stands for what they say of themselves, to which approvals are bound, and `approved` says that the
    user's settings allow it by name.
    """

    name: str
    description: str
    effect: Effect
    group: str = "core"
    timeout: float | Literal["setting"] | None = "setting"
    max_output_bytes: int | None = None
    path_parameters: tuple[str, ...] = field(default=())
    command_parameter: str = ""
    subject_parameter: str = ""
    pin: str = ""
    approved: bool = False
