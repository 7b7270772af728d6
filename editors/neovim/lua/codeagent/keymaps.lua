--- The global mappings that are made only when the user asks for them (`keymaps = true`).

local M = {}

---@type { [1]: string[], [2]: string, [3]: string }[] modes, keys, name of the `<Plug>` mapping
M.SUGGESTED = {
  { { "n", "x" }, "<Leader>aa", "run" },
  { { "n", "x" }, "<Leader>aq", "ask" },
  { { "n", "x" }, "<Leader>ae", "edit" },
  { { "n", "x" }, "<Leader>ax", "explain" },
  { { "n", "x" }, "<Leader>af", "fix" },
  { { "n", "x" }, "<Leader>aw", "refactor" },
  { { "n" }, "<Leader>ai", "chat" },
  { { "n" }, "<Leader>at", "transcript" },
  { { "n" }, "<Leader>ar", "review" },
  { { "n" }, "<Leader>ah", "hunk-accept" },
  { { "n" }, "<Leader>ad", "hunk-discard" },
  { { "n" }, "]h", "hunk-next" },
  { { "n" }, "[h", "hunk-previous" },
  { { "n" }, "<Leader>ao", "offer-accept" },
  { { "n" }, "]o", "offer-go" },
  { { "n" }, "<Leader>ap", "pending" },
  { { "n" }, "<Leader>ac", "cancel" },
  { { "n" }, "<Leader>au", "undo" },
  { { "n" }, "<Leader>am", "menu" },
}

--- Makes them; keys that the user has mapped already stay as they are.
function M.make()
  for _, item in ipairs(M.SUGGESTED) do
    for _, mode in ipairs(item[1]) do
      if vim.fn.maparg(item[2], mode) == "" then
        local plug = ("<Plug>(codeagent-%s)"):format(item[3])
        vim.keymap.set(mode, item[2], plug, { desc = "CodeAgent " .. item[3] })
      end
    end
  end
end

--- The keys that the user has for a `<Plug>` mapping in normal mode, as they are written; nil for none.
---@param name string
---@return string?
function M.key(name)
  for _, map in ipairs(vim.api.nvim_get_keymap("n")) do
    if map.rhs == ("<Plug>(codeagent-%s)"):format(name) then return (map.lhs:gsub(" ", "<Space>")) end
  end
end

return M
