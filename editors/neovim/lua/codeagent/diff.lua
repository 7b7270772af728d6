--- Reads the unified diff of a review: which lines are which file and which hunk. Pure.

local M = {}

---@class codeagent.Hunk
---@field id string? `path#id` as the server names it; nil when the file is decided as a whole
---@field first integer 1-based line of its header
---@field last integer 1-based last line
---@field old integer 1-based line in the file as it is now

---@class codeagent.File
---@field path string as the server shortens it
---@field kind "edit"|"create"|"delete"|"move"
---@field first integer 1-based
---@field last integer
---@field hunks codeagent.Hunk[]
---@field added integer
---@field removed integer

local function named(old, new)
  if old == "/dev/null" then return new:sub(3), "create" end
  if new == "/dev/null" then return old:sub(3), "delete" end
  return new:sub(3), old:sub(3) ~= new:sub(3) and "move" or "edit"
end

local function begins(lines, number)
  if lines[number]:match("^diff %-%-git ") then return true end
  local moved = number > 1 and lines[number - 1]:match("^rename to ")
  return not moved and lines[number]:match("^%-%-%- ") and (lines[number + 1] or ""):match("^%+%+%+ ") ~= nil
end

--- How many lines of the old and the new text a header announces.
local function counts(header)
  local old, old_count, new_count = header:match("^@@ %-(%d+),?(%d*) %+%d+,?(%d*) @@")
  if not old then return nil end
  return tonumber(old), tonumber(old_count) or 1, tonumber(new_count) or 1
end

---@param lines string[]
---@return codeagent.File[]
function M.parse(lines)
  local files, file, left_old, left_new = {}, nil, 0, 0
  local number = 1
  while number <= #lines do
    local line = lines[number]
    local inside = left_old > 0 or left_new > 0
    if not inside and begins(lines, number) then
      file = { path = "", kind = "edit", first = number, last = number, hunks = {}, added = 0, removed = 0 }
      files[#files + 1] = file
    end
    if file and not inside then
      if line:match("^rename to ") then
        file.path, file.kind = line:match("^rename to (.*)$"), "move"
      elseif line:match("^%+%+%+ ") and file.kind ~= "move" then
        file.path, file.kind = named(lines[number - 1]:sub(5), line:sub(5))
      end
      local old, old_count, new_count = counts(line)
      if old then
        left_old, left_new = old_count, new_count
        local id = file.kind == "edit" and line:match("^@@ .- @@ (.+#%x+)%s*$") or nil
        table.insert(file.hunks, { id = id, first = number, last = number, old = old })
      end
    elseif file and inside then
      local sign = line:sub(1, 1)
      if sign == "+" then
        left_new, file.added = left_new - 1, file.added + 1
      elseif sign == "-" then
        left_old, file.removed = left_old - 1, file.removed + 1
      elseif sign ~= "\\" then
        left_old, left_new = left_old - 1, left_new - 1
      end
    end
    if file and line ~= "" then
      file.last = number
      if #file.hunks > 0 then file.hunks[#file.hunks].last = number end
    end
    number = number + 1
  end
  return files
end

--- The file and hunk that hold a line, nil outside of them.
---@param files codeagent.File[]
---@param line integer 1-based
---@return codeagent.File?, codeagent.Hunk?
function M.at(files, line)
  for _, file in ipairs(files) do
    if line >= file.first and line <= file.last then
      for _, hunk in ipairs(file.hunks) do
        if line >= hunk.first and line <= hunk.last then return file, hunk end
      end
      return file, nil
    end
  end
end

--- The line in the file as it is now that a line of the diff stands for.
---@param lines string[]
---@param hunk codeagent.Hunk
---@param line integer
---@return integer
function M.source_line(lines, hunk, line)
  local source = hunk.old
  for number = hunk.first + 1, line - 1 do
    if lines[number]:sub(1, 1) ~= "+" then source = source + 1 end
  end
  return math.max(1, source)
end

return M
