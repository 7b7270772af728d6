--- What follows from events besides drawing: titles of runs from progress, windows that open, files that are saved.

local config = require("codeagent.config")
local notify = require("codeagent.notify")
local queries = require("codeagent.queries")
local store = require("codeagent.store")
local texts = require("codeagent.texts")

local M = {}

local ID = 16 -- letters of a run's id
local SETTLED = 100 -- milliseconds
local PLAN_MOVED = {
  plan_approved = true,
  plan_modified = true,
  step_started = true,
  step_completed = true,
  step_error = true,
  execution_cancelled = true,
}

local begun = false

--- The runs whose result is an answer in words or a task in several steps; quick rewrites need no window.
local SHOWN = { run = true, enqueue = true, ask = true, explain = true, test = true, runFile = true }

local function title_of(event)
  local value, token = event.data.params.value, tostring(event.data.params.token)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  local run_id = token:match("^codeagent%-(%x+)") -- the index shows its progress, too, and is no run
  if run_id and #run_id < ID then run_id = nil end
  if client and client.name == "codeagent" and run_id and type(value) == "table" and value.kind == "begin" then
    store.dispatch({ type = "local_title", run_id = run_id, client_id = client.id, title = value.title or "" })
  end
end

--- Begins to listen; the first client does this.
function M.begin()
  if begun then return end
  begun = true
  require("codeagent.highlights").define()
  local group = vim.api.nvim_create_augroup("codeagent.reactions", {})
  vim.api.nvim_create_autocmd("LspProgress", { group = group, callback = title_of })
  require("codeagent.hunks").begin()
  require("codeagent.offers").begin()
  vim.api.nvim_create_autocmd("ColorScheme", { group = group, callback = require("codeagent.highlights").define })
end

--- Opens the transcript for what the user has just started, where they want that.
---@param kind string
---@param run_id string
function M.started(kind, run_id)
  if config.get("transcript.open") == "runs" and SHOWN[kind] then
    local run = store.state().runs[run_id]
    require("codeagent.transcript").open({ focus = false, session = run and run.session_id })
  end
end

--- Saves the buffers that an accepted change has touched, when the server's setting says so.
local function save(event, client)
  local wanted = vim.tbl_get(client.settings or {}, "codeagent", "edits", "saveAfterApply")
    or vim.tbl_get(client.config.init_options or {}, "edits", "saveAfterApply")
  if not wanted then return end
  for _, path in ipairs(event.files_changed or {}) do
    local buffer = require("codeagent.buffers").loaded(path)
    if buffer and vim.bo[buffer].modified then
      vim.api.nvim_buf_call(buffer, function() vim.cmd("silent! update") end)
    end
  end
end

local ticking ---@type uv.uv_timer_t?

--- Has the sign turn and the seconds pass while a run is at work.
local function tick()
  local _, working = queries.latest(store.state())
  if working then
    require("codeagent.transcript").tick()
    vim.cmd.redrawstatus({ bang = true })
  elseif ticking then
    ticking:close()
    ticking = nil
  end
end

local function begin_to_tick()
  if ticking then return end
  local every = math.floor(1000 * require("codeagent.render").TURN)
  ticking = assert(vim.uv.new_timer())
  ticking:start(every, every, vim.schedule_wrap(tick))
end

--- The files that an accepted change has left with unsaved text and in no window, so that nobody sees that.
---@type table<integer, boolean>
local unseen = {}

--- Says which files are changed without anyone seeing it, and how to write them.
local function tell_unseen(event)
  local names = {}
  for _, path in ipairs(event.files_changed or {}) do
    local buffer = require("codeagent.buffers").loaded(path)
    if buffer and vim.bo[buffer].modified and #vim.fn.win_findbuf(buffer) == 0 then
      unseen[buffer] = true
      names[#names + 1] = vim.fs.basename(path)
    end
  end
  if #names == 0 then return end
  notify.tell(texts.get("told.unseen", { files = table.concat(names, ", ") }))
end

--- Whether accepted changes have left files unsaved in no window.
---@return boolean
function M.leaves_unsaved()
  return vim.iter(pairs(unseen)):any(function(buffer)
    return vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].modified and #vim.fn.win_findbuf(buffer) == 0
  end)
end

--- Writes the files that accepted changes have left unsaved in no window; those that the user has saved, or opened, since
--- are theirs to write.
function M.write()
  local written = {}
  for buffer in pairs(unseen) do
    local loaded = vim.api.nvim_buf_is_loaded(buffer)
    if loaded and vim.bo[buffer].modified and #vim.fn.win_findbuf(buffer) == 0 then
      local ok, problem = pcall(vim.api.nvim_buf_call, buffer, function() vim.cmd("silent update") end)
      if not ok then return notify.warn(tostring(problem)) end
      written[#written + 1] = vim.fs.basename(vim.api.nvim_buf_get_name(buffer))
    end
    unseen[buffer] = nil
  end
  table.sort(written)
  local key = #written > 0 and "told.written" or "told.nothing_to_write"
  notify.tell(texts.get(key, { files = table.concat(written, ", ") }))
end

local asked = {} ---@type table<integer, boolean> clients that were asked what waits from before

--- Shows the changes that wait from before the start of a server, once.
---@param client_id integer
function M.left(client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  if asked[client_id] or not client then return end
  asked[client_id] = true
  local request = { title = "pending", command = "codeagent.pending", arguments = {} }
  client:exec_cmd(request, nil, function(_, list)
    for _, item in ipairs(list or {}) do
      if item.kind == "changes" then
        store.dispatch({
          type = "local_restored",
          run_id = item.runId,
          session_id = item.sessionId or "",
          client_id = client_id,
          title = item.title,
          files = item.files or {},
        })
      end
    end
  end)
end

--- Looks at one event of the server.
---@param event table
---@param client_id integer
function M.observe(event, client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  if client and event.type == "changes_applied" and event.outcome ~= "none" then
    save(event, client)
    -- the server tells of the change before the editor has drawn it, and more files may follow
    vim.defer_fn(function() tell_unseen(event) end, SETTLED)
  end
  local run = store.state().runs[event.run_id]
  if run and run.status == "running" then begin_to_tick() end
  if PLAN_MOVED[event.type] then
    -- the server writes the page right after the event
    vim.defer_fn(function() require("codeagent.plan").moved(event.run_id, event.type == "plan_approved") end, SETTLED)
  end
  if event.type == "plan_created" and not (run and run.attempt_of) then
    require("codeagent.plan").created(event.run_id)
  end
end

return M
