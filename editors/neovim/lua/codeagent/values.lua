--- Changing values without changing them: every function gives a new table and leaves the old one alone. Pure.

local M = {}

---@generic T: table
---@param value T
---@return T
function M.copy(value)
  local result = {}
  for key, item in pairs(value) do
    result[key] = item
  end
  return result
end

--- The same with some keys set.
function M.with(value, changes)
  local result = M.copy(value)
  for key, item in pairs(changes) do
    result[key] = item
  end
  return result
end

--- A list with one more item.
function M.appended(list, item)
  local result = M.copy(list)
  result[#result + 1] = item
  return result
end

--- A list with another item at a position.
function M.replaced(list, position, item)
  local result = M.copy(list)
  result[position] = item
  return result
end

--- The items of a list for which `keep` holds.
function M.filtered(list, keep)
  local result = {}
  for _, item in ipairs(list) do
    if keep(item) then result[#result + 1] = item end
  end
  return result
end

return M
