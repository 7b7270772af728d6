--- Holds the one state, takes events, tells whoever wants to know. The only thing here that changes.
--- Drawing is batched: however many events come, listeners are called at most every `INTERVAL` milliseconds.

local reducer = require("codeagent.reducer")

local M = {}

M.INTERVAL = 33

local state = reducer.initial()
local listeners = {} ---@type table<string, fun(state: codeagent.State)>
local timer ---@type uv.uv_timer_t?

--- Events that are told to the user's autocommands, by the pattern they are told under.
M.PATTERNS = {
  response_start = "CodeAgentRunStarted",
  run_completed = "CodeAgentRunCompleted",
  approval_requested = "CodeAgentWaiting",
  question_asked = "CodeAgentWaiting",
  changes_proposed = "CodeAgentChangesProposed",
  changes_applied = "CodeAgentChangesApplied",
  changes_discarded = "CodeAgentChangesDiscarded",
  plan_created = "CodeAgentPlan",
  plan_modified = "CodeAgentPlan",
  local_gone = "CodeAgentServerExited",
}

--- What is told of attempts as well; all else of them is told of the run that they are for.
local OF_ATTEMPTS = { changes_applied = true, changes_discarded = true }

---@return codeagent.State
function M.state()
  return state
end

--- The time as the server counts it, in seconds since the epoch.
---@return number
function M.now()
  local seconds, microseconds = vim.uv.gettimeofday()
  return seconds + microseconds / 1e6
end

--- Has `listener` called after changes; one with the same name is replaced, nil takes it away.
---@param name string
---@param listener fun(state: codeagent.State)?
function M.listen(name, listener)
  listeners[name] = listener
end

local function tell()
  for _, listener in pairs(listeners) do
    listener(state)
  end
  vim.api.nvim_exec_autocmds("User", { pattern = "CodeAgentChanged", modeline = false })
  vim.cmd.redrawstatus({ bang = true })
end

--- Tells the listeners now what they have not been told yet.
function M.flush()
  if not timer then return end
  timer:close()
  timer = nil
  tell()
end

local function later()
  if timer then return end
  timer = assert(vim.uv.new_timer())
  timer:start(M.INTERVAL, 0, vim.schedule_wrap(M.flush))
end

--- Takes one event.
---@param event table
function M.dispatch(event)
  state = reducer.reduce(state, event)
  later()
  local pattern, run = M.PATTERNS[event.type], state.runs[event.run_id]
  if run and run.attempt_of and not OF_ATTEMPTS[event.type] then return end
  if pattern then vim.api.nvim_exec_autocmds("User", { pattern = pattern, data = event, modeline = false }) end
end

--- Forgets everything; for tests.
function M.reset()
  state = reducer.initial()
  later()
end

return M
