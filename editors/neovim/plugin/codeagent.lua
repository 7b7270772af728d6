if vim.g.loaded_codeagent or vim.fn.has("nvim-0.11") == 0 then return end
vim.g.loaded_codeagent = true

vim.api.nvim_create_user_command("CodeAgent", function(call) require("codeagent.commands").run(call) end, {
  nargs = "*",
  range = true,
  bang = true,
  desc = "Let the agent work, and decide about what it did",
  complete = function(...) return require("codeagent.commands").complete(...) end,
})

for _, name in ipairs({ "run", "ask", "edit", "explain", "fix", "refactor", "document", "test" }) do
  vim.keymap.set("n", ("<Plug>(codeagent-%s)"):format(name), ("<Cmd>CodeAgent %s<CR>"):format(name))
  vim.keymap.set("x", ("<Plug>(codeagent-%s)"):format(name), (":CodeAgent %s<CR>"):format(name), { silent = true })
end
for _, name in ipairs({ "menu", "chat", "transcript", "review", "pending", "plan", "cancel", "undo" }) do
  vim.keymap.set("n", ("<Plug>(codeagent-%s)"):format(name), ("<Cmd>CodeAgent %s<CR>"):format(name))
end
for _, name in ipairs({ "accept", "discard", "accept-file", "discard-file", "next", "previous" }) do
  vim.keymap.set("n", ("<Plug>(codeagent-hunk-%s)"):format(name), ("<Cmd>CodeAgent hunk %s<CR>"):format(name))
end
for _, name in ipairs({ "accept", "dismiss", "go" }) do
  vim.keymap.set("n", ("<Plug>(codeagent-offer-%s)"):format(name), ("<Cmd>CodeAgent offer %s<CR>"):format(name))
end
for name, part in pairs({ ["accept"] = "all", ["accept-word"] = "word", ["accept-line"] = "line" }) do
  vim.keymap.set("i", ("<Plug>(codeagent-inline-%s)"):format(name), function()
    require("codeagent.inline").accept(part)
  end)
end
for _, name in ipairs({ "dismiss", "trigger" }) do
  vim.keymap.set("i", ("<Plug>(codeagent-inline-%s)"):format(name), function() require("codeagent.inline")[name]() end)
end

if type(vim.g.codeagent) == "table" and vim.g.codeagent.keymaps == true then require("codeagent.keymaps").make() end
