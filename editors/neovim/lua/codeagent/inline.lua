--- Completion while you type: when the server is asked, and what is shown of its answer. Neovim 0.12 has that itself
--- (|vim.lsp.inline_completion|) and is left to it. Not here: the text that is shown (`suggestion.lua`).

local notify = require("codeagent.notify")
local suggestion = require("codeagent.suggestion")
local texts = require("codeagent.texts")

local M = {}

local METHOD = "textDocument/inlineCompletion"
local TRIES, PAUSE = 20, 100 -- milliseconds
local native = vim.lsp.inline_completion ---@type table? of Neovim 0.12
local group = vim.api.nvim_create_augroup("codeagent.inline", {})
local status = { state = "off", detail = "" }
local asked ---@type { client: vim.lsp.Client, id: integer }? the request on its way

local function client_of(buffer)
  return vim.lsp.get_clients({ name = "codeagent", bufnr = buffer })[1]
end

local function offers(client, buffer)
  local dynamic = client.dynamic_capabilities
  return client.server_capabilities.inlineCompletionProvider ~= nil
    or (dynamic ~= nil and dynamic:get(METHOD, { bufnr = buffer }) ~= nil)
end

local function stop()
  if asked then asked.client:cancel_request(asked.id) end
  asked = nil
end

--- The text to show of an answer, whose range may begin before the cursor with what is typed already.
local function rest_of(item, buffer, encoding)
  local text = type(item.insertText) == "table" and item.insertText.value or item.insertText
  local row, column, line = suggestion.cursor()
  local range = item.range
  if not range then return text end
  local lines = vim.api.nvim_buf_get_lines(buffer, range.start.line, range.start.line + 1, false)
  if range.start.line ~= row or range["end"].line ~= row or not lines[1] then return nil end
  local first = vim.str_byteindex(lines[1], encoding, range.start.character, false)
  local last = vim.str_byteindex(lines[1], encoding, range["end"].character, false)
  local typed = line:sub(first + 1, column)
  if last ~= column or not vim.startswith(text, typed) then return nil end
  return text:sub(#typed + 1)
end

local function show(result, buffer, encoding)
  local items = result and (result.items or result) or {}
  local text = items[1] and rest_of(items[1], buffer, encoding)
  if not text or text == "" then return end
  suggestion.show((text:gsub("\r\n", "\n")))
end

--- Asks the server for the text at the cursor. `kind`: 1 asked for, 2 by itself.
local function ask(buffer, kind)
  stop()
  local client = client_of(buffer)
  if not client or not offers(client, buffer) then return end
  local encoding, tick = client.offset_encoding, vim.api.nvim_buf_get_changedtick(buffer)
  local place = vim.api.nvim_win_get_cursor(0)
  local params = vim.lsp.util.make_position_params(0, encoding)
  params.context = { triggerKind = kind }
  local sent, id = client:request(METHOD, params, function(problem, result)
    local here = vim.api.nvim_get_current_buf() == buffer
      and vim.api.nvim_buf_get_changedtick(buffer) == tick
      and vim.deep_equal(vim.api.nvim_win_get_cursor(0), place)
    asked = nil
    if problem or not here or vim.fn.pumvisible() == 1 or not vim.startswith(vim.fn.mode(), "i") then return end
    show(result, buffer, encoding)
  end, buffer)
  if sent then asked = { client = client, id = id } end
end

local function changed(event)
  if suggestion.typed() then return end
  ask(event.buf, 2)
end

local function moved()
  if suggestion.left() then suggestion.clear() end
end

local function left()
  stop()
  suggestion.clear()
end

local function attach(buffer, client_id)
  if native then return native.enable(true, { bufnr = buffer, client_id = client_id }) end
  vim.api.nvim_clear_autocmds({ group = group, buffer = buffer })
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = buffer, callback = callback })
  end
  on("TextChangedI", changed)
  on("CursorMovedI", moved)
  on({ "InsertLeave", "BufLeave", "CompleteChanged", "TextChangedP" }, left)
