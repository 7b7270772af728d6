--- Lists to choose from: sessions, models, modes, and what waits for the user.

local client = require("codeagent.client")
local notify = require("codeagent.notify")
local prompts = require("codeagent.prompts")
local queries = require("codeagent.queries")
local store = require("codeagent.store")
local texts = require("codeagent.texts")
local with = require("codeagent.values").with

local M = {}

M.MODES = { "ask", "acceptEdits", "readOnly", "bypass" }

local function pick(items, prompt, words, use)
  if #items == 0 then return notify.tell(texts.get(prompt == "pick.model" and "told.no_models" or "told.no_choice")) end
  vim.ui.select(items, { prompt = texts.get(prompt), kind = "codeagent", format_item = words }, function(item)
    if item then use(item) end
  end)
end

local function age(seconds)
  local past = math.max(0, os.time() - math.floor(seconds or 0))
  if past < 60 then return texts.get("age.now") end
  if past < 3600 then return texts.get("age.minutes", { count = math.floor(past / 60) }) end
  if past < 86400 then return texts.get("age.hours", { count = math.floor(past / 3600) }) end
  return os.date("%Y-%m-%d", math.floor(seconds))
end

--- Goes on in the session that a command resumes or makes, and shows what it holds.
---@param command string
---@param argument table
function M.enter(command, argument)
  client.call(command, argument, function(entered, here)
    client.call("pending", {}, function(list)
      local changes = vim.tbl_filter(function(item) return item.kind == "changes" end, list)
      local waiting = vim.tbl_map(function(item) return item.runId end, changes)
      client.call("session.events", { sessionId = entered.sessionId }, function(shown)
        local history = { type = "local_history", session_id = entered.sessionId, client_id = here.id }
        store.dispatch(with(history, { events = shown.events, waiting = waiting }))
        require("codeagent.transcript").open({ focus = false, session = entered.sessionId })
        notify.tell(texts.get("told.resumed", { title = entered.title }))
      end)
    end)
  end)
end

--- Takes a session up again.
---@param session_id string
function M.resume(session_id) M.enter("session.resume", { sessionId = session_id }) end

--- Sessions of this workspace; `use` gets the id of the chosen one.
---@param use fun(session_id: string)
function M.sessions(use)
  client.call("session.list", {}, function(list)
    pick(list, "pick.session", function(item)
      return ("%s  (%s)"):format(item.title ~= "" and item.title or item.sessionId, age(item.modified))
    end, function(item) use(item.sessionId) end)
  end)
end

---@param session_id string
function M.delete(session_id)
  pick({ "no", "yes" }, "pick.delete", function(item) return texts.get("pick." .. item) end, function(item)
    if item == "no" then return end
    client.call("session.delete", { sessionId = session_id }, function() notify.tell(texts.get("told.deleted")) end)
  end)
end

local function select_model(name)
  client.call("model.select", { name = name }, function() notify.tell(texts.get("told.model", { name = name })) end)
end

---@param name string?
function M.model(name)
  if name then return select_model(name) end
  client.call("model.list", {}, function(names)
    pick(names, "pick.model", tostring, select_model)
  end)
end

---@param mode string?
function M.mode(mode)
  local function set(chosen)
    client.call("mode.set", { mode = chosen }, function() notify.tell(texts.get("told.mode", { mode = chosen })) end)
  end
  if mode then return set(mode) end
  client.call("mode.set", {}, function(now)
    pick(M.MODES, "pick.mode", function(item)
      return texts.get("mode." .. item) .. (item == now.mode and texts.get("pick.current") or "")
    end, set)
  end)
end

--- What the user has allowed or refused for good; the chosen one is asked again.
function M.approvals()
  client.call("approvals.list", {}, function(list)
    if #list == 0 then return notify.tell(texts.get("told.no_approvals")) end
    pick(list, "pick.approval", function(item) return vim.trim(item.shown .. "  " .. item.tool) end, function(item)
      client.call("approvals.revoke", { approvalId = item.approvalId }, function()
        notify.tell(texts.get("told.revoked", { name = item.shown }))
      end)
    end)
  end)
end

local function answer(item)
  local function respond(value)
    if value and value ~= "" then client.call("respond", { requestId = item.requestId, answer = value }) end
  end
  if #item.choices == 0 then return vim.ui.input({ prompt = item.title .. " " }, respond) end
  local other = texts.get("pick.other")
  local choices = item.free and vim.list_extend(vim.deepcopy(item.choices), { other }) or item.choices
  vim.ui.select(choices, { prompt = item.title, kind = "codeagent" }, function(choice, position)
    if item.free and choice == other then return vim.ui.input({ prompt = item.title .. " " }, respond) end
    if position == 1 and queries.is_about_changes(store.state().runs[item.runId], item.title) then
      return require("codeagent.review").open(item.runId)
    end
    respond(choice)
  end)
end

--- Takes back words that wait, if the user says so.
local function withdraw(item)
  pick({ "no", "leave_out" }, "pick.which", function(key) return texts.get("pick." .. key) end, function(key)
    if key == "leave_out" then client.withdraw(item.itemId, item.runId) end
  end)
end

--- Everything that waits: questions first, then changes. One is opened at once, several are listed.
function M.pending()
  if prompts.ask_now() then return end
  client.call_all("pending", function(list)
    local function open(item)
      if item.kind == "changes" then return require("codeagent.review").open(item.runId) end
      if item.itemId then return withdraw(item) end
      answer(item)
    end
    if #list == 0 then return notify.tell(texts.get("told.nothing")) end
    if #list == 1 then return open(list[1]) end
    pick(list, "pick.pending", function(item) return (item.kind == "changes" and "± " or "? ") .. item.title end, open)
  end)
end

return M
