"""The feature `diagnostics`: problems from the editor, or from linters in the shadow."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "diagnostics",
    ("diagnostic_tools:GetDiagnostics",),
)
