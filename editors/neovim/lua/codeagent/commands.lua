--- `:CodeAgent` and its subcommands, each once: name, arguments, what it does. The help page is made from this and
--- from their meanings in `texts.lua`. Heavy parts are loaded when they are called.

local client = require("codeagent.client")
local notify = require("codeagent.notify")
local queries = require("codeagent.queries")
local ranges = require("codeagent.ranges")
local store = require("codeagent.store")
local texts = require("codeagent.texts")

local M = {}

-- Room for the numbers that `vim.ui.select` puts before the lines.
local MENU_MARGIN = 6

---@class codeagent.Sub
---@field name string
---@field args string how the arguments look in the help
---@field run fun(words: string, call: table)
---@field range boolean? takes lines
---@field complete (fun(): string[])? what may stand after it
---@field when (fun(state: codeagent.State): boolean)? whether the menu has it now; it can always be typed

local function lazy(module, name)
  return function(...) return require("codeagent." .. module)[name](...) end
end

local function started(kind)
  return function(run_id) require("codeagent.reactions").started(kind, run_id) end
end

local function is_file(buffer)
  return vim.bo[buffer].buftype == "" and vim.api.nvim_buf_get_name(buffer) ~= ""
end

--- Calls `use` with the words given, or asks for them where there is a prompt; `dropped` is called when there are none.
local function with_words(words, prompt, use, dropped)
  if words ~= "" or not prompt then return use(words) end
  vim.ui.input({ prompt = texts.get(prompt) }, function(value)
    if value and value:match("%S") then return use(value) end
    if dropped then dropped() end
  end)
end

--- Like `with_words`, for words about a place, which moves with what is typed until they and a server are there.
local function with_words_at(call, words, prompt, use)
  local held = ranges.hold(call, vim.api.nvim_get_current_buf())
  with_words(words, prompt, function(said)
    client.ensure(function(here)
      local place = held.take(here.offset_encoding)
      if not place then return notify.tell(texts.get("told.no_place")) end
      use(said, place)
    end, held.release)
  end, held.release)
end

--- Like `with_words`, with a place only where lines of a file are given.
local function with_words_and_lines(call, words, prompt, use)
  if call.range > 0 and is_file(vim.api.nvim_get_current_buf()) then return with_words_at(call, words, prompt, use) end
  with_words(words, prompt, function(said) use(said, {}) end)
end

--- `run` and `ask`: words, and a place when lines are given.
local function in_words(kind, key, prompt)
  return function(words, call)
    with_words_and_lines(call, words, prompt, function(said, place)
      local arguments = vim.tbl_extend("force", place, { [key] = said })
      if kind == "run" and call.bang then arguments.mode = "plan" end
      client.run(kind, arguments, said:match("[^\n]*"), started(kind))
    end)
  end
end

--- The newest plan; with words a task that is planned first.
local function plan(words, call)
  if words == "" then return require("codeagent.plan").open() end
  in_words("run", "task")(words, vim.tbl_extend("force", call, { bang = true }))
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
    with_words_at(call, words, kind == "edit" and "ask.instruction" or nil, function(said, arguments)
      arguments.instruction = said ~= "" and said or nil
      if kind == "fix" then
        local found = ranges.diagnostics(arguments.range, buffer)
        arguments.diagnostics = #found > 0 and found or nil
      end
      client.run(kind, arguments, "", started(kind))
    end)
  end
end

