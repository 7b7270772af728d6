--- Tells the user a line, and keeps what was told for `:CodeAgent messages`.
--- The line is cut to what fits, so that it never asks for <Enter>; the whole is kept.

local M = {}

local KEPT = 100
local told = {} ---@type string[]

-- The server's commands that have another name here; the last part of the others is the same.
local OWN = { ["session.list"] = "sessions", ["mode.set"] = "mode", ["model.select"] = "model", ["prompt"] = "prompt" }
local SAME = { pending = true, review = true, doctor = true, trust = true, apply = true, discard = true, run = true }

--- A sentence of the server with the commands that it names as those of this plugin.
---@param message string
---@return string
function M.here(message)
  return (message:gsub("`?codeagent%.([%a.]*%a)`?", function(name)
    local own = OWN[name] or (SAME[name] and name)
    return own and ("`:CodeAgent " .. own .. "`") or nil
  end))
end

---@param message string
---@param level integer? of `vim.log.levels`
function M.tell(message, level)
  message = M.here(message)
  table.insert(told, os.date("%H:%M:%S ") .. message)
  if #told > KEPT then table.remove(told, 1) end
  local line = message:gsub("%s*\n%s*", " ")
  local space = math.max(20, vim.v.echospace - 1)
  if vim.fn.strdisplaywidth(line) > space then
    line = vim.fn.strcharpart(line, 0, space - 2)
    while vim.fn.strdisplaywidth(line) > space - 1 do
      line = vim.fn.strcharpart(line, 0, vim.fn.strchars(line) - 1)
    end
    line = line .. "…"
  end
  vim.notify(line, level or vim.log.levels.INFO, { title = "CodeAgent" })
end

---@param message string
function M.warn(message)
  M.tell(message, vim.log.levels.WARN)
end

--- Everything told so far, oldest first.
---@return string[]
function M.all()
  return vim.list_extend({}, told)
end

return M
