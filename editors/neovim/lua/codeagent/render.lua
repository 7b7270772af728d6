--- A transcript as lines of Markdown with the highlights on them. Pure: blocks in, lines out; not here: the window.

local markdown_tables = require("codeagent.markdown_tables")
local notify = require("codeagent.notify")
local queries = require("codeagent.queries")
local texts = require("codeagent.texts")

local M = {}

---@class codeagent.Mark a highlight: `line` is 0-based in the block's lines, `from` and `to` are bytes (`to` -1: the end)
---@field line integer
---@field from integer
---@field to integer
---@field group string

M.STEP_SIGNS = {
  pending = "○",
  running = "▶",
  completed = "✓",
  failed = "✗",
  skipped = "–",
  cancelled = "■",
}

local LONG = 120 -- bytes of a title; a longer task stands below it as a whole
local OPENED = 400 -- lines of an output that are shown, the last ones

local TOOL_SIGNS = { running = "…", done = "✓", failed = "✗" }
local TOOL_GROUPS = { running = "CodeAgentRunning", done = "CodeAgentDone", failed = "CodeAgentFailed" }
local STEP_GROUPS = {
  pending = "CodeAgentMuted",
  running = "CodeAgentRunning",
  completed = "CodeAgentDone",
  failed = "CodeAgentFailed",
  skipped = "CodeAgentMuted",
  cancelled = "CodeAgentMuted",
}

