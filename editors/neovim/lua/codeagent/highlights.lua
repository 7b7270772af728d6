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
  { "CodeAgentKey", "Special", "A key in a window's head" },
  { "CodeAgentReviewFile", "Directory", "A file's name in a review" },
  { "CodeAgentReviewHint", "NonText", "The keys at the hunk under the cursor" },
  { "CodeAgentStatusIdle", "StatusLine", "Status line: nothing at work" },
  { "CodeAgentStatusWorking", "StatusLine", "Status line: a run works" },
  { "CodeAgentStatusWaiting", "WarningMsg", "Status line: something waits for you" },
  { "CodeAgentStatusError", "ErrorMsg", "Status line: the last run failed" },
}

--- Defines them all; a group that is defined already stays.
function M.define()
  for _, group in ipairs(M.GROUPS) do
    vim.api.nvim_set_hl(0, group[1], { link = group[2], default = true })
  end
end

return M