end

--- Completes in every buffer that the server is attached to from now on.
function M.begin()
  vim.api.nvim_create_autocmd("LspAttach", {
    group = vim.api.nvim_create_augroup("codeagent.inline.attach", {}),
    callback = function(event)
      local client = vim.lsp.get_client_by_id(event.data.client_id)
      if client and client.name == "codeagent" then attach(event.buf, client.id) end
    end,
  })
end

local function native_accept(part)
  return native.get({
    on_accept = function(item)
      local text = type(item.insert_text) == "string" and item.insert_text or nil
      if not text or part == "all" then return item end
      local _, column, line = suggestion.cursor()
      local typed = ""
      for size = math.min(#text, column), 1, -1 do
        if line:sub(column - size + 1, column) == text:sub(1, size) then
          typed = text:sub(1, size)
          break
        end
      end
      item.insert_text = typed .. suggestion.part(text:sub(#typed + 1), part)
      return item
    end,
  })
end

--- Takes what is shown, or the next word or line of it. False when nothing is shown.
---@param part "all"|"word"|"line"?
---@return boolean
function M.accept(part)
  if native then return native_accept(part or "all") end
  return suggestion.accept(part or "all")
end

--- Whether something is shown that can be taken.
---@return boolean
function M.visible()
  if not native then return suggestion.at_cursor() end
  local space = vim.api.nvim_get_namespaces()["nvim.lsp.inline_completion"]
  return space ~= nil and #vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { limit = 1 }) > 0
end

--- Whether the server completes in a buffer.
---@param buffer integer 0 for the current one
---@return boolean
function M.offered(buffer)
  buffer = buffer == 0 and vim.api.nvim_get_current_buf() or buffer
  local client = client_of(buffer)
  return client ~= nil and offers(client, buffer)
end

--- Hides what is shown, and does not ask before the next key.
function M.dismiss()
  left()
end

--- Asks now, also inside a word.
function M.trigger()
  if native then return end -- asks by itself
  suggestion.clear()
  ask(vim.api.nvim_get_current_buf(), 1)
end

--- Asks for the text at the cursor where the user has begun to type before there were completions. The server registers
--- them a moment after it has said that it is ready.
local function ask_once_offered(tries)
  local buffer = vim.api.nvim_get_current_buf()
  if suggestion.text() or asked or not vim.startswith(vim.fn.mode(), "i") or vim.fn.pumvisible() == 1 then return end
  if M.offered(buffer) then return ask(buffer, 2) end
  if tries > 0 then vim.defer_fn(function() ask_once_offered(tries - 1) end, PAUSE) end
end

--- The handler of `codeagent/inlineStatus`.
function M.told(_, params)
  if status.state == "starting" and params.state == "ready" and not native then ask_once_offered(TRIES) end
  status = { state = params.state, detail = params.detail or "" }
end

--- What the server said last: `off`, `starting`, `ready`, `asking` or `unavailable`, and a sentence.
---@return { state: string, detail: string }
function M.status()
  return status
end

local function set(value)
  for _, client in ipairs(vim.lsp.get_clients({ name = "codeagent" })) do
    client.settings = vim.tbl_deep_extend("force", client.settings or {}, {
      codeagent = { inline = { enabled = value } },
    })
    client:notify("workspace/didChangeConfiguration", { settings = client.settings })
  end
  if value == false then left() end
  notify.tell(texts.get(value == false and "inline.off" or "inline.on"))
end

--- `:CodeAgent inline [on|off|status]`; without a word it is switched.
---@param words string
function M.command(words)
  if words == "status" then
    local said = texts.get("inline." .. status.state)
    return notify.tell(status.detail ~= "" and said .. " " .. status.detail or said)
  end
  if words == "on" then return set("auto") end
  if words == "off" then return set(false) end
  local client = require("codeagent.client").current()
  local enabled = client and vim.tbl_get(client.settings or {}, "codeagent", "inline", "enabled")
  if enabled == false then set("auto") else set(false) end
end

return M
