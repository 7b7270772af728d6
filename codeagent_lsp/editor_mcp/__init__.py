"""The command `codeagent-lsp editor-mcp`: an MCP server that gives another agent the editor of the user."""
