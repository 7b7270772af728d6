--- The transcript window: what was asked, said, done and decided in a session, streamed as Markdown.
--- Only what has changed is written, so that nothing flickers; the end is followed while the cursor is on it. It shows
--- the session that was named, such as that of an attempt, until the user asks for something again.

local client = require("codeagent.client")
local config = require("codeagent.config")
local notify = require("codeagent.notify")
local queries = require("codeagent.queries")
local render = require("codeagent.render")
local store = require("codeagent.store")
local texts = require("codeagent.texts")
local windows = require("codeagent.windows")

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("codeagent.transcript")
local BIG = 1024 * 1024 -- bytes after which syntax trees cost too much

---@class codeagent.Piece what stands in the buffer, in order
---@field value any the block, or the run's head, that was drawn; compared by identity
---@field extra any what else it was drawn from, compared by identity: the plan, or what a tool has printed
---@field look string what its look depends on besides
---@field lines integer
---@field run_id string?

local drawn = {} ---@type codeagent.Piece[]
local drawn_in ---@type integer? the buffer they stand in; a new one is made when the user wipes it out
local session ---@type string?
local followed ---@type string? the newest run of the user when it was drawn last, and the session
local opened = {} ---@type table<string, boolean> the outputs that the user has opened, by the id of the call

local function buffer()
  return windows.buffer("transcript", "markdown")
end

local function exists()
  return vim.fn.bufexists("codeagent://transcript") == 1
end

--- Whether the user has it in front of them.
---@return boolean
function M.is_visible()
  return exists() and windows.showing(buffer()) ~= nil
end

---@class codeagent.Wanted
---@field value any
---@field extra any
---@field look string
---@field run_id string?
---@field draw fun(): string[], codeagent.Mark[]

local function below_a_gap(lines, marks)
  for _, mark in ipairs(marks) do
    mark.line = mark.line + 1
  end
  return vim.list_extend({ "" }, lines)
end

