"""The feature `commands`: shell commands in the shadow of the workspace."""

from codeagent_lsp.tools.feature import Feature

FEATURE = Feature(
    "commands",
    (
        "command_tools:RunCmd",
        "background_tools:RunBeside",
        "background_tools:CommandOutput",
        "background_tools:StopCommand",
    ),
)
