"""The wire between an editor's server and `codeagent-lsp editor-mcp`: how they find each other, and their frames."""
