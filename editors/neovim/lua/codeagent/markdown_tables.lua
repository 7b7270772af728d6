--- Tables of Markdown with their columns below each other, counted in columns of the screen. Pure: lines in, lines out.
--- The last column is not padded, and a long cell sticks out: neither wraps every row in a narrow window.

local M = {}

local LEAST, MOST = 3, 30 -- columns of a padded cell

--- The cells of a row; `\|` is no border.
local function cells(line)
  local row = vim.trim(line):gsub("\\|", "\0"):gsub("^|", ""):gsub("|$", "")
  return vim.tbl_map(function(cell)
    return (vim.trim(cell):gsub("%z", "\\|"))
  end, vim.split(row, "|", { plain = true }))
end

--- How wide a cell is seen, where the signs of Markdown are hidden; inside of code there are none.
local function width(cell)
  local seen = 0
  local words = cell:gsub("(`+)(.-)%1", function(_, code)
    seen = seen + vim.fn.strdisplaywidth(code)
    return ""
  end)
  words = words:gsub("!?%[([^%]]*)%]%([^)]*%)", "%1"):gsub("%*+(%S[^*]*)%*+", "%1"):gsub("~~", "")
  return seen + vim.fn.strdisplaywidth(words)
end

--- What the second line of a table says about its columns; nil when it is none.
---@return string[]?
local function sides(line)
  if not line or not line:find("|", 1, true) or not line:find("^[%s|:%-]+$") then return nil end
  local found = {}
  for number, cell in ipairs(cells(line)) do
    local left, dashes, right = cell:match("^(:?)(%-+)(:?)$")
    if not dashes then return nil end
    found[number] = right == "" and "left" or left == "" and "right" or "center"
  end
  return found
end

local function padded(cell, wide, side)
  local room = math.max(0, wide - width(cell))
  local before = side == "right" and room or side == "center" and math.floor(room / 2) or 0
  return (" "):rep(before) .. cell .. (" "):rep(room - before)
end

--- One table: its rows, of which the second says on which side the text of each column is.
local function aligned(rows, side, indent)
  local wide = {}
  for position, row in ipairs(rows) do
    for number = 1, position == 2 and 0 or #side do
      wide[number] = math.max(wide[number] or LEAST, math.min(MOST, width(row[number] or "")))
    end
  end
  if side[#side] == "left" then wide[#side] = math.max(LEAST, width(rows[1][#side])) end
  local lines = {}
  for position, row in ipairs(rows) do
    local line = {}
    for number, where in ipairs(side) do
      local dashes = ("-"):rep(wide[number] - (where == "left" and 0 or where == "right" and 1 or 2))
      local rule = (where == "center" and ":" or "") .. dashes .. (where == "left" and "" or ":")
      line[number] = position == 2 and rule or padded(row[number] or "", wide[number], where)
    end
    lines[position] = (indent .. "| " .. table.concat(line, " | ")):gsub("%s+$", "")
  end
  return lines
end

--- Lines of Markdown with the tables in them aligned.
---@param lines string[]
---@return string[]
function M.aligned(lines)
  local found, at, fence = {}, 1, nil
  while at <= #lines do
    local head = lines[at]
    local mark = head:match("^%s*(```+)") or head:match("^%s*(~~~+)")
    if mark and (not fence or vim.startswith(mark, fence)) then fence = not fence and mark or nil end
    local side = not fence and head:find("|", 1, true) and sides(lines[at + 1]) or nil
    local rows = side and { cells(head), cells(lines[at + 1]) }
    if rows and #rows[1] == #side then
      at = at + 2
      while at <= #lines and lines[at]:find("|", 1, true) do
        rows[#rows + 1] = cells(lines[at])
        at = at + 1
      end
      vim.list_extend(found, aligned(rows, side, head:match("^%s*")))
    else
      found[#found + 1] = head
      at = at + 1
    end
  end
  return found
end

return M
