--- The box below the transcript in which a task is written, or what is said to a run at work. The server completes in it,
--- as the box is one of its prompt documents (`:CodeAgent prompt` opens others as files). Not here: what is sent.

local client = require("codeagent.client")
local queries = require("codeagent.queries")
local store = require("codeagent.store")
local texts = require("codeagent.texts")
local windows = require("codeagent.windows")

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("codeagent.input")
local LOW, HIGH = 3, 12 -- lines of the window
local PAUSE = 80 -- milliseconds of typing after which names are completed
local KEPT = 100 -- words in the history

local boxes = {} ---@type table<integer, integer> buffers by client
local asked_by ---@type integer? the client that has been asked for a document for its box
local history = {} ---@type string[] oldest first
local at = 0 ---@type integer how far back in it the user is; 0 is what they were writing
local draft = ""

local function is_box(buffer)
  return vim.b[buffer].codeagent_box ~= nil
end

local function written(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
end

--- Whether the user is in an empty box, so that a question does not disturb them.
---@return boolean
function M.is_idle()
  local buffer = vim.api.nvim_get_current_buf()
  return is_box(buffer) and written(buffer) == ""
end

--- The run that words are said to: the newest one at work of this client.
local function at_work(buffer)
  local _, working = queries.latest(store.state(), vim.b[buffer].codeagent_box)
  return working
end

--- Keys in the head, a hint in an empty box, and as many lines as are written.
local function dress(buffer)
  vim.api.nvim_buf_clear_namespace(buffer, NAMESPACE, 0, -1)
  local working = at_work(buffer)
  if written(buffer) == "" then
    vim.api.nvim_buf_set_extmark(buffer, NAMESPACE, 0, 0, {
      virt_text = { { texts.get(working and "input.say" or "input.task"), "CodeAgentMuted" } },
      virt_text_pos = "overlay",
    })
  end
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    windows.head(window, "› " .. texts.get(working and "input.to_run" or "input.title"), {
      { "<CR>", texts.get(working and "keys.say" or "keys.send") },
      { "M-<CR>", texts.get("keys.queue") },
      { "^J", texts.get("keys.line") },
      { "@ /", texts.get("keys.complete") },
    })
    local wanted = math.min(HIGH, math.max(LOW, vim.api.nvim_buf_line_count(buffer))) + 1
    if vim.api.nvim_win_get_height(window) ~= wanted then vim.api.nvim_win_set_height(window, wanted) end
  end
end

local function write(buffer, words)
  local lines = vim.split(words, "\n", { plain = true })
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.api.nvim_win_set_cursor(window, { #lines, #lines[#lines] })
  end
  dress(buffer)
end

--- Sends what is written: to the run at work, else as a task; with `queue`, as a task that waits for its turn.
local function send(queue)
  local buffer = vim.api.nvim_get_current_buf()
  local words, working = vim.trim(written(buffer)), at_work(buffer)
  if words == "" then return end
  table.insert(history, words)
  if #history > KEPT then table.remove(history, 1) end
  at, draft = 0, ""
  write(buffer, "")
  local title = words:match("[^\n]*")
  if working and not queue then return client.say(working.run_id, words) end
  client.run(queue and "enqueue" or "run", { task = words }, title, function(run_id)
    local run = store.state().runs[run_id]
    require("codeagent.transcript").open({ focus = false, session = run and run.session_id })
  end)
end

--- Enter takes what the menu offers, and sends where there is no menu.
local function enter()
  if vim.fn.pumvisible() == 1 and vim.fn.complete_info({ "selected" }).selected >= 0 then
    return vim.api.nvim_feedkeys(vim.keycode("<C-y>"), "ni", false)
  end
  send(false)
end

--- What was sent before (1) or after (-1), where the cursor is on the first or the last line.
local function browse(step, keys)
  return function()
    local buffer, row = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1]
    local edge = step > 0 and 1 or vim.api.nvim_buf_line_count(buffer)
    local wanted = at + step
    if vim.fn.pumvisible() == 1 or row ~= edge then
      return vim.api.nvim_feedkeys(vim.keycode(keys), "ni", false)
    end
    if wanted < 0 or wanted > #history then return end
    if at == 0 then draft = written(buffer) end
    at = wanted
    write(buffer, at == 0 and draft or history[#history - at + 1])
  end
end

local function close()
  windows.close(vim.api.nvim_get_current_buf())
end

local function map(buffer)
  local function both(modes, key, name, action)
    for _, mode in ipairs(modes) do
      vim.keymap.set(mode, ("<Plug>(codeagent-input-%s)"):format(name), action, { buffer = buffer })
      vim.keymap.set(mode, key, action, { buffer = buffer, desc = "input-" .. name })
    end
  end
  both({ "i", "n" }, "<CR>", "send", enter)
  both({ "i", "n" }, "<M-CR>", "queue", function() send(true) end)
  both({ "i" }, "<Up>", "older", browse(1, "<Up>"))
  both({ "i" }, "<Down>", "newer", browse(-1, "<Down>"))
  both({ "n" }, "q", "close", close)
end

--- The name of a file or a command that is being typed at the cursor; nil for other words.
local function name_at_cursor()
  local before = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
  local first = vim.api.nvim_win_get_cursor(0)[1] == 1 and before:match("^/%S*$")
  return first or (" " .. before):match("%s([@#]%S*)$")
end

local taken ---@type string? the name that was chosen last: it is not asked for again

--- Has the server complete a name also where no letter of its own has begun that: it was not there yet, or knew none.
local function complete_later(buffer)
  vim.defer_fn(function()
    if vim.api.nvim_get_current_buf() ~= buffer or vim.api.nvim_get_mode().mode ~= "i" then return end
    local name = name_at_cursor()
    if not name then taken = nil end
    if name and name ~= taken and vim.fn.pumvisible() == 0 then vim.lsp.completion.get() end
  end, PAUSE)
end

--- The box of a client; its server is asked for a document, so that it completes in it.
local function box(of)
  local known = boxes[of.id]
  if known and vim.api.nvim_buf_is_valid(known) then return known end
  local buffer = vim.api.nvim_create_buf(false, true)
  boxes[of.id] = buffer
  vim.b[buffer].codeagent, vim.b[buffer].codeagent_box = true, of.id
  vim.bo[buffer].bufhidden = "hide"
  vim.bo[buffer].filetype = "codeagent-input"
  vim.bo[buffer].completeopt = "menuone,noinsert,popup"
  map(buffer)
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "TextChangedP" }, {
    buffer = buffer,
    callback = function(event)
      dress(buffer)
      if event.event == "TextChangedI" then complete_later(buffer) end
    end,
  })
  vim.api.nvim_create_autocmd("CompleteDone", {
    buffer = buffer,
    callback = function() taken = name_at_cursor() end,
  })
  asked_by = of.id
  local request = { title = "prompt", command = "codeagent.prompt", arguments = { vim.empty_dict() } }
  of:exec_cmd(request, nil, function(problem)
    if problem then asked_by = nil end
  end)
  return buffer
end

--- Takes a document that the server has made for the box; false for one that is none.
---@param path string
---@param client_id integer
---@return boolean
function M.takes(path, client_id)
  local buffer = boxes[client_id]
  if asked_by ~= client_id or not (buffer and vim.api.nvim_buf_is_valid(buffer)) then return false end
  asked_by = nil
  vim.api.nvim_buf_set_name(buffer, path)
  if vim.lsp.buf_attach_client(buffer, client_id) then
    vim.lsp.completion.enable(true, client_id, buffer, { autotrigger = true })
    complete_later(buffer)
  end
  return true
end

--- Opens the transcript with the box below it, ready to be written into.
function M.open()
  client.ensure(function(here)
    require("codeagent.highlights").define()
    local transcript = require("codeagent.transcript")
    local above = transcript.open({ focus = false })
    local buffer = box(here)
    local window = windows.showing(buffer)
    if window then
      vim.api.nvim_set_current_win(window)
    else
      window = vim.api.nvim_open_win(buffer, true, { split = "below", win = above, height = LOW + 1 })
      windows.plain(window)
      vim.wo[window].winfixheight, vim.wo[window].conceallevel = true, 0
    end
    dress(buffer)
    store.listen("input", function()
      if vim.api.nvim_buf_is_valid(buffer) then dress(buffer) end
    end)
    vim.cmd.startinsert({ bang = true })
  end)
end

return M
