--- The highlight groups. They link by default, so that every colour scheme fits and a user's own wins.

local M = {}

---@type { [1]: string, [2]: string, [3]: string }[] name, what it links to, where it is seen
M.GROUPS = {
  { "CodeAgentTitle", "Title", "What was asked, and the goal of a plan" },
  { "CodeAgentTool", "Identifier", "The name and subject of a tool call" },
  { "CodeAgentRunning", "DiagnosticInfo", "Something at work" },
  { "CodeAgentDone", "DiagnosticOk", "Something that ended well" },
  { "CodeAgentFailed", "DiagnosticError", "Something that failed" },
  { "CodeAgentQuestion", "DiagnosticWarn", "Something that waits for you" },
  { "CodeAgentMuted", "Comment", "Details" },
  { "CodeAgentSuggestion", "Comment", "A completion that you may take" },
  { "CodeAgentOffer", "DiagnosticHint", "What is offered about your own edits, at its line" },
  { "CodeAgentKey", "Special", "A key in a window's head" },
  { "CodeAgentReviewFile", "Directory", "A file's name in a review" },
  { "CodeAgentReviewHint", "NonText", "The keys at the hunk under the cursor" },
  { "CodeAgentAdded", "DiffAdd", "A line that a change would add, in the code and in a review" },
  { "CodeAgentRemoved", "DiffDelete", "A line that a change would remove" },
  { "CodeAgentStatusIdle", "StatusLine", "Status line: nothing at work" },
  { "CodeAgentStatusWorking", "StatusLine", "Status line: a run works" },
  { "CodeAgentStatusWaiting", "WarningMsg", "Status line: something waits for you" },
  { "CodeAgentStatusError", "ErrorMsg", "Status line: the last run failed" },
}

--- Of these only the ground counts, where there is one: the colours of the language stand on it.
local GROUNDS = { CodeAgentAdded = true, CodeAgentRemoved = true }

--- Defines them all; a group that is defined already stays.
function M.define()
  for _, group in ipairs(M.GROUPS) do
    local whole = vim.api.nvim_get_hl(0, { name = group[2], link = false })
    if GROUNDS[group[1]] and (whole.bg or whole.ctermbg) then
      vim.api.nvim_set_hl(0, group[1], { bg = whole.bg, ctermbg = whole.ctermbg, default = true })
    else
      vim.api.nvim_set_hl(0, group[1], { link = group[2], default = true })
    end
  end
end

return M
