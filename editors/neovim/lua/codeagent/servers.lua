--- Puts the agent's questions to the other language servers of a buffer. Nothing is applied, loaded, shown or run: an
--- edit is an answer like any other. Not here: diagnostics (`handlers.lua`).

local buffers = require("codeagent.buffers")
local protocol = require("codeagent.protocol")

local M = {}

local NAME = "codeagent"
local MILLISECONDS = 2500 -- the server waits a little longer
local RESOLVED = 20 -- code actions of one server
local KEPT = 300 -- items of hierarchies and code actions that can be asked about again

local kept = {} ---@type table<integer, { client: integer, item: table }>
local last = 0

---@alias codeagent.Question { client: vim.lsp.Client, method: string, params: table }

--- The item as the agent gets it: by its `data` it is known again, and what the server put there stays here.
local function keep(client, item)
  if type(item) ~= "table" then return nil end
  last = last + 1
  kept[last] = { client = client.id, item = item }
  kept[last - KEPT] = nil
  return vim.tbl_extend("force", item, { data = { codeagent = last } })
end

local function known(item)
  local id = type(item) == "table" and type(item.data) == "table" and item.data.codeagent
  return type(id) == "number" and kept[id] or nil
end

--- Asks all of them at once; the results of those that answer before the deadline, by their place in the list.
--- Waits as a coroutine, which every handler of a request is.
---@param questions codeagent.Question[]
---@param buffer integer
---@param deadline integer in the milliseconds of `vim.uv.now`
local function gather(questions, buffer, deadline)
  local thread, results, waiting, over = coroutine.running(), {}, {}, false
  local function finish()
    if over then return end
    over = true
    for place, id in pairs(waiting) do
      questions[place].client:cancel_request(id)
    end
    coroutine.resume(thread)
  end
  for place, question in ipairs(questions) do
    -- Scheduled, because a server that is a Lua function may answer before `request` returns.
    local take = vim.schedule_wrap(function(problem, result)
      waiting[place] = nil
      if over then return end
      results[place] = not problem and result or nil
      if not next(waiting) then finish() end
    end)
    local sent, id = question.client:request(question.method, question.params, take, buffer)
    waiting[place] = sent and id or nil
  end
  if not next(waiting) then return results end
  vim.defer_fn(finish, math.max(1, deadline - vim.uv.now()))
  coroutine.yield()
  return results
end

---@param from "utf-8"|"utf-16"|"utf-32"
---@param to "utf-8"|"utf-16"|"utf-32"
local function position(buffer, place, from, to)
  local text = vim.api.nvim_buf_get_lines(buffer, place.line, place.line + 1, false)[1] or ""
  local byte = vim.str_byteindex(text, from, place.character, false)
  return { line = place.line, character = vim.str_utfindex(text, to, byte, false) }
end

