--- `:checkhealth codeagent`.

local M = {}

local health = vim.health

local function neovim()
  health.start("codeagent: Neovim")
  if vim.fn.has("nvim-0.11") == 1 then
    health.ok("Neovim " .. tostring(vim.version()))
  else
    health.error("Neovim 0.11 or newer is needed; this is " .. tostring(vim.version()))
  end
  if pcall(vim.treesitter.language.add, "markdown") then
    health.ok("Markdown is highlighted by its syntax tree")
  else
    health.info("There is no Markdown parser; the transcript is highlighted in the plain way")
  end
end

local function options()
  health.start("codeagent: options")
  local problems = require("codeagent.config").problems()
  for _, problem in ipairs(problems) do
    health.warn(problem, "See :help codeagent-options")
  end
  if #problems == 0 then health.ok("Every option is known and has a value that fits") end
end

local function version(found)
  if found.how == "uvx" or found.how == "pipx" then return "fetched when it is started" end
  if #found.cmd > 1 then return "with arguments of your own" end
  local command = { found.cmd[1], "--version" }
  local ok, done = pcall(function() return vim.system(command, { text = true }):wait(5000) end)
  return ok and done.code == 0 and vim.trim(done.stdout) or "its version could not be asked for"
end

local function program()
  health.start("codeagent: the server's program")
  local found = require("codeagent.server").find()
  if not found then
    return health.error("There is no codeagent-lsp", {
      ":CodeAgent install",
      "or name one: vim.g.codeagent = { cmd = { \"/path/to/codeagent-lsp\" } }",
    })
  end
  health.ok(("%s (from: %s), %s"):format(table.concat(found.cmd, " "), found.how, version(found)))
end

--- What the running server says of itself.
local function report(client)
  local answer = client:request_sync("workspace/executeCommand", { command = "codeagent.doctor", arguments = {} }, 10000)
  if not (answer and answer.result) then return health.warn("The server did not answer") end
  for _, check in ipairs(answer.result) do
    local lines = require("codeagent.pages").check_lines(check)
    local words = table.concat(lines, " "):gsub("^%S+ ", "")
    local sign = lines[1]:match("^%S+")
    local tell = sign == "✗" and health.error or sign == "!" and health.warn or sign == "✓" and health.ok or health.info
    tell(words)
  end
end

local function running()
  health.start("codeagent: the running server")
  if not vim.lsp.is_enabled("codeagent") then
    health.info('It is not enabled: vim.lsp.enable("codeagent"). :CodeAgent starts it when it is first needed.')
  end
  local client = require("codeagent.client").current()
  if not client then return health.info("No server is running. Open a file, or use :CodeAgent") end
  health.ok(("client %d in %s, positions in %s"):format(client.id, tostring(client.root_dir), client.offset_encoding))
  report(client)
end

function M.check()
  neovim()
  options()
  program()
  running()
end

return M
