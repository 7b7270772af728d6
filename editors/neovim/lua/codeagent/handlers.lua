--- What the server tells and asks this editor: events, input, diagnostics, documents, questions, messages.
--- Not here: what it asks other language servers (`servers.lua`).

local notify = require("codeagent.notify")
local prompts = require("codeagent.prompts")
local protocol = require("codeagent.protocol")
local store = require("codeagent.store")

local M = {}

local LEVELS = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO, vim.log.levels.DEBUG }

local function event(_, params, context)
  if type(params) ~= "table" or type(params.type) ~= "string" then return end
  params.client_id = context.client_id
  store.dispatch(params)
  require("codeagent.reactions").observe(params, context.client_id)
end

--- A diagnostic of `vim.diagnostic` as the protocol has it. Columns are bytes here, the client's units there.
---@param item vim.Diagnostic
---@param encoding "utf-8"|"utf-16"|"utf-32"
local function as_lsp(item, encoding)
  local function position(line, column)
    local text = vim.api.nvim_buf_get_lines(item.bufnr, line, line + 1, false)[1] or ""
    return { line = line, character = vim.str_utfindex(text, encoding, math.min(column, #text), false) }
  end
  return {
    range = {
      start = position(item.lnum, item.col),
      ["end"] = position(item.end_lnum or item.lnum, item.end_col or item.col),
    },
    severity = item.severity,
    message = item.message,
    source = item.source,
    code = item.code,
  }
end

local function diagnostics(_, params, context)
  local buffer = require("codeagent.buffers").loaded(vim.uri_to_fname(params.uri))
  local client = vim.lsp.get_client_by_id(context.client_id)
  if not buffer or not client then return {} end
  local found = vim.tbl_map(function(item)
    return as_lsp(item, client.offset_encoding)
  end, vim.diagnostic.get(buffer))
  return { version = vim.lsp.util.buf_versions[buffer], diagnostics = found }
end

local function input(_, params)
  local value = prompts.input(params)
  return { value = value or vim.NIL }
end

local function choose(_, params, context)
  return prompts.choose(params.message, params.actions or {}, context.client_id) or vim.NIL
end

--- Documents of ours are shown in our windows, all others as Neovim shows them.
local function show_document(problem, params, context)
  local folder, name = params.uri:match("/documents/(%a+)/(.+)%.%a+$")
  if folder == "review" then
    require("codeagent.review").shown(name)
    return { success = true }
  end
  if folder == "transcript" then
    require("codeagent.transcript").shown(name)
    return { success = true }
  end
  local path = vim.uri_to_fname(params.uri)
  if folder == "prompt" and require("codeagent.input").takes(path, context.client_id) then return { success = true } end
  if folder then require("codeagent.client").opens(path, context.client_id) end
  local answer = vim.lsp.handlers["window/showDocument"](problem, params, context)
  local window = folder and vim.fn.bufwinid(path) or -1
  if window > 0 then vim.wo[window].linebreak = true end -- words in a narrow window
  return answer
end

--- What is offered in the code has changed: at the start of a server, because changes wait from before.
local function lenses_changed(_, _, context)
  require("codeagent.offers").refresh()
  require("codeagent.reactions").left(context.client_id)
  return vim.NIL
end

--- One line; left out when the transcript that says the same is in front of the user.
local function show_message(_, params)
  local level = LEVELS[params.type] or vim.log.levels.INFO
  if level == vim.log.levels.INFO and require("codeagent.transcript").is_visible() then return end
  notify.tell(params.message, level)
end

--- The handlers by method.
function M.table()
  return {
    [protocol.methods.event] = event,
    [protocol.methods.input] = input,
    [protocol.methods.diagnostics] = diagnostics,
    [protocol.methods.lsp] = function(...) return require("codeagent.servers").answer(...) end,
    [protocol.methods.inlineStatus] = function(...) return require("codeagent.inline").told(...) end,
    ["workspace/codeLens/refresh"] = lenses_changed,
    ["window/showDocument"] = show_document,
    ["window/showMessageRequest"] = choose,
    ["window/showMessage"] = show_message,
  }
end

--- Tells the server the language, and the settings before it asks for them.
---@param params lsp.InitializeParams
---@param config vim.lsp.ClientConfig
function M.before_init(params, config)
  local texts = require("codeagent.texts")
  params.locale = texts.language()
  local settings = vim.tbl_get(config, "settings", "codeagent") or {}
  local given = vim.tbl_deep_extend("force", settings, params.initializationOptions or {})
  params.initializationOptions = next(given) and given or nil
  require("codeagent.reactions").begin()
  require("codeagent.inline").begin()
end

return M
