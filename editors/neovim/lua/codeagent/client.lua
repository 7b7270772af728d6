--- The connection: how the server is started, which client to talk to, commands and their answers, the end of a
--- server and its restart. Not here: what the server asks of us (`handlers.lua`).

local notify = require("codeagent.notify")
local queries = require("codeagent.queries")
local server = require("codeagent.server")
local store = require("codeagent.store")
local texts = require("codeagent.texts")

local M = {}

M.NAME = "codeagent"
M.ROOT_MARKERS = { ".git", "pyproject.toml", "package.json", "Cargo.toml", "go.mod" }

local DOCUMENTS = "/documents/%a+/" -- in our state folder: prompts, plans, answers
local TIMEOUT = 10000
local told_none = false
local leaving = {} ---@type table<integer, boolean> clients that were asked to stop

---@class codeagent.Ended a client that has ended, to be started again
---@field config vim.lsp.ClientConfig
---@field buffers integer[]
---@field session string?

local lost = {} ---@type table<string, codeagent.Ended> by the folder of the workspace
local unanswered = {} ---@type table<integer, table<table, fun(message: string)>> what is told to those who wait, by client
local openers = {} ---@type table<string, integer> by the path of a prompt document: the client that opened it

vim.api.nvim_create_autocmd("VimLeavePre", {
  group = vim.api.nvim_create_augroup("codeagent.leaving", {}),
  callback = function()
    leaving = setmetatable({}, { __index = function() return true end })
  end,
})

local function attached(client_id)
  return vim.tbl_filter(function(buffer)
    return vim.lsp.buf_is_attached(buffer, client_id)
  end, vim.api.nvim_list_bufs())
end

--- The folder of the workspace of a buffer whose server has ended.
local function lost_root(buffer)
  for root, before in pairs(lost) do
    if vim.list_contains(before.buffers, buffer) then return root end
  end
end

local function ended(client, code, signal)
  if not client then return end
  local root = client.root_dir or ""
  local session = store.state().sessions[client.id] or (lost[root] and lost[root].session)
  lost[root] = { config = client.config, buffers = attached(client.id), session = session }
  store.dispatch({ type = "local_gone", client_id = client.id, exit_code = code })
  local left = unanswered[client.id] or {}
  unanswered[client.id] = nil
  for _, failed in pairs(left) do
    failed(texts.get("server.slow"))
  end
  if leaving[client.id] or (code == 0 and signal == 0) then return end
  local reason = signal ~= 0 and "signal " .. signal or "exit code " .. code
  notify.tell(texts.get("server.crashed", { reason = reason }), vim.log.levels.ERROR)
end

--- The `cmd` of the LSP configuration: starts what `server.find` finds, and watches its end.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@param config vim.lsp.ClientConfig
function M.start(dispatchers, config)
  local found = server.find() or error(texts.get("server.none"), 0)
  if found.how == "uvx" or found.how == "pipx" then notify.tell(texts.get("server.through", { how = found.how })) end
  local on_exit, me = dispatchers.on_exit, nil
  local watched = vim.tbl_extend("force", dispatchers, {
    on_exit = function(code, signal)
      vim.schedule(function() ended(me, code, signal) end)
      on_exit(code, signal)
    end,
  })
  local rpc = vim.lsp.rpc.start(found.cmd, watched, { cwd = config.cmd_cwd or config.root_dir, env = config.cmd_env })
  vim.schedule(function()
    me = vim.iter(vim.lsp.get_clients({ name = M.NAME, _uninitialized = true })):find(function(client)
      return client.rpc == rpc
    end)
  end)
  return rpc
end

--- The `root_dir` of the LSP configuration: nothing is started where there is no server.
---@param buffer integer
---@param on_dir fun(root: string?)
function M.root_dir(buffer, on_dir)
  if not server.find() then
    if not told_none then notify.warn(texts.get("server.none")) end
    told_none = true
    return
  end
  on_dir(M.root_of(buffer))
end

--- The folder a buffer belongs to: the nearest marker above it, else the working directory, else its own folder. A
--- document of ours, which is in the state folder, belongs to the workspace of the client that opened it.
---@param buffer integer
---@return string
function M.root_of(buffer)
  local name, here = vim.api.nvim_buf_get_name(buffer), vim.fn.getcwd()
  local opener = openers[name] and vim.lsp.get_client_by_id(openers[name]) or name:find(DOCUMENTS) and M.current()
  if opener and opener.root_dir then return opener.root_dir end
  local marked = vim.fs.root(buffer, M.ROOT_MARKERS)
  if marked or name == "" or vim.fs.relpath(here, name) then return marked or here end
  return vim.fs.dirname(name)
end

--- A client opens a document of ours, which then belongs to its workspace.
---@param path string
---@param client_id integer
function M.opens(path, client_id)
  openers[path] = client_id
