"""Parts of the plugin without a server: attempts, places that move, plans by line, questions that are over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.neovim.support import MARKS
from tests.clients.neovim_plugin.support import run_lua

pytestmark = MARKS

STATE = """
local queries = require("codeagent.queries")
local reducer = require("codeagent.reducer")
local function after(events)
  local state = reducer.initial()
  for _, event in ipairs(events) do state = reducer.reduce(state, event) end
  return state
end
local file = { path = "/w/a.py", base = "1", text = "2" }
local ATTEMPTS = {
  { type = "local_request", run_id = "w", session_id = "s", title = "Do it", client_id = 1 },
  { type = "response_start", run_id = "w", session_id = "s", mode = "direct" },
  { type = "response_start", run_id = "a1", session_id = "t", attempt_of = "w", attempt = 2 },
  { type = "response_start", run_id = "a2", session_id = "u", attempt_of = "w", attempt = 1 },
  { type = "file_change", run_id = "a2", session_id = "u", path = "/w/a.py", change = file },
  { type = "run_completed", run_id = "a2", session_id = "u", status = "failed" },
}
"""


def evaluate(code: str) -> Any:
    """What `code`, the body of a Lua function, returns, as JSON."""
    return json.loads(run_lua(f"{STATE}\nlocal function main()\n{code}\nend\nio.write(vim.json.encode(main()))"))


def test_attempts_are_parts_of_their_run() -> None:
    """None of them is the newest run, the one to steer, or one whose changes are accepted; none changes the session."""
    found = evaluate(
        """
        local state = after(ATTEMPTS)
        local newest, working = queries.latest(state)
        return {
          newest = newest.run_id, working = working.run_id, session = state.session_id,
          waiting = #queries.waiting_changes(state), condition = queries.condition(state),
          titles = vim.tbl_map(function(run) return queries.title(state, run) end, queries.attempts(state)),
        }
        """
    )
    assert found == {
        "newest": "w",
        "working": "w",
        "session": "s",
        "waiting": 0,
        "condition": "working",
        "titles": ["Do it – attempt 1"],
    }


def test_autocommands_are_told_of_the_run_and_of_what_is_taken_from_attempts() -> None:
    told = evaluate(
        """
        local told, store = {}, require("codeagent.store")
        vim.api.nvim_create_autocmd("User", { pattern = "CodeAgent*", callback = function(event)
          if event.data then table.insert(told, event.match .. " " .. event.data.run_id) end
        end })
        for _, event in ipairs(ATTEMPTS) do store.dispatch(event) end
        store.dispatch({ type = "changes_proposed", run_id = "a1", session_id = "t", files_changed = {} })
        store.dispatch({ type = "changes_applied", run_id = "a2", session_id = "u", files_changed = {} })
        store.dispatch({ type = "run_completed", run_id = "w", session_id = "s", status = "completed" })
        return told
        """
    )
    assert told == ["CodeAgentRunStarted w", "CodeAgentChangesApplied a2", "CodeAgentRunCompleted w"]


def test_an_attempt_of_which_only_the_title_is_known_is_not_the_newest_run() -> None:
    """Its title comes with the progress, before the event that tells what it is."""
    newest = evaluate(
        """
        local events = vim.list_slice(ATTEMPTS, 1, 2)
        table.insert(events, { type = "local_title", run_id = "a1", title = "Do it (1/2)", client_id = 1 })
        local newest, working = queries.latest(after(events))
        return { newest.run_id, working.run_id }
        """
    )
    assert newest == ["w", "w"]


def test_each_client_has_its_session_and_its_runs() -> None:
    found = evaluate(
        """
        local state = after({
          { type = "local_request", run_id = "a", session_id = "s", title = "One", client_id = 1 },
          { type = "local_request", run_id = "b", session_id = "t", title = "Two", client_id = 2 },
          { type = "local_history", session_id = "u", client_id = 1 },
        })
        return { session = state.session_id, one = state.sessions[1], two = state.sessions[2],
          newest = queries.latest(state).run_id, newest_of_one = queries.latest(state, 1).run_id }
        """
    )
    assert found == {"session": "u", "one": "u", "two": "t", "newest": "b", "newest_of_one": "a"}


def test_the_transcript_stays_with_the_run_until_an_attempt_is_chosen() -> None:
    """What attempts do leads it nowhere, nor does their end; the next task leads it back."""
    found = evaluate(
        """
        local store, transcript = require("codeagent.store"), require("codeagent.transcript")
        local pages = {}
        local function look(name)
          store.flush()
          local page = vim.fn.bufnr("codeagent://transcript")
          pages[name] = table.concat(vim.api.nvim_buf_get_lines(page, 0, -1, true), "|")
        end
        local function say(run_id, session_id, words)
          store.dispatch({ type = "token", run_id = run_id, session_id = session_id, content = words })
        end
        for _, event in ipairs(ATTEMPTS) do store.dispatch(event) end
        transcript.shown("t")
        local opened_by_attempt = transcript.is_visible()
        transcript.open()
        say("a1", "t", "I try.")
        look("whole")
        transcript.open({ session = "t" })
        say("a2", "u", "Me too.")
        look("chosen")
        store.dispatch({ type = "local_request", run_id = "n", session_id = "s", title = "Next", client_id = 1 })
        look("next")
        return { opened_by_attempt = opened_by_attempt, pages = pages }
        """
    )
    assert not found["opened_by_attempt"]
    assert "Do it" in found["pages"]["whole"] and "I try." not in found["pages"]["whole"]
    assert "I try." in found["pages"]["chosen"] and "Do it" not in found["pages"]["chosen"]
    assert "Next" in found["pages"]["next"] and "I try." not in found["pages"]["next"]


def test_an_attempt_is_looked_at_from_the_list_of_runs() -> None:
    found = evaluate(
        """
        local store, client = require("codeagent.store"), require("codeagent.client")
        for _, event in ipairs(ATTEMPTS) do store.dispatch(event) end
        client.call = function(_, _, done)
          done({
            { runId = "w", sessionId = "s", title = "Do it", state = "completed" },
            { runId = "a2", sessionId = "u", title = "Do it (2/2)", state = "completed" },
          }, { id = 1 })
        end
        local shown, looked = {}, nil
        require("codeagent.transcript").open = function(wish) looked = wish.session end
        vim.ui.select = function(items, options, done)
          table.insert(shown, vim.tbl_map(options.format_item, items))
          done(#shown == 1 and items[2] or items[1])
        end
        require("codeagent.runs").list()
        return { runs = shown[1], choices = shown[2], looked = looked }
        """
    )
    assert [row.split(maxsplit=1)[1] for row in found["runs"]] == ["Do it", "Do it – attempt 1"]
    assert found["choices"] == ["Show what it says", "Review its changes"]
    assert found["looked"] == "u"


def test_a_run_of_an_earlier_session_leads_nobody_back() -> None:
    session = evaluate(
        """
        local old = { type = "token", run_id = "o", session_id = "old", content = "x" }
        return after({
          { type = "response_start", run_id = "o", session_id = "old", mode = "direct" },
          { type = "local_history", session_id = "new" },
          old,
        }).session_id
        """
    )
    assert session == "new"


def test_a_place_moves_with_what_is_typed_before_it() -> None:
    found = evaluate(
        """
        local ranges = require("codeagent.ranges")
        vim.api.nvim_buf_set_name(0, "/w/a.py")
        vim.api.nvim_buf_set_lines(0, 0, -1, false, { "one", "zwei 中", "three" })
        local function taken(call)
          local held = ranges.hold(call, 0)
          vim.api.nvim_buf_set_lines(0, 0, 0, false, { "above" })
          local range = held.take("utf-16").range
          vim.api.nvim_buf_set_lines(0, 0, 1, false, {})
          return { range.start.line, range.start.character, range["end"].line, range["end"].character }
        end
        vim.api.nvim_win_set_cursor(0, { 2, 8 })
        local places = { taken({ range = 2, line1 = 2, line2 = 2 }), taken({ range = 0 }) }
        local dropped = ranges.hold({ range = 0 }, 0)
        dropped.release()
        local space = vim.api.nvim_create_namespace("codeagent.places")
        return { places = places, left = #vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {}) }
        """
    )
    assert found == {"places": [[2, 0, 2, 6], [2, 5, 2, 5]], "left": 0}


EDITING = """
local client = require("codeagent.client")
vim.api.nvim_buf_set_name(0, "/w/a.py")
vim.api.nvim_buf_set_lines(0, 0, -1, false, { "one", "two", "three" })
vim.cmd("runtime plugin/codeagent.lua")
local answer, sent
vim.ui.input = function(_, done) answer = done end
client.ensure = function(use) use({ offset_encoding = "utf-16" }) end
client.run = function(kind, arguments) sent = { kind = kind, arguments = arguments } end
local function held()
  return #vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace("codeagent.places"), 0, -1, {})
end
"""


@pytest.mark.parametrize("command", ["edit", "ask", "run"])
def test_what_is_typed_while_words_are_asked_for_moves_the_lines(command: str) -> None:
    found = evaluate(
        EDITING
        + f"""
        vim.cmd("2,3CodeAgent {command}")
        local before = held()
        vim.api.nvim_buf_set_lines(0, 0, 0, false, {{ "typed", "meanwhile" }})
        answer("shorter")
        local range = sent.arguments.range
        local lines = {{ range.start.line, range["end"].line }}
        return {{ kind = sent.kind, before = before, after = held(), lines = lines }}
        """
    )
    assert found == {"kind": command, "before": 2, "after": 0, "lines": [3, 4]}


def test_lines_are_let_go_without_words_without_a_server_and_with_their_buffer() -> None:
    found = evaluate(
        EDITING
        + """
        local told = {}
        vim.notify = function(words) table.insert(told, words) end
        vim.cmd("2,3CodeAgent edit")
        answer(nil)
        local dropped = held()
        client.ensure = function(_, failed) failed() end
        vim.cmd("2,3CodeAgent fix")
        local failed = held()
        client.ensure = function(use) use({ offset_encoding = "utf-16" }) end
        vim.cmd("2,3CodeAgent edit")
        vim.cmd("bdelete!")
        answer("shorter")
        return { dropped = dropped, failed = failed, sent = sent ~= nil, told = told }
        """
    )
    assert found == {"dropped": 0, "failed": 0, "sent": False, "told": ["The buffer that this was about is gone."]}


def test_a_step_is_known_by_its_line() -> None:
    """Also below a goal that looks like steps."""
    rows = evaluate(
        """
        local plan = { goal = "Do:\\n  ○ 1. one thing", state = "running", steps = {
          { step_id = "a", title = "first", state = "failed", error = "It broke." },
          { step_id = "b", title = "second", state = "pending" },
        } }
        local lines, _, rows = require("codeagent.render").plan(plan)
        local found = {}
        for row = 1, #lines do found[row] = rows[row] or "" end
        return found
        """
    )
    assert rows == ["", "", "a", "a", "b"]


def test_a_question_that_is_over_is_not_asked() -> None:
    found = evaluate(
        """
        local store, prompts = require("codeagent.store"), require("codeagent.prompts")
        vim.g.codeagent = { prompts = "manual" }
        vim.notify = function() end
        local asked, answers = {}, {}
        vim.ui.select = function(_, options, done)
          table.insert(asked, options.prompt)
          done(nil)
        end
        for _, title in ipairs({ "First?", "Second?", "Of nobody?" }) do
          if title ~= "Of nobody?" then
            store.dispatch({ type = "approval_requested", run_id = "r", session_id = "s", request_id = title,
              title = title, choices = { "Yes" } })
          end
          coroutine.wrap(function()
            prompts.choose(title, { { title = "Yes" } })
            table.insert(answers, title)
          end)()
        end
        store.dispatch({ type = "approval_resolved", run_id = "r", session_id = "s", request_id = "First?",
          answer = "Yes" })
        while prompts.ask_now() do end
        vim.wait(500, function() return #answers == 3 end)
        table.sort(answers)
        return { asked = asked, answers = answers }
        """
    )
    assert found == {"asked": ["Second?", "Of nobody?"], "answers": ["First?", "Of nobody?", "Second?"]}


def test_a_question_is_known_though_its_message_is_cut_or_sounds_like_another() -> None:
    """The server shows a title in one line, and cut; two runs, and two projects, may ask the same."""
    found = evaluate(
        """
        local store, prompts = require("codeagent.store"), require("codeagent.prompts")
        vim.g.codeagent = { prompts = "manual" }
        vim.notify = function() end
        local asked = {}
        vim.ui.select = function(_, options, done)
          table.insert(asked, options.prompt)
          done(nil)
        end
        local function question(request_id, client_id, title)
          store.dispatch({ type = "question_asked", run_id = "r" .. client_id, session_id = "s", client_id = client_id,
            request_id = request_id, title = title, choices = { "Yes" } })
        end
        local function choose(message, client_id)
          coroutine.wrap(function() prompts.choose(message, { { title = "Yes" } }, client_id) end)()
        end
        local function over(request_id)
          store.dispatch({ type = "question_answered", run_id = "r1", session_id = "s", request_id = request_id })
        end
        question("long", 1, "Why\\n" .. ("very "):rep(60) .. "long?")
        choose("Why " .. ("very "):rep(30) .. "…", 1)
        question("first", 1, "Go on?")
        question("second", 1, "Go on?")
        question("other", 2, "Go on?")
        choose("Go on?", 1)
        over("long")
        over("first")
        choose("Go on?", 1)
        choose("Go on?", 2)
        over("second")
        while prompts.ask_now() do end
        return asked
        """
    )
    assert found == ["Go on?"], "that of the other project"


def test_words_are_not_asked_for_when_they_are_not_wanted_any_more() -> None:
    found = evaluate(
        """
        local store, prompts = require("codeagent.store"), require("codeagent.prompts")
        vim.g.codeagent = { prompts = "manual" }
        vim.notify = function() end
        local asked = {}
        vim.ui.input = function(options, done)
          table.insert(asked, options.prompt)
          done("x")
        end
        for _, name in ipairs({ "a", "b" }) do
          store.dispatch({ type = "question_asked", run_id = name, session_id = "s", request_id = name, title = name })
          coroutine.wrap(function() prompts.input({ requestId = name, title = name, prompt = "" }) end)()
        end
        store.dispatch({ type = "run_completed", run_id = "a", session_id = "s", status = "cancelled" })
        while prompts.ask_now() do end
        return asked
        """
    )
    assert found == ["b "]


def test_the_menu_speaks_the_users_language() -> None:
    found = evaluate(
        """
        local rows = {}
        vim.ui.select = function(items, options)
          for _, item in ipairs(items) do table.insert(rows, options.format_item(item)) end
        end
        require("codeagent.texts").language = function() return "zh-cn" end
        require("codeagent.commands").menu()
        return rows
        """
    )
    assert all(any("\u4e00" <= letter <= "\u9fff" for letter in row) for row in found), found
    assert not [row for row in found if "|" in row]


def test_the_mode_that_holds_is_marked() -> None:
    found = evaluate(
        """
        local rows = {}
        vim.ui.select = function(items, options)
          for _, item in ipairs(items) do table.insert(rows, options.format_item(item)) end
        end
        require("codeagent.client").call = function(_, _, use) use({ mode = "readOnly" }) end
        require("codeagent.pickers").mode()
        return rows
        """
    )
    assert [row.partition(":")[0] for row in found if row.endswith("(now)")] == ["readOnly"]
    assert len(found) == 4


def test_the_menu_has_what_can_be_done_now_in_lines_that_fit() -> None:
    before, after = evaluate(
        """
        vim.o.columns = 40
        local store, rows = require("codeagent.store"), {}
        vim.ui.select = function(items, options)
          local said = {}
          for _, item in ipairs(items) do table.insert(said, options.format_item(item)) end
          table.insert(rows, said)
        end
        local menu = require("codeagent.commands").menu
        menu()
        store.dispatch({ type = "response_start", session_id = "s", run_id = "r", seq = 1, ts = 1, kind = "run" })
        menu()
        return rows
        """
    )
    assert {row.split()[0] for row in after} - {row.split()[0] for row in before} == {"cancel", "steer"}
    assert max(map(len, before + after)) <= 34


def test_a_language_that_is_asked_for_and_not_installed_is_spoken() -> None:
    said = evaluate(
        """
        vim.cmd("language messages C")
        vim.env.LC_ALL, vim.env.LC_MESSAGES, vim.env.LANG = nil, "", "zh_CN.UTF-8"
        local first = require("codeagent.texts").language()
        vim.env.LC_ALL = "en_GB.UTF-8"
        return { first, require("codeagent.texts").language() }
        """
    )
    assert said == ["zh-cn", "en"]


def test_the_words_follow_the_server_s_language() -> None:
    said = evaluate(
        """
        vim.lsp.config("codeagent", { settings = { codeagent = { language = "zh-cn" } } })
        return { require("codeagent.texts").language() }
        """
    )
    assert said == ["zh-cn"]
