"""Files handed to the user or taken from them, beside the workspace."""

from codeagent_lsp.tools.feature import Feature

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
