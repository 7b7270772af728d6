--- The completion that is shown at the cursor, as virtual text: showing, typing along it, taking it or a part of it.
--- There is at most one. Not here: where it comes from (`inline.lua`).

local M = {}

local space = vim.api.nvim_create_namespace("codeagent.suggestion")

---@class codeagent.Suggestion
---@field buffer integer
---@field row integer of the cursor, from 0
---@field column integer of the cursor, in bytes
---@field line string the cursor's line, without the suggestion
---@field text string what is suggested
---@field tick integer the buffer's `changedtick`

---@type codeagent.Suggestion?
local shown

-- A word with what stands before it, a run of other characters, or the break of a line with the next line's indentation.
local PARTS = {
  word = { "^[ \t]*[%w_\128-\255]+", "^[ \t]*[^%w_%s\128-\255]+", "^\n[ \t]*[^\n]?[%w_\128-\255]*" },
  line = { "^\n[^\n]*", "^[^\n]+" },
  all = { "^.+" },
}

--- The part of a text that is taken first.
---@param text string
---@param part "all"|"word"|"line"
---@return string
function M.part(text, part)
  for _, pattern in ipairs(PARTS[part]) do
    local found = text:match(pattern)
    if found then return found end
  end
  return text
end

--- Where the cursor is: the row from 0, the column in bytes, and the line.
function M.cursor()
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  return row - 1, column, vim.api.nvim_get_current_line()
end

--- A line with its tabs as wide as they will be in the buffer, from a column of the screen on: virtual text has none.
local function expanded(line, from)
  local shown = ""
  for piece, tab in line:gmatch("([^\t]*)(\t?)") do
    shown = shown .. piece
    if tab ~= "" then
      local at = from + vim.fn.strdisplaywidth(shown, from)
      shown = shown .. (" "):rep(vim.fn.strdisplaywidth("\t", at))
    end
  end
  return shown
end

local function draw()
  vim.api.nvim_buf_clear_namespace(shown.buffer, space, 0, -1)
  local lines = vim.split(shown.text, "\n")
  for number, line in ipairs(lines) do
    local before = number == 1 and vim.fn.strdisplaywidth(shown.line:sub(1, shown.column)) or 0
    lines[number] = expanded(line, before)
  end
  local below = {}
  for number = 2, #lines do
    below[#below + 1] = { { lines[number] == "" and " " or lines[number], "CodeAgentSuggestion" } }
  end
  vim.api.nvim_buf_set_extmark(shown.buffer, space, shown.row, shown.column, {
    virt_text = lines[1] ~= "" and { { lines[1], "CodeAgentSuggestion" } } or nil,
    virt_text_pos = "inline",
    virt_lines = #below > 0 and below or nil,
  })
end

--- Shows a text at the cursor.
---@param text string
function M.show(text)
  local row, column, line = M.cursor()
  local buffer, tick = vim.api.nvim_get_current_buf(), vim.api.nvim_buf_get_changedtick(0)
  shown = { buffer = buffer, row = row, column = column, line = line, text = text, tick = tick }
  draw()
end

--- Hides what is shown.
function M.clear()
  if shown and vim.api.nvim_buf_is_valid(shown.buffer) then
    vim.api.nvim_buf_clear_namespace(shown.buffer, space, 0, -1)
  end
  shown = nil
end

--- What is suggested, nil for nothing.
---@return string?
function M.text()
  return shown and shown.text
end

--- After a key: keeps the rest when what is shown was typed along. False when nothing of it is left; it is hidden then.
---@return boolean
function M.typed()
  if not shown then return false end
  local row, column, line = M.cursor()
  local typed = line:sub(shown.column + 1, column)
  local along = vim.api.nvim_get_current_buf() == shown.buffer
    and row == shown.row
    and column >= shown.column
    and line:sub(1, shown.column) == shown.line:sub(1, shown.column)
    and line:sub(column + 1) == shown.line:sub(shown.column + 1)
    and vim.startswith(shown.text, typed)
    and #typed < #shown.text
  if not along then
    M.clear()
    return false
  end
  local tick = vim.api.nvim_buf_get_changedtick(0)
  shown = vim.tbl_extend("force", shown, { column = column, line = line, text = shown.text:sub(#typed + 1), tick = tick })
  draw()
  return true
end

--- Whether the cursor is still where the text is shown.
---@return boolean
function M.at_cursor()
  if not shown or vim.api.nvim_get_current_buf() ~= shown.buffer then return false end
  local row, column = M.cursor()
  return row == shown.row and column == shown.column
end

--- Whether the cursor has left the text that is shown, without a change of the buffer, which tells by itself.
---@return boolean
function M.left()
  local here = shown and shown.buffer == vim.api.nvim_get_current_buf()
  if not here then return shown ~= nil end
  return not M.at_cursor() and vim.api.nvim_buf_get_changedtick(0) == shown.tick
end

--- Puts a part of what is shown into the buffer, as a change that one undo takes back. False when nothing is shown.
---@param part "all"|"word"|"line"
---@return boolean
function M.accept(part)
  if not M.at_cursor() then return false end
  local taken = M.part(shown.text, part)
  local rest = shown.text:sub(#taken + 1)
  local lines = vim.split(taken, "\n", { plain = true })
  local row, column = shown.row, shown.column
  M.clear()
  vim.bo.undolevels = vim.bo.undolevels -- what was typed before stays when this is undone
  vim.api.nvim_buf_set_text(0, row, column, row, column, lines)
  local last = #lines == 1 and column + #taken or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, last })
  if rest ~= "" then M.show(rest) end
  return true
end

return M
