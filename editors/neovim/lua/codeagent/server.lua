--- Finds the program of the server. Never inside the opened folder: what lies there is not trusted to be run.

local config = require("codeagent.config")

local M = {}

M.PROGRAM = "codeagent-lsp"

local HERE = vim.fs.dirname(debug.getinfo(1, "S").source:sub(2))

---@class codeagent.Found
---@field cmd string[]
---@field how "option"|"virtual environment"|"PATH"|"own"|"uvx"|"pipx"

--- The path of a program in a virtual environment.
local function inside(folder, program)
  local windows = vim.fn.has("win32") == 1
  return vim.fs.joinpath(folder, windows and "Scripts" or "bin", program .. (windows and ".exe" or ""))
end

--- The server in an environment, if it is there.
local function server_in(folder)
  local path = folder and folder ~= "" and inside(folder, M.PROGRAM)
  return path and vim.fn.executable(path) == 1 and path or nil
end

--- The environment that `:CodeAgent install` makes, and its Python.
---@return string folder
---@return string python
function M.own()
  local folder = vim.fs.joinpath(vim.fn.stdpath("data"), "codeagent", "server")
  return folder, inside(folder, "python")
end

--- What can be installed: the checkout that this plugin is part of, else the package of that name.
---@return string
function M.source()
  local checkout = vim.fs.normalize(vim.fs.joinpath(HERE, "..", "..", "..", ".."))
  return vim.fn.isdirectory(checkout .. "/codeagent_lsp") == 1 and checkout or M.PROGRAM
end

--- The command that starts the server and where it comes from; nil when there is none.
---@return codeagent.Found?
function M.find()
  local given = config.get("cmd")
  if given and given[1] then return { cmd = given, how = "option" } end
  local packed = server_in(vim.env.VIRTUAL_ENV)
  if packed then return { cmd = { packed }, how = "virtual environment" } end
  if vim.fn.executable(M.PROGRAM) == 1 then return { cmd = { M.PROGRAM }, how = "PATH" } end
  local own = server_in((M.own()))
  if own then return { cmd = { own }, how = "own" } end
  if vim.fn.executable("uvx") == 1 then return { cmd = { "uvx", "--from", M.source(), M.PROGRAM }, how = "uvx" } end
  if vim.fn.executable("pipx") == 1 then return { cmd = { "pipx", "run", "--spec", M.source(), M.PROGRAM }, how = "pipx" } end
end

return M