---@param run codeagent.Run
---@param before codeagent.Run? the one above it, which ends with an empty line only once it has ended
---@return codeagent.Wanted
local function head_of(run, before)
  local apart = before ~= nil and before.blocks[1] ~= nil and before.blocks[#before.blocks].kind ~= "ended"
  local past = run.rewound and run.rewound.what or ""
  local look = table.concat({ run.title, run.task or "", run.status == "queued" and "q" or "", past }, "\0")
  look = look .. (run.status == "withdrawn" and "w" or "") .. (apart and "a" or "")
  local function draw()
    local lines, marks = render.head(run)
    return apart and below_a_gap(lines, marks) or lines, marks
  end
  return { value = run.run_id, look = look, run_id = run.run_id, draw = draw }
end

---@param run codeagent.Run
---@param position integer
---@return codeagent.Wanted
local function block_of(run, position)
  local block, before = run.blocks[position], run.blocks[position - 1]
  local is_open = block.kind == "tool" and opened[block.call_id] or false
  return {
    value = block,
    extra = block.kind == "plan" and run.plan or is_open and run.outputs[block.call_id] or nil,
    look = (is_open and "open" or "") .. (run.rewound and run.rewound.what or ""),
    run_id = run.run_id,
    draw = function()
      local lines, marks = render.block(block, run, is_open)
      return render.gap(before, block) and below_a_gap(lines, marks) or lines, marks
    end,
  }
end

--- Everything that should stand in the buffer, not drawn yet.
---@return codeagent.Wanted[]
local function wanted(state)
  local list = {} ---@type codeagent.Wanted[]
  local before
  for _, run in ipairs(queries.in_transcript(state, session)) do
    if run.title ~= "" or (run.task or "") ~= "" then list[#list + 1] = head_of(run, before) end
    before = run
    for position = 1, #run.blocks do
      list[#list + 1] = block_of(run, position)
    end
  end
  return list
end

local function same(piece, item)
  return piece and rawequal(piece.value, item.value) and rawequal(piece.extra, item.extra) and piece.look == item.look
end

local function mark(target, first, marks)
  for _, item in ipairs(marks) do
    local line = first + item.line
    local text = vim.api.nvim_buf_get_lines(target, line, line + 1, false)[1] or ""
    vim.api.nvim_buf_set_extmark(target, NAMESPACE, line, math.min(item.from, #text), {
      end_col = item.to < 0 and #text or math.min(item.to, #text),
      hl_group = item.group,
    })
  end
end

--- Keeps windows that were at the end at the end.
local function following(target, change)
  local last = vim.api.nvim_buf_line_count(target)
  local follow = vim.tbl_filter(function(window)
    return vim.api.nvim_win_get_cursor(window)[1] >= last
  end, vim.fn.win_findbuf(target))
  change()
  for _, window in ipairs(follow) do
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(target), 0 })
  end
end

local function write(target, first, old, lines, marks)
  vim.api.nvim_buf_clear_namespace(target, NAMESPACE, first, first + math.max(old, 1))
  windows.write(target, first, first + old, lines)
  mark(target, first, marks)
end

--- Brings the buffer up to date: unchanged pieces are skipped, a changed one is replaced, the rest is added.
local function update(state)
  local target = buffer()
  if target ~= drawn_in then
    drawn, drawn_in = {}, target
  end
  local list, line, count = wanted(state), 0, #drawn
  if #list == 0 then
    drawn = {}
    return windows.write(target, 0, -1, { texts.get("transcript.empty") })
  end
  if count == 0 then windows.write(target, 0, -1, {}) end
  for position, item in ipairs(list) do
    local piece = drawn[position]
    if not same(piece, item) then
      local lines, marks = item.draw()
      local old = piece and piece.lines or 0
      if not piece and line == 0 then old = 1 end -- the one empty line of an empty buffer
      write(target, line, old, lines, marks)
      drawn[position] = { value = item.value, extra = item.extra, look = item.look, lines = #lines, run_id = item.run_id }
    end
    line = line + drawn[position].lines
  end
  for position = #drawn, #list + 1, -1 do
    drawn[position] = nil
  end
  if vim.api.nvim_buf_line_count(target) > line then windows.write(target, line, -1, {}) end
end

local function head()
  for _, window in ipairs(vim.fn.win_findbuf(buffer())) do
    local words = render.summary(store.state(), store.now(), vim.api.nvim_win_get_width(window) - 4)
    windows.head(window, words ~= "" and words or texts.get("transcript.title"), {
      { "i", texts.get("keys.write") },
      { "q", texts.get("keys.close") },
      { "^C", texts.get("keys.stop") },
      { "<Tab>", texts.get("keys.output") },
      { "<CR>", texts.get("keys.jump") },
      { "gy", texts.get("keys.copy") },
    })
  end
end

local function watch_size(target)
  if vim.b[target].codeagent_plain then return end
  local size = vim.api.nvim_buf_get_offset(target, vim.api.nvim_buf_line_count(target))
  if size > BIG then
    vim.b[target].codeagent_plain = true
    pcall(vim.treesitter.stop, target)
    vim.bo[target].syntax = "off"
  end
end

--- Goes where the user has gone on.
local function follow(state)
  local run = queries.latest(state)
  local now = tostring(run and run.run_id) .. " " .. tostring(state.session_id)
  if now == followed then return end
  followed = now
  if state.session_id == session then return end
  session, drawn = state.session_id, {}
end

local function refresh(state)
  if not exists() then return end
  local target = buffer()
  follow(state)
  following(target, function() update(state) end)
  watch_size(target)
  head()
end

--- The code block around the cursor into the register of the last yank and, where there is one, the clipboard.
local function copy_code()
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
  local here = vim.api.nvim_win_get_cursor(0)[1]
  local open
  for number, line in ipairs(lines) do
    if line:match("^%s*```") then
      if open and here >= open and here <= number then
        local code = vim.list_slice(lines, open + 1, number - 1)
        vim.fn.setreg('"', code, "l")
        pcall(vim.fn.setreg, "+", code, "l")
        return notify.tell(texts.get("told.copied", { count = #code }))
      end
      open = not open and number or nil
    end
  end
  notify.tell(texts.get("told.no_block"))
end

--- The newest run of the session that is shown for which `holds` is true.
local function shown_run(holds)
  local state = store.state()
  for position = #state.order, 1, -1 do
    local run = state.runs[state.order[position]]
    if run.session_id == session and holds(run) then return run end
  end
end

--- The file named under the cursor, or anywhere in its line.
local function jump()
  local run = shown_run(function() return true end)
  local here = client.of_run(run and run.run_id) or client.current()
  local root = here and here.root_dir or vim.fn.getcwd()
  local line = vim.api.nvim_get_current_line()
  local words = { vim.fn.expand("<cWORD>") }
  for word in line:gmatch("%S+") do
    words[#words + 1] = word
  end
  for _, word in ipairs(words) do
    local name, number = word:gsub("[`'\"(),]", ""):match("^(.-):?(%d*):?$")
    local path = name and name ~= "" and (vim.startswith(name, "/") and name or vim.fs.joinpath(root, name))
    if path and vim.fn.filereadable(path) == 1 then return windows.jump(path, tonumber(number)) end
  end
  notify.tell(texts.get("told.no_file"))
end

--- The block that stands in a line of the buffer.
---@param line integer 1-based
---@return codeagent.Block?
local function block_at(line)
  local last = 0
  for _, piece in ipairs(drawn) do
    last = last + piece.lines
    if line <= last then return type(piece.value) == "table" and piece.value or nil end
  end
end

--- Opens or closes what the tool under the cursor has printed.
local function toggle_output()
  local block = block_at(vim.api.nvim_win_get_cursor(0)[1])
  if not (block and block.kind == "tool" and block.call_id) then return notify.tell(texts.get("told.no_output")) end
  opened[block.call_id] = not opened[block.call_id] or nil
  refresh(store.state())
end

--- Stops what is at work in the session that is shown.
local function stop()
  local run = shown_run(function(each) return each.status == "running" end)
  client.call("cancel", run and { runId = run.run_id } or {})
end

--- Shows the seconds as they pass.
function M.tick()
  if exists() then head() end
end

--- Opens it, on the session in which the user asked for something last or the one named.
---@param wish { focus: boolean?, session: string? }?
---@return integer window
function M.open(wish)
  wish = wish or {}
  require("codeagent.highlights").define()
  local target = buffer()
  follow(store.state())
  local named = wish.session ~= "" and wish.session or store.state().session_id
  if named ~= session then
    session, drawn = named, {}
  end
  local fresh = not windows.showing(target)
  local window = windows.show(target, {
    name = "transcript",
    filetype = "markdown",
    position = config.get("transcript.position"),
    size = config.get("transcript.size"),
    focus = wish.focus ~= false,
    keys = {
      { "q", "transcript-close", function() windows.close(target) end },
      { "<C-c>", "transcript-stop", stop },
      { "gy", "transcript-copy", copy_code },
      { "<CR>", "transcript-jump", jump },
      { "gf", "transcript-jump", jump },
      { "<Tab>", "transcript-output", toggle_output },
      { "i", "transcript-write", function() require("codeagent.input").open() end },
    },
  })
  store.listen("transcript", refresh)
  refresh(store.state())
  if not vim.b[target].codeagent_plain then pcall(vim.treesitter.start, target, "markdown") end
  if fresh then vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(target), 0 }) end
  return window
end

--- The server wants it to be seen: open it without taking the focus. What an attempt says, its run tells of.
---@param session_id string
function M.shown(session_id)
  if queries.is_of_attempt(store.state(), session_id) then return end
  local open = exists() and #vim.fn.win_findbuf(buffer()) > 0
  if config.get("transcript.open") == "never" or open or require("codeagent.review").is_open() then return end
  M.open({ focus = false, session = session_id })
end

--- Opens it, or closes it when it is open.
function M.toggle()
  if M.is_visible() then return windows.close(buffer()) end
  M.open()
end

return M
