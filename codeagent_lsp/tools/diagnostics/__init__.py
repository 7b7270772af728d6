"""Problems that the editor shows, or that linters find in the shadow."""

from codeagent_lsp.tools.feature import Feature

FEATURE = Feature(
    "diagnostics",
    ("diagnostic_tools:GetDiagnostics",),
)
