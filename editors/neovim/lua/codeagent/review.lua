--- The review window: a run's changes as a diff, accepted and discarded by hunk, by file or as a whole.
--- After every decision the diff is asked for again, because the numbers of the hunks have changed by it.

local client = require("codeagent.client")
local colours = require("codeagent.colours")
local config = require("codeagent.config")
local diff = require("codeagent.diff")
local notify = require("codeagent.notify")
local queries = require("codeagent.queries")
local store = require("codeagent.store")
local texts = require("codeagent.texts")
local windows = require("codeagent.windows")

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("codeagent.review")
local TYPING = 500 -- milliseconds
local HINT = vim.api.nvim_create_namespace("codeagent.review.hint")
local PATIENCE = 5000 -- milliseconds until a decision that had no effect is given up

---@class codeagent.Review
---@field run_id string
---@field lines string[]
---@field files codeagent.File[]
---@field revision integer of the run when the diff was asked for
---@field digest string? names what is shown here when it is decided about
---@field proof string[] sentences on what was tried on the changes
---@field unneeded string[] ids of the hunks that the tests do not need
---@field busy boolean a decision is on its way: hunk numbers may be about to change
---@field waiting table[] decisions about single hunks and files that were made meanwhile: `{command, part}`
---@field home integer the window the user came from
---@field over fun()? told when the window is closed or all is decided

local typing = vim.uv.new_timer()
local current ---@type codeagent.Review?
local asked_for = {} ---@type table<string, integer> diffs asked for by us: the server also wants them shown

local function buffer()
  return windows.buffer("review", "diff")
end

local function revision(run_id)
  local run = store.state().runs[run_id]
  return run and run.revision or 0
end

--- What accepting and discarding is called here.
local function verdicts()
  return queries.verdicts(store.state().runs[current.run_id])
end

local function cursor_place()
  local window = windows.showing(buffer())
  if not (current and window) then return end
  return diff.at(current.files, vim.api.nvim_win_get_cursor(window)[1])
end

