--- `:CodeAgent` and its subcommands, each once: name, arguments, meaning, what it does. The help page is made from
--- this. Heavy parts are loaded when they are called.

local client = require("codeagent.client")
local notify = require("codeagent.notify")
local ranges = require("codeagent.ranges")
local store = require("codeagent.store")
local texts = require("codeagent.texts")

local M = {}

---@class codeagent.Sub
---@field name string
---@field args string how the arguments look in the help
---@field help string
---@field run fun(words: string, call: table)
---@field range boolean? takes lines
---@field complete (fun(): string[])? what may stand after it

local function lazy(module, name)
  return function(...) return require("codeagent." .. module)[name](...) end
end

local function started(kind)
  return function(run_id) require("codeagent.reactions").started(kind, run_id) end
end

local function is_file(buffer)
  return vim.bo[buffer].buftype == "" and vim.api.nvim_buf_get_name(buffer) ~= ""
end

--- Calls `use` with the words given, or asks for them.
local function with_words(words, prompt, use)
  if words ~= "" then return use(words) end
  vim.ui.input({ prompt = texts.get(prompt) }, function(value)
    if value and value:match("%S") then use(value) end
  end)
end

--- `run` and `ask`: words, and a place when lines are given.
local function in_words(kind, key, prompt)
  return function(words, call)
    local buffer = vim.api.nvim_get_current_buf()
    with_words(words, prompt, function(said)
      client.ensure(function(here)
        local place = call.range > 0 and is_file(buffer) and ranges.place(call, buffer, here.offset_encoding) or {}
        local arguments = vim.tbl_extend("force", place, { [key] = said })
        if kind == "run" and call.bang then arguments.mode = "plan" end
        client.run(kind, arguments, said:match("[^\n]*"), started(kind))
      end)
    end)
  end
end

--- Several attempts at a task: how many, then the words.
local function attempts(words)
  local count, rest = (words .. " "):match("^([1-8])%s+(.-)%s*$")
  with_words(count and rest or words, "ask.task", function(said)
    client.run("run", { task = said, attempts = tonumber(count or 3) }, said:match("[^\n]*"), started("run"))
  end)
end

--- The commands about a selection, or the symbol under the cursor.
local function at_place(kind)
  return function(words, call)
    local buffer = vim.api.nvim_get_current_buf()
    client.ensure(function(here)
      local arguments = ranges.place(call, buffer, here.offset_encoding)
      if kind == "fix" then
        local found = ranges.diagnostics(call, buffer)
        arguments.diagnostics = #found > 0 and found or nil
      end
      local function go(said)
        arguments.instruction = said ~= "" and said or nil
        client.run(kind, arguments, "", started(kind))
      end
      if kind == "edit" then return with_words(words, "ask.instruction", go) end
      go(words)
    end)
  end
end

--- Opens a buffer to write a task in.
local function prompt(words, call)
  local buffer = vim.api.nvim_get_current_buf()
  client.ensure(function(here)
    local place = call.range > 0 and is_file(buffer) and ranges.place(call, buffer, here.offset_encoding) or {}
    client.call("prompt", vim.tbl_extend("force", place, { text = words ~= "" and words or nil }))
  end)
end

local function send()
  client.run("prompt.send", { uri = vim.uri_from_bufnr(0) }, "", started("run"))
end

local function run_file(words)
  local arguments = { uri = vim.uri_from_bufnr(0) }
  if words ~= "" then arguments.args = vim.split(words, "%s+") end
  client.run("runFile", arguments, "", started("runFile"))
end

local function cancel()
  client.call("cancel", {}, function(result)
    local count = #result.cancelled
    notify.tell(count > 0 and texts.get("told.cancelled", { count = count }) or texts.get("told.no_runs"))
  end)
end

--- Decides about all changes that wait: of the newest run that has any.
local function decide(command)
  return function()
    client.call("pending", {}, function(list)
      local state, run_id = store.state(), nil
      for _, item in ipairs(list) do
        local run = state.runs[item.runId]
        if item.kind == "changes" or (run and run.proposal and next(run.staged)) then run_id = item.runId end
      end
      if not run_id then return notify.tell(texts.get("told.no_changes")) end
      client.call(command, { runId = run_id })
    end)
  end
end

