--- The changes that wait, shown in the code: lines that would go are marked, those that would come stand between them as
--- virtual lines. The text of the buffer stays the user's until they accept. The hunks are those of the review, from
--- the server; here they are found in the buffer by their lines. Not here: the review window (`review.lua`).

local buffers = require("codeagent.buffers")
local client = require("codeagent.client")
local colours = require("codeagent.colours")
local config = require("codeagent.config")
local diff = require("codeagent.diff")
local keymaps = require("codeagent.keymaps")
local notify = require("codeagent.notify")
local queries = require("codeagent.queries")
local store = require("codeagent.store")
local texts = require("codeagent.texts")

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("codeagent.hunks")
local HINT = vim.api.nvim_create_namespace("codeagent.hunks.hint")
local PAUSE = 120 -- milliseconds in which more may change

---@class codeagent.Shown the changes of one run as they were told last
---@field revision integer
---@field digest string?
---@field lines string[]
---@field files table<string, codeagent.File> by absolute path

---@class codeagent.Placed one hunk in a buffer
---@field mark integer the extmark over its lines
---@field run_id string
---@field hunk codeagent.Hunk
---@field file codeagent.File

local shown = {} ---@type table<string, codeagent.Shown>
local placed = {} ---@type table<integer, codeagent.Placed[]> by buffer, from above
local asking = {} ---@type table<string, boolean>
local waits = false

