--- What each event does to its run, as a table of functions: run and event in, a new run out. Pure. Not here: the state of
--- all runs, and what an event does to others than its own (`reducer.lua`).

local values = require("codeagent.values")

local appended, filtered, replaced, with = values.appended, values.filtered, values.replaced, values.with

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

local LONGEST = 64 * 1024 -- bytes of an output that are kept

--- The outputs of a run with more of one of them, or another one in its place.
local function printed(run, call_id, text, whole)
  if not call_id or text == "" then return run end
  local all = whole and text or (run.outputs[call_id] or "") .. text
  if #all > LONGEST then all = all:sub(-LONGEST):gsub("^[^\n]*\n", "", 1) end
  return with(run, { outputs = with(run.outputs, { [call_id] = all }) })
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
---@type table<string, fun(run: codeagent.Run, event: table?): codeagent.Run>
local on = {}

function on.response_start(run, event)
  local whole, number = event.attempt_of, event.attempt
  return with(run, {
    mode = event.mode,
    status = "running",
    attempt_of = whole,
    attempt = number,
    beside = event.beside ~= nil or nil,
    foreign = event.foreign,
    title = event.beside or run.title,
    since = run.since or event.ts,
  })
end

function on.local_request(run, event)
  local queued = event.queued and not run.since
  local status, since = queued and "queued" or run.status, not queued and event.ts or nil
  return with(run, { title = event.title, task = event.task, status = status, since = run.since or since })
end

--- Words to a run wait until the model has been given them. That may be told before our question was answered.
function on.local_said(run, event)
  for _, block in ipairs(run.blocks) do
    if block.kind == "said" and block.item_id == event.item_id then return run end
  end
  return say(run, { kind = "said", text = event.text, item_id = event.item_id, waits = true })
end

function on.local_withdrawn(run, event)
  if run.run_id == event.item_id then return with(run, { status = "withdrawn" }) end
  local left = filtered(run.blocks, function(block) return block.item_id ~= event.item_id end)
  return with(run, { blocks = left })
end

function on.local_title(run, event)
  return with(run, { title = run.title ~= "" and run.title or event.title })
end

--- Codes of failures that another model, or another key, would mend.
local LACKS_MODEL = { NOT_FOUND = true, PERMISSION_DENIED = true, NETWORK_ERROR = true }

function on.run_completed(run, event)
  local lacks_model = event.status == "failed" and LACKS_MODEL[run.error_code] or nil
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
    lacks_model = lacks_model,
    activity = "",
    till = event.ts,
  })
  return say(ended, {
    kind = "ended",
    status = event.status,
    summary = said and "" or trimmed(event.summary),
    error = event.error,
    lacks_model = lacks_model,
  })
end

function on.token(run, event)
  local thought = run.thought and run.thought ~= ""
  return stream(thought and with(run, { thought = "", activity = "" }) or run, "text", event.content or "")
end

--- What the model thinks is shown while it does, the line that it is at, and not kept: it comes in pieces of words.
function on.thought(run, event)
  local line = ((run.thought or "") .. (event.content or "")):gsub("^.*\n", "")
  local words = trimmed(line)
  return with(run, { thought = line, activity = words ~= "" and words or run.activity })
end

function on.status(run, event)
  return with(run, { activity = event.message or "" })
end

function on.error(run, event)
  return say(with(run, { error_code = event.code }), { kind = "error", text = event.error or "" })
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
    local about = call.subject or ""
    if about == "" then about = subject(call.arguments) end
    local words = trimmed((call.name or "") .. " " .. about)
    run = say(with(run, { activity = words }), {
      kind = "tool",
      call_id = call.id,
      name = call.name or "",
      subject = about,
      state = "running",
      output = "",
    })
  end
  return run
end

function on.tool_result(run, event)
  local known = printed(run, event.call_id, event.output or "", true)
  return amend(with(known, { activity = "" }), function(block)
    if block.kind ~= "tool" or block.state ~= "running" then return false end
    return block.call_id == event.call_id or (event.call_id == nil and block.name == event.tool)
  end, {
    state = event.success and "done" or "failed",
    error = not event.success and trimmed(event.summary or event.error or event.output) or nil,
  })
end

--- Of several calls, the first that has no result is at work: only calls that print nothing run beside each other.
function on.step_output(run, event)
  local line, call_id = last_line(event.content), nil
  local changed = run
  for position, block in ipairs(run.blocks) do
    if block.kind == "tool" and block.state == "running" then
      call_id = block.call_id
      changed = with(run, { blocks = replaced(run.blocks, position, with(block, { output = line })) })
      break
    end
  end
  changed = printed(changed, call_id, ((event.content or ""):gsub("\r\n?", "\n")))
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
    verdict = event.verdict,
  })
end

function on.steer_delivered(run, event)
  local block = { kind = "said", text = event.text or "", item_id = event.item_id }
  local left = filtered(run.blocks, function(each) return not (each.waits and each.item_id == event.item_id) end)
  return say(with(run, { blocks = left }), block)
end

function on.changes_discarded(run, event)
  local block = { kind = "discarded", files = same_files(event), partly = event.partly ~= nil or nil }
  return say(with(run, { revision = run.revision + 1 }), block)
end

--- Its server has ended while it was at work, or waited.
--- A run of before this server of which changes still wait; one that is known stays as it is.
function on.local_restored(run, event)
  if #run.blocks > 0 then return run end
  local staged = {}
  for _, path in ipairs(event.files) do
    staged[path] = true
  end
  local proposal = { summary = event.title, files = event.files, added = 0, removed = 0 }
  return with(run, { title = event.title, status = "stopped", staged = staged, proposal = proposal, revision = run.revision + 1 })
end

function on.lost(run)
  return say(with(run, { status = "lost", activity = "" }), { kind = "ended", status = "lost" })
end

return on
