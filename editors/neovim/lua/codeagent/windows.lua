--- The windows of the plugin: scratch buffers with a head line, opened where the user wants them.

local M = {}

---@class codeagent.Window
---@field name string shown as the buffer's name
---@field filetype string
---@field position "right"|"left"|"below"|"tab"
---@field size number? share of the screen
---@field focus boolean
---@field keys { [1]: string, [2]: string, [3]: fun() }[]? keys, `<Plug>` name, what it does

---@param name string
---@param filetype string
---@return integer buffer
function M.buffer(name, filetype)
  local full = "codeagent://" .. name
  local buffer = vim.fn.bufnr("^" .. vim.fn.escape(full, "[]*?\\") .. "$")
  if buffer >= 0 and vim.api.nvim_buf_is_valid(buffer) then return buffer end
  buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, full)
  vim.bo[buffer].bufhidden = "hide"
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].undolevels = -1
  vim.b[buffer].codeagent = true
  vim.bo[buffer].filetype = filetype
  return buffer
end

--- The window of this tab page that shows a buffer.
---@param buffer integer
---@return integer?
function M.showing(buffer)
  return vim.iter(vim.api.nvim_tabpage_list_wins(0)):find(function(window)
    return vim.api.nvim_win_get_buf(window) == buffer
  end)
end

local SPLITS = { right = "right", left = "left", below = "below" }

--- Shows a buffer; the window it is shown in. An open window is used again.
---@param buffer integer
---@param look codeagent.Window
---@return integer window
function M.show(buffer, look)
  local window = M.showing(buffer)
  if not window and look.position == "tab" then
    vim.cmd("tabnew")
    window = vim.api.nvim_get_current_win()
    local empty = vim.api.nvim_get_current_buf()
    vim.api.nvim_win_set_buf(window, buffer)
    if vim.api.nvim_buf_get_name(empty) == "" then vim.api.nvim_buf_delete(empty, { force = true }) end
  elseif not window then
    local size = math.min(0.9, math.max(0.1, look.size or 0.5))
    local below = look.position == "below"
    window = vim.api.nvim_open_win(buffer, look.focus, {
      split = SPLITS[look.position],
      win = -1,
      [below and "height" or "width"] = math.floor((below and vim.o.lines or vim.o.columns) * size),
    })
  elseif look.focus then
    vim.api.nvim_set_current_win(window)
  end
  M.plain(window)
  for _, key in ipairs(look.keys or {}) do
    vim.keymap.set("n", "<Plug>(codeagent-" .. key[2] .. ")", key[3], { buffer = buffer, nowait = true })
    vim.keymap.set("n", key[1], key[3], { buffer = buffer, nowait = true, desc = key[2] })
  end
  return window
end

--- No line numbers, signs or folds: this is a page to read.
---@param window integer
function M.plain(window)
  local options = {
    number = false,
    relativenumber = false,
    signcolumn = "no",
    foldcolumn = "0",
    foldenable = false,
    wrap = true,
    linebreak = true,
    breakindent = true,
    list = false,
    spell = false,
    cursorline = false,
    conceallevel = 2,
    concealcursor = "nc",
    winfixbuf = true,
    fillchars = "eob: ",
  }
  for name, value in pairs(options) do
    vim.api.nvim_set_option_value(name, value, { scope = "local", win = window })
  end
end

--- Replaces lines of a buffer that the user cannot change.
---@param buffer integer
---@param first integer 0-based
---@param last integer exclusive; -1 is the end
---@param lines string[]
function M.write(buffer, first, last, lines)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, first, last, false, lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

--- The head of a window: a title on the left, keys with their meaning on the right, as many as there is room for.
---@param window integer
---@param title string
---@param keys { [1]: string, [2]: string }[] the most useful first
function M.head(window, title, keys)
  local function literal(words) return (words:gsub("%%", "%%%%")) end
  local room = vim.api.nvim_win_get_width(window) - vim.fn.strdisplaywidth(title) - 3
  local hints = {}
  for _, key in ipairs(keys) do
    room = room - vim.fn.strdisplaywidth(key[1] .. " " .. key[2]) - 2
    if room < 0 then break end
    hints[#hints + 1] = "%#CodeAgentKey#" .. literal(key[1]) .. "%* " .. literal(key[2])
  end
  local bar = " %#CodeAgentTitle#" .. literal(title) .. "%*%<%=" .. table.concat(hints, "  ") .. " "
  if vim.wo[window].winbar ~= bar then vim.wo[window].winbar = bar end
end

--- Closes the window of a buffer; the last one of a tab page takes the tab page with it.
---@param buffer integer
function M.close(buffer)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    local ok = pcall(vim.api.nvim_win_close, window, true)
    if not ok then vim.api.nvim_win_call(window, function()
      vim.wo.winfixbuf = false
      vim.cmd("enew")
    end) end
  end
end

--- Goes to a place in a file, in a window that is none of ours.
---@param path string
---@param line integer? 1-based
function M.jump(path, line)
  local target = vim.iter(vim.api.nvim_tabpage_list_wins(0)):find(function(window)
    local buffer = vim.api.nvim_win_get_buf(window)
    return vim.bo[buffer].buftype == "" and vim.api.nvim_win_get_config(window).relative == ""
  end)
  if target then
    vim.api.nvim_set_current_win(target)
  elseif #vim.api.nvim_list_tabpages() > 1 then
    vim.cmd("tabprevious")
    return M.jump_here(path, line)
  else
    vim.cmd("topleft vnew")
  end
  M.jump_here(path, line)
end

---@param path string
---@param line integer?
function M.jump_here(path, line)
  vim.cmd("normal! m'")
  if vim.api.nvim_buf_get_name(0) ~= path then vim.cmd.edit(vim.fn.fnameescape(path)) end
  if line then
    vim.api.nvim_win_set_cursor(0, { math.max(1, math.min(line, vim.api.nvim_buf_line_count(0))), 0 })
    vim.cmd("normal! zz")
  end
end

return M
