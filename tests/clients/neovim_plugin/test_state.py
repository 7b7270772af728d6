"""Parts of the plugin without a server: attempts, places that move, plans by line, questions that are over."""

from __future__ import annotations

import json
from typing import Any

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
  { type = "response_start", run_id = "a1", session_id = "t", mode = "direct", attempt_of = "w" },
  { type = "response_start", run_id = "a2", session_id = "u", mode = "direct", attempt_of = "w" },
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
        "titles": ["Do it #2"],
    }


def test_a_run_of_an_earlier_session_leads_nobody_back() -> None:
    session = evaluate(
        """
        local old = { type = "token", run_id = "o", session_id = "old", content = "x" }
        return after({
          { type = "response_start", run_id = "o", session_id = "old", mode = "direct" },
          { type = "local_history", session_id = "new", markdown = "" },
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
