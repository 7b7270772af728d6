"""The fixed properties of a tool, by which it is offered, judged and run; importing this loads no tool.

Not here: the tool itself (`tool.py`), the permission decision (`permissions/policy.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from codeagent_lsp.errors import ErrorCode

Effect = Literal["read", "write", "run", "net", "ask"]
Result = Literal["", "file", "printed"]
"""What the text of a tool's result is: a file's, which can be read again, or what a program has printed, of which the
errors and the end matter.
"""


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """The fixed properties of a tool.

    `timeout` is in seconds; None for a tool with limits of its own, "setting" for `tools.timeoutSeconds`.
    `max_output_bytes` lowers `tools.maxOutputBytes` for this tool. `command_parameter` names the parameter with a shell
    command, `subject_parameter` the one that rules and questions refer to if it is neither path nor command; '' if
    there is none. `result` says what its text is, `errors` are the codes its calls may end with besides those that
    follow from the rest. Hooks of other programs know it as `hook_name`; those for the tools `hooked_as` mean it too,
    and where it `removes` files, only those that guard. For tools of third parties, `pin` is a digest of their
    description, to which approvals are bound, and `approved` is True if the user's settings allow the tool by name, or
    it only reads in our own sandbox.
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
    result: Result = ""
    errors: tuple[ErrorCode, ...] = ()
    hook_name: str = ""
    hooked_as: tuple[str, ...] = ()
    removes: bool = False
