--- The plugin's own options, each once with its default and meaning. They come from `vim.g.codeagent` or `setup()`.
--- Not here: the server's settings, which stand in `vim.lsp.config("codeagent", { settings = … })`.

local M = {}

---@class codeagent.Option
---@field key string
---@field default any
---@field type string|string[] as `vim.validate` takes it
---@field choices string[]?
---@field help string

---@type codeagent.Option[]
M.OPTIONS = {
  {
    key = "cmd",
    type = "table",
    help = "The command that starts the server, as a list. Without it: `codeagent-lsp` in the active virtual "
      .. "environment, then on PATH, then where `:CodeAgent install` puts it, then through `uvx`, then through "
      .. "`pipx run`.",
  },
  {
    key = "transcript.open",
    default = "runs",
    type = "string",
    choices = { "runs", "answers", "never" },
    help = "When the transcript opens by itself, never taking the focus: with every task and question, only for "
      .. "answers longer than a line, or never.",
  },
  {
    key = "transcript.position",
    default = "right",
    type = "string",
    choices = { "right", "left", "below", "tab" },
    help = "Where the transcript opens.",
  },
  { key = "transcript.size", default = 0.45, type = "number", help = "Its share of the screen, 0.1 to 0.9." },
  {
    key = "review.position",
    default = "tab",
    type = "string",
    choices = { "tab", "right", "below" },
    help = "Where a review opens.",
  },
  {
    key = "review.inline",
    default = true,
    type = "boolean",
    help = "Whether changes that wait are also shown in the code, see |codeagent-hunks|.",
  },
  {
    key = "offers",
    default = true,
    type = "boolean",
    help = "Whether what is offered about your own edits is shown at its line, see |codeagent-offers|.",
  },
  {
    key = "prompts",
    default = "auto",
    type = "string",
    choices = { "auto", "manual" },
    help = "`auto` asks as soon as you are in normal mode and not in the middle of a command; `manual` only says "
      .. "that something waits, `:CodeAgent pending` asks.",
  },
  {
    key = "keymaps",
    default = false,
    type = "boolean",
    help = "Whether to make the suggested global mappings, see |codeagent-mappings|.",
  },
  {
    key = "language",
    default = "auto",
    type = "string",
    choices = { "auto", "en", "zh-cn" },
    help = "Language of this plugin and, unless its own setting says otherwise, of the server.",
  },
}

---@type table?
local given

--- Takes options from `setup()`; they win over `vim.g.codeagent`.
---@param options table?
function M.set(options)
  given = options
end

local function lookup(options, key)
  local value = options
  for name in key:gmatch("[^.]+") do
    if type(value) ~= "table" then return nil end
    value = value[name]
  end
  return value
end

local function option(key)
  for _, item in ipairs(M.OPTIONS) do
    if item.key == key then return item end
  end
  error("no such option: " .. key)
end

local function fits(item, value)
  if type(value) ~= item.type then return false end
  return not item.choices or vim.tbl_contains(item.choices, value)
end

--- The value of an option; a bad one counts as not given (`:checkhealth codeagent` names it).
---@param key string
function M.get(key)
  local item = option(key)
  for _, options in ipairs({ given or {}, vim.g.codeagent or {} }) do
    local value = lookup(options, key)
    if value ~= nil and fits(item, value) then return value end
  end
  return item.default
end

local function known(path)
  for _, item in ipairs(M.OPTIONS) do
    if item.key == path then return "leaf" end
    if vim.startswith(item.key, path .. ".") then return "branch" end
  end
end

local function problems_in(options, prefix, found)
  for name, value in pairs(options) do
    local path = prefix .. tostring(name)
    local kind = known(path)
    if not kind then
      table.insert(found, ("unknown option `%s`"):format(path))
    elseif kind == "leaf" and not fits(option(path), value) then
      local item = option(path)
      local allowed = item.choices and table.concat(item.choices, ", ") or item.type
      table.insert(found, ("option `%s`: %s is not one of: %s"):format(path, vim.inspect(value), allowed))
    elseif kind == "branch" and type(value) == "table" then
      problems_in(value, path .. ".", found)
    end
  end
  return found
end

--- What is wrong with the options that were given, a sentence each.
---@return string[]
function M.problems()
  local found = problems_in(vim.g.codeagent or {}, "", {})
  return problems_in(given or {}, "", found)
end

return M
