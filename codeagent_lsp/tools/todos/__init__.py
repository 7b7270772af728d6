"""The feature `todos`: the todo list that the user sees."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "todos",
    (
        "todo_tools:TodoRead",
        "todo_tools:TodoWrite",
        "todo_tools:Think",
    ),
)
