--- What the server offers about the user's own edits, shown at its line: the change made last where it is due as well, and
--- a change of a definition that its callers do not follow yet. It comes as code lenses. Not here: the changes of runs
--- (`hunks.lua`), completions (`inline.lua`).

local client = require("codeagent.client")
local config = require("codeagent.config")
local keymaps = require("codeagent.keymaps")
local notify = require("codeagent.notify")
local texts = require("codeagent.texts")

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("codeagent.offers")
local METHOD = "textDocument/codeLens"
local KINDS = { "nextEdit", "finishChange" }
local PAUSE = 30 -- milliseconds in which more may change

---@class codeagent.Offer
---@field mark integer the extmark in its line
---@field title string
---@field accept string the command that takes it, without `codeagent.`
---@field dismiss string? the command that refuses it

local shown = {} ---@type table<integer, codeagent.Offer[]> by buffer, from above
local waits = {} ---@type table<integer, boolean> by buffer

--- The kind of an offer by its command, and whether that refuses it.
local function kind_of(command)
  for _, kind in ipairs(KINDS) do
    local rest = command:match("^codeagent%." .. kind .. "(.*)$")
    if rest == "" or rest == ".apply" then return kind, false end
    if rest == ".dismiss" then return kind, true end
  end
end

--- The offers among the lenses of a document, one for each line and kind.
local function offers_in(lenses)
  local found, known = {}, {}
  for _, lens in ipairs(lenses or {}) do
    local command = lens.command and lens.command.command or ""
    local kind, dismisses = kind_of(command)
    local place = kind and ("%s %d"):format(kind, lens.range.start.line)
    if place and not known[place] then
      known[place] = { row = lens.range.start.line }
      table.insert(found, known[place])
    end
    local name = command:gsub("^codeagent%.", "")
    if place and dismisses then known[place].dismiss = name end
    if place and not dismisses then
      known[place].accept = name
      known[place].title = lens.command.title:gsub(" · [^·]*$", "") -- behind it stands what the lens does
    end
  end
  return vim.tbl_filter(function(offer) return offer.accept ~= nil end, found)
end

local function draw(buffer, found)
  vim.api.nvim_buf_clear_namespace(buffer, NAMESPACE, 0, -1)
  local count, key = vim.api.nvim_buf_line_count(buffer), keymaps.key("offer-accept") or ":CodeAgent offer"
  shown[buffer] = {}
  for _, offer in ipairs(found) do
    if offer.row < count then
      offer.mark = vim.api.nvim_buf_set_extmark(buffer, NAMESPACE, offer.row, 0, {
        virt_text = { { (" %s "):format(offer.title), "CodeAgentOffer" }, { key, "CodeAgentReviewHint" } },
        virt_text_pos = "eol",
      })
      table.insert(shown[buffer], offer)
    end
  end
end

local function ask(buffer)
  local here = vim.lsp.get_clients({ name = client.NAME, bufnr = buffer })[1]
  if not here or not config.get("offers") then return end
  here:request(METHOD, { textDocument = vim.lsp.util.make_text_document_params(buffer) }, function(problem, result)
    if not problem and vim.api.nvim_buf_is_loaded(buffer) then draw(buffer, offers_in(result)) end
  end, buffer)
end

--- Asks what is offered in a buffer, a moment later, as changes come in groups.
local function look(buffer)
  if waits[buffer] then return end
  waits[buffer] = true
  vim.defer_fn(function()
    waits[buffer] = nil
    if vim.api.nvim_buf_is_loaded(buffer) then ask(buffer) end
  end, PAUSE)
end

--- Brings what is shown up to date: the server says that something else is offered.
function M.refresh()
  local seen = {}
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    seen[vim.api.nvim_win_get_buf(window)] = true
  end
  for buffer in pairs(vim.tbl_extend("keep", seen, shown)) do
    look(buffer)
  end
end

local function row_of(buffer, offer)
  return vim.api.nvim_buf_get_extmark_by_id(buffer, NAMESPACE, offer.mark, {})[1]
end

--- The offers of a buffer that is still there, with their rows.
local function placed(buffer)
  if not vim.api.nvim_buf_is_loaded(buffer) then return {} end
  local found = vim.tbl_map(function(offer) return { offer = offer, row = row_of(buffer, offer) } end, shown[buffer] or {})
  return vim.tbl_filter(function(item) return item.row ~= nil end, found)
end

--- The offer nearest to the cursor, else one in another buffer, and where it is.
local function nearest()
  local current, row = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
  local best
  for _, item in ipairs(placed(current)) do
    if not best or math.abs(item.row - row) < math.abs(best.row - row) then best = item end
  end
  if best then return best.offer, current, best.row end
  for buffer in pairs(shown) do
    local first = placed(buffer)[1]
    if first then return first.offer, buffer, first.row end
  end
end

local function with_nearest(use)
  return function()
    local offer, buffer, row = nearest()
    if not offer then return notify.tell(texts.get("told.no_offer")) end
    use(offer, buffer, row)
  end
end

--- To the next offer below the cursor, around the end of the buffer; where it has none, to one in another buffer.
local function go()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local here = placed(vim.api.nvim_get_current_buf())
  local next_one = vim.iter(here):find(function(item) return item.row > row end) or here[1]
  local offer, buffer, first = nearest()
  if not offer then return notify.tell(texts.get("told.no_offer")) end
  vim.cmd("normal! m'")
  if buffer ~= vim.api.nvim_get_current_buf() then vim.cmd.buffer(buffer) end
  vim.api.nvim_win_set_cursor(0, { (next_one and next_one.row or first) + 1, 0 })
  vim.cmd("normal! ^")
end

M.ACTIONS = {
  accept = with_nearest(function(offer)
    for buffer in pairs(shown) do -- at once: a question may come before the server has said so
      if vim.api.nvim_buf_is_loaded(buffer) then draw(buffer, {}) end
    end
    client.run(offer.accept, {}, offer.title, function(run_id)
      require("codeagent.reactions").started(offer.accept, run_id)
    end)
  end),
  dismiss = with_nearest(function(offer) client.call(offer.dismiss, {}) end),
  go = go,
}

--- Carries out `:CodeAgent offer {action}`.
---@param name string
function M.act(name)
  local action = M.ACTIONS[name]
  if not action then return notify.warn(texts.get("told.usage", { name = "offer " .. name })) end
  action()
end

--- How many offers are shown in a buffer.
---@param buffer integer
---@return integer
function M.count(buffer)
  return #placed(buffer)
end

--- Whether something is offered in any buffer.
---@return boolean
function M.any()
  return vim.iter(pairs(shown)):any(function(buffer) return #placed(buffer) > 0 end)
end

--- Begins to show offers.
function M.begin()
  vim.api.nvim_create_autocmd({ "BufWinEnter", "LspAttach" }, {
    group = vim.api.nvim_create_augroup("codeagent.offers", {}),
    callback = function(event) look(event.buf) end,
  })
end

return M