end

local function ready(client)
  return client and client.initialized and not client:is_stopped() and client or nil
end

--- The client that sent the events of a run; nil if it has ended.
---@param run_id string?
---@return vim.lsp.Client?
function M.of_run(run_id)
  local run = run_id and store.state().runs[run_id]
  return ready(run and run.client_id and vim.lsp.get_client_by_id(run.client_id))
end

--- The client of this buffer, elsewhere that of the newest run, else the newest one; nil while none is ready. A buffer
--- whose server has ended has none: the others are for other projects.
---@return vim.lsp.Client?
function M.current()
  local here = vim.lsp.get_clients({ name = M.NAME, bufnr = 0 })[1]
  if here or lost_root(vim.api.nvim_get_current_buf()) then return ready(here) end
  local newest = queries.latest(store.state())
  local all = vim.lsp.get_clients({ name = M.NAME })
  return M.of_run(newest and newest.run_id) or ready(all[#all])
end

--- Whether there is a server that could be started.
---@return boolean
function M.is_possible()
  return server.find() ~= nil or type(vim.lsp.config[M.NAME].cmd) ~= "function"
end

--- Starts a server for this buffer; false if there is none to be found.
local function start_here()
  if not M.is_possible() then return false end
  local config = vim.deepcopy(vim.lsp.config[M.NAME])
  local buffer = vim.api.nvim_get_current_buf()
  if type(config.root_dir) == "function" or not config.root_dir then config.root_dir = M.root_of(buffer) end
  local plain = vim.bo[buffer].buftype == "" and vim.api.nvim_buf_get_name(buffer) ~= ""
  vim.lsp.start(config, { bufnr = buffer, attach = plain })
  return true
end

--- Calls `use` with a client that is ready, starting the server when there is none; `failed` when there will be none.
---@param use fun(client: vim.lsp.Client)
---@param failed fun()?
function M.ensure(use, failed)
  local here = M.current()
  if here then return use(here) end
  local starting = #vim.lsp.get_clients({ name = M.NAME, _uninitialized = true }) > 0
  if (not starting or lost_root(vim.api.nvim_get_current_buf())) and not start_here() then
    return require("codeagent.setup").offer(function() M.ensure(use, failed) end, failed)
  end
  M.when_ready(use, failed)
end

--- Calls `use` once a client is ready, that with `id` where one is named; says so and calls `failed` when none comes.
---@param use fun(client: vim.lsp.Client)
---@param failed fun()?
---@param id integer?
function M.when_ready(use, failed, id)
  local deadline = vim.uv.now() + 4 * TIMEOUT
  local function look()
    local found = id and ready(vim.lsp.get_client_by_id(id)) or not id and M.current()
    if found then return use(found) end
    local starting = #vim.lsp.get_clients({ name = M.NAME, _uninitialized = true }) > 0
    if starting and vim.uv.now() <= deadline then return vim.defer_fn(look, 30) end
    notify.warn(texts.get("server.slow"))
    if failed then failed() end
  end
  vim.defer_fn(look, 10)
end

--- Whether the server has a command.
---@param client vim.lsp.Client
---@param name string without `codeagent.`
---@return boolean
function M.offers(client, name)
  local commands = vim.tbl_get(client.server_capabilities, "executeCommandProvider", "commands") or {}
  return vim.list_contains(commands, "codeagent." .. name)
end

--- The client of the run, or of the question, that a command is about.
local function meant(arguments)
  local question = vim.iter(store.state().questions):find(function(item)
    return item.request_id == arguments.requestId
  end)
  return M.of_run(arguments.runId or (question and question.run_id))
end

--- Sends a command; `done` gets its answer. Errors are shown to the user; `failed` is also called when the server ends
--- before it has answered. What is about a run goes to its server.
---@param name string without `codeagent.`
---@param arguments table?
---@param done fun(result: any, client: vim.lsp.Client)?
---@param failed fun(message: string)?
function M.call(name, arguments, done, failed)
  local its = meant(arguments or {})
  local find = its and function(use) use(its) end or M.ensure
  find(function(client)
    if not M.offers(client, name) then
      return notify.warn(texts.get("told.not_offered", { command = "codeagent." .. name }))
    end
    local given = { (arguments and next(arguments)) and arguments or vim.empty_dict() }
    local request = { title = name, command = "codeagent." .. name, arguments = given }
    local waiting = unanswered[client.id] or {}
    unanswered[client.id], waiting[request] = waiting, failed
    client:exec_cmd(request, nil, function(problem, result)
      waiting[request] = nil
      if problem then
        if failed then failed(problem.message) end
        return notify.warn(problem.message)
      end
      if done then done(result, client) end
    end)
  end)
end

--- Sends a command to the servers of all projects that are open; `done` gets what they list, together.
---@param name string without `codeagent.`
---@param done fun(list: table[])
function M.call_all(name, done)
  local all = vim.tbl_filter(ready, vim.lsp.get_clients({ name = M.NAME }))
  if #all < 2 then return M.call(name, {}, done) end
  local list, left = {}, #all
  for _, client in ipairs(all) do
    local request = { title = name, command = "codeagent." .. name, arguments = { vim.empty_dict() } }
    client:exec_cmd(request, nil, function(problem, result)
      if problem then notify.warn(problem.message) end
      vim.list_extend(list, result or {})
      left = left - 1
      if left == 0 then done(list) end
    end)
  end
end

--- Remembers what was asked; the events tell only what comes of it. `queued`: it begins when its session is free.
local function requested(result, client, title, task)
  store.dispatch({
    type = "local_request",
    run_id = result.runId,
    session_id = result.sessionId,
    client_id = client.id,
    title = title,
    task = task,
    queued = result.queued,
    ts = store.now(),
  })
end

--- Sends a command that starts a run, and remembers what was asked.
---@param name string
---@param arguments table
---@param title string
---@param started fun(run_id: string)?
function M.run(name, arguments, title, started)
  M.call(name, arguments, function(result, client)
    local task = arguments.task or arguments.question or arguments.instruction or ""
    requested(result, client, title, task)
    if started then started(result.runId) end
  end)
end

--- Says something to a run at work; where it has ended meanwhile, the words are the next task.
---@param run_id string
---@param words string
function M.say(run_id, words)
  M.call("steer", { runId = run_id, text = words }, function(result, client)
    if not result.itemId then return requested(result, client, words:match("[^\n]*"), words) end
    store.dispatch({ type = "local_said", run_id = result.runId, item_id = result.itemId, text = words })
  end)
end

--- Takes back words that wait.
---@param item_id string
---@param run_id string the run that they are said to, or the queued task itself
function M.withdraw(item_id, run_id)
  M.call("withdraw", { itemId = item_id }, function()
    store.dispatch({ type = "local_withdrawn", run_id = run_id, item_id = item_id })
  end)
end

--- Takes up a session again, and calls `done` whether or not that is possible.
local function restore(client, session, done)
  if not session then return done() end
  client:exec_cmd(
    { title = "resume", command = "codeagent.session.resume", arguments = { { sessionId = session } } },
    nil,
    function(problem)
      if problem then return done() end
      store.dispatch({ type = "local_history", session_id = session, client_id = client.id })
      done()
      local pending = { title = "pending", command = "codeagent.pending", arguments = {} }
      client:exec_cmd(pending, nil, function(_, result)
        if result and #result > 0 then notify.tell(texts.get("told.restored", { count = #result })) end
      end)
    end
  )
end

--- Starts the server of a workspace again; `root` is its folder.
---@param root string
---@param done fun()
local function start_again(root, done)
  local before = lost[root]
  if not before then return M.ensure(done) end
  lost[root] = nil
  local config = vim.tbl_extend("force", before.config, {})
  local buffers = vim.tbl_filter(vim.api.nvim_buf_is_loaded, before.buffers)
  local id = #buffers == 0 and vim.lsp.start(config, { attach = false }) or nil
  for _, buffer in ipairs(buffers) do
    id = vim.lsp.start(config, { bufnr = buffer })
  end
  M.when_ready(function(client)
    restore(client, before.session, done)
  end, nil, id)
end

--- Stops servers and calls `done` when they are gone, three seconds later at most.
---@param clients vim.lsp.Client[]
---@param done fun()
local function stop(clients, done)
  for _, client in ipairs(clients) do
    leaving[client.id] = true
    client:stop()
  end
  local deadline = vim.uv.now() + 3000
  local function look()
    local left = vim.tbl_filter(function(client) return not client.rpc.is_closing() end, clients)
    if #left > 0 and vim.uv.now() > deadline then
      for _, client in ipairs(left) do
        client:stop(true)
      end
    elseif #left > 0 then
      return vim.defer_fn(look, 20)
    end
    vim.defer_fn(done, 50)
  end
  look()
end

--- Stops the server of this buffer, if it runs, and starts it again for the same buffers; the session is taken up again.
--- `done` is called when it runs; without it, that is said.
---@param done fun()?
function M.restart(done)
  done = done or function() notify.tell(texts.get("told.restarted")) end
  local here = vim.lsp.get_clients({ name = M.NAME, bufnr = 0, _uninitialized = true })[1]
  local root = lost_root(vim.api.nvim_get_current_buf())
  if not here and root then return start_again(root, done) end
  local all = vim.lsp.get_clients({ name = M.NAME, _uninitialized = true })
  local client = here or M.current() or all[#all]
  if not client then return start_again(next(lost) or "", done) end
  stop({ client }, function() start_again(client.root_dir or "", done) end)
end

return M
