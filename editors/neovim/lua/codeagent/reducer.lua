--- What is known of all runs, as a value: events in, a new state out. Pure Lua that touches nothing of the editor,
--- so that it replays recorded transcripts; not here: receiving events (`store.lua`), what is asked of the state
--- (`queries.lua`), drawing (`render.lua`).
---
--- Events of the server pass unchanged. Four more come from this editor: `local_request` (what the user asked for),
--- `local_title` (the title under which the server shows a run), `local_history` (a resumed session, as Markdown where
--- it is to be shown) and `local_gone` (the server has ended).

local values = require("codeagent.values")

local appended, copy, filtered, replaced, with =
  values.appended, values.copy, values.filtered, values.replaced, values.with

local M = {}

---@class codeagent.Block one piece of a transcript; `kind` tells them apart
---@field kind string

---@class codeagent.Run
---@field run_id string
---@field session_id string
---@field attempt_of string? the run for which it makes one of several attempts
---@field attempt integer? which of them it is, from 1
---@field client_id integer?
---@field title string
---@field status string `running`, or how it ended
---@field activity string what it does now, in a few words
---@field blocks codeagent.Block[]
---@field staged table<string, boolean> files that wait for a decision
---@field revision integer counts what happened to its changes
---@field proposal table? `{summary, files, added, removed}`
---@field plan table? `{goal, state, steps}`
---@field usage table `{prompt, cached, completion}` in tokens, `cost` in US dollars where prices are known
---@field error string?
---@field outcome string?

---@class codeagent.Question
---@field request_id string
---@field run_id string
---@field title string
---@field detail string
---@field choices string[]
---@field approval boolean

---@class codeagent.State
---@field runs table<string, codeagent.Run>
---@field order string[] run ids, oldest first
---@field questions codeagent.Question[] the open ones, oldest first
---@field history table<string, string> Markdown of resumed sessions
---@field session_id string? the session of what the user asked for last
---@field sessions table<integer, string> the same by client: each project has its own

---@return codeagent.State
function M.initial()
  return { runs = {}, order = {}, questions = {}, history = {}, sessions = {} }
end

--- Adds a block at the end of the run's transcript.
local function say(run, block)
  return with(run, { blocks = appended(run.blocks, block) })
end

--- Changes the newest block for which `matches` holds; the run as it was when there is none.
local function amend(run, matches, changes)
  for position = #run.blocks, 1, -1 do
    if matches(run.blocks[position]) then
      local block = with(run.blocks[position], changes)
      return with(run, { blocks = replaced(run.blocks, position, block) })
    end
  end
  return run
end

