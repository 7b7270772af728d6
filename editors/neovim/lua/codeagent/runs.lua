--- The runs of the workspace: the list, the search, and what can be done with one. Not here: starting runs.

local client = require("codeagent.client")
local notify = require("codeagent.notify")
local queries = require("codeagent.queries")
local store = require("codeagent.store")
local texts = require("codeagent.texts")

local M = {}

local AT_WORK = { running = true, waiting = true }
local UNDONE = { running = true, waiting = true, queued = true, withdrawn = true }

local function pick(items, prompt, words, use)
  vim.ui.select(items, { prompt = prompt, kind = "codeagent", format_item = words }, function(item)
    if item then use(item) end
  end)
end

--- The run of a row, where it is an attempt at another one's task.
local function attempt_of(row)
  local run = store.state().runs[row.runId]
  return run and run.attempt_of and run or nil
end

local function line(row)
  local state, attempt = texts.get("run." .. row.state), attempt_of(row)
  local said = row.excerpt and ("\u{2003}" .. row.excerpt) or ""
  local title = attempt and queries.title(store.state(), attempt) or row.title
  return ("%-11s %s%s%s"):format(state, title, row.step and (" \u{2013} " .. row.step) or "", said)
end

local function resume_then(row, work)
  if row.sessionId == store.state().session_id then return work() end
  client.call("session.resume", { sessionId = row.sessionId }, work)
end

local function item(key, run) return { words = texts.get(key), run = run } end

--- What can be done with an attempt: to look at it, and to take from it. All else is done with its run.
local function choices_of_attempt(run)
  local look = item("pick.look", function() require("codeagent.transcript").open({ session = run.session_id }) end)
  if not next(run.staged) then return { look } end
  return { look, item("pick.review", function() require("codeagent.review").open(run.run_id) end) }
end

--- What can be done with a run: words, and what they do.
local function choices(row)
  local attempt = attempt_of(row)
  if attempt then return choices_of_attempt(attempt) end
  if AT_WORK[row.state] then
    return {
      item("pick.steer", function()
        vim.ui.input({ prompt = texts.get("ask.steer") }, function(said)
          if said and said:match("%S") then client.say(row.runId, said) end
        end)
      end),
      item("pick.stop", function() client.call("cancel", { runId = row.runId }) end),
    }
  end
  if row.state == "queued" then
    return { item("pick.leave_out", function() client.withdraw(row.runId, row.runId) end) }
  end
  local go_on = item("pick.go_on", function() require("codeagent.pickers").resume(row.sessionId) end)
  if UNDONE[row.state] then return { go_on } end
  return {
    go_on,
    item("pick.back", function() resume_then(row, function() M.back(row.runId) end) end),
    item("pick.fork", function() resume_then(row, function() M.fork(row.runId) end) end),
  }
end

local function show(rows, prompt, empty)
  if #rows == 0 then return notify.tell(texts.get(empty)) end
  pick(rows, texts.get(prompt), line, function(row)
    pick(choices(row), row.title, function(choice) return choice.words end, function(choice) choice.run() end)
  end)
end

--- Lists the runs, the newest first.
function M.list()
  client.call("runs", {}, function(rows) show(rows, "pick.runs", "told.no_runs_yet") end)
end

--- Lists the user's own commands; `use` gets the name of one and its arguments.
---@param use fun(name: string, arguments: string)
function M.commands(use)
  client.call("commands.list", {}, function(rows)
    if #rows == 0 then return notify.tell(texts.get("told.no_commands")) end
    pick(rows, texts.get("pick.own_command"), function(row)
      return ("/%s %s %s"):format(row.name, row.hint, row.description)
    end, function(row)
      vim.ui.input({ prompt = ("/%s %s "):format(row.name, row.hint) }, function(given)
        if given then use(row.name, given) end
      end)
    end)
  end)
end

--- Finds runs by words.
---@param words string
function M.search(words)
  client.call("session.search", { query = words }, function(rows) show(rows, "pick.runs", "told.not_found") end)
end

--- Calls `use` with the id of a run of this session that has ended: the one given, else the chosen one.
local function with_run(run_id, use)
  if run_id then return use(run_id) end
  client.call("runs", {}, function(rows, its)
    local session = store.state().sessions[its.id]
    local here = vim.tbl_filter(function(row) return row.sessionId == session and not UNDONE[row.state] end, rows)
    if #here == 0 then return notify.tell(texts.get("told.no_runs_yet")) end
    pick(here, texts.get("pick.which"), line, function(row) use(row.runId) end)
  end)
end

--- Goes back to before a run, after saying what that takes back.
---@param run_id string?
function M.back(run_id)
  with_run(run_id, function(id)
    client.call("session.rewind", { runId = id, preview = true }, function(told)
      local items = { { what = "talk", words = texts.get("pick.talk") } }
      if #told.files > 0 then
        local files = table.concat(told.files, ", ")
        table.insert(items, 1, { what = "both", words = texts.get("pick.both", { files = files }) })
        table.insert(items, 2, { what = "changes", words = texts.get("pick.changes", { files = files }) })
      end
      local prompt = texts.get("pick.before", { title = told.runs[1].title, count = #told.runs })
      pick(items, prompt, function(item) return item.words end, function(item)
        client.call("session.rewind", { runId = id, what = item.what })
      end)
    end)
  end)
end

--- Begins a session with the talk as it was before a run.
---@param run_id string?
function M.fork(run_id)
  with_run(run_id, function(id)
    require("codeagent.pickers").enter("session.fork", { runId = id })
  end)
end

return M
