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
---@field request_id string? nil for one that no event told of

local BEGINNING = 150 -- letters by which a message is known; the server cuts none so short
local waiting = {} ---@type codeagent.Waiting[]
local asked = {} ---@type table<string, boolean> by request id

local function is_free()
  local mode = vim.api.nvim_get_mode()
  return mode.mode == "n" and not mode.blocking and vim.fn.getcmdwintype() == "" and vim.fn.reg_recording() == ""
end

--- Leaves insert mode where the user is in the box below the transcript and has written nothing: they wait there for what
--- comes. The change of the mode then asks.
local function leave_box()
  local mode = vim.api.nvim_get_mode()
  if mode.mode ~= "i" or mode.blocking or not require("codeagent.input").is_idle() then return false end
  vim.api.nvim_feedkeys(vim.keycode("<Esc>"), "n", false)
  return true
end

--- Whether a question is still open, by the server's events.
local function is_open(request_id)
  return vim.iter(store.state().questions):any(function(item) return item.request_id == request_id end)
end

--- The open question of a client that a message asks. The message is the title in one line, perhaps cut, or with what
--- was chosen so far. Of several that sound alike it is the first that was not asked yet, as the server asks in order.
---@return codeagent.Question?
local function known(message, client_id)
  local state, again = store.state(), nil
  for _, item in ipairs(state.questions) do
    local run = state.runs[item.run_id]
    local begins = vim.fn.strcharpart(vim.trim((item.title:gsub("%s+", " "))), 0, BEGINNING)
    if run and run.client_id == client_id and vim.startswith(message, begins) then
      if not asked[item.request_id] then return item end
      again = item
    end
  end
  return again
end

--- Ends the questions that were answered elsewhere, or whose run has ended, without an answer. One that no event told of
--- stays.
local function drop_over()
  waiting = vim.tbl_filter(function(item)
    local over = item.request_id and not is_open(item.request_id)
    if over then item.drop() end
    return not over
  end, waiting)
end

--- Takes the first question that is still open.
local function next_open()
  drop_over()
  return table.remove(waiting, 1)
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
---@param request_id string?
---@param ask fun()
---@param drop fun()
local function when_free(title, request_id, ask, drop)
  drop_over()
  if request_id then asked[request_id] = true end
  if config.get("prompts") == "auto" and is_free() and #waiting == 0 then return present(ask) end
  table.insert(waiting, { ask = ask, drop = drop, request_id = request_id })
  if config.get("prompts") == "auto" and leave_box() then return end
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

--- The run whose changes a question is about.
---@param question codeagent.Question?
---@return string?
local function changes_of(question)
  local run = question and store.state().runs[question.run_id]
  return run and queries.is_about_changes(run, question.title) and run.run_id or nil
end

--- The chosen action of a server's question, nil for none. *Review* is answered by what is decided in the review.
---@param message string
---@param actions lsp.MessageActionItem[]
---@param client_id integer?
---@return lsp.MessageActionItem?
function M.choose(message, actions, client_id)
  local question = known(message, client_id)
  return wait_for(function(done)
    when_free(message, question and question.request_id, function()
      vim.ui.select(actions, {
        prompt = message,
        kind = "codeagent",
        format_item = function(action) return action.title end,
      }, function(action, position)
        local run_id = position == 1 and #actions == 3 and changes_of(question)
        if not run_id then return done(action) end
        require("codeagent.review").open(run_id, function() done(nil) end)
      end)
    end, done)
  end)
end

--- Free text, nil for none.
---@param params { requestId: string, title: string, prompt: string?, secret: boolean? } as the server sends it
---@return string?
function M.input(params)
  local title, detail = params.title, params.prompt or ""
  local request_id = is_open(params.requestId) and params.requestId or nil
  return wait_for(function(done)
    when_free(title, request_id, function()
      if params.secret then return done(vim.fn.inputsecret(title .. " ")) end
      if detail ~= "" then vim.api.nvim_echo({ { detail } }, true, {}) end
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
