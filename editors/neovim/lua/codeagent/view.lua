--- The state as plain data, in the shape in which every client's reducer is compared with the recorded transcripts.

local queries = require("codeagent.queries")

local M = {}

local function plain_plan(plan)
  if not plan then return nil end
  local steps = {}
  for _, item in ipairs(plan.steps) do
    steps[#steps + 1] = { step_id = item.step_id, title = item.title, state = item.state, error = item.error }
  end
  return { goal = plan.goal, state = plan.state, steps = steps }
end

---@param state codeagent.State
function M.of(state)
  local runs = {}
  for _, run_id in ipairs(state.order) do
    local run = state.runs[run_id]
    runs[#runs + 1] = {
      run_id = run.run_id,
      session_id = run.session_id,
      mode = run.mode,
      status = run.status,
      outcome = run.outcome,
      error = run.error,
      activity = run.activity,
      staged = queries.staged(run),
      plan = plain_plan(run.plan),
      usage = run.usage,
      blocks = run.blocks,
    }
  end
  return { condition = queries.condition(state), questions = state.questions, runs = runs }
end

return M