--- Says something to what is at work: to the newest run, if there are several.
local function steer(words)
  local state, run_id = store.state(), nil
  for _, id in ipairs(state.order) do
    if state.runs[id].status == "running" then run_id = id end
  end
  if not run_id then return notify.tell(texts.get("told.no_runs")) end
  with_words(words, "ask.steer", function(said)
    client.call("steer", { runId = run_id, text = said })
  end)
end

--- Begins one of the user's own commands: `name arguments`, or one from a list.
local function own_command(words)
  local name, rest = words:match("^/?(%S+)%s*(.*)$")
  local function go(chosen, given)
    client.run("command", { name = chosen, arguments = given }, "/" .. chosen .. " " .. given, started("run"))
  end
  if name then return go(name, rest) end
  require("codeagent.runs").commands(go)
end

local function sessions(words)
  local pickers = require("codeagent.pickers")
  local sub, id = words:match("^(%S*)%s*(%S*)$")
  if sub == "new" then
    return client.call("session.new", {}, function() notify.tell(texts.get("told.session")) end)
  end
  if sub == "export" then return require("codeagent.pages").export(id ~= "" and id or nil) end
  local use = sub == "delete" and pickers.delete or pickers.resume
  if id ~= "" then return use(id) end
  pickers.sessions(use)
end

local function choice(module, name)
  return function(words) require("codeagent." .. module)[name](words ~= "" and words or nil) end
end

local function undo(words)
  client.call("undo", words ~= "" and { runId = words } or {})
end

local function graph(words)
  client.call("index.graph", words ~= "" and { ["function"] = words } or { uri = vim.uri_from_bufnr(0) })
end

local function log()
  vim.cmd.tabnew(vim.fn.fnameescape(vim.lsp.log.get_filename()))
  vim.cmd("normal! G")
end

local function names_of(list)
  return function() return list end
end

