--- The place in a file that a command is about, in the client's units.

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("codeagent.places")

--- Whether a command's range is the last visual selection, so that its columns count too.
local function is_selection(call, buffer)
  local first = vim.api.nvim_buf_get_mark(buffer, "<")
  local last = vim.api.nvim_buf_get_mark(buffer, ">")
  return vim.fn.visualmode() == "v" and call.line1 == first[1] and call.line2 == last[1]
end

local function of_lines(buffer, first, last, encoding)
  local text = vim.api.nvim_buf_get_lines(buffer, last - 1, last, false)[1] or ""
  return {
    start = { line = first - 1, character = 0 },
    ["end"] = { line = last - 1, character = vim.str_utfindex(text, encoding) },
  }
end

--- `{uri, range}` for a `:CodeAgent` call. Without a range it is the cursor: an empty range, which the server takes
--- for the symbol around it.
---@param call table as a user command gets it
---@param buffer integer
---@param encoding "utf-8"|"utf-16"|"utf-32"
---@return { uri: string, range: lsp.Range }
function M.place(call, buffer, encoding)
  local uri = vim.uri_from_bufnr(buffer)
  if call.range == 0 then
    local window = vim.fn.bufwinid(buffer)
    local cursor = vim.api.nvim_win_get_cursor(window > 0 and window or 0)
    local text = vim.api.nvim_buf_get_lines(buffer, cursor[1] - 1, cursor[1], false)[1] or ""
    local column = vim.str_utfindex(text, encoding, math.min(cursor[2], #text), false)
    local position = { line = cursor[1] - 1, character = column }
    return { uri = uri, range = { start = position, ["end"] = position } }
  end
  if is_selection(call, buffer) then
    local range = vim.lsp.util.make_given_range_params(nil, nil, buffer, encoding).range
    return { uri = uri, range = range }
  end
  return { uri = uri, range = of_lines(buffer, call.line1, call.line2, encoding) }
end

--- Holds a place while the user is asked something: it moves with what is typed before it. `take` returns it as it is
--- then, nil if the buffer is gone, and `release` lets it go; each ends the holding.
---@param call table as a user command gets it
---@param buffer integer
---@return { take: (fun(encoding: string): { uri: string, range: lsp.Range }?), release: fun() }
function M.hold(call, buffer)
  local range = M.place(call, buffer, "utf-8").range -- its columns are bytes then
  local function mark(position, gravity)
    local options = { right_gravity = gravity, strict = false }
    return vim.api.nvim_buf_set_extmark(buffer, NAMESPACE, position.line, position.character, options)
  end
  local empty = vim.deep_equal(range.start, range["end"])
  local first, last = mark(range.start, true), mark(range["end"], empty)
  local function release()
    if not vim.api.nvim_buf_is_valid(buffer) then return end
    vim.api.nvim_buf_del_extmark(buffer, NAMESPACE, first)
    vim.api.nvim_buf_del_extmark(buffer, NAMESPACE, last)
  end
  local function position(id, encoding)
    local found = vim.api.nvim_buf_get_extmark_by_id(buffer, NAMESPACE, id, {})
    local text = vim.api.nvim_buf_get_lines(buffer, found[1], found[1] + 1, false)[1] or ""
    return { line = found[1], character = vim.str_utfindex(text, encoding, math.min(found[2], #text), false) }
  end
  local function take(encoding)
    if not vim.api.nvim_buf_is_valid(buffer) then return nil end
    local now = { start = position(first, encoding), ["end"] = position(last, encoding) }
    release()
    return { uri = vim.uri_from_bufnr(buffer), range = now }
  end
  return { take = take, release = release }
end

--- The diagnostics inside a place, as the server's commands take them.
---@param call table
---@param buffer integer
---@return { line: integer, message: string }[]
function M.diagnostics(call, buffer)
  local found = {}
  local here = vim.api.nvim_win_get_cursor(0)[1]
  local first, last = call.range > 0 and call.line1 or here, call.range > 0 and call.line2 or here
  for _, item in ipairs(vim.diagnostic.get(buffer)) do
    if item.lnum + 1 >= first and item.lnum + 1 <= last then
      found[#found + 1] = { line = item.lnum + 1, message = item.message }
    end
  end
  return found
end

return M