--- Opens a buffer to write a task in.
local function prompt(words, call)
  with_words_and_lines(call, words, nil, function(said, place)
    client.call("prompt", vim.tbl_extend("force", place, { text = said ~= "" and said or nil }))
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

--- Asks about all that the workspace brings, one kind of it, or one thing by its name or path.
local function trust(wanted)
  local key = vim.tbl_contains({ "skills", "commands", "agents", "hooks", "tools" }, wanted) and "what" or "name"
  client.run("trust", wanted ~= "" and { [key] = wanted } or {}, "", started("trust"))
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
      local state, run_id, title = store.state(), nil, ""
      for _, item in ipairs(list) do
        local run = state.runs[item.runId]
        local staged = run and not run.attempt_of and run.proposal and next(run.staged)
        if item.kind == "changes" or staged then
          run_id, title = item.runId, staged and queries.title(state, run) or item.title
        end
      end
      if not run_id then return notify.tell(texts.get("told.no_changes")) end
      client.call(command, { runId = run_id }, function()
        if command == "discard" then notify.tell(texts.get("told.discarded", { title = title })) end
      end)
    end)
  end
end

--- Says something to what is at work in this project: to the newest run, if there are several.
local function steer(words)
  local here = client.current()
  local _, working = require("codeagent.queries").latest(store.state(), here and here.id)
  if not working then return notify.tell(texts.get("told.no_runs")) end
  with_words(words, "ask.steer", function(said) client.say(working.run_id, said) end)
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

--- What is done about the change under the cursor; without words they are a list to choose from.
local function hunk(words)
  local hunks = require("codeagent.hunks")
  if words ~= "" then return hunks.act(words) end
  vim.ui.select({ "accept", "discard", "accept-file", "discard-file", "next", "previous" }, {
    prompt = texts.get("pick.hunk"),
    kind = "codeagent",
    format_item = function(item) return texts.get("hunk." .. item) end,
  }, function(item)
    if item then hunks.act(item) end
  end)
end

--- What is done about what is offered; without words it is a list to choose from.
local function offer(words)
  local offers = require("codeagent.offers")
  if words ~= "" then return offers.act(words) end
  if not offers.any() then return notify.tell(texts.get("told.no_offer")) end
  vim.ui.select({ "accept", "dismiss", "go" }, {
    prompt = texts.get("pick.offer"),
    kind = "codeagent",
    format_item = function(item) return texts.get("offer." .. item) end,
  }, function(item)
    if item then offers.act(item) end
  end)
end

--- Takes a run back, the last one without words; with a file, only what it changed there.
local function undo(words)
  if words == "" then return client.call("undo", {}) end
  local path = vim.fn.expand(words)
  if store.state().runs[words] or not (path:find("[./]") or vim.uv.fs_stat(path)) then
    return client.call("undo", { runId = words })
  end
  client.call("undo", { files = { vim.fs.normalize(vim.fn.fnamemodify(path, ":p")) } })
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

local function is_working(state)
  local _, working = queries.latest(state)
  return working ~= nil
end

local function has_changes(state)
  return #queries.waiting_changes(state) > 0
end

