"""The feature `files`: reading, finding, editing, patching and moving files; changes are staged, never written."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "files",
    (
        "read_tools:ListDir",
        "read_tools:ReadFile",
        "read_tools:ReadFiles",
        "find_tools:GlobFileSearch",
        "find_tools:Grep",
        "edit_tools:EditFile",
        "edit_tools:WriteFile",
        "edit_tools:InsertText",
        "edit_tools:BatchEdit",
        "edit_tools:PreviewEdit",
        "patch_tools:ApplyPatch",
        "patch_tools:UndoPatch",
        "patch_tools:MoveFile",
        "patch_tools:DeleteFile",
    ),
)
