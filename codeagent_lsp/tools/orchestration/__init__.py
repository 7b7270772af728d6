"""The feature `orchestration`: tools that work with other tools, namely subagents, tool groups, chains of calls."""

from codeagent_lsp.tools.feature import Feature

FEATURE = Feature(
    "orchestration",
    (
        "delegate_tools:Delegate",
        "group_tools:EnableTools",
        "group_tools:UseTool",
        "compose_tools:Compose",
    ),
)
