--- What follows from events besides drawing: titles of runs from progress, windows that open, files that are saved.

local config = require("codeagent.config")
local store = require("codeagent.store")

local M = {}

local begun = false

--- The runs whose result is an answer in words or a task in several steps; quick rewrites need no window.
local SHOWN = { run = true, ask = true, explain = true, test = true, runFile = true }

local function title_of(event)
  local value, token = event.data.params.value, tostring(event.data.params.token)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  local run_id = token:match("^codeagent%-(.+)$")
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

--- Looks at one event of the server.
---@param event table
---@param client_id integer
function M.observe(event, client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  if client and event.type == "changes_applied" and event.outcome ~= "none" then save(event, client) end
  local run = store.state().runs[event.run_id]
  if event.type == "plan_created" and not (run and run.attempt_of) then
    require("codeagent.plan").created(event.run_id)
  end
end

return M
