--- What is asked of the state of all runs: which are the user's, what waits, how things stand. Pure.
--- Not here: how the state changes (`reducer.lua`).

local texts = require("codeagent.texts")
local filtered = require("codeagent.values").filtered

local M = {}

--- Whether a question is the one about a run's changes: it ends with what their proposal says.
---@param run codeagent.Run?
---@param title string
---@return boolean
function M.is_about_changes(run, title)
  local summary = run and run.proposal and run.proposal.summary or ""
  return summary ~= "" and title:sub(-#summary) == summary
end

--- What accepting and discarding changes of a run is called. Those of other programs are in the files already.
---@param run codeagent.Run?
---@return string accept, string discard
function M.verdicts(run)
  if run and run.foreign then return texts.get("keys.keep"), texts.get("keys.revert") end
  return texts.get("keys.accept"), texts.get("keys.discard")
end

--- The files of a run that wait for a decision, sorted.
---@param run codeagent.Run
---@return string[]
function M.staged(run)
  local files = {}
  for path in pairs(run.staged) do
    files[#files + 1] = path
  end
  table.sort(files)
  return files
end

--- The runs of the user, the newest first: attempts are parts of theirs. Last those of which only the title is known:
--- what they are is told when they begin, and they may be attempts.
---@param state codeagent.State
---@return codeagent.Run[]
function M.own_runs(state)
  local found, titled = {}, {}
  for position = #state.order, 1, -1 do
    local run = state.runs[state.order[position]]
    if not run.attempt_of then table.insert(run.session_id ~= "" and found or titled, run) end
  end
  return vim.list_extend(found, titled)
end

--- The runs that stand in the transcript of a session, in order: its own, and what other programs have changed meanwhile
--- in the workspace of their server, which has a session of its own.
---@param state codeagent.State
---@param session_id string?
---@return codeagent.Run[]
function M.in_transcript(state, session_id)
  local found, here = {}, nil
  for _, run_id in ipairs(state.order) do
    local run = state.runs[run_id]
    local its = run.session_id == session_id
    here = its and run.client_id or here
    if its or (run.foreign and run.client_id == here) then found[#found + 1] = run end
  end
  return found
end

--- Whether a session is that of an attempt.
---@param state codeagent.State
---@param session_id string
---@return boolean
function M.is_of_attempt(state, session_id)
  return vim.iter(state.order):any(function(run_id)
    return state.runs[run_id].attempt_of ~= nil and state.runs[run_id].session_id == session_id
  end)
end

--- The attempts with changes, by their numbers: one may have the better part.
---@param state codeagent.State
---@return codeagent.Run[]
function M.attempts(state)
  local runs = vim.tbl_map(function(run_id) return state.runs[run_id] end, state.order)
  local found = filtered(runs, function(run) return run.attempt_of and next(run.staged) ~= nil end)
  table.sort(found, function(one, two) return (one.attempt or 0) < (two.attempt or 0) end)
  return found
end

--- The title of a run; an attempt has that of its run, and which one it is. What other programs changed was not asked
--- for: it has what is said of its changes.
---@param state codeagent.State
---@param run codeagent.Run
---@return string
function M.title(state, run)
  local whole = run.attempt_of and state.runs[run.attempt_of]
  if run.title == "" and run.foreign and run.proposal then return run.proposal.summary or "" end
  if not (whole and run.attempt) then return run.title end
  return texts.get("run.attempt", { title = whole.title, number = run.attempt })
end

local SHORT = 40 -- letters

--- The title of a run in a few words.
---@param state codeagent.State
---@param run codeagent.Run
---@return string
function M.short_title(state, run)
  local title = M.title(state, run):gsub("%s+", " ")
  return vim.fn.strchars(title) <= SHORT and title or vim.fn.strcharpart(title, 0, SHORT - 1) .. "…"
end

--- Runs that have ended and whose changes still wait, the newest first.
---@param state codeagent.State
---@return codeagent.Run[]
function M.waiting_changes(state)
  return filtered(M.own_runs(state), function(run) return run.status ~= "running" and next(run.staged) ~= nil end)
end

--- The newest run, and the newest one of the user's own that is at work; of one client where that is named.
---@param state codeagent.State
---@param client_id integer?
---@return codeagent.Run? newest, codeagent.Run? working
function M.latest(state, client_id)
  local runs = filtered(M.own_runs(state), function(run) return not client_id or run.client_id == client_id end)
  return runs[1], filtered(runs, function(run) return run.status == "running" and not run.beside end)[1]
end

--- In one word: `waiting` for the user, `working`, `error` when the last run failed, else `idle`.
---@param state codeagent.State
---@return "waiting"|"working"|"error"|"idle"
function M.condition(state)
  local newest, working = M.latest(state)
  if #state.questions > 0 then return "waiting" end
  if working then return "working" end
  if newest and (newest.status == "failed" or newest.status == "lost") then return "error" end
  return "idle"
end

return M
