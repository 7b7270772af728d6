--- Finds the buffer of a file by its exact name: `bufnr()` takes a pattern, or the beginning of another name.

local M = {}

--- The loaded buffer of a file, also when its name leads there by symbolic links; nil where there is none.
---@param path string
---@return integer?
function M.loaded(path)
  return vim.iter(vim.api.nvim_list_bufs()):find(function(buffer)
    if not vim.api.nvim_buf_is_loaded(buffer) then return false end
    local name = vim.api.nvim_buf_get_name(buffer)
    return name == path or (name ~= "" and vim.uv.fs_realpath(name) == path)
  end)
end

return M
