"""The feature `testing`: running, writing and measuring tests in the project's own framework."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "testing",
    (
        "testing_tools:RunTests",
        "generating_tools:GenerateTests",
        "testing_tools:AnalyzeCoverage",
    ),
)
