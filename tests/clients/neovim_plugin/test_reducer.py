"""The plugin's pure parts, run by Neovim's Lua: recorded transcripts, the diff of a review, lines of a transcript."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.clients.neovim.support import MARKS
from tests.clients.neovim_plugin.support import run_lua

pytestmark = MARKS

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.jsonl"))

REPLAY = """
local reducer = require("codeagent.reducer")
local function events(path)
  return vim.iter(io.lines(path)):map(function(line) return vim.json.decode(line) end)
end
"""


def evaluate(code: str) -> Any:
    """What `code`, the body of a Lua function, returns, as JSON."""
    return json.loads(run_lua(f"{REPLAY}\nlocal function main()\n{code}\nend\nio.write(vim.json.encode(main()))"))


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_transcript_ends_in_its_state(name: str) -> None:
    view = evaluate(
        f"""
        local state = reducer.initial()
        for event in events("{GOLDEN / name}.jsonl") do state = reducer.reduce(state, event) end
        return require("codeagent.view").of(state)
        """
    )
    path = GOLDEN / f"{name}.json"
    if os.environ.get("CODEAGENT_UPDATE_GOLDEN"):
        path.write_text(json.dumps(lists(view), indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    assert lists(view) == json.loads(path.read_text())


def test_a_run_of_another_agent_stands_beside_the_users() -> None:
    found = evaluate(
        """
        local queries = require("codeagent.queries")
        local state = reducer.initial()
        local function told(event) state = reducer.reduce(state, event) end
        told({ type = "local_request", run_id = "a", session_id = "mine", title = "mine" })
        told({ type = "response_start", run_id = "a", session_id = "mine", mode = "direct" })
        told({ type = "response_start", run_id = "b", session_id = "lent", mode = "direct", beside = "Lent" })
        local newest, working = queries.latest(state)
        told({ type = "run_completed", run_id = "a", status = "completed" })
        local _, later = queries.latest(state)
        return { session = state.session_id, newest = newest.title, working = working.title, later = later ~= nil }
        """
    )
    assert found == {"session": "mine", "newest": "Lent", "working": "mine", "later": False}


def test_what_another_program_changes_stands_in_the_conversation_and_leads_nobody_away() -> None:
    found = evaluate(
        """
        local queries, render = require("codeagent.queries"), require("codeagent.render")
        local state = reducer.initial()
        local function told(event)
          event.client_id = event.client_id or 1
          state = reducer.reduce(state, event)
        end
        told({ type = "response_start", run_id = "x", session_id = "other", foreign = true, client_id = 2 })
        told({ type = "local_request", run_id = "a", session_id = "mine", title = "mine" })
        told({ type = "response_start", run_id = "a", session_id = "mine" })
        told({ type = "response_start", run_id = "b", session_id = "outside", foreign = true })
        told({ type = "changes_proposed", run_id = "b", files_changed = { "/w/a.py" }, added = 1, removed = 0 })
        told({ type = "run_completed", run_id = "b", status = "completed", ts = 1 })
        local run = state.runs.b
        local shown = vim.tbl_map(function(each) return each.run_id end, queries.in_transcript(state, "mine"))
        return { session = state.session_id, shown = shown, line = render.block(run.blocks[1], run)[1] }
        """
    )
    assert found == {"session": "mine", "shown": ["a", "b"], "line": "  ± Changed outside: a.py +1 −0"}


@pytest.mark.parametrize("name", NAMES)
def test_a_state_never_changes(name: str) -> None:
    assert evaluate(
        f"""
        local state, bad = reducer.initial(), 0
        for event in events("{GOLDEN / name}.jsonl") do
          local before, copy = state, vim.deepcopy(state)
          state = reducer.reduce(state, event)
          if not vim.deep_equal(before, copy) then bad = bad + 1 end
        end
        return {{ bad = bad }}
        """
    ) == {"bad": 0}


def test_the_status_has_seconds_tokens_cost_and_the_share_from_the_cache() -> None:
    found = evaluate(
        """
        local state = reducer.initial()
        local function go(event, now)
          event.run_id, event.session_id = "r", "s"
          state = reducer.reduce(state, event)
          return (require("codeagent.render").summary(state, now, now and 30))
        end
        go({ type = "response_start", mode = "direct", ts = 100 })
        return {
          (function()
            go({ type = "thought", content = "It is long.\\nthink" })
            return go({ type = "thought", content = "ing" })
          end)(),
          go({ type = "usage", prompt_tokens = 100, cached_tokens = 0, completion_tokens = 1, cost = 0.042 }),
          go({ type = "usage", prompt_tokens = 200, cached_tokens = 190, completion_tokens = 1, cost = 1.2 }),
          go({ type = "status", message = "waiting for the model" }, 107.35),
          go({ type = "status", message = "thinking" }, 225.4),
          table.concat(require("codeagent.render").block({ kind = "ended", status = "completed", summary = "" },
            vim.tbl_extend("force", state.runs.r, { till = 108.5 })), "|"),
        }
        """
    )
    assert found == [
        "… thinking",
        "… thinking · ↑100 ↓1 · $0.042",
        "… thinking · ↑300 ↓2 · 63 % cached · $1.24",
        "⠸ waiting for … · 7 s · ↑300 ↓2 · 63 % cached · $1.24",
        "⠼ thinking · 2:05 min · ↑300 ↓2 · 63 % cached · $1.24",
        "  ∙ 8.5 s · ↑300 ↓2 · 63 % cached · $1.24|",
    ]


def test_a_long_task_words_that_wait_and_what_was_taken_back_are_all_seen() -> None:
    pages = evaluate(
        """
        local render, state, pages = require("codeagent.render"), reducer.initial(), {}
        local function go(event, id)
          event.run_id, event.session_id = id or "r", "s"
          state = reducer.reduce(state, event)
          local run, lines = state.runs.r, {}
          vim.list_extend(lines, (render.head(run)))
          for _, block in ipairs(run.blocks) do vim.list_extend(lines, (render.block(block, run, true))) end
          table.insert(pages, table.concat(lines, "|"))
        end
        local long = ("very "):rep(60) .. "long"
        go({ type = "local_request", title = long, task = long, queued = true })
        go({ type = "response_start", mode = "direct" })
        go({ type = "local_said", item_id = "i", text = "be brief" })
        go({ type = "steer_delivered", item_id = "i", text = "be brief" })
        go({ type = "local_said", item_id = "i", text = "be brief" })
        go({ type = "local_said", item_id = "j", text = "no" })
        go({ type = "local_withdrawn", item_id = "j" })
        go({ type = "tool_calls", calls = { { id = "c", name = "run_command" } } })
        go({ type = "step_output", content = "one\\r\\ntw" })
        go({ type = "step_output", content = "o\\n" })
        go({ type = "tool_result", tool = "run_command", call_id = "c", success = false, output = "three" })
        go({ type = "session_rewound", gone = { "r" }, what = "both" }, "back")
        go({ type = "session_restored" }, "back")
        return pages
        """
    )
    task = "very " * 60 + "long"
    assert f"> {task}|" in pages[0] and "queued: begins when" in pages[0]
    assert "queued" not in pages[1]
    assert pages[2].endswith("> be brief|  … heard with its next step")
    assert pages[3].endswith("|> be brief") and pages[4] == pages[3] == pages[6]
    assert pages[9].endswith("  … run_command|      │ one|      │ two")
    assert pages[10].endswith("  ✗ run_command|      │ three")
    assert "↶ taken back: its changes and its talk" in pages[11]
    assert pages[12] == pages[10]


def test_every_event_that_is_sent_is_known_and_unknown_ones_do_no_harm() -> None:
    found = evaluate(
        """
        local ignored, kinds = {}, require("codeagent.protocol").events
        for _, kind in ipairs(kinds) do
          local event = { type = kind, run_id = "r", session_id = "s" }
          local ok, state = pcall(reducer.reduce, reducer.initial(), event)
          assert(ok, kind .. ": " .. tostring(state))
          if not state.runs.r then table.insert(ignored, kind) end
          require("codeagent.render").summary(state)
          for _, block in ipairs(state.runs.r and state.runs.r.blocks or {}) do
            local drawn = pcall(require("codeagent.render").block, block, state.runs.r)
            assert(drawn, kind)
          end
        end
        local same = reducer.initial()
        return { ignored = ignored, same = reducer.reduce(same, { type = "no_such", run_id = "r" }) == same }
        """
    )
    assert found["same"]
    known_to_need_nothing = {
        "response_end",
        "intent_classified",
        "tool_enabled",
        "session_rewound",  # told by what the run applies, and by its end
        "session_restored",
    }
    assert set(lists(found["ignored"])) <= known_to_need_nothing


def test_the_end_of_a_server_ends_its_runs_and_closes_its_questions() -> None:
    found = evaluate(
        """
        local state = reducer.initial()
        for _, event in ipairs({
          { type = "response_start", run_id = "a", session_id = "s", client_id = 1 },
          { type = "question_asked", run_id = "a", session_id = "s", client_id = 1, request_id = "q", title = "Who?" },
          { type = "response_start", run_id = "b", session_id = "t", client_id = 2 },
          { type = "local_gone", client_id = 1 },
        }) do state = reducer.reduce(state, event) end
        return { a = state.runs.a.status, b = state.runs.b.status, open = #state.questions }
        """
    )
    assert found == {"a": "lost", "b": "running", "open": 0}


def test_a_diff_is_read_into_files_and_hunks() -> None:
    files = evaluate(
        r"""
        local text = [[

--- a/a b.py
+++ b/a b.py
@@ -1,2 +1,2 @@ a b.py#1fc27b31
 one
-two
+--- three
@@ -9 +9 @@ a b.py#e0000002
-++ x
+++ y
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+x = 1
--- a/old.py
+++ /dev/null
@@ -1 +0,0 @@
-x = 1
diff --git a/from.py b/to.py
rename from from.py
rename to to.py
--- a/from.py
+++ b/to.py
@@ -1 +1 @@
-1
+2]]
        return require("codeagent.diff").parse(vim.split(text, "\n"))
        """
    )
    told = [(file["path"], file["kind"], file["added"], file["removed"], len(file["hunks"])) for file in files]
    assert told == [
        ("a b.py", "edit", 2, 2, 2),
        ("new.py", "create", 1, 0, 1),
        ("old.py", "delete", 0, 1, 1),
        ("to.py", "move", 1, 1, 1),
    ]
    assert [hunk.get("id") for file in files for hunk in file["hunks"]] == [
        "a b.py#1fc27b31",
        "a b.py#e0000002",
        None,
        None,
        None,
    ]
    spans = [(file["first"], file["last"]) for file in files]
    assert all(one[1] < two[0] for one, two in pairwise(spans)), spans


def test_a_line_of_a_diff_is_found_in_the_file() -> None:
    found = evaluate(
        r"""
        local diff = require("codeagent.diff")
        local lines = { "--- a/a", "+++ b/a", "@@ -5,3 +5,3 @@ a#1", " five", "-six", "+SIX", " seven" }
        local hunk = diff.parse(lines)[1].hunks[1]
        return vim.tbl_map(function(line) return diff.source_line(lines, hunk, line) end, { 3, 4, 5, 6, 7 })
        """
    )
    assert found == [5, 5, 6, 7, 7]


def test_both_languages_have_every_sentence_with_the_same_names() -> None:
    bad = evaluate(
        """
        local bad = {}
        local function names(words)
          local found = {}
          for name in words:gmatch("{(%w+)}") do found[#found + 1] = name end
          table.sort(found)
          return table.concat(found, ",")
        end
        for key, both in pairs(require("codeagent.texts").CATALOGUE) do
          if #both ~= 2 or names(both[1]) ~= names(both[2]) then table.insert(bad, key) end
        end
        return { bad = bad, count = vim.tbl_count(require("codeagent.texts").CATALOGUE) }
        """
    )
    assert not bad["bad"]
    assert bad["count"] > 50


def test_what_a_call_is_about_is_what_the_server_says_else_what_its_arguments_say() -> None:
    subjects = evaluate(
        """
        local events = require("codeagent.run_events")
        local found = {}
        for _, call in ipairs({
          { name = "read_file", arguments = { path = "/w/a.py" }, subject = "a.py" },
          { name = "read_file", arguments = { path = "b.py" } },
          { name = "apply_patch", arguments = { patch = "…" }, subject = "a.py, b.py" },
          { name = "todoread", arguments = {} },
        }) do
          local run = events.tool_calls({ blocks = {}, outputs = {} }, { calls = { call } })
          found[#found + 1] = run.blocks[1].subject
        end
        return found
        """
    )
    assert subjects == ["a.py", "b.py", "a.py, b.py", ""]


def test_names_and_outputs_are_shown_as_they_are_in_a_buffer_of_markdown() -> None:
    lines = evaluate(
        """
        local render = require("codeagent.render")
        local run = { outputs = {}, usage = { prompt = 0, completion = 0, cached = 0 } }
        local function first(block) return (render.block(block, run))[1] end
        return {
          first({ kind = "tool", name = "edit_file", subject = "pkg/__init__.py", state = "done" }),
          first({ kind = "tool", name = "run_cmd", subject = "ls *.py | grep `x`", state = "done" }),
          first({ kind = "tool", name = "run_tests", subject = "tests/test_ini.py", state = "done" }),
          first({ kind = "error", text = "Run `codeagent-lsp setup` first." }),
          (render.block({ kind = "tool", name = "x", subject = "", state = "failed", error = "No.\\nDo y." }, run))[2],
          first({ kind = "text", text = "It is **bold**." }),
          render.head({ title = "say it in many wo…", task = "say it in many words", status = "completed" })[1],
          render.head({ title = "rename __init__", task = "rename __init__", status = "running" })[1],
        }
        """
    )
    assert lines == [
        "  ✓ `edit_file pkg/__init__.py`",
        "  ✓ `` run_cmd ls *.py | grep `x` ``",
        "  ✓ run_tests tests/test_ini.py",
        "  ✗ Run `codeagent-lsp setup` first.",
        "      No.",
        "It is **bold**.",
        "## say it in many words",
        "## `rename __init__`",
    ]


def test_what_is_printed_belongs_to_the_first_of_several_calls_that_has_no_result() -> None:
    outputs = evaluate(
        """
        local state = reducer.initial()
        for _, event in ipairs({
          { type = "tool_calls", calls = { { id = "t", name = "run_tests" }, { id = "c", name = "run_cmd" } } },
          { type = "step_output", content = "OK\\n" },
        }) do
          event.run_id, event.session_id = "r", "s"
          state = reducer.reduce(state, event)
        end
        return { state.runs.r.blocks[1].output, state.runs.r.blocks[2].output, state.runs.r.outputs.t }
        """
    )
    assert outputs == ["OK", "", "OK\n"]


def test_the_columns_of_a_table_stand_below_each_other_as_they_are_seen() -> None:
    text = """\
Two:

|name|`n`|what|
|---|--:|---|
|`a.py`|1|the **first**|
|语言|20|`a \\| b`|
| only
after

```
|a|b|
|-|-|
```
a | b
no table
|a|b|c|
|-|-|"""
    lines = evaluate(f"return (require('codeagent.render').block({{ kind = 'text', text = [==[{text}]==] }}, {{}}))")
    assert lines == [
        "Two:",
        "",
        "| name |   `n` | what",
        "| ---- | --: | ----",
        "| `a.py` |   1 | the **first**",
        "| 语言 |  20 | `a \\| b`",
        "| only |     |",
        *text.splitlines()[7:],
        "",
    ]


def test_commands_that_a_sentence_of_the_server_names_are_those_of_the_plugin() -> None:
    said = evaluate(
        """
        local here = require("codeagent.notify").here
        return { here("No such session. `codeagent.session.list` shows all."), here("codeagent.trust asks again"),
          here("`codeagent.mcp.reload` and codeagent-lsp") }
        """
    )
    assert said == [
        "No such session. `:CodeAgent sessions` shows all.",
        "`:CodeAgent trust` asks again",
        "`codeagent.mcp.reload` and codeagent-lsp",
    ]


def test_counts_are_in_the_singular_or_plural() -> None:
    told = evaluate(
        """
        local texts = require("codeagent.texts")
        return { texts.get("review.counts", { files = 1, hunks = 2 }), texts.get("told.copied", { count = 1 }) }
        """
    )
    assert told == ["1 file, 2 changes", "Copied 1 line."]


def test_five_hundred_events_a_second_cost_little() -> None:
    found = evaluate(
        """
        local state, before = reducer.initial(), vim.uv.hrtime()
        for number = 1, 5000 do
          local kind = number % 50 == 0 and "tool_calls" or "token"
          state = reducer.reduce(state, { type = kind, run_id = "r", session_id = "s", content = "word ",
            calls = { { id = tostring(number), name = "read_file", arguments = { path = "a.py" } } } })
        end
        return { seconds = (vim.uv.hrtime() - before) / 1e9, blocks = #state.runs.r.blocks }
        """
    )
    assert found["blocks"] == 200
    assert found["seconds"] < 1.0, "ten seconds' worth of events"


def lists(value: Any) -> Any:
    """Lua has one empty table; here it is always a list."""
    if isinstance(value, dict):
        return {key: lists(item) for key, item in value.items()} if value else []
    return [lists(item) for item in value] if isinstance(value, list) else value
