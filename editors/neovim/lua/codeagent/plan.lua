--- The plan window: the goal and the steps with their states as they change, and what can be done about a step.

local client = require("codeagent.client")
local notify = require("codeagent.notify")
local queries = require("codeagent.queries")
local render = require("codeagent.render")
local store = require("codeagent.store")
local texts = require("codeagent.texts")
local windows = require("codeagent.windows")

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("codeagent.plan")
local shown ---@type string? the run whose plan is shown
local rows = {} ---@type table<integer, string> step ids by line

local function buffer()
  return windows.buffer("plan", "codeagent-plan")
end

local function latest()
  for _, run in ipairs(queries.own_runs(store.state())) do
    if run.plan then return run.run_id end
  end
end

local function head(plan)
  local window = windows.showing(buffer())
  if not window then return end
  local here = client.of_run(shown)
  local keys = {}
  for _, item in ipairs({ { "r", "retryStep", "retry" }, { "s", "skipStep", "skip" }, { "u", "rollback", "rollback" } }) do
    if here and client.offers(here, "plan." .. item[2]) then
      keys[#keys + 1] = { item[1], texts.get("keys." .. item[3]) }
    end
  end
  keys[#keys + 1] = { "q", texts.get("keys.close") }
  windows.head(window, texts.get("plan.title") .. "  " .. texts.get("plan." .. plan.state), keys)
end

local function refresh(state)
  local run = shown and state.runs[shown]
  if not (run and run.plan) or vim.fn.bufexists("codeagent://plan") == 0 then return end
  local lines, marks, steps = render.plan(run.plan)
  local target = buffer()
  windows.write(target, 0, -1, lines)
  vim.api.nvim_buf_clear_namespace(target, NAMESPACE, 0, -1)
  for _, mark in ipairs(marks) do
    local length = #lines[mark.line + 1]
    vim.api.nvim_buf_set_extmark(target, NAMESPACE, mark.line, math.min(mark.from, length), {
      end_col = mark.to < 0 and length or math.min(mark.to, length),
      hl_group = mark.group,
    })
  end
  rows = steps
  head(run.plan)
end

local function act(command)
  return function()
    local step_id = rows[vim.api.nvim_win_get_cursor(0)[1]]
    if shown and step_id then client.call("plan." .. command, { runId = shown, stepId = step_id }) end
  end
end

--- Opens the newest plan, or that of a run.
---@param wish { run_id: string?, focus: boolean? }?
function M.open(wish)
  wish = wish or {}
  shown = wish.run_id or latest()
  if not shown then return notify.tell(texts.get("told.no_plan")) end
  require("codeagent.highlights").define()
  local target = buffer()
  windows.show(target, {
    name = "plan",
    filetype = "codeagent-plan",
    position = "below",
    size = 0.3,
    focus = wish.focus ~= false,
    keys = {
      { "q", "plan-close", function() windows.close(target) end },
      { "r", "plan-retry", act("retryStep") },
      { "s", "plan-skip", act("skipStep") },
      { "u", "plan-rollback", act("rollback") },
    },
  })
  store.listen("plan", refresh)
  refresh(store.state())
end

--- A plan was made: where its window is open it shows that one from now on.
---@param run_id string
function M.created(run_id)
  if vim.fn.bufexists("codeagent://plan") == 1 and windows.showing(buffer()) then shown = run_id end
end

--- What has become of a plan is in its page: once it has begun, what the user wrote there was taken over (`begun`), and
--- from then on the page shows the work.
---@param run_id string
---@param begun boolean
function M.moved(run_id, begun)
  for _, page in ipairs(vim.api.nvim_list_bufs()) do
    local named = vim.api.nvim_buf_get_name(page):find("/documents/plan/" .. run_id .. ".md", 1, true)
    if named and vim.api.nvim_buf_is_loaded(page) and (begun or not vim.bo[page].modified) then
      vim.api.nvim_buf_call(page, function() vim.cmd("silent! edit!") end)
    end
  end
end

return M
