--- What is known of all runs, as a value: events in, a new state out. Pure Lua that touches nothing of the editor,
--- so that it replays recorded transcripts; not here: what an event does to its run (`run_events.lua`), receiving events
--- (`store.lua`), what is asked of the state (`queries.lua`), drawing (`render.lua`).
---
--- Events of the server pass unchanged. More come from this editor: `local_request` (what the user asked for, perhaps
--- queued), `local_said` (words to a run, which wait), `local_withdrawn` (either, taken back), `local_title` (the title
--- under which the server shows a run), `local_history` (a resumed session, with its stored events where it is to be
--- shown), `local_restored` (a run of before with changes that wait) and `local_gone` (the server has ended).

local on = require("codeagent.run_events")
local values = require("codeagent.values")

local appended, copy, filtered, with = values.appended, values.copy, values.filtered, values.with

local M = {}

---@class codeagent.Block one piece of a transcript; `kind` tells them apart
---@field kind string

---@class codeagent.Run
---@field run_id string
---@field session_id string
---@field attempt_of string? the run for which it makes one of several attempts
---@field attempt integer? which of them it is, from 1
---@field beside boolean? whether it is not the user's own and hears nothing, such as that of another agent
---@field foreign boolean? whether its changes are those of other programs, in the files already
---@field client_id integer?
---@field title string
---@field status string `queued`, `running`, or how it ended
---@field activity string what it does now, in a few words
---@field thought? string the line of what the model thinks that it is at
---@field blocks codeagent.Block[]
---@field staged table<string, boolean> files that wait for a decision
---@field revision integer counts what happened to its changes
---@field proposal table? `{summary, files, added, removed}`
---@field plan table? `{goal, state, steps}`
---@field usage table `{prompt, cached, completion}` in tokens, `cost` in US dollars where prices are known
---@field outputs table<string, string> what tools printed, by the id of the call; the end of it where it is long
---@field since number? when it began, in seconds since the epoch, and when it ended
---@field till number?
---@field rewound { by: string, what: string }? the run that took it back: its changes, its talk, or both
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
---@field session_id string? the session of what the user asked for last
---@field sessions table<integer, string> the same by client: each project has its own

---@return codeagent.State
function M.initial()
  return { runs = {}, order = {}, questions = {}, sessions = {} }
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
    outputs = {},
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
      if run.status == "running" or run.status == "queued" then
        runs[run_id] = on.lost(run)
      end
    end
  end
  local open = filtered(state.questions, function(item) return not lost[item.run_id] end)
  return with(state, { runs = runs, questions = open })
end

--- The runs after `event`, by which one run took others back, or gave them back again.
local function rewound(state, event)
  local runs = copy(state.runs)
  for _, run_id in ipairs(event.type == "session_rewound" and event.gone or {}) do
    local run = runs[run_id]
    if run then runs[run_id] = with(run, { rewound = { by = event.run_id, what = event.what or "both" } }) end
  end
  for run_id, run in pairs(event.type == "session_restored" and state.runs or {}) do
    if run.rewound and run.rewound.by == event.run_id then
      runs[run_id] = copy(run)
      runs[run_id].rewound = nil
    end
  end
  return with(state, { runs = runs })
end

--- The runs, those of a resumed session with the client that has resumed it.
local function taken_over(state, event)
  local runs = copy(state.runs)
  for run_id, run in pairs(runs) do
    if run.session_id == event.session_id then runs[run_id] = with(run, { client_id = event.client_id }) end
  end
  return runs
end

--- A run of an earlier time: nothing of it is at work or asks any more. Its changes wait only where the server says so.
local function past(run, waits)
  if run.status == "running" or run.status == "queued" then run = on.lost(run) end
  local blocks = vim.tbl_map(function(block)
    return block.kind == "question" and block.open and with(block, { open = false }) or block
  end, run.blocks)
  return with(run, { blocks = blocks, staged = waits and run.staged or {} })
end

--- Whether more is known of a run than that its changes wait from before.
---@param state codeagent.State
---@param run_id string?
---@return boolean
function M.shown(state, run_id)
  local run = state.runs[run_id or ""]
  return run ~= nil and (#run.blocks > 0 or run.status ~= "stopped")
end

--- With the runs of a session that is shown again, as its events left them, before those that are known already.
local function replayed(state, event)
  local told, runs, order = M.initial(), copy(state.runs), {}
  for _, each in ipairs(event.events or {}) do
    if not M.shown(state, each.run_id) then
      if each.type == "run_started" then each = with(each, { type = "local_request" }) end
      told = M.reduce(told, with(each, { client_id = event.client_id }))
    end
  end
  for _, run_id in ipairs(told.order) do
    runs[run_id] = past(told.runs[run_id], vim.list_contains(event.waiting or {}, run_id))
    order[#order + 1] = run_id
  end
  for _, run_id in ipairs(state.order) do
    if not told.runs[run_id] then order[#order + 1] = run_id end
  end
  return with(state, { runs = runs, order = order })
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
    local shown = replayed(state, event)
    local runs = event.client_id and taken_over(shown, event) or shown.runs
    return entered(with(shown, { runs = runs }), event.session_id, event.client_id)
  end
  if event.type == "session_rewound" or event.type == "session_restored" then return rewound(state, event) end
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
  local begins = BEGINS[event.type] and run.session_id ~= "" and not (run.attempt_of or run.beside or run.foreign)
  return begins and entered(after, run.session_id, run.client_id) or after
end

return M
