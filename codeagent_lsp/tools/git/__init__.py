"""The feature `git`: the history and the differences of a repository, read only."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "git",
    (
        "git_tools:GitDiff",
        "git_tools:GitLog",
        "git_tools:GenerateCommit",
    ),
)
