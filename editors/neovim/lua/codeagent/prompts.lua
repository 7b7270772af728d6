--- Asks the user by `vim.ui.select` and `vim.ui.input`, never in the middle of typing: a question waits until the
--- user is in normal mode and no command is half typed. Called in the coroutine of a server's request.

local config = require("codeagent.config")
local notify = require("codeagent.notify")
local queries = require("codeagent.queries")
local store = require("codeagent.store")
local texts = require("codeagent.texts")

local M = {}

---@class codeagent.Waiting a question that the user has not been asked yet
---@field ask fun()
---@field drop fun() ends it without an answer
---@field is_over fun(): boolean

local waiting = {} ---@type codeagent.Waiting[]

local function is_free()
  local mode = vim.api.nvim_get_mode()
  return mode.mode == "n" and not mode.blocking and vim.fn.getcmdwintype() == "" and vim.fn.reg_recording() == ""
end

--- The open question with this title, as the server tells of it by its events.
local function known(title)
  return vim.iter(store.state().questions):find(function(item) return item.title == title end)
end

--- Whether a question was answered elsewhere, or its run has ended. One that no event told of is never over.
local function watched(title)
  local question = known(title)
  return function()
    local open = question and vim.iter(store.state().questions):any(function(item)
      return item.request_id == question.request_id
    end)
    return question ~= nil and not open
  end
end

--- The first question that is not over; those before it are ended.
local function next_open()
  while #waiting > 0 do
    local first = table.remove(waiting, 1)
    if not first.is_over() then return first end
    first.drop()
  end
end

--- Asks, with everything drawn that led to the question: a prompt may keep the screen as it is.
local function present(ask)
  store.flush()
  vim.cmd.redraw()
  ask()
end

local function next_one()
  if not is_free() then return end
  local first = next_open()
  if first then present(first.ask) end
  if #waiting > 0 then vim.schedule(next_one) end
end

--- Calls `ask` as soon as a question does not disturb; says meanwhile that something waits.
---@param title string
---@param ask fun()
---@param drop fun()
local function when_free(title, ask, drop)
  if config.get("prompts") == "auto" and is_free() and #waiting == 0 then return present(ask) end
  table.insert(waiting, { ask = ask, drop = drop, is_over = watched(title) })
  notify.tell(texts.get("told.waits", { title = title }))
end

vim.api.nvim_create_autocmd({ "ModeChanged", "CursorHold" }, {
  group = vim.api.nvim_create_augroup("codeagent.prompts", {}),
  callback = function()
    if #waiting > 0 and config.get("prompts") == "auto" then vim.defer_fn(next_one, 150) end
  end,
})

--- Runs `start(done)` and waits for `done(value)`, in the coroutine of a request.
---@param start fun(done: fun(value: any))
local function wait_for(start)
  local co = assert(coroutine.running())
  start(function(value)
    vim.schedule(function()
      if coroutine.status(co) == "suspended" then coroutine.resume(co, value) end
    end)
  end)
  return coroutine.yield()
end

--- The run whose changes a prompt is about.
---@param title string
---@return string?
local function changes_of(title)
  local state = store.state()
  for _, item in ipairs(state.questions) do
    if item.title == title and queries.is_about_changes(state.runs[item.run_id], title) then return item.run_id end
  end
end

--- The chosen action of a server's question, nil for none. *Review* is answered by what is decided in the review.
---@param message string
---@param actions lsp.MessageActionItem[]
---@return lsp.MessageActionItem?
function M.choose(message, actions)
  return wait_for(function(done)
    when_free(message, function()
      vim.ui.select(actions, {
        prompt = message,
        kind = "codeagent",
        format_item = function(action) return action.title end,
      }, function(action, position)
        local run_id = position == 1 and #actions == 3 and changes_of(message)
        if not run_id then return done(action) end
        require("codeagent.review").open(run_id, function() done(nil) end)
      end)
    end, done)
  end)
end

--- Free text, nil for none.
---@param title string
---@param detail string?
---@param secret boolean?
---@return string?
function M.input(title, detail, secret)
  return wait_for(function(done)
    when_free(title, function()
      if secret then return done(vim.fn.inputsecret(title .. " ")) end
      if detail and detail ~= "" then vim.api.nvim_echo({ { detail } }, true, {}) end
      vim.ui.input({ prompt = title:gsub("%s*$", "") .. " " }, function(value)
        done(value ~= "" and value or nil)
      end)
    end, done)
  end)
end

--- Asks now what was put off.
---@return boolean whether there was anything
function M.ask_now()
  local first = next_open()
  if first then present(first.ask) end
  return first ~= nil
end

return M
