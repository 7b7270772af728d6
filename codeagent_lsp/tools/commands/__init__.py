"""The feature `commands`: shell commands in the shadow of the workspace."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "commands",
    (
        "command_tools:RunCmd",
        "command_tools:RunBeside",
        "command_tools:CommandOutput",
        "command_tools:StopCommand",
    ),
)