local function count_hunks()
  local hunks = 0
  for _, file in ipairs(current.files) do
    hunks = hunks + math.max(1, #file.hunks)
  end
  return hunks
end

local function head()
  local window = windows.showing(buffer())
  if not (current and window) then return end
  local title = texts.get("review.title") .. "  "
    .. texts.get("review.counts", { files = #current.files, hunks = count_hunks() })
  local accept, discard = verdicts()
  if current.busy then title = title .. "  " .. texts.get("review.busy") end
  windows.head(window, title, {
    { "a", accept },
    { "x", discard },
    { "A X", texts.get("keys.file") },
    { "ga gx", texts.get("keys.all") },
    { "]c", texts.get("keys.hunk") },
    { "<CR>", texts.get("keys.jump") },
    { "q", texts.get("keys.close") },
  })
end

--- Colours the lines of a file's hunks by its language, each side as one text: old lines, and new ones.
local function colour(target, file)
  local filetype = colours.filetype(file.path)
  for _, hunk in ipairs(file.hunks) do
    for sign, group in pairs({ ["-"] = "CodeAgentRemoved", ["+"] = "CodeAgentAdded" }) do
      local rows, text = {}, {}
      for number = hunk.first + 1, hunk.last do
        local its = current.lines[number]:sub(1, 1)
        if its == sign or its == " " then
          rows[#rows + 1], text[#text + 1] = number, current.lines[number]:sub(2)
        end
      end
      local spans = colours.of(text, filetype)
      for position, number in ipairs(rows) do
        if current.lines[number]:sub(1, 1) == sign then
          vim.api.nvim_buf_set_extmark(target, NAMESPACE, number - 1, 0, { line_hl_group = group, priority = 90 })
        end
        local mine = current.lines[number]:sub(1, 1) == sign or sign == "+" -- what stays is coloured once
        for _, span in ipairs(mine and spans[position] or {}) do
          local length = #current.lines[number]
          vim.api.nvim_buf_set_extmark(target, NAMESPACE, number - 1, math.min(span.from + 1, length), {
            end_col = math.min(span.to + 1, length),
            hl_group = span.group,
            priority = 110,
          })
        end
      end
    end
  end
end

local KINDS = { create = "+", delete = "-", move = "→", edit = "±" }

--- The end of a path that fits into so many columns: there the name of the file is.
local function end_of(path, columns)
  if vim.fn.strdisplaywidth(path) <= columns then return path end
  for from = 1, vim.fn.strchars(path) - 1 do
    local rest = "…" .. vim.fn.strcharpart(path, from)
    if vim.fn.strdisplaywidth(rest) <= columns then return rest end
  end
  return path
end

local function decorate()
  local target = buffer()
  local window = windows.showing(target)
  local columns = window and vim.api.nvim_win_get_width(window) or vim.o.columns
  vim.api.nvim_buf_clear_namespace(target, NAMESPACE, 0, -1)
  for position, file in ipairs(current.files) do
    local counts = ("+%d −%d"):format(file.added, file.removed)
    local path = end_of(file.path, columns - vim.fn.strdisplaywidth(counts) - 5)
    local words = (" %s %s  %s"):format(KINDS[file.kind], path, counts)
    local above = { { { words, "CodeAgentReviewFile" } } }
    if position > 1 then table.insert(above, 1, { { "", "Normal" } }) end
    if position == 1 then
      for number, line in ipairs(current.proof) do
        table.insert(above, number, { { " " .. line, "CodeAgentMuted" } })
      end
    end
    colour(target, file)
    for _, hunk in ipairs(file.hunks) do
      local _, head = (current.lines[hunk.first] or ""):find("^@@ .- @@")
      if hunk.id and head then -- the id is for the server
        local range = { end_col = #current.lines[hunk.first], conceal = "" }
        vim.api.nvim_buf_set_extmark(target, NAMESPACE, hunk.first - 1, head, range)
      end
      if vim.list_contains(current.unneeded, hunk.id) then
        local words = { { texts.get("review.unneeded"), "CodeAgentMuted" } }
        vim.api.nvim_buf_set_extmark(target, NAMESPACE, hunk.first - 1, 0, { virt_text = words })
      end
    end
    vim.api.nvim_buf_set_extmark(target, NAMESPACE, file.first - 1, 0, {
      virt_lines = above,
      virt_lines_above = true,
    })
  end
end

--- The keys, at the head of the hunk under the cursor.
local function hint()
  local target = buffer()
  local file, hunk = cursor_place()
  vim.api.nvim_buf_clear_namespace(target, HINT, 0, -1)
  if not file then return end
  local words = (hunk and hunk.id and " a %s · x %s " or " A %s · X %s "):format(verdicts())
  vim.api.nvim_buf_set_extmark(target, HINT, (hunk or file).first - 1, 0, {
    virt_text = { { words, "CodeAgentReviewHint" } },
    virt_text_pos = "right_align",
  })
end

local function draw(text, result)
  local target = buffer()
  current.digest, current.proof, current.unneeded = result.digest, result.proof or {}, result.unneeded or {}
  local lines = vim.split((text:gsub("\n$", "")), "\n", { plain = true })
  table.insert(lines, 1, "") -- Neovim shows nothing above the first line
  current.lines, current.files = lines, diff.parse(lines)
  windows.write(target, 0, -1, lines)
  decorate()
  head()
  hint()
end

local function to_hunk(step)
  local window = windows.showing(buffer())
  if not (current and window) then return end
  local here = vim.api.nvim_win_get_cursor(window)[1]
  local found
  for _, file in ipairs(current.files) do
    local places = #file.hunks > 0 and file.hunks or { file }
    for _, place in ipairs(places) do
      if step > 0 and place.first > here and not found then found = place.first end
      if step < 0 and place.first < here then found = place.first end
    end
  end
  if found then vim.api.nvim_win_set_cursor(window, { found, 0 }) end
end

--- Gives the window back and tells whoever waits.
local function finish()
  if not current then return end
  local over, home = current.over, current.home
  current = nil
  store.listen("review", nil)
  windows.close(buffer())
  if vim.api.nvim_win_is_valid(home) then vim.api.nvim_set_current_win(home) end
  if over then over() end
end

--- Asks for the changes of a run; `use` gets the diff, '' for none, and what the server says beside it.
---@param run_id string
---@param use fun(text: string, result: table)
function M.fetch(run_id, use)
  asked_for[run_id] = (asked_for[run_id] or 0) + 1
  client.call("review", { runId = run_id }, function(result)
    use(result.diff or "", result)
  end, function()
    asked_for[run_id] = nil
    use("", {})
  end)
end

local decide

--- Whether a part is still to be decided about.
local function is_left(part)
  for _, file in ipairs(current.files) do
    if part.files and file.path == part.files[1] then return true end
    for _, hunk in ipairs(part.hunks and file.hunks or {}) do
      if hunk.id == part.hunks[1] then return true end
    end
  end
  return false
end

--- Does what was decided while an earlier decision was on its way.
local function go_on()
  while current and not current.busy and #current.waiting > 0 do
    local command, part = unpack(table.remove(current.waiting, 1))
    if is_left(part) then
      decide(command, part)
    else
      notify.warn(texts.get("told.stale"))
    end
  end
end

local function refresh()
  if not current then return end
  local run_id = current.run_id
  current.revision = revision(run_id)
  M.fetch(run_id, function(text, result)
    if not current or current.run_id ~= run_id then return end
    current.busy = false
    if text == "" then
      -- What was told about unsaved files just now is more than that.
      if not require("codeagent.reactions").leaves_unsaved() then notify.tell(texts.get("told.decided")) end
      return finish()
    end
    local window = windows.showing(buffer())
    local line = window and vim.api.nvim_win_get_cursor(window)[1] or 1
    draw(text, result)
    if window then vim.api.nvim_win_set_cursor(window, { math.min(line, #current.lines), 0 }) end
    if window and not select(2, cursor_place()) then to_hunk(1) end
    hint()
    go_on()
  end)
end

local function on_change()
  if current and revision(current.run_id) ~= current.revision then refresh() end
end

---@param command "apply"|"discard"
---@param part table `{hunks}`, `{files}` or nothing
function decide(command, part)
  if not current then return end
  if current.busy then
    -- All that is left may be more by then than what is shown now, so that has to be decided again.
    if next(part) then table.insert(current.waiting, { command, part }) end
    return
  end
  local run_id, before = current.run_id, current.revision
  current.busy = true
  head()
  client.call(command, vim.tbl_extend("force", { runId = run_id, digest = current.digest }, part), nil, refresh)
  vim.defer_fn(function()
    if current and current.run_id == run_id and current.busy and current.revision == before then
      notify.warn(texts.get("told.stale"))
      refresh()
    end
  end, PATIENCE)
end

local function decide_hunk(command)
  local file, hunk = cursor_place()
  if not file then return notify.tell(texts.get("told.no_hunk")) end
  if not (hunk and hunk.id) then return notify.tell(texts.get("told.whole")) end
  decide(command, { hunks = { hunk.id } })
end

local function decide_file(command)
  local file = cursor_place()
  if not file then return notify.tell(texts.get("told.no_hunk")) end
  decide(command, { files = { file.path } })
end

local function jump()
  local file, hunk = cursor_place()
  if not file then return notify.tell(texts.get("told.no_hunk")) end
  local here = client.of_run(current.run_id) or client.current()
  local path = vim.fs.joinpath(here and here.root_dir or vim.fn.getcwd(), file.path)
  if vim.startswith(file.path, "/") then path = file.path end
  if file.kind == "create" then return notify.tell(texts.get("told.no_file")) end
  local line = hunk and diff.source_line(current.lines, hunk, vim.api.nvim_win_get_cursor(0)[1])
  windows.jump(path, line)
end

--- Closed by the user: what is not decided stays, and they are told how to come back.
local function leave()
  if not current then return end
  local left = count_hunks()
  finish()
  notify.tell(texts.get("told.still", { count = left }))
end

local function keys()
  return {
    { "a", "review-accept", function() decide_hunk("apply") end },
    { "x", "review-discard", function() decide_hunk("discard") end },
    { "A", "review-accept-file", function() decide_file("apply") end },
    { "X", "review-discard-file", function() decide_file("discard") end },
    { "ga", "review-accept-all", function() decide("apply", {}) end },
    { "gx", "review-discard-all", function() decide("discard", {}) end },
    { "]c", "review-next", function() to_hunk(1) end },
    { "[c", "review-previous", function() to_hunk(-1) end },
    { "<CR>", "review-jump", jump },
    { "gf", "review-jump", jump },
    { "q", "review-close", leave },
  }
end

--- What the user types into a changed file may outdate what was tried on it.
local function on_typing(event)
  if not current or #current.proof == 0 or typing:is_active() then return end
  local run = store.state().runs[current.run_id]
  if not (run and run.staged[vim.api.nvim_buf_get_name(event.buf)]) then return end
  typing:start(TYPING, 0, vim.schedule_wrap(refresh))
end

local function watch(target)
  local group = vim.api.nvim_create_augroup("codeagent.review", {})
  vim.api.nvim_create_autocmd("CursorMoved", { group = group, buffer = target, callback = hint })
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI" }, { group = group, callback = on_typing })
  vim.api.nvim_create_autocmd("BufWinLeave", {
    group = group,
    buffer = target,
    callback = function() vim.schedule(leave) end,
  })
end

--- Goes to the review that is open, also in another tab page; false where its window is gone.
local function show_again()
  local window = vim.fn.win_findbuf(buffer())[1]
  return window ~= nil and pcall(vim.api.nvim_set_current_win, window)
end

--- Shows the changes of a run; `over` is called when the window closes, for whatever reason.
---@param run_id string
---@param over fun()?
function M.open(run_id, over)
  require("codeagent.highlights").define()
  if current and current.run_id == run_id and show_again() then
    local before = current.over or function() end
    current.over = over and function() before() over() end or before
    return
  end
  M.fetch(run_id, function(text, result)
    if text == "" then
      notify.tell(texts.get("told.no_changes"))
      return over and over()
    end
    if current and current.over then current.over() end
    current = {
      run_id = run_id,
      lines = {},
      files = {},
      proof = {},
      unneeded = {},
      revision = revision(run_id),
      busy = false,
      waiting = {},
      home = vim.api.nvim_get_current_win(),
      over = over,
    }
    local target = buffer()
    local place = { name = "review", filetype = "diff", position = config.get("review.position"), focus = true }
    local window = windows.show(target, vim.tbl_extend("force", place, { keys = keys() }))
    vim.wo[window].wrap = false
    vim.wo[window].cursorline = true
    draw(text, result)
    vim.api.nvim_win_set_cursor(window, { 1, 0 })
    to_hunk(1)
    hint()
    watch(target)
    store.listen("review", on_change)
  end)
end

--- Whether a review is open.
---@return boolean
function M.is_open()
  return current ~= nil
end

--- The server wants a review to be seen; not when it is our own question for the diff.
---@param run_id string
function M.shown(run_id)
  local count = asked_for[run_id] or 0
  if count > 0 then
    asked_for[run_id] = count > 1 and count - 1 or nil
    return
  end
  vim.schedule(function() M.open(run_id) end)
end

--- Opens the review of the run whose changes wait; asks which when there are several.
function M.pick()
  local state = store.state()
  local own = vim.tbl_filter(function(run) return next(run.staged) end, queries.own_runs(state))
  local runs = vim.list_extend(own, queries.attempts(state))
  if #runs == 0 then return M.pick_pending() end
  if #runs == 1 then return M.open(runs[1].run_id) end
  vim.ui.select(runs, {
    prompt = texts.get("pick.run"),
    kind = "codeagent",
    format_item = function(run) return ("%s (%d)"):format(queries.title(state, run), #queries.staged(run)) end,
  }, function(run)
    if run then M.open(run.run_id) end
  end)
end

--- The same for changes of which only the server knows, after a restart.
function M.pick_pending()
  client.call("pending", {}, function(result)
    for _, item in ipairs(result) do
      if item.kind == "changes" then return M.open(item.runId) end
    end
    notify.tell(texts.get("told.no_changes"))
  end)
end

return M
