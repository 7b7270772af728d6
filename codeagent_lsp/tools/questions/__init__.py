"""The feature `questions`: questions to the user."""

from codeagent_lsp.tools.feature import Feature

FEATURE = Feature(
    "questions",
    (
        "asking_tools:AskUser",
        "deciding_tools:AskClarification",
        "deciding_tools:RequestDecision",
    ),
)
