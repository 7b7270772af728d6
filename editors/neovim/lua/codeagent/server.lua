--- Finds the program of the server. Never inside the opened folder: what lies there is not trusted to be run.

local config = require("codeagent.config")

local M = {}

M.PROGRAM = "codeagent-lsp"

---@class codeagent.Found
---@field cmd string[]
---@field how "option"|"virtual environment"|"PATH"|"uvx"|"pipx"

local function in_virtual_environment()
  local folder = vim.env.VIRTUAL_ENV
  if not folder or folder == "" then return nil end
  local windows = vim.fn.has("win32") == 1
  local path = vim.fs.joinpath(folder, windows and "Scripts" or "bin", M.PROGRAM .. (windows and ".exe" or ""))
  return vim.fn.executable(path) == 1 and path or nil
end

--- The command that starts the server and where it comes from; nil when there is none.
---@return codeagent.Found?
function M.find()
  local given = config.get("cmd")
  if given and given[1] then return { cmd = given, how = "option" } end
  local packed = in_virtual_environment()
  if packed then return { cmd = { packed }, how = "virtual environment" } end
  if vim.fn.executable(M.PROGRAM) == 1 then return { cmd = { M.PROGRAM }, how = "PATH" } end
  if vim.fn.executable("uvx") == 1 then return { cmd = { "uvx", M.PROGRAM }, how = "uvx" } end
  if vim.fn.executable("pipx") == 1 then return { cmd = { "pipx", "run", M.PROGRAM }, how = "pipx" } end
end

return M
