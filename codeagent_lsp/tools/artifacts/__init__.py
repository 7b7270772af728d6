"""The feature `artifacts`: files exported to the user or imported, beside the workspace."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "artifacts",
    (
        "artifact_tools:ExportArtifact",
        "artifact_tools:ListArtifacts",
        "artifact_tools:BatchExportArtifacts",
        "artifact_tools:ImportFile",
        "artifact_tools:ImportFilesBatch",
    ),
)