--- The lines of a hunk as they are now, and the first of them that changes with the last, as positions in these.
local function old_lines(lines, hunk)
  local old, first, last = {}, nil, nil
  for number = hunk.first + 1, hunk.last do
    local sign = lines[number]:sub(1, 1)
    if sign == "-" or sign == " " or lines[number] == "" then
      old[#old + 1] = (lines[number]:sub(2):gsub("\r$", ""))
    end
    if sign == "-" then first, last = first or #old, #old end
  end
  return old, first, last
end

--- Whether lines stand in the buffer from a row on, which counts from 1.
local function stands(text, wanted, row, from, to)
  for position = from, to do
    if text[row + position - from] ~= wanted[position] then return false end
  end
  return true
end

--- The row nearest to `near` from which lines stand in the buffer.
local function nearest(text, wanted, near, from, to)
  for distance = 0, #text do
    for _, row in ipairs({ near + distance, near - distance }) do
      if row >= 1 and row + to - from <= #text and stands(text, wanted, row, from, to) then return row end
    end
  end
end

--- Where the old lines of a hunk begin in a buffer, from 1: with the lines around it, else by those that change alone.
local function find(text, old, first, last, near)
  if #old == 0 then return near + 1 end
  local row = nearest(text, old, math.max(near, 1), 1, #old)
  if row or not first then return row end
  local inner = nearest(text, old, math.max(near + first - 1, 1), first, last)
  return inner and inner - first + 1
end

--- Marks a stretch of removed lines and shows the added ones below it, or above the first line of the buffer.
local function show_run(buffer, row, removed, added, above)
  for number = row - removed, row - 1 do
    if number < vim.api.nvim_buf_line_count(buffer) and number >= 0 then
      vim.api.nvim_buf_set_extmark(buffer, NAMESPACE, number, 0, { line_hl_group = "CodeAgentRemoved", priority = 90 })
    end
  end
  if #added == 0 then return end
  local anchor = math.min(row - 1, vim.api.nvim_buf_line_count(buffer) - 1)
  vim.api.nvim_buf_set_extmark(buffer, NAMESPACE, math.max(anchor, 0), 0, {
    virt_lines = added,
    virt_lines_above = anchor < 0,
  })
  if anchor >= 0 or not above then return end
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do -- Neovim shows nothing above the first line by itself
    vim.api.nvim_win_call(window, function()
      if vim.fn.line("w0") == 1 then vim.fn.winrestview({ topfill = #added }) end
    end)
  end
end

--- The added lines of a hunk as virtual text, in order.
local function coloured(lines, hunk, filetype)
  local text, rows = {}, {}
  for number = hunk.first + 1, hunk.last do
    local sign = lines[number]:sub(1, 1)
    if sign == "+" or sign == " " or lines[number] == "" then
      text[#text + 1] = (lines[number]:sub(2):gsub("\r$", ""))
      if sign == "+" then rows[#rows + 1] = #text end
    end
  end
  local spans = colours.of(text, filetype)
  return vim.tbl_map(function(row)
    local pieces = colours.pieces(text[row], spans[row], "CodeAgentAdded")
    table.insert(pieces, { (" "):rep(math.max(1, 200 - vim.fn.strdisplaywidth(text[row]))), "CodeAgentAdded" })
    return pieces
  end, rows)
end

--- Draws a hunk whose old lines begin at `start`, from 1; the extmark over its lines.
local function draw(buffer, lines, hunk, start)
  local added = coloured(lines, hunk, vim.bo[buffer].filetype)
  local row, removed, pending, taken, first = start - 1, 0, {}, 0, nil
  local function flush()
    if removed > 0 or #pending > 0 then show_run(buffer, row, removed, pending, true) end
    removed, pending = 0, {}
  end
  for number = hunk.first + 1, hunk.last do
    local sign = lines[number]:sub(1, 1)
    if sign == "-" then first = first or row end
    if sign == "+" then first = first or math.max(row - 1, 0) end -- the line that they stand below
    if sign == "-" then
      if #pending > 0 then flush() end
      row, removed = row + 1, removed + 1
    elseif sign == "+" then
      taken = taken + 1
      table.insert(pending, added[taken])
    elseif sign ~= "\\" then
      flush()
      row = row + 1
    end
  end
  flush()
  local count = vim.api.nvim_buf_line_count(buffer)
  local last = math.max(math.min(row, count) - 1, 0)
  return vim.api.nvim_buf_set_extmark(buffer, NAMESPACE, math.min(first or start - 1, count - 1), 0, {
    end_row = last,
    end_col = 0,
    strict = false,
  })
end

local function place(buffer, run_id, file)
  local known = shown[run_id]
  local text = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  for number, line in ipairs(text) do
    text[number] = (line:gsub("\r$", ""))
  end
  for _, hunk in ipairs(file.hunks) do
    local old, first, last = old_lines(known.lines, hunk)
    local start = find(text, old, first, last, hunk.old)
    if start then
      local mark = draw(buffer, known.lines, hunk, start)
      table.insert(placed[buffer], { mark = mark, run_id = run_id, hunk = hunk, file = file })
    end
  end
end

local function lines_of(buffer, item)
  local row, _, details = unpack(vim.api.nvim_buf_get_extmark_by_id(buffer, NAMESPACE, item.mark, { details = true }))
  return row, row and math.max(row, details.end_row or row)
end

--- The hunk under the cursor, and which of how many it is.
---@return codeagent.Placed?, integer?
local function here()
  local buffer, row = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
  for number, item in ipairs(placed[buffer] or {}) do
    local first, last = lines_of(buffer, item)
    if first and row >= first - 1 and row <= last then return item, number end
  end
end

--- Whether changes of several runs stand in a buffer, so that each has to say whose it is.
local function several(buffer)
  return vim.iter(placed[buffer]):any(function(item) return item.run_id ~= placed[buffer][1].run_id end)
end

local function hint()
  local buffer = vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_clear_namespace(buffer, HINT, 0, -1)
  local item, number = here()
  if not item then return end
  local accept, discard = keymaps.key("hunk-accept"), keymaps.key("hunk-discard")
  local words = { queries.verdicts(store.state().runs[item.run_id]) }
  local how = accept and discard
      and ("%s %s · %s %s"):format(accept, words[1], discard, words[2])
    or ":CodeAgent hunk"
  local of = several(buffer) and queries.short_title(store.state(), store.state().runs[item.run_id]) .. "  " or ""
  vim.api.nvim_buf_set_extmark(buffer, HINT, (lines_of(buffer, item)), 0, {
    virt_text = { { (" %d/%d  %s%s "):format(number, #placed[buffer], of, how), "CodeAgentReviewHint" } },
    virt_text_pos = "eol_right_align", -- where a window is narrow, the text stays readable
  })
end

--- Shows in a buffer what waits for its file.
local function render(buffer)
  vim.api.nvim_buf_clear_namespace(buffer, NAMESPACE, 0, -1)
  vim.api.nvim_buf_clear_namespace(buffer, HINT, 0, -1)
  placed[buffer] = {}
  if vim.bo[buffer].buftype ~= "" or not config.get("review.inline") then return end
  local name = vim.api.nvim_buf_get_name(buffer)
  local real = vim.uv.fs_realpath(name) or name
  for run_id, known in pairs(shown) do
    local file = known.files[name] or known.files[real]
    if file and file.kind ~= "create" then place(buffer, run_id, file) end
  end
  table.sort(placed[buffer], function(one, two) return lines_of(buffer, one) < lines_of(buffer, two) end)
  if buffer == vim.api.nvim_get_current_buf() then hint() end
end

--- The files of a diff by their absolute paths, which the run's changes have.
local function by_path(run, files)
  local found = {}
  for _, file in ipairs(files) do
    for path in pairs(run.staged) do
      if path == file.path or vim.endswith(path, "/" .. file.path) then found[path] = file end
    end
  end
  return found
end

local function set(run_id, value)
  local touched = {}
  for _, known in ipairs({ shown[run_id] or {}, value or {} }) do
    for path in pairs(known.files or {}) do
      touched[path] = true
    end
  end
  shown[run_id] = value
  for path in pairs(touched) do
    local buffer = buffers.loaded(path)
    if buffer then render(buffer) end
  end
end

--- Asks for the changes of a run, unless that is being done.
local function fetch(run)
  if asking[run.run_id] then return end
  asking[run.run_id] = true
  local revision = run.revision
  require("codeagent.review").fetch(run.run_id, function(text, result)
    asking[run.run_id] = nil
    local now = store.state().runs[run.run_id]
    if not now or text == "" then return set(run.run_id, nil) end
    local lines = vim.split((text:gsub("\n$", "")), "\n", { plain = true })
    local files = by_path(now, diff.parse(lines))
    set(run.run_id, { revision = revision, digest = result.digest, lines = lines, files = files })
    if now.revision ~= revision then M.refresh() end
  end)
end

--- Whether changes of a run wait, and a server knows of them; while it works those that it has proposed.
local function is_waiting(run)
  if not run or run.attempt_of or not next(run.staged) or not client.of_run(run.run_id) then return false end
  return run.proposal ~= nil or run.status ~= "running"
end

local function look()
  waits = false
  for run_id, run in pairs(store.state().runs) do
    local known = shown[run_id]
    if is_waiting(run) and not (known and known.revision == run.revision) then fetch(run) end
  end
end

--- Brings what is shown up to date: what is decided about goes at once, what is new comes a moment later, as changes come
--- in groups.
function M.refresh()
  for run_id in pairs(shown) do
    if not is_waiting(store.state().runs[run_id]) then set(run_id, nil) end
  end
  if waits or not config.get("review.inline") then return end
  waits = true
  vim.defer_fn(look, PAUSE)
end

---@param command "apply"|"discard"
---@param whole boolean the file, not the hunk
local function decide(command, whole)
  local item = here()
  if not item then return notify.tell(texts.get("told.no_hunk")) end
  local part = { files = { item.file.path } }
  if item.hunk.id and not whole then part = { hunks = { item.hunk.id } } end
  local digest = shown[item.run_id] and shown[item.run_id].digest
  client.call(command, vim.tbl_extend("force", { runId = item.run_id, digest = digest }, part), nil, M.refresh)
end

--- To the next hunk of this buffer, or the one before; around its ends.
local function go(step)
  local buffer, row = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
  local list = placed[buffer] or {}
  local found
  for number = step > 0 and 1 or #list, step > 0 and #list or 1, step do
    local first = lines_of(buffer, list[number])
    if first and (first - row) * step > 0 then
      found = first
      break
    end
  end
  found = found or (list[1] and lines_of(buffer, list[step > 0 and 1 or #list]))
  if not found then return notify.tell(texts.get("told.no_changes")) end
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_cursor(0, { found + 1, 0 })
  hint()
end

M.ACTIONS = {
  accept = function() decide("apply", false) end,
  discard = function() decide("discard", false) end,
  ["accept-file"] = function() decide("apply", true) end,
  ["discard-file"] = function() decide("discard", true) end,
  next = function() go(1) end,
  previous = function() go(-1) end,
}

--- Carries out `:CodeAgent hunk {action}`.
---@param name string
function M.act(name)
  local action = M.ACTIONS[name]
  if not action then return notify.warn(texts.get("told.usage", { name = "hunk " .. name })) end
  action()
end

--- How many hunks are shown in a buffer; for tests and status lines.
---@param buffer integer
---@return integer
function M.count(buffer)
  return #(placed[buffer] or {})
end

--- Begins to show changes.
function M.begin()
  local group = vim.api.nvim_create_augroup("codeagent.hunks", {})
  vim.api.nvim_create_autocmd({ "BufReadPost", "BufWinEnter" }, {
    group = group,
    callback = function(event)
      if next(shown) then vim.schedule(function()
        if vim.api.nvim_buf_is_loaded(event.buf) then render(event.buf) end
      end) end
    end,
  })
  vim.api.nvim_create_autocmd("CursorMoved", {
    group = group,
    callback = function(event)
      if placed[event.buf] and #placed[event.buf] > 0 then hint() end
    end,
  })
  store.listen("hunks", M.refresh)
end

return M
