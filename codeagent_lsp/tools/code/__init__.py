"""The feature `code`: questions to the code index and edits by the syntax tree."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "code",
    (
        "reading_tools:SearchSemantic",
        "reading_tools:CodeIndexBuild",
        "graph_tools:FindDefinition",
        "graph_tools:FindReferences",
        "graph_tools:CallGraph",
        "graph_tools:DependencyGraph",
        "reading_tools:AstParse",
        "reading_tools:AstFindSymbols",
        "reading_tools:AstExtractFunction",
        "reading_tools:AstGetImports",
        "editing_tools:EditByAst",
        "server_tools:RenameSymbol",
        "server_tools:CodeActions",
        "server_tools:Hover",
        "server_tools:TypeHierarchy",
    ),
)
