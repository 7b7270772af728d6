-- What a scenario needs of a real Neovim: our server as a stock client starts it, and a record of what was shown.
-- Nothing here makes Neovim behave in another way than it does for a user, but that `vim.ui.select` answers itself.

local here = vim.fs.dirname(debug.getinfo(1, "S").source:sub(2))

local function apply(_, titles) return vim.tbl_contains(titles, "Apply") and "Apply" or nil end

local rig = {
  prompts = {}, -- {prompt, titles}
  messages = {}, -- texts of window/showMessage
  progress = {}, -- values by token
  choose = apply,
}

vim.o.swapfile = false
vim.cmd("filetype on")

vim.ui.select = function(items, options, on_choice)
  local titles = vim.tbl_map(options.format_item or tostring, items)
  table.insert(rig.prompts, { prompt = options.prompt, titles = titles })
  local wanted = rig.choose(options.prompt, titles)
  for position, title in ipairs(titles) do
    if title == wanted then return on_choice(items[position], position) end
  end
  on_choice(nil, nil)
end

vim.lsp.handlers["window/showMessage"] = function(_, params)
  table.insert(rig.messages, params.message)
end

vim.api.nvim_create_autocmd("LspProgress", {
  callback = function(event)
    local params = event.data.params
    rig.progress[params.token] = rig.progress[params.token] or {}
    table.insert(rig.progress[params.token], params.value)
  end,
})

-- A machine that is busy with other things is waited for.
function rig.wait(what, milliseconds, condition)
  if not vim.wait(3 * milliseconds, condition, 10) then error("never came: " .. what) end
end

-- Opens a file of the workspace and waits for the server; the buffer's number.
function rig.open(name)
  vim.cmd.edit(vim.fn.fnameescape(rig.workspace .. "/" .. name))
  local buffer = vim.api.nvim_get_current_buf()
  rig.wait("the server", 30000, function()
    rig.client = vim.lsp.get_clients({ name = "codeagent", bufnr = buffer })[1]
    return rig.client ~= nil and rig.client.initialized
  end)
  return buffer
end

function rig.text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\n") .. "\n"
end

-- What the user sees of a file, nil when it is not loaded.
function rig.seen(name)
  local buffer = vim.fn.bufnr(rig.workspace .. "/" .. name)
  return buffer >= 0 and vim.api.nvim_buf_is_loaded(buffer) and rig.text(buffer) or nil
end

function rig.type(buffer, line, text)
  vim.api.nvim_buf_set_lines(buffer, line, line, true, { text })
end

function rig.replace(buffer, line, text)
  vim.api.nvim_buf_set_lines(buffer, line, line + 1, true, { text })
end

-- The result of a command, sent as Neovim sends one.
function rig.command(name, arguments)
  local answer
  rig.client:exec_cmd({ title = name, command = "codeagent." .. name, arguments = { arguments } }, nil, function(err, result)
    answer = { err = err, result = result }
  end)
  rig.wait(name, 20000, function() return answer ~= nil end)
  if answer.err then error(answer.err.message) end
  return answer.result
end

function rig.token(run_id) return "codeagent-" .. run_id end

-- The sentence a run ended with.
function rig.ended(run_id)
  local found
  rig.wait("the end of the run", 30000, function()
    for _, value in ipairs(rig.progress[rig.token(run_id)] or {}) do
      if value.kind == "end" then found = value.message end
    end
    return found ~= nil
  end)
  return found
end

function rig.run(name, arguments) return rig.ended(rig.command(name, arguments).runId) end

function rig.told(part)
  rig.wait("message " .. part, 20000, function()
    return vim.iter(rig.messages):any(function(message) return message:find(part, 1, true) ~= nil end)
  end)
end

function rig.disk(name)
  local file = io.open(rig.workspace .. "/" .. name, "rb")
  if not file then return nil end
  local content = file:read("a")
  file:close()
  return content
end

-- Starts Neovim's own LSP client for every file type.
local function configure(plan)
  rig.workspace = plan.workspace
  vim.lsp.config("codeagent", {
    cmd = plan.command,
    root_dir = plan.workspace,
    init_options = plan.options,
  })
  vim.lsp.enable("codeagent")
end

-- Plays a scenario, writes what it found.
local function play(plan)
  local scenario = assert(loadfile(plan.scenario))
  local ok, found = xpcall(function() return scenario(rig) end, debug.traceback)
  local record = {
    found = ok and found or vim.empty_dict(),
    problem = not ok and found or nil,
    prompts = rig.prompts,
    messages = rig.messages,
    encoding = rig.client and rig.client.offset_encoding,
  }
  local file = assert(io.open(plan.record .. ".part", "w"))
  file:write(vim.json.encode(record))
  file:close()
  assert(os.rename(plan.record .. ".part", plan.record))
end

-- What one scenario left is gone for the next: its buffers, its session and changes that wait, its words.
local function clear(plan)
  rig.wait("the end of all runs", 20000, function() -- changes of one that has not ended wait only afterwards
    return vim.iter(rig.command("runs")):all(function(run) return run.status ~= "running" end)
  end)
  for _, item in ipairs(rig.command("pending")) do
    if item.kind == "changes" then rig.command("discard", { runId = item.runId }) end
  end
  vim.cmd("silent! %bwipeout!")
  rig.command("session.new")
  rig.command("model.select", { name = plan.script })
  rig.prompts, rig.messages, rig.progress, rig.choose = {}, {}, {}, apply
end

function rig.play(plan)
  configure(plan)
  play(plan)
end

function rig.play_all(plan)
  configure(plan)
  dofile(here .. "/in_turn.lua")(plan.folder, play, clear)
end

return rig
