"""Environment variables for commands, and values that the user enters and nobody else sees."""

from codeagent_lsp.tools.feature import Feature

FEATURE = Feature(
    "variables",
    (
        "variable_tools:RequestEnvVar",
        "variable_tools:GetEnvVar",
        "variable_tools:CheckEnvVars",
    ),
)
