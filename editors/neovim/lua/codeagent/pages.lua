--- Pages to read once: the doctor's report, past messages, an exported session.

local client = require("codeagent.client")
local notify = require("codeagent.notify")
local texts = require("codeagent.texts")
local windows = require("codeagent.windows")

local M = {}

---@param name string
---@param filetype string
---@param lines string[]
function M.show(name, filetype, lines)
  require("codeagent.highlights").define()
  local target = windows.buffer(name, filetype)
  windows.write(target, 0, -1, lines)
  local window = windows.show(target, {
    name = name,
    filetype = filetype,
    position = "below",
    size = 0.4,
    focus = true,
    keys = { { "q", "page-close", function() windows.close(target) end } },
  })
  windows.head(window, texts.get("transcript.title") .. "  " .. name, { { "q", texts.get("keys.close") } })
end

local SIGNS = { ok = "✓", warning = "!", failed = "✗" }

--- One check of the doctor as lines: how it stands, and what to do about it.
---@param check { name: string, verdict: string, detail: string, advice: string }
---@return string[]
function M.check_lines(check)
  local lines = { ("%s %-12s %s"):format(SIGNS[check.verdict] or "·", check.name, (check.detail:gsub("%s+", " "))) }
  if check.advice ~= "" then lines[2] = "  → " .. check.advice:gsub("%s+", " ") end
  return lines
end

function M.doctor()
  client.call("doctor", {}, function(checks)
    local lines = {}
    for _, check in ipairs(checks) do
      vim.list_extend(lines, M.check_lines(check))
    end
    M.show("doctor", "codeagent-page", lines)
  end)
end

function M.messages()
  local all = notify.all()
  if #all == 0 then return notify.tell(texts.get("told.no_messages")) end
  local lines = {}
  for _, message in ipairs(all) do
    vim.list_extend(lines, vim.split(message, "\n", { plain = true }))
  end
  M.show("messages", "codeagent-page", lines)
end

---@param session_id string?
function M.export(session_id)
  client.call("session.export", { sessionId = session_id }, function(result)
    M.show("session " .. result.sessionId, "markdown", vim.split(result.markdown, "\n", { plain = true }))
  end)
end

return M
