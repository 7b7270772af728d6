---@brief
---
--- https://pypi.org/project/codeagent-lsp/
---
--- `codeagent-lsp`, a coding agent that speaks the Language Server Protocol. It is attached to every file type.
---
--- Install it with `pipx install codeagent-lsp`. Code actions explain, fix, refactor, document and test what is
--- selected; free tasks are the command `codeagent.run` with `{ task = "…" }`.

---@type vim.lsp.Config
return {
  cmd = { "codeagent-lsp" },
  root_markers = { ".git", "pyproject.toml", "package.json", "Cargo.toml", "go.mod" },
  -- Documents of the agent, such as a task that is being written, are in no project: they belong to the server at work.
  reuse_client = function(client, config)
    return client.name == config.name and (not config.root_dir or client.root_dir == config.root_dir)
  end,
}
