"""The feature `orchestration`: tools that work with other tools, namely subagents, tool groups, chains of calls."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "orchestration",
    (
        "orchestration_tools:Delegate",
        "orchestration_tools:EnableTools",
        "orchestration_tools:UseTool",
        "orchestration_tools:Compose",
    ),
)