---@param text string
---@return string[]
function M.lines(text)
  local found = {}
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do
    found[#found + 1] = (line:gsub("%z", ""))
  end
  return found
end

local function one_line(text, most)
  local line = tostring(text or ""):gsub("%s+", " ")
  if most and #line > most then
    local first = vim.str_utf_start(line, most + 1) + most + 1 -- the letter that does not fit any more
    line = line:sub(1, first - 1) .. "…"
  end
  return line
end

--- A line that is no Markdown, as its reader sees it in a Markdown buffer: as code after its sign, where signs of Markdown
--- in it, as in `__init__.py` or `*args`, would be hidden.
---@param line string
---@return string
local function verbatim(line)
  local rest = " " .. line:gsub("`[^`]*`", "")
  if not (rest:find("[%*~<%[\\&]") or rest:find("[^%w]_+%w") or rest:find("`")) then return line end
  local before, words = line:match("^(%s+%S+%s+)(.*)$")
  if not before then before, words = line:match("^([#>]* ?)(.*)$") end
  if words == "" then return line end
  local fence = words:find("`") and "``" or "`"
  local pad = words:find("`") and " " or ""
  return before .. fence .. pad .. words .. pad .. fence
end

--- A line `  sign words` with the sign (and, when asked for, the words) highlighted.
local function signed(sign, words, group, all)
  local line = "  " .. sign .. " " .. words
  return { line }, { { line = 0, from = 2, to = all and -1 or 2 + #sign, group = group } }
end

---@param paths string[]
local function names(paths)
  local short = {}
  for position, path in ipairs(paths) do
    if position > 5 then
      short[#short + 1] = "…"
      break
    end
    short[#short + 1] = path:match("[^/\\]+$") or path
  end
  return table.concat(short, ", ")
end

---@type table<string, fun(block: table, run: codeagent.Run): string[], codeagent.Mark[]>
local draw = {}

function draw.text(block)
  local lines = markdown_tables.aligned(M.lines((block.text:gsub("%s+$", ""))))
  lines[#lines + 1] = ""
  return lines, {}
end

--- What a tool printed, where it was opened.
local function output_lines(text)
  local all = M.lines((text:gsub("%s+$", "")))
  local lines = vim.list_slice(all, math.max(1, #all - OPENED + 1))
  if #lines < #all then table.insert(lines, 1, "…") end
  return vim.tbl_map(function(line) return "      │ " .. line end, lines)
end

function draw.tool(block, run, opened)
  local words = block.name .. (block.subject ~= "" and " " .. one_line(block.subject, 100) or "")
  local lines, marks = signed(TOOL_SIGNS[block.state], words, TOOL_GROUPS[block.state])
  marks[#marks + 1] = { line = 0, from = #TOOL_SIGNS[block.state] + 3, to = -1, group = "CodeAgentTool" }
  local printed = block.call_id and run.outputs[block.call_id]
  if printed and opened then
    for _, line in ipairs(output_lines(printed)) do
      lines[#lines + 1] = line
      marks[#marks + 1] = { line = #lines - 1, from = 0, to = -1, group = "CodeAgentMuted" }
    end
    return lines, marks
  end
  -- Of an error the first line: the others tell the model what to do.
  local failed = block.state == "failed" and block.error and block.error:match("[^\r\n]*")
  local detail = failed or block.state == "running" and block.output or ""
  if detail and detail ~= "" then
    lines[2] = "      " .. one_line(detail, 160)
    marks[#marks + 1] = { line = 1, from = 0, to = -1, group = "CodeAgentMuted" }
  end
  return lines, marks
end

function draw.question(block)
  local lines, marks = signed("?", one_line(block.title), "CodeAgentQuestion", true)
  if block.approval and not block.open and not block.answer then return lines, marks end -- decided in another way
  local answer = block.answer and "→ " .. one_line(block.answer)
    or texts.get(block.open and "transcript.open" or "transcript.unanswered")
  lines[2] = "    " .. answer
  marks[#marks + 1] = { line = 1, from = 0, to = -1, group = block.open and "CodeAgentRunning" or "CodeAgentMuted" }
  return lines, marks
end

function draw.changes(block, run)
  local counts = (" +%d −%d"):format(block.added or 0, block.removed or 0)
  local title = texts.get(run.foreign and "transcript.outside" or "transcript.changes", { files = names(block.files) }) .. counts
  local lines, marks = signed("±", title, "CodeAgentQuestion")
  for _, words in ipairs(block.proof or {}) do
    lines[#lines + 1] = "    " .. one_line(words)
    marks[#marks + 1] = { line = #lines - 1, from = 0, to = -1, group = "CodeAgentMuted" }
  end
  return lines, marks
end

function draw.applied(block)
  if block.outcome == "full" then
    local key = "transcript." .. (block.undo and "undone" or block.verdict or "applied")
    return signed(block.undo and "↶" or "✓", texts.get(key, { files = names(block.files) }), "CodeAgentDone")
  end
  local outcome = (block.outcome == "partial" or block.outcome == "none") and block.outcome or "unknown"
  local said = { texts.get("transcript.outcome." .. outcome, { files = names(block.files) }) }
  if #block.conflicts > 0 then said[#said + 1] = table.concat(block.conflicts, ", ") end
  if block.reason then said[#said + 1] = one_line(block.reason, 160) end
  return signed("!", table.concat(said, " · "), "CodeAgentFailed")
end

function draw.said(block)
  local lines, marks = {}, {}
  for _, line in ipairs(M.lines(block.text)) do
    lines[#lines + 1] = "> " .. line
    marks[#marks + 1] = { line = #lines - 1, from = 0, to = -1, group = "CodeAgentQuestion" }
  end
  if block.waits then
    lines[#lines + 1] = "  … " .. texts.get("transcript.waits")
    marks[#marks + 1] = { line = #lines - 1, from = 0, to = -1, group = "CodeAgentMuted" }
  end
  return lines, marks
end

function draw.discarded(block)
  local key = block.partly and "transcript.discarded_part" or "transcript.discarded"
  return signed("✗", texts.get(key, { files = names(block.files) }), "CodeAgentMuted", true)
end

function draw.command(block)
  return { "  $ " .. one_line(block.text, 200), "" }, { { line = 0, from = 2, to = -1, group = "CodeAgentTool" } }
end

function draw.output(block)
  local lines = {}
  for _, line in ipairs(M.lines((block.text:gsub("\n$", "")))) do
    lines[#lines + 1] = "    " .. line
  end
  return lines, {}
end

function draw.exit(block)
  local words = texts.get("transcript.exit", { code = block.exit_code, seconds = ("%.1f"):format(block.duration or 0) })
  local ok = block.exit_code == 0
  return signed(ok and "✓" or "✗", words, ok and "CodeAgentDone" or "CodeAgentFailed")
end

function draw.error(block)
  return signed("✗", one_line(notify.here(block.text)), "CodeAgentFailed", true)
end

function draw.note(block)
  return signed("!", one_line(block.text), "CodeAgentMuted", true)
end

function draw.compacted(block)
  return signed("!", texts.get("transcript.compacted", block), "CodeAgentMuted", true)
end

function draw.step(block)
  return { "### " .. one_line(block.text) }, {}
end

function draw.plan(_, run)
  local lines, marks = M.plan(run.plan)
  lines[#lines + 1] = ""
  return lines, marks
end

local function how_it_ended(block)
  if block.error then
    local lines, marks = signed("✗", one_line(notify.here(block.error)), "CodeAgentFailed", true)
    if block.lacks_model then vim.list_extend(lines, (signed("→", texts.get("setup.help"), "CodeAgentMuted"))) end
    return lines, marks
  end
  if block.status ~= "completed" then
    local key = "ended." .. tostring(block.status)
    local words = texts.get(texts.CATALOGUE[key] and key or "ended.stopped")
    if block.summary and block.summary ~= "" and block.status == "stopped" then words = one_line(block.summary) end
    return signed("■", words, "CodeAgentMuted", true)
  end
  if block.summary == "" then return {}, {} end
  return draw.text({ text = block.summary })
end

--- How it ended, and in a last line how long it took and what it used.
function draw.ended(block, run)
  local lines, marks = how_it_ended(block)
  local used = run.foreign and "" or M.used(run, run.till)
  if used ~= "" then
    lines[#lines + 1] = "  ∙ " .. used
    marks[#marks + 1] = { line = #lines - 1, from = 0, to = -1, group = "CodeAgentMuted" }
  end
  lines[#lines + 1] = ""
  return lines, marks
end

--- A plan as lines: the goal, then a line for each step; last, the ids of the steps by line.
---@param plan table
---@return string[], codeagent.Mark[], table<integer, string>
function M.plan(plan)
  local lines, marks, rows = {}, {}, {}
  for _, line in ipairs(plan.goal ~= "" and M.lines(plan.goal) or {}) do
    lines[#lines + 1] = line
    marks[#marks + 1] = { line = #lines - 1, from = 0, to = -1, group = "CodeAgentTitle" }
  end
  for number, item in ipairs(plan.steps) do
    local sign = M.STEP_SIGNS[item.state] or "○"
    local group = STEP_GROUPS[item.state] or "CodeAgentMuted"
    lines[#lines + 1] = ("  %s %d. %s"):format(sign, number, one_line(item.title or item.description, 120))
    marks[#marks + 1] = { line = #lines - 1, from = 2, to = item.state == "running" and -1 or 2 + #sign, group = group }
    rows[#lines] = item.step_id
    if item.error and item.error ~= "" then
      lines[#lines + 1] = "       " .. one_line(item.error, 160)
      marks[#marks + 1] = { line = #lines - 1, from = 0, to = -1, group = "CodeAgentFailed" }
      rows[#lines] = item.step_id
    end
  end
  return lines, marks, rows
end

--- The head of a run: what was asked, whether it waits for its turn, and whether it was taken back.
---@param run codeagent.Run
---@return string[], codeagent.Mark[]
function M.head(run)
  local task = run.task and run.task ~= "" and run.task or run.title
  local lines = M.lines(task)
  local title = run.title ~= "" and run.title or lines[1]
  -- The server's title of a task from before is cut.
  local cut = title:match("^(.*)…$")
  if cut and vim.startswith(lines[1], cut) then title = lines[1] end
  local below = #lines > 1 or #title > LONG
  local head = { verbatim("## " .. one_line(title, below and LONG / 2 or LONG)) }
  local marks = { { line = 0, from = 0, to = -1, group = "CodeAgentTitle" } }
  if below then
    for _, line in ipairs(lines) do
      head[#head + 1] = "> " .. line
    end
  end
  for _, words in ipairs({
    run.status == "queued" and "… " .. texts.get("transcript.queued") or "",
    run.status == "withdrawn" and "■ " .. texts.get("run.withdrawn") or "",
    run.rewound and "↶ " .. texts.get("transcript.rewound." .. run.rewound.what) or "",
  }) do
    if words ~= "" then
      head[#head + 1] = "  " .. words
      marks[#marks + 1] = { line = #head - 1, from = 0, to = -1, group = "CodeAgentQuestion" }
    end
  end
  head[#head + 1] = ""
  return head, marks
end

--- One block of a run; `opened`: with what it printed. All of a run that was taken back is shown as something past.
---@param block codeagent.Block
---@param run codeagent.Run
---@param opened boolean?
---@return string[], codeagent.Mark[]
function M.block(block, run, opened)
  local function_of = draw[block.kind]
  if not function_of then return {}, {} end
  local lines, marks = function_of(block, run, opened)
  -- What the model says is Markdown; all else are names, sentences of ours, and what programs print.
  local said = block.kind == "text" or block.kind == "ended" and block.status == "completed" and not block.error
  if not said then lines = vim.tbl_map(verbatim, lines) end
  if run.rewound and run.rewound.what ~= "changes" then
    marks = {}
    for number = 1, #lines do
      marks[number] = { line = number - 1, from = 0, to = -1, group = "CodeAgentMuted" }
    end
  end
  return lines, marks
end

--- Whether an empty line belongs before `block`: text, and what is no text, are kept apart.
---@param before codeagent.Block?
---@param block codeagent.Block
---@return boolean
function M.gap(before, block)
  if not before or before.kind == "text" or before.kind == "plan" or before.kind == "command" then return false end
  if block.kind == "ended" then return block.status == "completed" and block.summary ~= "" end
  return block.kind == "text" or block.kind == "plan" or block.kind == "step" or (block.kind == "exit" and before.kind == "output")
end

local function counted(tokens)
  if tokens < 1000 then return tostring(tokens) end
  return (tokens < 10000 and "%.1fk" or "%.0fk"):format(tokens / 1000)
end

local function lasted(seconds)
  if seconds < 10 and seconds % 1 > 0 then return ("%.1f s"):format(seconds) end
  if seconds < 60 then return ("%d s"):format(seconds) end
  return ("%d:%02d min"):format(seconds / 60, seconds % 60)
end

--- How long a run has worked and what it has used: seconds, tokens to and from the model, the share of its prompts from
--- the cache, and the cost where prices are known.
---@param run codeagent.Run
---@param now number? seconds since the epoch
---@return string
function M.used(run, now)
  local usage, parts = run.usage, {}
  if run.since and now and now >= run.since then parts[1] = lasted(now - run.since) end
  if usage.prompt + usage.completion > 0 then
    parts[#parts + 1] = ("↑%s ↓%s"):format(counted(usage.prompt), counted(usage.completion))
  end
  local share = usage.prompt > 0 and math.floor(100 * math.min(usage.cached, usage.prompt) / usage.prompt) or 0
  if share > 0 then parts[#parts + 1] = texts.get("status.cached", { share = share }) end
  if usage.cost and usage.cost >= 0.0001 then
    parts[#parts + 1] = (usage.cost >= 0.1 and "$%.2f" or "$%.2g"):format(usage.cost)
  end
  return table.concat(parts, " · ")
end

local SPINNER = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" }
M.TURN = 0.1 -- seconds that each of them is shown

--- A short line about the whole: what works, what waits. Empty when there is nothing to tell.
---@param state codeagent.State
---@param now number? seconds since the epoch: with it, the sign turns and the seconds are counted
---@param room integer? columns for it
---@return string words, string group
function M.summary(state, now, room)
  local condition = queries.condition(state)
  local newest, working = queries.latest(state)
  if condition == "waiting" then
    return "? " .. texts.get("status.waiting", { count = #state.questions }), "CodeAgentStatusWaiting"
  end
  if working then
    local words = working.activity ~= "" and working.activity or working.title
    local used = M.used(working, now and working.since and working.since + math.floor(math.max(0, now - working.since)))
    local left = room and room - vim.api.nvim_strwidth(used) - 6 or 40
    local sign = now and SPINNER[math.floor(now / M.TURN) % #SPINNER + 1] or "…"
    words = one_line(words ~= "" and words or texts.get("status.working"), math.max(12, math.min(40, left)))
    return sign .. " " .. words .. (used ~= "" and " · " .. used or ""), "CodeAgentStatusWorking"
  end
  local staged = #queries.waiting_changes(state)
  if staged > 0 then return "± " .. texts.get("status.changes", { count = staged }), "CodeAgentStatusWaiting" end
  if condition == "error" and newest then return "✗ " .. texts.get("status.error"), "CodeAgentStatusError" end
  return "", "CodeAgentStatusIdle"
end

return M