---@type codeagent.Sub[]
M.SUBS = {
  { name = "run", args = "{task}", range = true, run = in_words("run", "task", "ask.task") },
  { name = "prompt", args = "[words]", range = true, run = prompt },
  { name = "send", args = "", run = send },
  { name = "attempts", args = "[count] {task}", run = attempts },
  { name = "command", args = "[name] [arguments]", run = own_command },
  { name = "ask", args = "{question}", range = true, run = in_words("ask", "question", "ask.question") },
  { name = "edit", args = "{instruction}", range = true, run = at_place("edit") },
  { name = "explain", args = "", range = true, run = at_place("explain") },
  { name = "fix", args = "[words]", range = true, run = at_place("fix") },
  { name = "refactor", args = "[words]", range = true, run = at_place("refactor") },
  { name = "document", args = "[words]", range = true, run = at_place("document") },
  { name = "test", args = "[words]", range = true, run = at_place("test") },
  { name = "runFile", args = "[arguments]", run = run_file },
  { name = "cancel", args = "", run = cancel, when = is_working },
  { name = "steer", args = "{words}", run = steer, when = is_working },
  { name = "queue", args = "{task}", run = in_words("enqueue", "task", "ask.task") },
  { name = "runs", args = "", run = lazy("runs", "list") },
  { name = "search", args = "{words}", run = function(words) with_words(words, "ask.search", lazy("runs", "search")) end },
  { name = "back", args = "[run]", run = choice("runs", "back") },
  { name = "fork", args = "[run]", run = choice("runs", "fork") },
  { name = "pending", args = "", run = lazy("pickers", "pending") },
  { name = "review", args = "", run = lazy("review", "pick"), when = has_changes },
  { name = "hunk", args = "{action}", run = hunk, when = has_changes,
    complete = function() return vim.tbl_keys(require("codeagent.hunks").ACTIONS) end },
  { name = "apply", args = "", run = decide("apply"), when = has_changes },
  { name = "discard", args = "", run = decide("discard"), when = has_changes },
  { name = "prove", args = "", run = decide("prove"), when = has_changes },
  { name = "minimize", args = "", run = decide("minimize"), when = has_changes },
  { name = "finish", args = "", run = function() client.run("finishChange", {}, "", started("finishChange")) end },
  { name = "offer", args = "{action}", run = offer, when = function() return require("codeagent.offers").any() end,
    complete = function() return vim.tbl_keys(require("codeagent.offers").ACTIONS) end },
  { name = "write", args = "", run = lazy("reactions", "write") },
  { name = "undo", args = "[run|file]", run = undo, complete = names_of({ "%" }) },
  { name = "inline", args = "[on|off|status]", run = lazy("inline", "command"),
    complete = names_of({ "on", "off", "status" }) },
  { name = "chat", args = "", run = lazy("input", "open") },
  { name = "transcript", args = "", run = lazy("transcript", "toggle") },
  { name = "plan", args = "[task]", range = true, run = plan },
  { name = "sessions", args = "[new|delete|export] [id]", run = sessions,
    complete = names_of({ "new", "delete", "export" }) },
  { name = "setup", args = "", run = lazy("setup", "model") },
  { name = "install", args = "", run = function() require("codeagent.setup").install() end },
  { name = "model", args = "[name]", run = choice("pickers", "model") },
  { name = "mode", args = "[mode]", run = choice("pickers", "mode"),
    complete = function() return require("codeagent.pickers").MODES end },
  { name = "trust", args = "[kind or name]", run = trust,
    complete = names_of({ "skills", "commands", "agents", "hooks", "tools" }) },
  { name = "approvals", args = "", run = lazy("pickers", "approvals") },
  { name = "graph", args = "[function]", run = graph },
  { name = "doctor", args = "", run = lazy("pages", "doctor") },
  { name = "messages", args = "", run = lazy("pages", "messages") },
  { name = "restart", args = "", run = function() client.restart() end },
  { name = "log", args = "", run = log },
  { name = "menu", args = "", run = function() M.menu() end },
}

local function sub(name)
  for _, item in ipairs(M.SUBS) do
    if item.name == name then return item end
  end
end

--- A line of the menu: the name, and of the meaning the first sentence, cut at the width of the screen, as lines that
--- break make a long list unreadable.
local function menu_line(item)
  local meaning = texts.get("sub." .. item.name):gsub("[,.] see |.-|", ""):gsub("，见 |.-|", ""):gsub("|", "")
  local first = meaning:match("^(.-%.)%s") or meaning:match("^(.-。)") or meaning
  local line, room = ("%-11s %s"):format(item.name, first), vim.o.columns - MENU_MARGIN
  while vim.fn.strdisplaywidth(line) > room do
    line = vim.fn.strcharpart(line, 0, vim.fn.strchars(line) - 2) .. "…"
  end
  return line
end

--- The subcommands that can be of use now, as a list to choose from; without a server there is only one thing to do.
function M.menu()
  if not client.is_possible() then return require("codeagent.setup").offer(M.menu) end
  local state = store.state()
  local items = vim.tbl_filter(
    function(item) return item.name ~= "menu" and (not item.when or item.when(state)) end,
    M.SUBS
  )
  vim.ui.select(items, { prompt = texts.get("pick.command"), kind = "codeagent", format_item = menu_line }, function(item)
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
