--- Every sentence the plugin shows, once: key → English, Chinese. Not here: what the server says.

local M = {}

---@type table<string, { [1]: string, [2]: string }>
M.CATALOGUE = {
  ["ask.task"] = { "What shall be done? ", "需要做什么？" },
  ["ask.question"] = { "Your question: ", "你的问题：" },
  ["ask.instruction"] = { "How shall it be changed? ", "要怎样修改？" },
  ["ask.answer"] = { "Your answer: ", "你的回答：" },
  ["ask.steer"] = { "Say to the agent: ", "对代理说：" },
  ["ask.search"] = { "Search for: ", "搜索：" },
  ["pick.runs"] = { "Runs", "运行列表" },
  ["pick.which"] = { "Which run?", "哪次运行？" },
  ["pick.before"] = { "Back to before “{title}” ({count} runs)", "回到“{title}”之前（{count} 个运行）" },
  ["pick.both"] = { "Changes and talk: {files}", "更改和对话：{files}" },
  ["pick.changes"] = { "Changes only: {files}", "仅更改：{files}" },
  ["pick.talk"] = { "Talk only", "仅对话" },
  ["pick.no_files"] = { "no files", "没有文件" },
  ["pick.steer"] = { "Say something to it", "对它说点什么" },
  ["pick.stop"] = { "Stop it", "停止" },
  ["pick.leave_out"] = { "Leave it out", "取消排队" },
  ["pick.go_on"] = { "Go on with its session", "继续其会话" },
  ["pick.back"] = { "Go back to before it", "回到它之前" },
  ["pick.fork"] = { "New session from before it", "从它之前新建会话" },
  ["run.running"] = { "at work", "进行中" },
  ["run.waiting"] = { "waits", "等待您" },
  ["run.queued"] = { "queued", "排队中" },
  ["run.completed"] = { "done", "已完成" },
  ["run.failed"] = { "failed", "失败" },
  ["run.stopped"] = { "stopped", "已停止" },
  ["run.cancelled"] = { "cancelled", "已取消" },
  ["run.rejected"] = { "discarded", "已放弃" },
  ["run.interrupted"] = { "interrupted", "已中断" },
  ["run.withdrawn"] = { "left out", "已取消排队" },
  ["told.no_runs_yet"] = { "No runs yet.", "还没有运行。" },
  ["pick.own_command"] = { "Commands", "自定义命令" },
  ["told.no_commands"] = {
    "No commands yet: put a Markdown file into .codeagent/commands.",
    "还没有命令：请将 Markdown 文件放入 .codeagent/commands。",
  },
  ["told.not_found"] = { "Nothing found.", "没有找到。" },
  ["pick.command"] = { "CodeAgent", "CodeAgent" },
  ["pick.session"] = { "Continue which session?", "继续哪个会话？" },
  ["pick.model"] = { "Use which model?", "使用哪个模型？" },
  ["pick.mode"] = { "What may be done without asking?", "哪些操作无需询问？" },
  ["pick.pending"] = { "What waits for you", "等待你处理的事项" },
  ["pick.run"] = { "Changes of which run?", "哪次运行的更改？" },
  ["pick.delete"] = { "Delete this session for good?", "永久删除此会话？" },
  ["pick.yes"] = { "Delete", "删除" },
  ["pick.no"] = { "Keep", "保留" },
  ["mode.ask"] = { "ask: nothing is changed before you agree", "ask：未经同意不做任何更改" },
  ["mode.acceptEdits"] = { "acceptEdits: changes are applied, commands are asked about", "acceptEdits：直接应用更改，命令仍需询问" },
  ["mode.readOnly"] = { "readOnly: nothing is changed and nothing is run", "readOnly：不更改也不运行任何内容" },
  ["mode.bypass"] = { "bypass: everything without asking", "bypass：一切操作均不询问" },
  ["told.mode"] = { "Mode: {mode}", "模式：{mode}" },
  ["told.model"] = { "Model: {name}", "模型：{name}" },
  ["told.session"] = { "A new session begins with the next task.", "下一个任务将开始新会话。" },
  ["told.resumed"] = { "Continued: {title}", "已继续：{title}" },
  ["told.deleted"] = { "The session is deleted.", "会话已删除。" },
  ["told.nothing"] = { "Nothing waits for you.", "没有等待你处理的事项。" },
  ["told.no_changes"] = { "No changes wait for a decision.", "没有等待决定的更改。" },
  ["told.decided"] = { "Every change is decided.", "所有更改均已决定。" },
  ["told.still"] = { "{count} change(s) still wait: :CodeAgent review", "仍有 {count} 处更改等待决定：:CodeAgent review" },
  ["told.waits"] = { "CodeAgent waits for you: {title}  (:CodeAgent pending)", "CodeAgent 正在等待：{title}（:CodeAgent pending）" },
  ["told.no_plan"] = { "There is no plan.", "没有计划。" },
  ["told.no_runs"] = { "Nothing is at work.", "没有正在运行的任务。" },
  ["told.cancelled"] = { "Stopping {count} run(s).", "正在停止 {count} 个运行。" },
  ["told.copied"] = { "Copied {count} line(s).", "已复制 {count} 行。" },
  ["told.stale"] = { "The server has not taken the decision; the review is up to date again.", "服务器未接受该决定；已刷新更改视图。" },
  ["told.not_offered"] = { "This server does not offer {command}.", "此服务器不提供 {command}。" },
  ["told.no_hunk"] = { "There is no change under the cursor.", "光标下没有更改。" },
  ["told.whole"] = { "This file can only be decided as a whole: A or X.", "此文件只能整体决定：A 或 X。" },
  ["told.no_block"] = { "There is no code block under the cursor.", "光标下没有代码块。" },
  ["told.no_file"] = { "There is no file of that name.", "没有这个名称的文件。" },
  ["told.usage"] = { "Unknown: :CodeAgent {name}. Press <Tab> after :CodeAgent to see all.", "未知命令：:CodeAgent {name}。在 :CodeAgent 后按 <Tab> 查看全部。" },
  ["told.no_messages"] = { "No messages yet.", "暂无消息。" },
  ["told.restarted"] = { "The server has been restarted.", "服务器已重新启动。" },
  ["told.restored"] = { "The session is back; {count} thing(s) wait for you: :CodeAgent pending", "会话已恢复；有 {count} 项等待处理：:CodeAgent pending" },
  ["inline.on"] = { "Completion is switched on.", "补全已开启。" },
  ["inline.off"] = { "Completion is off.", "补全已关闭。" },
  ["inline.starting"] = { "Completion starts.", "补全正在启动。" },
  ["inline.ready"] = { "Completion is on.", "补全已开启。" },
  ["inline.asking"] = { "Completion is on.", "补全已开启。" },
  ["inline.unavailable"] = { "There is no completion.", "无法补全。" },
  ["server.none"] = {
    "No codeagent-lsp was found. Install it with `pipx install codeagent-lsp` or `uv tool install codeagent-lsp`, "
      .. "or set vim.g.codeagent = { cmd = { \"…\" } }. See :checkhealth codeagent.",
    "未找到 codeagent-lsp。请用 `pipx install codeagent-lsp` 或 `uv tool install codeagent-lsp` 安装，"
      .. "或设置 vim.g.codeagent = { cmd = { \"…\" } }。参见 :checkhealth codeagent。",
  },
  ["server.crashed"] = {
    "The server ended unexpectedly ({reason}). Your buffers are as they were. :CodeAgent restart starts it again; "
      .. ":CodeAgent log shows why.",
    "服务器意外退出（{reason}）。缓冲区保持不变。:CodeAgent restart 可重新启动；:CodeAgent log 查看原因。",
  },
  ["server.slow"] = { "The server does not answer.", "服务器没有响应。" },
  ["server.through"] = { "Starting codeagent-lsp through {how}; the first time may take a while.", "正在通过 {how} 启动 codeagent-lsp；首次可能需要一些时间。" },
  ["status.working"] = { "working", "工作中" },
  ["status.waiting"] = { "codeagent waits for you ({count})", "codeagent 等待你（{count}）" },
  ["status.changes"] = { "changes to review ({count})", "待查看的更改（{count}）" },
  ["status.error"] = { "codeagent failed", "codeagent 失败" },
  ["ended.failed"] = { "Failed.", "失败。" },
  ["ended.cancelled"] = { "Cancelled.", "已取消。" },
  ["ended.stopped"] = { "Stopped.", "已停止。" },
  ["ended.rejected"] = { "Discarded.", "已放弃。" },
  ["ended.lost"] = { "The server ended while this was at work.", "运行期间服务器退出。" },
  ["transcript.title"] = { "CodeAgent", "CodeAgent" },
  ["transcript.empty"] = { "Nothing yet. Start with  :CodeAgent run {task}", "暂无内容。用 :CodeAgent run {task} 开始" },
  ["transcript.open"] = { "waits for you (:CodeAgent pending)", "等待你处理（:CodeAgent pending）" },
  ["transcript.unanswered"] = { "(no answer)", "（未回答）" },
  ["transcript.changes"] = { "Changes to {files}", "对 {files} 的更改" },
  ["transcript.applied"] = { "Applied: {files}", "已应用：{files}" },
  ["transcript.undone"] = { "Undone: {files}", "已撤销：{files}" },
  ["transcript.discarded"] = { "Discarded: {files}", "已放弃：{files}" },
  ["transcript.outcome.partial"] = { "Applied only in part: {files}", "仅部分应用：{files}" },
  ["transcript.outcome.none"] = { "Nothing could be applied", "无法应用任何更改" },
  ["transcript.outcome.unknown"] = { "It is not known what was applied: look at the files", "不清楚应用了什么：请查看文件" },
  ["transcript.exit"] = { "exit code {code}, {seconds} s", "退出码 {code}，{seconds} 秒" },
  ["transcript.compacted"] = { "Older turns were summarised ({before} → {after} tokens)", "较早的对话已摘要（{before} → {after} 个令牌）" },
  ["keys.stop"] = { "stop", "停止" },
  ["keys.close"] = { "close", "关闭" },
  ["keys.copy"] = { "copy code", "复制代码" },
  ["keys.jump"] = { "go to file", "跳转" },
  ["keys.accept"] = { "accept", "接受" },
  ["keys.discard"] = { "discard", "放弃" },
  ["keys.file"] = { "whole file", "整个文件" },
  ["keys.all"] = { "everything", "全部" },
  ["keys.hunk"] = { "next", "下一处" },
  ["keys.retry"] = { "retry step", "重试" },
  ["keys.skip"] = { "skip step", "跳过" },
  ["keys.rollback"] = { "roll back", "回滚" },
  ["review.title"] = { "Review", "查看更改" },
  ["review.counts"] = { "{files} file(s), {hunks} change(s)", "{files} 个文件，{hunks} 处更改" },
  ["review.unneeded"] = { "not needed for the tests", "测试不需要" },
  ["review.busy"] = { "working…", "处理中…" },
  ["plan.title"] = { "Plan", "计划" },
  ["plan.proposed"] = { "waits for your approval", "等待批准" },
  ["plan.approved"] = { "approved", "已批准" },
  ["plan.running"] = { "at work", "执行中" },
  ["plan.completed"] = { "done", "已完成" },
  ["plan.failed"] = { "failed", "失败" },
  ["plan.cancelled"] = { "cancelled", "已取消" },
  ["plan.rejected"] = { "rejected", "已拒绝" },
}

--- The language of sentences: the option, else what the editor runs in.
---@return "en"|"zh-cn"
function M.language()
  local wanted = require("codeagent.config").get("language")
  if wanted ~= "auto" then return wanted end
  local locale = (vim.v.lang or ""):lower()
  return (vim.startswith(locale, "zh") or vim.startswith(locale, "chinese")) and "zh-cn" or "en"
end

--- A sentence, with the names in braces filled in.
---@param key string
---@param values table<string, any>?
---@return string
function M.get(key, values)
  local both = M.CATALOGUE[key] or error("no such sentence: " .. key)
  local sentence = both[M.language() == "zh-cn" and 2 or 1]
  return (sentence:gsub("{(%w+)}", function(name) return values and values[name] ~= nil and tostring(values[name]) or nil end))
end

return M
