-- What a scenario needs of a real Neovim with the plugin: it answers prompts, records what was told, and waits.

local here = vim.fs.dirname(debug.getinfo(1, "S").source:sub(2))

local function apply(_, titles) return vim.tbl_contains(titles, "Apply") and "Apply" or nil end
local function nothing() return nil end

local rig = {
  prompts = {}, -- {prompt, titles}
  told = {}, -- notifications
  choose = apply,
  write = nothing, -- the answer to vim.ui.input
}

local function select(items, options, on_choice)
  local titles = vim.tbl_map(options.format_item or tostring, items)
  table.insert(rig.prompts, { prompt = options.prompt, titles = titles })
  local wanted = rig.choose(options.prompt, titles)
  for position, title in ipairs(titles) do
    if title == wanted then return on_choice(items[position], position) end
  end
  on_choice(nil, nil)
end

local function input(options, on_done)
  table.insert(rig.prompts, { prompt = options.prompt, titles = {} })
  on_done(rig.write(options.prompt))
end

vim.ui.select, vim.ui.input = select, input

vim.notify = function(message) table.insert(rig.told, message) end

local PATIENCE = 3 -- a machine that is busy with other things is waited for

function rig.wait(what, milliseconds, condition)
  if not vim.wait(milliseconds * PATIENCE, condition, 10) then
    error(("never came: %s\ntold: %s\nstate: %s"):format(what, vim.inspect(rig.told), vim.inspect(rig.state())))
  end
end

function rig.state() return require("codeagent").state() end

-- Opens a file of the workspace and waits for the server.
function rig.open(name)
  vim.cmd.edit(vim.fn.fnameescape(rig.workspace .. "/" .. name))
  local buffer = vim.api.nvim_get_current_buf()
  rig.wait("the server", 15000, function()
    rig.client = vim.lsp.get_clients({ name = "codeagent", bufnr = buffer })[1]
    return rig.client ~= nil and rig.client.initialized
  end)
  return buffer
end

-- The process of the server: the child of this editor that runs our program, read from /proc, which needs no program.
function rig.server_process()
  for name in vim.fs.dir("/proc") do
    local stat = name:match("^%d+$") and io.open("/proc/" .. name .. "/stat")
    local parent = stat and stat:read("a"):match("%) %S (%d+)")
    local command = parent == tostring(vim.fn.getpid()) and io.open("/proc/" .. name .. "/cmdline")
    if command and command:read("a"):find("codeagent_lsp", 1, true) then return tonumber(name) end
  end
  error("no server below this editor")
end

function rig.lines(buffer) return vim.api.nvim_buf_get_lines(buffer, 0, -1, true) end

function rig.text(buffer) return table.concat(rig.lines(buffer), "\n") .. "\n" end

-- The buffer of one of the plugin's windows.
function rig.own(name)
  local buffer = vim.fn.bufnr("^codeagent://" .. name .. "$")
  return buffer >= 0 and buffer or nil
end

function rig.page(name)
  require("codeagent.store").flush()
  return rig.own(name) and rig.text(rig.own(name)) or ""
end

function rig.newest()
  local state = rig.state()
  return state.runs[state.order[#state.order]]
end

function rig.ended(status)
  rig.wait("the end of the run", 60000, function()
    local run = rig.newest()
    return run and run.status ~= "running"
  end)
  assert(not status or rig.newest().status == status, rig.newest().status)
  return rig.newest()
end

function rig.heard(part)
  rig.wait("told " .. part, 8000, function()
    return vim.iter(rig.told):any(function(message) return message:find(part, 1, true) ~= nil end)
  end)
end

-- Presses keys as a user does, in the current window.
function rig.press(keys)
  vim.api.nvim_feedkeys(vim.keycode(keys), "mx", false)
end

-- Plays a scenario, writes what it found.
local function play(plan)
  local scenario = assert(loadfile(plan.scenario))
  local ok, found = xpcall(function() return scenario(rig) end, debug.traceback)
  local record = {
    found = ok and found or vim.empty_dict(),
    problem = not ok and found or nil,
    prompts = rig.prompts,
    told = rig.told,
  }
  local file = assert(io.open(plan.record .. ".part", "w"))
  file:write(vim.json.encode(record))
  file:close()
  assert(os.rename(plan.record .. ".part", plan.record))
end

-- The result of a command of the server.
local function ask(name, arguments)
  local answer
  local command = { title = name, command = "codeagent." .. name, arguments = { arguments } }
  rig.client:exec_cmd(command, nil, function(err, result) answer = { err = err, result = result } end)
  rig.wait(name, 20000, function() return answer ~= nil end)
  return assert(answer.result or not answer.err, vim.inspect(answer.err))
end

-- What one scenario left is gone for the next: windows, buffers, its session and changes that wait, runs, words.
local function clear(plan)
  rig.choose, rig.write, vim.ui.select, vim.ui.input = apply, nothing, select, input
  rig.wait("the end of all runs", 20000, function() -- changes of one that has not ended wait only afterwards
    return vim.iter(ask("runs")):all(function(run) return run.status ~= "running" end)
  end)
  for _, item in ipairs(ask("pending")) do
    if item.kind == "changes" then ask("discard", { runId = item.runId }) end
  end
  vim.api.nvim_clear_autocmds({ event = "User", pattern = "CodeAgent*" })
  vim.cmd("silent! tabonly!")
  vim.cmd("silent! only!")
  vim.wo.winfixbuf = false -- it may be a window of the plugin that is left
  vim.cmd("silent! %bwipeout!")
  ask("session.new")
  ask("model.select", { name = plan.script })
  vim.wait(100)
  require("codeagent.store").reset()
  require("codeagent.store").flush()
  rig.prompts, rig.told = {}, {}
end

local function when_entered(work)
  vim.api.nvim_create_autocmd("VimEnter", { callback = vim.schedule_wrap(function()
    work()
    vim.cmd("qa!")
  end) })
end

function rig.play(plan)
  rig.workspace = plan.workspace
  when_entered(function() play(plan) end)
end

function rig.play_all(plan)
  rig.workspace = plan.workspace
  when_entered(function() dofile(here .. "/../neovim/in_turn.lua")(plan.folder, play, clear) end)
end

return rig
