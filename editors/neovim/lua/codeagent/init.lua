--- What a user's configuration may call. Nothing has to be called: the plugin works without `setup()`.

local M = {}

--- Sets options, see |codeagent-options|. Not needed.
---@param options table?
function M.setup(options)
  local config = require("codeagent.config")
  config.set(options)
  if config.get("keymaps") then require("codeagent.keymaps").make() end
end

--- For a status line: what works or waits, empty when nothing does. Costs nothing before a server has started.
---@param options { highlight: boolean? }? with `highlight`, wrapped in a group for 'statusline'
---@return string
function M.statusline(options)
  if not package.loaded["codeagent.store"] then return "" end
  local store = require("codeagent.store")
  local words, group = require("codeagent.render").summary(store.state(), store.now())
  if words == "" or not (options and options.highlight) then return words end
  return ("%%#%s#%s%%*"):format(group, (words:gsub("%%", "%%%%")))
end

--- `idle`, `working`, `waiting` or `error`.
---@return string
function M.status()
  if not package.loaded["codeagent.store"] then return "idle" end
  return require("codeagent.queries").condition(require("codeagent.store").state())
end

--- Everything that is known of the runs, see `lua/codeagent/reducer.lua`. Do not change it.
---@return codeagent.State
function M.state()
  return require("codeagent.store").state()
end

--- Sends a command of the server, for instance `require("codeagent").call("run", { task = "…" })`.
---@param name string without `codeagent.`
---@param arguments table?
---@param done fun(result: any)?
function M.call(name, arguments, done)
  require("codeagent.client").call(name, arguments, done)
end

return M
