-- Writes doc/codeagent.txt: what is said here, and what is taken from the code (commands, options, highlights, settings).
-- Run from anywhere: nvim -l editors/neovim/scripts/vimdoc.lua [--check]

local here = vim.fs.dirname(vim.fs.normalize(debug.getinfo(1, "S").source:sub(2)))
local root = vim.fs.dirname(here)
vim.opt.rtp:prepend(root)

local WIDTH = 78
local page = {}

local function put(...)
  vim.list_extend(page, { ... })
end

local function rule()
  put("", ("="):rep(WIDTH))
end

local function section(title, tag)
  rule()
  local mark = "*" .. tag .. "*"
  put(title .. (" "):rep(math.max(1, WIDTH - #title - #mark)) .. mark, "")
end

local function wrapped(text, indent)
  local line = indent
  for word in text:gmatch("%S+") do
    if #line + #word + 1 > WIDTH and line ~= indent then
      put((line:gsub("%s+$", "")))
      line = indent
    end
    line = line .. word .. " "
  end
  put((line:gsub("%s+$", "")))
end

local function entry(head, tag, text)
  local mark = tag and "*" .. tag .. "*" or ""
  put(head .. (" "):rep(math.max(1, WIDTH - #head - #mark)) .. mark)
  page[#page] = page[#page]:gsub("%s+$", "")
  wrapped(text, "        ")
end

local function shown(value)
  if value == nil then return "none" end
  return (vim.inspect(value):gsub("\n%s*", " "):gsub("<%d+>", ""):gsub("vim.empty_dict%(%)", "{}"))
end

put("*codeagent.txt*  A coding agent that speaks the Language Server Protocol", "")
put("Made by scripts/vimdoc.lua from the code. Change it there.", "")
put("  1. Getting started ............ |codeagent-start|")
put("  2. Commands ................... |codeagent-commands|")
put("  3. Windows .................... |codeagent-windows|")
put("  4. Questions .................. |codeagent-questions|")
put("  5. Mappings ................... |codeagent-mappings|")
put("  6. Options .................... |codeagent-options|")
put("  7. Settings of the server ..... |codeagent-settings|")
put("  8. Status line and events ..... |codeagent-statusline|")
put("  9. Highlights ................. |codeagent-highlights|")
put(" 10. When something is wrong .... |codeagent-trouble|")

section("1. Getting started", "codeagent-start")
put([[
Neovim 0.11 or newer is needed, and Python 3.11 or newer for the server. With
the plugin on 'runtimepath', one line in your init.lua is enough: >lua

    vim.lsp.enable("codeagent")
<
Where the server, `codeagent-lsp`, is not on this machine yet, the first
command that needs it offers to install it: |codeagent-:install|. Which model is
used is asked then, or by |codeagent-:setup|, or named as a setting: >lua

    vim.lsp.config("codeagent", {
      settings = {
        codeagent = { model = { baseUrl = "http://127.0.0.1:8080/v1" } },
      },
    })
<
Then, in any file: >vim

    :CodeAgent run make the failing test pass
<
Nothing is changed on disk or in a buffer before you have accepted it. Every
accepted change is an ordinary edit of the buffer: |u| takes it back, and so
does `:CodeAgent undo`, which keeps what you typed since.]])
page = vim.split(table.concat(page, "\n"), "\n")

section("2. Commands", "codeagent-commands")
put("*:CodeAgent*", ":[range]CodeAgent[!] {subcommand} [arguments]", "")
wrapped(
  "Subcommands are completed by <Tab>. Those that say so take a range; after a characterwise visual selection its "
    .. "columns count too. Without a range they are about the symbol under the cursor. Words that are missing are "
    .. "asked for. The server is started when there is none.",
  ""
)
put("")
for _, sub in ipairs(require("codeagent.commands").SUBS) do
  local head = (":%sCodeAgent %s %s"):format(sub.range and "[range]" or "", sub.name, sub.args):gsub("%s+$", "")
  entry(head, "codeagent-:" .. sub.name, require("codeagent.texts").CATALOGUE["sub." .. sub.name][1])
end

section("3. Windows", "codeagent-windows")
put([[
All mappings in these windows are local to their buffers. Each has a `<Plug>`
name, `<Plug>(codeagent-NAME)`, so that you can map other keys in an
autocommand for the |FileType| or |BufEnter| of `codeagent://*`.

The transcript                                          *codeagent-transcript*

  q       transcript-close    close it
  <C-c>   transcript-stop     stop what is at work
  <CR>    transcript-jump     go to the file named in this line; also gf
  <Tab>   transcript-output   open or close what the tool in this line printed,
                              also while it runs
  gy      transcript-copy     copy the code block under the cursor

  i       transcript-write    write a task, or to the run at work

The box below the transcript                                 *codeagent-input*

`:CodeAgent chat`, or `i` in the transcript. `@` and `/` complete files and
commands, by the server. It grows with what is written.

  <CR>    input-send     send it as a task; while a run works, say it to that;
                         where a menu is open, take what it offers
  <M-CR>  input-queue    queue it as a task that begins when the session is free
  <C-j>                  a new line
  <Up>    input-older    what was sent before, on the first line
  <Down>  input-newer    what was sent after it, on the last line
  q       input-close    close it; what is written stays

The review                                                  *codeagent-review*

  a       review-accept         apply the hunk under the cursor
  x       review-discard        drop it
  A       review-accept-file    apply the whole file
  X       review-discard-file   drop the whole file
  ga      review-accept-all     apply everything
  gx      review-discard-all    drop everything
  ]c      review-next           next hunk
  [c      review-previous       previous hunk
  <CR>    review-jump           go to the place in the file; also gf
  q       review-close          close; what is not decided goes on waiting

In the code                                                  *codeagent-hunks*

Changes that wait are also shown in the buffers that they are for, unless the
option `review.inline` is false: lines that would go are marked, those that
would come stand below them as virtual lines. The text stays yours until you
accept. `:CodeAgent hunk {action}`, or `<Plug>(codeagent-hunk-ACTION)`:

  accept, discard             the change under the cursor
  accept-file, discard-file   all changes to this file
  next, previous              to the next change, or the one before

About your own edits                                        *codeagent-offers*

At the end of a line stands what is offered there, unless the option `offers` is
false: the change that you made last, where it is due as well, and a definition
that you changed by hand and whose callers can follow. What you take is put up
for review like all changes. `:CodeAgent offer {action}`, or
`<Plug>(codeagent-offer-ACTION)`:

  accept                      take the nearest one
  dismiss                     have it offered no more
  go                          to the next one, also in another buffer

The plan                                                      *codeagent-plan*

  r       plan-retry          try the step under the cursor again
  s       plan-skip           leave it out
  u       plan-rollback       take back what was applied since before it
  q       plan-close          close it]])
page = vim.split(table.concat(page, "\n"), "\n")

section("4. Questions", "codeagent-questions")
wrapped(
  "Questions and approvals are asked by |vim.ui.select()| and |vim.ui.input()|, so they look as you have set these "
    .. "up. They never come while you type: in insert, visual and command-line mode, and while a macro is recorded, "
    .. "they wait until you are back in normal mode. Whatever waits is shown by the status line component, in the "
    .. "transcript, as code lenses (|vim.lsp.codelens|) and by `:CodeAgent pending`. Leaving a question without an "
    .. "answer means no; changes go on waiting.",
  ""
)

section("5. Mappings", "codeagent-mappings")
wrapped("No global mappings are made. Map the `<Plug>` names, or set the option `keymaps` to get these:", "")
put("")
for _, item in ipairs(require("codeagent.keymaps").SUGGESTED) do
  put(("  %-5s %-14s <Plug>(codeagent-%s)"):format(table.concat(item[1], " "), item[2], item[3]))
end
put("", "In visual mode `edit`, `explain`, `fix`, `refactor`, `document`, `test`, `run`", "and `ask` are about the selection.")
put("", "Completion while you type                                   *codeagent-inline*", "")
wrapped("Where the server completes (its setting `inline.enabled`), the rest of the line or block is shown at the cursor "
  .. "in insert mode. `<Plug>(codeagent-inline-accept)` takes it, `-accept-word` and `-accept-line` take a part, "
  .. "`-dismiss` hides it, `-trigger` asks now. No key is taken from you; to take it with <Tab>: >lua", "")
put("")
put("    vim.keymap.set(\"i\", \"<Tab>\", function()")
put("      local visible = require(\"codeagent.inline\").visible()")
put("      return visible and \"<Plug>(codeagent-inline-accept)\" or \"<Tab>\"")
put("    end, { expr = true, remap = true })")
put("    vim.keymap.set(\"i\", \"<M-Right>\", \"<Plug>(codeagent-inline-accept-word)\")", "<")
wrapped("Neovim 0.12 shows completions itself, see |vim.lsp.inline_completion|; the same `<Plug>` names work there.", "")

section("6. Options", "codeagent-options")
put("Of this plugin, in `vim.g.codeagent`, or as the argument of *codeagent-setup*", "`require(\"codeagent\").setup()`, which need not be called: >lua", "")
put("    vim.g.codeagent = { prompts = \"manual\", transcript = { size = 0.3 } }", "<")
for _, option in ipairs(require("codeagent.config").OPTIONS) do
  local choices = option.choices and " One of: " .. table.concat(option.choices, ", ") .. "." or ""
  entry(option.key, "codeagent-option-" .. option.key, option.help .. choices .. " Default: " .. shown(option.default) .. ".")
end

section("7. Settings of the server", "codeagent-settings")
put("In `vim.lsp.config(\"codeagent\", { settings = { codeagent = { … } } })`, nested", "by the dots.", "")
for _, setting in ipairs(require("codeagent.protocol").settings) do
  local words = ("%s Allowed: %s. Default: %s."):format(setting.description, setting.allowed, shown(setting.default))
  entry(setting.key, "codeagent-setting-" .. setting.key, words)
end

section("8. Status line and events", "codeagent-statusline")
put([[
A component for the status line, empty while nothing works or waits: >lua

    vim.o.statusline = "%f %m%=%{v:lua.require'codeagent'.statusline()}"
<
With highlights: >lua

    "%{%v:lua.require'codeagent'.statusline({'highlight': v:true})%}"
<
`require("codeagent").status()` is one of "idle", "working", "waiting" and
"error". The progress of every run is also ordinary LSP progress: |LspProgress|
and |vim.lsp.status()| show it.

                                                            *codeagent-events*
|User| autocommands, with the server's event in `data`. Of attempts at a task
only CodeAgentChangesApplied and CodeAgentChangesDiscarded are told, all else of
the run that they are for:
]])
page = vim.split(table.concat(page, "\n"), "\n")
local patterns = {}
for kind, pattern in pairs(require("codeagent.store").PATTERNS) do
  patterns[pattern] = patterns[pattern] or {}
  table.insert(patterns[pattern], kind)
end
for pattern, kinds in vim.spairs(patterns) do
  table.sort(kinds)
  put(("  %-26s %s"):format(pattern, table.concat(kinds, ", ")))
end
put("  CodeAgentChanged           anything, at most thirty times a second")

section("9. Highlights", "codeagent-highlights")
put("They link by default; a group you define yourself stays.", "")
for _, group in ipairs(require("codeagent.highlights").GROUPS) do
  entry(group[1], "hl-" .. group[1], group[3] .. ". Links to |hl-" .. group[2] .. "|.")
  page[#page] = page[#page]:gsub("|hl%-(Diagnostic%w+)|", "|hl-%1|")
end
for index, line in ipairs(page) do
  page[index] = line:gsub("Links to |hl%-(%u%w+)|", function(name)
    local known = { Title = true, Directory = true, NonText = true, StatusLine = true, WarningMsg = true, ErrorMsg = true }
    return known[name] and ("Links to |hl-%s|"):format(name) or ("Links to `%s`"):format(name)
  end)
end

section("10. When something is wrong", "codeagent-trouble")
put([[
`:checkhealth codeagent`   what works here and what to do about what does not
`:CodeAgent doctor`        the same from the running server alone
`:CodeAgent messages`      everything that was told, in full
`:CodeAgent log`           the log, with what the server wrote to standard error
`:CodeAgent restart`       stop the server and start it again

When the server ends unexpectedly your buffers stay as they are. After a
restart the session is taken up again, and changes that waited still wait.]])
rule()
put("vim:tw=78:ts=8:noet:ft=help:norl:")

local text = table.concat(page, "\n") .. "\n"
local path = root .. "/doc/codeagent.txt"
if _G.arg[1] == "--check" then
  local file = io.open(path)
  local current = file and file:read("a")
  if file then file:close() end
  if current ~= text then
    io.stderr:write("doc/codeagent.txt is out of date; run nvim -l editors/neovim/scripts/vimdoc.lua\n")
    os.exit(1)
  end
else
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end
