"""The feature `variables`: environment variables for commands, with values that the user enters and no model sees."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "variables",
    (
        "variable_tools:RequestEnvVar",
        "variable_tools:GetEnvVar",
        "variable_tools:CheckEnvVars",
    ),
)
