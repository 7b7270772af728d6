"""The feature `screens`: a terminal and a desktop of the environment, shown to the user in a browser."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "screens",
    (
        "screen_tools:Terminal",
        "screen_tools:Desktop",
    ),
)
