--- Syntax colours of text that is in no buffer of its own: the lines of a change, in a review and as virtual text. By the
--- tree-sitter parser of the language where Neovim has one, else by its syntax file. Not here: where they are put.

local M = {}

local MOST = 400 -- lines; reading the colours of more would be felt
local LONGEST = 300 -- bytes of a line that are coloured

---@class codeagent.Span a stretch of a line: `from` and `to` are bytes, `to` is exclusive
---@field from integer
---@field to integer
---@field group string

local scratch ---@type integer?

--- The file type of a path, as Neovim would detect it.
---@param path string
---@return string
function M.filetype(path)
  return vim.filetype.match({ filename = path }) or ""
end

---@return table<integer, codeagent.Span[]>?
local function by_tree(lines, filetype)
  local language = vim.treesitter.language.get_lang(filetype)
  if not language or not pcall(vim.treesitter.language.add, language) then return nil end
  local text = table.concat(lines, "\n")
  local ok, parser = pcall(vim.treesitter.get_string_parser, text, language)
  local query = ok and parser and vim.treesitter.query.get(language, "highlights")
  if not query then return nil end
  local spans = {}
  for id, node in query:iter_captures(parser:parse()[1]:root(), text) do
    local name = query.captures[id]
    local first, from, last, to = node:range()
    for row = first, name:sub(1, 1) == "_" and first - 1 or math.min(last, #lines - 1) do
      spans[row + 1] = spans[row + 1] or {}
      table.insert(spans[row + 1], {
        from = row == first and from or 0,
        to = row == last and to or #lines[row + 1],
        group = ("@%s.%s"):format(name, language),
      })
    end
  end
  return spans
end

--- What a syntax file makes of lines that stand in a buffer of ours for a moment.
local function by_syntax(lines, filetype)
  if not (scratch and vim.api.nvim_buf_is_valid(scratch)) then scratch = vim.api.nvim_create_buf(false, true) end
  vim.api.nvim_buf_set_lines(scratch, 0, -1, false, lines)
  local spans = {}
  vim.api.nvim_buf_call(scratch, function()
    if vim.bo.syntax ~= filetype then vim.bo.syntax = filetype end
    for row, line in ipairs(lines) do
      local found, open = {}, nil
      for column = 1, math.min(#line, LONGEST) do
        local group = vim.fn.synIDattr(vim.fn.synID(row, column, 1), "name")
        if not (open and open.group == group) then
          open = { from = column - 1, to = column, group = group }
          if group ~= "" then found[#found + 1] = open end
        end
        open.to = column
      end
      spans[row] = found
    end
  end)
  return spans
end

--- The coloured stretches of lines, by line; where they overlap, later ones win.
---@param lines string[]
---@param filetype string
---@return table<integer, codeagent.Span[]>
function M.of(lines, filetype)
  if filetype == "" or #lines > MOST then return {} end
  local ok, spans = pcall(by_tree, lines, filetype)
  if ok and spans then return spans end
  ok, spans = pcall(by_syntax, lines, filetype)
  return ok and spans or {}
end

--- A line as pieces of virtual text, each with its own groups over `below`.
---@param line string
---@param spans codeagent.Span[]?
---@param below string
---@return { [1]: string, [2]: string[] }[]
function M.pieces(line, spans, below)
  local groups, pieces = {}, {}
  for _, span in ipairs(spans or {}) do
    for column = span.from + 1, math.min(span.to, #line) do
      groups[column] = span.group
    end
  end
  local from = 1
  for column = 1, #line do
    if column == #line or groups[column] ~= groups[column + 1] then
      pieces[#pieces + 1] = { line:sub(from, column), groups[column] and { below, groups[column] } or { below } }
      from = column + 1
    end
  end
  return pieces
end

return M
