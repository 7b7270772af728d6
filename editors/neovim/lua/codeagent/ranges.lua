--- The place in a file that a command is about, in the client's units.

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("codeagent.places")

--- Whether a command's range is the last visual selection, so that its columns count too.
local function is_selection(call, buffer)
  local first = vim.api.nvim_buf_get_mark(buffer, "<")
  local last = vim.api.nvim_buf_get_mark(buffer, ">")
  return vim.fn.visualmode() == "v" and call.line1 == first[1] and call.line2 == last[1]
end

--- What a `:CodeAgent` call is about, in bytes. Without a range it is the cursor: an empty range, which the server takes
--- for the symbol around it.
local function span(call, buffer)
  if call.range == 0 then
    local window = vim.fn.bufwinid(buffer)
    local cursor = vim.api.nvim_win_get_cursor(window > 0 and window or 0)
    local position = { line = cursor[1] - 1, character = cursor[2] }
    return { start = position, ["end"] = position }
  end
  if is_selection(call, buffer) then
    return vim.lsp.util.make_given_range_params(nil, nil, buffer, "utf-8").range
  end
  local text = vim.api.nvim_buf_get_lines(buffer, call.line2 - 1, call.line2, false)[1] or ""
  return {
    start = { line = call.line1 - 1, character = 0 },
    ["end"] = { line = call.line2 - 1, character = #text },
  }
end

--- Holds the place of a `:CodeAgent` call while the user is asked something: it moves with what is typed before it.
--- `take` returns it as it is then, nil if it is gone with the buffer, and `release` lets it go; each ends the holding.
---@param call table as a user command gets it
---@param buffer integer
---@return { take: (fun(encoding: string): { uri: string, range: lsp.Range }?), release: fun() }
function M.hold(call, buffer)
  local range = span(call, buffer)
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
    local row, column = unpack(vim.api.nvim_buf_get_extmark_by_id(buffer, NAMESPACE, id, {}))
    if not row then return nil end
    local text = vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ""
    return { line = row, character = vim.str_utfindex(text, encoding, math.min(column, #text), false) }
  end
  local function take(encoding)
    if not vim.api.nvim_buf_is_loaded(buffer) then return nil end
    local from, to = position(first, encoding), position(last, encoding)
    release()
    return from and to and { uri = vim.uri_from_bufnr(buffer), range = { start = from, ["end"] = to } } or nil
  end
  return { take = take, release = release }
end

--- The diagnostics in the lines of a place, as the server's commands take them.
---@param range lsp.Range
---@param buffer integer
---@return { line: integer, message: string }[]
function M.diagnostics(range, buffer)
  local found = {}
  for _, item in ipairs(vim.diagnostic.get(buffer)) do
    if item.lnum >= range.start.line and item.lnum <= range["end"].line then
      found[#found + 1] = { line = item.lnum + 1, message = item.message }
    end
  end
  return found
end

return M