--- The diagnostics of this server itself at the lines of a range, as it wrote them: by what is in their `data` it finds
--- the fix.
local function diagnostics(client, buffer, range)
  local found = {}
  for _, pulled in ipairs({ false, true }) do
    local namespace = vim.lsp.diagnostic.get_namespace(client.id, pulled)
    for _, item in ipairs(vim.diagnostic.get(buffer, { namespace = namespace })) do
      local is_there = item.lnum <= range["end"].line and (item.end_lnum or item.lnum) >= range.start.line
      if is_there then found[#found + 1] = vim.tbl_get(item, "user_data", "lsp") end
    end
  end
  return found
end

--- The params as this server counts.
local function converted(params, client, buffer, from)
  local to, made = client.offset_encoding, vim.tbl_extend("force", {}, params)
  if params.position then made.position = position(buffer, params.position, from, to) end
  if params.range then
    made.range = {
      start = position(buffer, params.range.start, from, to),
      ["end"] = position(buffer, params.range["end"], from, to),
    }
  end
  if params.range and params.context then
    local own = { diagnostics = diagnostics(client, buffer, params.range) }
    made.context = vim.tbl_extend("force", params.context, own)
  end
  return made
end

--- Whom to ask what: about an item only the server that it is from.
---@return codeagent.Question[]
local function questions(method, params, buffer, from)
  local item = known(params.item)
  if item then
    local client = vim.lsp.get_client_by_id(item.client)
    return client and { { client = client, method = method, params = { item = item.item } } } or {}
  end
  if params.item then return {} end
  local clients = vim.tbl_filter(function(client)
    return client.name ~= NAME and not client:is_stopped()
  end, vim.lsp.get_clients({ bufnr = buffer, method = method }))
  return vim.tbl_map(function(client)
    return { client = client, method = method, params = converted(params, client, buffer, from) }
  end, clients)
end

--- Those that are edits, resolved where that is needed, without their commands.
local function code_actions(client, found, buffer, deadline)
  local made, open = {}, {}
  for _, action in ipairs(found) do
    local is_action = type(action) == "table" and type(action.command) ~= "string"
    if is_action and action.edit then
      made[#made + 1] = action
    elseif is_action and #open < RESOLVED and client:supports_method("codeAction/resolve", buffer) then
      open[#open + 1] = { client = client, method = "codeAction/resolve", params = action }
    end
  end
  local resolved = gather(open, buffer, deadline)
  for place = 1, #open do
    local action = resolved[place]
    if type(action) == "table" and action.edit then made[#made + 1] = action end
  end
  return vim.tbl_map(function(action)
    return keep(client, vim.tbl_extend("force", action, { command = vim.NIL }))
  end, made)
end

--- The result with items that can be asked about again.
local function with_items(method, client, found, buffer, deadline)
  if method == "textDocument/codeAction" then return code_actions(client, found, buffer, deadline) end
  local is_item = vim.startswith(method, "typeHierarchy/") or method:find("/prepare%a+Hierarchy$")
  local part = ({ ["callHierarchy/incomingCalls"] = "from", ["callHierarchy/outgoingCalls"] = "to" })[method]
  if not is_item and not part then return found end
  return vim.tbl_map(function(entry)
    if is_item then return keep(client, entry) end
    return vim.tbl_extend("force", entry, { [part] = keep(client, entry[part]) })
  end, found)
end

local function entry(client, result)
  return { server = client.name, result = result, positionEncoding = client.offset_encoding }
end

--- A code action as it was when it was found: it has been resolved then.
local function resolve(action)
  local found = known(action)
  local client = found and vim.lsp.get_client_by_id(found.client)
  return client and { entry(client, found.item) } or {}
end

local function ask(request, buffer, from)
  local method, deadline = request.method, vim.uv.now() + MILLISECONDS
  if method == "codeAction/resolve" then return resolve(request.params) end
  local asked, answers = questions(method, request.params, buffer, from), {}
  local found = gather(asked, buffer, deadline)
  for place, question in ipairs(asked) do
    local result = found[place]
    if type(result) == "table" and next(result) then
      result = with_items(method, question.client, result, buffer, deadline)
      if next(result) then answers[#answers + 1] = entry(question.client, result) end
    end
  end
  return answers
end

--- The answers of the other servers to a question about the text of a loaded buffer as it is now.
---@param request { uri: string, method: string, params: table }
---@param context lsp.HandlerContext
function M.answer(_, request, context)
  local ours = vim.lsp.get_client_by_id(context.client_id)
  local buffer = vim.list_contains(protocol.lent_methods, request.method) and buffers.loaded(vim.uri_to_fname(request.uri))
  if not buffer or not ours or type(request.params) ~= "table" then return vim.NIL end
  local before = vim.api.nvim_buf_get_changedtick(buffer)
  local fine, answers = pcall(ask, request, buffer, ours.offset_encoding) -- servers answer in every shape
  local is_current = vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_changedtick(buffer) == before
  return fine and is_current and #answers > 0 and answers or vim.NIL
end

return M
