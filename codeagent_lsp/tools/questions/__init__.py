"""The feature `questions`: questions to the user."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "questions",
    (
        "question_tools:AskUser",
        "question_tools:AskClarification",
        "question_tools:RequestDecision",
    ),
)
