--- From nothing to a model that answers: the server in an environment of its own, and `codeagent-lsp setup`, which asks
--- for a model and tests it. Both run in a terminal window, so that everything they say is seen. What needed them goes
--- on afterwards. Not here: where a server is looked for (`server.lua`).

local client = require("codeagent.client")
local notify = require("codeagent.notify")
local queries = require("codeagent.queries")
local server = require("codeagent.server")
local store = require("codeagent.store")
local texts = require("codeagent.texts")
local windows = require("codeagent.windows")

local M = {}

local HEIGHT = 16
local TRIES, PAUSE = 50, 20 -- milliseconds
local PYTHONS = { "python3", "python", "python3.14", "python3.13", "python3.12", "python3.11" }
local START = 20000 -- milliseconds a Python may take to start, on a machine that is busy
local IS_NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 11))"
local STEPS = table.concat({
  "import subprocess, sys",
  "folder, inside, source = sys.argv[1:]",
  "pip = [inside, '-m', 'pip', '--disable-pip-version-check', 'install', '--upgrade', source]",
  "sys.exit(subprocess.call([sys.executable, '-m', 'venv', folder]) or subprocess.call(pip))",
}, "\n")

--- A Python that the server runs on.
local function python()
  return vim.iter(PYTHONS):find(function(name)
    if vim.fn.executable(name) == 0 then return false end
    return vim.system({ name, "-c", IS_NEW_ENOUGH }):wait(START).code == 0
  end)
end

--- Calls `use` when the mode of the terminal that was left has ended, which takes a moment: the next one begins it.
local function once_normal(tries, use)
  if tries == 0 or vim.api.nvim_get_mode().mode ~= "t" then return use() end
  vim.defer_fn(function() once_normal(tries - 1, use) end, PAUSE)
end

local last ---@type integer? the buffer of the terminal that was opened last

--- Runs a program in a terminal below, in which the user can type. It closes when all is well; when not, it stays with
--- what it said until the next one.
---@param title string above what it prints
---@param command string[]
---@param finished fun(ok: boolean)
local function in_terminal(title, command, finished)
  if last and vim.api.nvim_buf_is_valid(last) then vim.api.nvim_buf_delete(last, { force = true }) end
  local before = vim.api.nvim_get_current_win()
  vim.cmd(("botright %dnew"):format(math.min(HEIGHT, math.floor(vim.o.lines / 2))))
  local window, buffer = vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf()
  last = buffer
  vim.bo[buffer].bufhidden = "wipe"
  windows.head(window, title, {})
  vim.fn.jobstart(command, {
    term = true,
    on_exit = function(_, code)
      if code == 0 and vim.api.nvim_win_is_valid(window) then vim.api.nvim_win_close(window, true) end
      if vim.api.nvim_win_is_valid(before) then vim.api.nvim_set_current_win(before) end
      vim.cmd.stopinsert()
      once_normal(TRIES, function() finished(code == 0) end)
    end,
  })
  vim.cmd.startinsert()
end

--- Whether the user has said which model is used, so that nothing needs to be asked.
local function names_model()
  local config = vim.lsp.config[client.NAME]
  for _, model in ipairs({ vim.tbl_get(config, "settings", "codeagent", "model") or {}, vim.tbl_get(config, "init_options", "model") or {} }) do
    if model.provider or model.baseUrl or model.name then return true end
  end
  return vim.env.CODEAGENT_BASE_URL ~= nil or vim.env.CODEAGENT_MODEL ~= nil
end

--- Lets the user choose a model in a terminal; `done` is called once one has answered and is kept.
---@param done fun()
local function choose(done)
  local found = server.find()
  if not found then return notify.warn(texts.get("server.none")) end
  local command = vim.list_extend({}, found.cmd)
  if command[#command] == "serve" then command[#command] = nil end
  in_terminal(texts.get("setup.choosing"), vim.list_extend(command, { "setup" }), function(ok)
    if not ok then return notify.warn(texts.get("setup.no_model")) end
    done()
  end)
end

--- The newest run, where it has failed for want of a model, as the arguments to begin it once more.
local function failed_task()
  local run = queries.latest(store.state())
  return run and run.status == "failed" and run.lacks_model and run.task ~= "" and run.task or nil
end

--- Has the user choose a model; a task that had failed without one is begun again.
function M.model()
  local task = failed_task()
  choose(function()
    client.restart(function()
      if not task then return notify.tell(texts.get("setup.ready")) end
      client.run("run", { task = task }, task:match("[^\n]*"))
    end)
  end)
end

--- Installs the server, asks for a model unless one is named, starts for the buffers that are open, and calls `done`.
---@param done fun()?
function M.install(done)
  local program = python()
  if not program then return notify.warn(texts.get("setup.no_python")) end
  local folder, inside = server.own()
  in_terminal(texts.get("setup.installing"), { program, "-c", STEPS, folder, inside, server.source() }, function(ok)
    if not ok then return notify.warn(texts.get("setup.not_installed")) end
    local function go_on()
      if vim.lsp.is_enabled(client.NAME) then vim.lsp.enable(client.NAME) end
      if done then return done() end
      client.ensure(function() notify.tell(texts.get("setup.ready")) end)
    end
    if names_model() then return go_on() end
    choose(go_on)
  end)
end

--- Offers to install the server to somebody who has asked for something that needs it, which then goes on.
---@param done fun()
---@param failed fun()?
function M.offer(done, failed)
  vim.ui.select({ "install", "later" }, {
    prompt = texts.get("setup.offer"),
    kind = "codeagent",
    format_item = function(item) return texts.get("setup." .. item) end,
  }, function(item)
    if item == "install" then return M.install(done) end
    notify.warn(texts.get("server.none"))
    if failed then failed() end
  end)
end

return M