--- Adds to the text at the end, or begins one.
local function stream(run, kind, content)
  local last = run.blocks[#run.blocks]
  if last and last.kind == kind then
    return with(run, { blocks = replaced(run.blocks, #run.blocks, with(last, { text = last.text .. content })) })
  end
  return say(run, { kind = kind, text = content })
end

local SUBJECTS = { "path", "file", "query", "pattern", "question", "command" }

local function subject(arguments)
  for _, key in ipairs(SUBJECTS) do
    local value = type(arguments) == "table" and arguments[key]
    if type(value) == "string" and value ~= "" then return (value:gsub("%s+", " ")) end
  end
  return ""
end

local function trimmed(text)
  return (tostring(text or ""):gsub("^%s+", ""):gsub("%s+$", ""))
end

local function last_line(text)
  return trimmed(text):match("[^\r\n]*$"):sub(1, 120)
end

local function same_files(event)
  return event.files_changed or {}
end

--- The plan with the state of one step changed.
local function step(run, step_id, changes)
  if not run.plan then return run end
  for position, item in ipairs(run.plan.steps) do
    if item.step_id == step_id then
      local steps = replaced(run.plan.steps, position, with(item, changes))
      return with(run, { plan = with(run.plan, { steps = steps }) })
    end
  end
  return run
end

local function plan_state(run, state)
  return run.plan and with(run, { plan = with(run.plan, { state = state }) }) or run
end

local function tokens(run, event)
  local usage = run.usage
  return with(run, {
    usage = {
      prompt = usage.prompt + (event.prompt_tokens or 0),
      cached = usage.cached + (event.cached_tokens or 0),
      completion = usage.completion + (event.completion_tokens or 0),
      cost = (usage.cost or event.cost) and (usage.cost or 0) + (event.cost or 0),
    },
  })
end

local function asked(approval)
  return function(run, event)
    return say(with(run, { activity = event.title or "" }), {
      kind = "question",
      request_id = event.request_id,
      title = event.title or "",
      choices = event.choices or {},
      approval = approval,
      open = true,
    })
  end
end

local function answered(run, event)
  return amend(with(run, { activity = "" }), function(block)
    return block.kind == "question" and block.request_id == event.request_id
  end, { open = false, answer = event.answer })
end

--- What each event does to its run.
---@type table<string, fun(run: codeagent.Run, event: table): codeagent.Run>
local on = {}

function on.response_start(run, event)
  local whole, number = event.attempt_of, event.attempt
  return with(run, { mode = event.mode, status = "running", attempt_of = whole, attempt = number })
end

function on.local_request(run, event)
  return with(run, { title = event.title, task = event.task })
end

function on.local_title(run, event)
  return with(run, { title = run.title ~= "" and run.title or event.title })
end

function on.run_completed(run, event)
  local said, blocks = false, {}
  for _, block in ipairs(run.blocks) do
    if block.kind ~= "error" or block.text ~= event.error then -- its end says it
      blocks[#blocks + 1] = block
    end
    said = said or (block.kind == "text" and trimmed(block.text) == trimmed(event.summary))
  end
  local ended = with(run, {
    blocks = blocks,
    status = event.status,
    outcome = event.outcome,
    error = event.error,
    activity = "",
  })
  return say(ended, {
    kind = "ended",
    status = event.status,
    summary = said and "" or trimmed(event.summary),
    error = event.error,
  })
end

function on.token(run, event)
  return stream(run, "text", event.content or "")
end

function on.status(run, event)
  return with(run, { activity = event.message or "" })
end

function on.error(run, event)
  return say(run, { kind = "error", text = event.error or "" })
end

function on.usage(run, event)
  return tokens(run, event)
end

function on.anomaly_detected(run, event)
  return say(run, { kind = "note", text = event.detail ~= "" and event.detail or event.kind })
end

function on.context_compacted(run, event)
  return say(run, { kind = "compacted", before = event.before, after = event.after })
end

function on.tool_calls(run, event)
  for _, call in ipairs(event.calls or {}) do
    local words = trimmed((call.name or "") .. " " .. subject(call.arguments))
    run = say(with(run, { activity = words }), {
      kind = "tool",
      call_id = call.id,
      name = call.name or "",
      subject = subject(call.arguments),
      state = "running",
      output = "",
    })
  end
  return run
end

function on.tool_result(run, event)
  return amend(with(run, { activity = "" }), function(block)
    if block.kind ~= "tool" or block.state ~= "running" then return false end
    return block.call_id == event.call_id or (event.call_id == nil and block.name == event.tool)
  end, {
    state = event.success and "done" or "failed",
    error = not event.success and trimmed(event.error or event.output) or nil,
  })
end

function on.step_output(run, event)
  local line = last_line(event.content)
  local changed = amend(run, function(block)
    return block.kind == "tool" and block.state == "running"
  end, { output = line })
  return with(changed, { activity = line ~= "" and line or run.activity })
end

function on.tool_disabled(run, event)
  return say(run, { kind = "note", text = trimmed((event.tool or "") .. ": " .. (event.reason or "")) })
end

function on.started(run, event)
  return say(with(run, { activity = event.command or "" }), { kind = "command", text = event.command or "" })
end

function on.stdout(run, event)
  return stream(run, "output", ((event.content or ""):gsub("\r", "\n")))
end

on.stderr = on.stdout

function on.exit(run, event)
  return say(run, { kind = "exit", exit_code = event.exit_code, duration = event.duration })
end

function on.plan_created(run, event)
  local plan = { goal = event.goal or "", state = "proposed", steps = event.steps or {} }
  return say(with(run, { plan = plan }), { kind = "plan" })
end

function on.plan_modified(run, event)
  if not run.plan then return on.plan_created(run, event) end
  return with(run, { plan = with(run.plan, { steps = event.steps or {} }) })
end

local PLAN_STATES = {
  plan_approved = "approved",
  plan_rejected = "rejected",
  plan_completed = "completed",
  execution_started = "running",
  execution_completed = "completed",
  execution_failed = "failed",
  execution_cancelled = "cancelled",
}

for kind, state in pairs(PLAN_STATES) do
  on[kind] = function(run) return plan_state(run, state) end
end

function on.replan_warning(run, event)
  return say(run, { kind = "note", text = event.reason or "" })
end

function on.awaiting_approval(run, event)
  return with(run, { activity = event.message or "" })
end

function on.step_started(run, event)
  local moved = step(run, event.step_id, { state = "running" })
  local told = say(moved, { kind = "step", step_id = event.step_id, text = event.description or "" })
  return with(told, { activity = event.description or "", progress = event.progress })
end

function on.step_completed(run, event)
  return with(step(run, event.step_id, { state = "completed" }), { progress = event.progress })
end

function on.step_error(run, event)
  return step(run, event.step_id, { state = "failed", error = event.error })
end

on.approval_requested = asked(true)
on.question_asked = asked(false)
on.approval_resolved = answered
on.question_answered = answered

function on.file_change(run, event)
  if not event.path then return run end
  local staged = with(run.staged, { [event.path] = true })
  if event.change == nil then staged[event.path] = nil end
  return with(run, { staged = staged, revision = run.revision + 1 })
end

function on.changes_proposed(run, event)
  local proposal =
    { summary = event.summary, files = same_files(event), added = event.added, removed = event.removed }
  local block = { kind = "changes", files = proposal.files, added = event.added, removed = event.removed }
  local words = type(event.proof) == "table" and event.proof.words
  if type(words) == "table" and #words > 0 then block.proof = words end
  return say(with(run, { proposal = proposal, revision = run.revision + 1 }), block)
end

function on.changes_applied(run, event)
  return say(with(run, { revision = run.revision + 1 }), {
    kind = "applied",
    files = same_files(event),
    outcome = event.outcome,
    conflicts = event.conflicts or {},
    reason = event.reason,
    undo = event.undo == true,
  })
end

function on.steer_delivered(run, event)
  return say(run, { kind = "said", text = event.text or "" })
end

function on.changes_discarded(run, event)
  return say(with(run, { revision = run.revision + 1 }), { kind = "discarded", files = same_files(event) })
end

---@return codeagent.Run
local function new_run(event)
  return {
    run_id = event.run_id,
    session_id = event.session_id or "",
    client_id = event.client_id,
    title = "",
    mode = "direct",
    status = "running",
    activity = "",
    blocks = {},
    staged = {},
    revision = 0,
    usage = { prompt = 0, cached = 0, completion = 0 },
  }
end

--- The open questions after an event.
local function questions(state, event)
  if event.type == "approval_requested" or event.type == "question_asked" then
    return appended(state.questions, {
      request_id = event.request_id,
      run_id = event.run_id,
      title = event.title or "",
      detail = event.detail or "",
      choices = event.choices or {},
      approval = event.type == "approval_requested",
    })
  end
  if event.type == "approval_resolved" or event.type == "question_answered" then
    return filtered(state.questions, function(item) return item.request_id ~= event.request_id end)
  end
  if event.type == "run_completed" then
    return filtered(state.questions, function(item) return item.run_id ~= event.run_id end)
  end
  return state.questions
end

--- The server of `client_id` has ended: its runs are over and its questions cannot be answered any more.
local function gone(state, event)
  local runs, lost = copy(state.runs), {}
  for run_id, run in pairs(runs) do
    if run.client_id == event.client_id then
      lost[run_id] = true
      if run.status == "running" then
        runs[run_id] = say(with(run, { status = "lost", activity = "" }), { kind = "ended", status = "lost" })
      end
    end
  end
  local open = filtered(state.questions, function(item) return not lost[item.run_id] end)
  return with(state, { runs = runs, questions = open })
end

--- The user goes on in a session of a client.
local function entered(state, session_id, client_id)
  local sessions = client_id and with(state.sessions, { [client_id] = session_id }) or state.sessions
  return with(state, { session_id = session_id, sessions = sessions })
end

--- The events that begin a run. Later ones of a run in an earlier session lead nobody back to it.
local BEGINS = { local_request = true, response_start = true }

--- The state after `event`; `state` itself is not changed. Events that are not known change nothing.
---@param state codeagent.State
---@param event table
---@return codeagent.State
function M.reduce(state, event)
  if event.type == "local_gone" then return gone(state, event) end
  if event.type == "local_history" then
    local history = with(state.history, { [event.session_id] = event.markdown })
    return entered(with(state, { history = history }), event.session_id, event.client_id)
  end
  local change = on[event.type]
  if not change or not event.run_id or event.run_id == "" then return state end
  local known = state.runs[event.run_id]
  local run = change(known or new_run(event), event)
  if event.client_id then run = with(run, { client_id = event.client_id }) end
  if run.session_id == "" and event.session_id then run = with(run, { session_id = event.session_id }) end
  local after = with(state, {
    runs = with(state.runs, { [event.run_id] = run }),
    order = known and state.order or appended(state.order, event.run_id),
    questions = questions(state, event),
  })
  local begins = BEGINS[event.type] and not run.attempt_of and run.session_id ~= ""
  return begins and entered(after, run.session_id, run.client_id) or after
end

return M
