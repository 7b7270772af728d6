-- What `vim.lsp.enable("codeagent")` starts. Change parts of it with `vim.lsp.config("codeagent", { … })`.
local client = require("codeagent.client")

return {
  cmd = client.start,
  root_dir = client.root_dir,
  handlers = require("codeagent.handlers").table(),
  capabilities = {
    workspace = { codeLens = { refreshSupport = true } },
    textDocument = { inlineCompletion = { dynamicRegistration = true } },
    experimental = {
      codeagent = { event = true, input = true, diagnostics = true, lsp = true, inlineStatus = true },
    },
  },
  before_init = require("codeagent.handlers").before_init,
}