---@type codeagent.Sub[]
M.SUBS = {
  { name = "run", args = "{task}", range = true, run = in_words("run", "task", "ask.task"),
    help = "The agent works on a task. With a range the lines are what it is about; with ! it makes a plan first." },
  { name = "prompt", args = "[words]", range = true, run = prompt,
    help = "Opens a Markdown buffer to write a task in, with completion of files, names and commands; lines are mentioned." },
  { name = "send", args = "", run = send,
    help = "Sends the task in such a buffer. The code action and the code lens on its first line do the same." },
  { name = "attempts", args = "[count] {task}", run = attempts,
    help = "Makes several attempts at a task, 3 without a number; the best is proposed, by tests and diagnostics." },
  { name = "command", args = "[name] [arguments]", run = own_command,
    help = "Begins a command that is a Markdown file in .codeagent/commands or .claude/commands." },
  { name = "ask", args = "{question}", range = true, run = in_words("ask", "question", "ask.question"),
    help = "Answers a question. Nothing is changed and nothing is run." },
  { name = "edit", args = "{instruction}", range = true, run = at_place("edit"),
    help = "Rewrites the selection, or the symbol under the cursor, as you say." },
  { name = "explain", args = "", range = true, run = at_place("explain"), help = "Explains it." },
  { name = "fix", args = "[words]", range = true, run = at_place("fix"),
    help = "Fixes it; the diagnostics in these lines are told to the agent." },
  { name = "refactor", args = "[words]", range = true, run = at_place("refactor"),
    help = "Makes it simpler and keeps what it does." },
  { name = "document", args = "[words]", range = true, run = at_place("document"), help = "Adds documentation to it." },
  { name = "test", args = "[words]", range = true, run = at_place("test"), help = "Writes tests for it." },
  { name = "runFile", args = "[arguments]", run = run_file,
    help = "Runs the file as it is in the buffer, in the shadow workspace, and shows what it prints." },
  { name = "cancel", args = "", run = cancel,
    help = "Stops what is at work within a second. Changes made so far wait for your decision." },
  { name = "steer", args = "{words}", run = steer,
    help = "Says something to the agent while it works; it hears it with its next step." },
  { name = "runs", args = "", run = lazy("runs", "list"),
    help = "Lists all runs. For one you can say something to it, stop it, leave it out, go back to before it." },
  { name = "search", args = "{words}", run = function(words) with_words(words, "ask.search", lazy("runs", "search")) end,
    help = "Finds runs by words in what was asked, said and changed." },
  { name = "back", args = "[run]", run = choice("runs", "back"),
    help = "Goes back to before a run: what it and all later runs changed and said; what you typed stays." },
  { name = "fork", args = "[run]", run = choice("runs", "fork"),
    help = "Begins a new session with the talk as it was before a run." },
  { name = "pending", args = "", run = lazy("pickers", "pending"),
    help = "Asks whatever waits for you: questions, approvals, changes." },
  { name = "review", args = "", run = lazy("review", "pick"), help = "Shows the changes that wait, see |codeagent-review|." },
  { name = "apply", args = "", run = decide("apply"), help = "Applies all changes that wait." },
  { name = "discard", args = "", run = decide("discard"), help = "Discards all changes that wait." },
  { name = "prove", args = "", run = decide("prove"),
    help = "Runs the tests with and without the changes that wait, and tells what they say." },
  { name = "minimize", args = "", run = decide("minimize"),
    help = "Finds the smallest part of the changes with which the same tests pass, and marks the others." },
  { name = "undo", args = "[run]", run = undo,
    help = "Takes back what the last run changed; what you typed since stays." },
  { name = "inline", args = "[on|off|status]", run = lazy("inline", "command"),
    complete = names_of({ "on", "off", "status" }),
    help = "Switches completion while you type off and on, or says how it stands, see |codeagent-inline|." },
  { name = "transcript", args = "", run = lazy("transcript", "toggle"),
    help = "Opens or closes the transcript, see |codeagent-transcript|." },
  { name = "plan", args = "", run = lazy("plan", "open"), help = "Shows the plan, see |codeagent-plan|." },
  { name = "sessions", args = "[new|delete|export] [id]", run = sessions,
    complete = names_of({ "new", "delete", "export" }),
    help = "Continues a session that you choose; begins a new one, deletes one, or shows one as Markdown." },
  { name = "model", args = "[name]", run = choice("pickers", "model"), help = "Uses another model." },
  { name = "mode", args = "[mode]", run = choice("pickers", "mode"),
    complete = function() return require("codeagent.pickers").MODES end,
    help = "Sets what may be done without asking: ask, acceptEdits, readOnly or bypass." },
  { name = "graph", args = "[function]", run = graph,
    help = "Shows who calls a function and what it calls; without a name which file imports which, around this one." },
  { name = "doctor", args = "", run = lazy("pages", "doctor"), help = "What works here, and what to do about what does not." },
  { name = "messages", args = "", run = lazy("pages", "messages"), help = "Everything that was told, in full." },
  { name = "restart", args = "", run = function() client.restart() end,
    help = "Stops the server and starts it again. The session goes on, and what waited for you still waits." },
  { name = "log", args = "", run = log, help = "Opens the log of Neovim's LSP client, with what the server wrote to standard error." },
  { name = "menu", args = "", run = function() M.menu() end, help = "All of this as a list. So does |:CodeAgent| alone." },
}

local function sub(name)
  for _, item in ipairs(M.SUBS) do
    if item.name == name then return item end
  end
end

--- All subcommands as a list to choose from.
function M.menu()
  local items = vim.tbl_filter(function(item) return item.name ~= "menu" end, M.SUBS)
  vim.ui.select(items, {
    prompt = texts.get("pick.command"),
    kind = "codeagent",
    format_item = function(item) return ("%-11s %s"):format(item.name, (item.help:gsub("[,.] see |.-|", ""):gsub("|", ""))) end,
  }, function(item)
    if item then item.run("", { range = 0, bang = false }) end
  end)
end

--- Runs one call of `:CodeAgent`.
---@param call table
function M.run(call)
  local name, words = call.args:match("^(%S*)%s*(.-)%s*$")
  if name == "" then return M.menu() end
  local item = sub(name)
  if not item then return notify.warn(texts.get("told.usage", { name = name })) end
  item.run(words, call)
end

--- What may stand at the cursor of a command line.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local before = line:match("CodeAgent!?%s+(.*)$") or ""
  local name = before:match("^(%S+)%s")
  local offered
  if name then
    local item = sub(name)
    offered = item and item.complete and item.complete() or {}
  else
    offered = vim.tbl_map(function(item) return item.name end, M.SUBS)
  end
  return vim.tbl_filter(function(word) return vim.startswith(word, lead) end, offered)
end

return M
