"""Calls of other agents' tools: each becomes a call of ours, on the way from a model and in the executor alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import History
from codeagent_lsp.agent.limits import LoopLimits
from codeagent_lsp.agent.loop import AgentLoop, LoopResult
from codeagent_lsp.call_forms import resolve_call, several, unwrap_call
from codeagent_lsp.llm.calls.bare_calls import check, own_spelling
from codeagent_lsp.llm.calls.toolcalling import ToolCallingModel
from codeagent_lsp.llm.calls.toolcalls import parse
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import Message, ToolCall, ToolResult
from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.executor import understood
from codeagent_lsp.tools.hooks.hook_protocol import names_of
from codeagent_lsp.tools.orchestration.orchestration_tools import Delegates
from codeagent_lsp.tools.plan.plan import Planner, StepDraft, UpdateAction
from codeagent_lsp.tools.registry import ToolRegistry, own_name
from codeagent_lsp.tools.todos.todo_list import Todo
from codeagent_lsp.tools.tool import Tool
from tests.tools.fakes import Bench
from tests.tools.foreign_rows import FILES, NOTES, PATCH, ROWS, Row
from tests.tools.shells import FakeShell

TOOLS: Mapping[str, Tool[Any]] = {cls.traits.name: cls() for cls in BUILTIN}
SPECS = tuple(tool.spec() for tool in TOOLS.values())
FORMS = {name: tool.forms for name, tool in TOOLS.items()}
RUNNABLE = [row for row in ROWS if row.shows or row.lines or row.staged is not None or row.ran]


class FakePlanner:
    """Plans that say what was done with them."""

    plan_id = "p"

    def __init__(self) -> None:
        self.text = ""

    def create(self, goal: str, steps: tuple[StepDraft, ...], complexity: str) -> str:
        return goal

    def enter(self, title: str) -> str:
        return f"entered {title}"

    def update(self, action: UpdateAction, content: str, section: str) -> str:
        self.text += content
        return action

    async def exit(self) -> str:
        return f"approved {self.text}"


class FakeDelegates:
    """An agent that answers with its task."""

    async def delegate(self, agent: str, task: str) -> str:
        return f"{agent}: {task}"


def placed(value: Any, root: str) -> Any:
    """The value with `{root}` replaced."""
    if isinstance(value, str):
        return value.replace("{root}", root)
    if isinstance(value, Mapping):
        return {key: placed(item, root) for key, item in value.items()}
    return [placed(item, root) for item in value] if isinstance(value, list) else value


def made(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "work")
    for name, text in FILES.items():
        bench.write(name, text)
    bench.shell = FakeShell(Finished(0, "ran\n"), staging=bench.staging)
    bench.todos.replace_all([Todo("1", "known")])
    bench.asker.answers = ["19"]
    bench.add((Planner, FakePlanner()))
    bench.add((Delegates, FakeDelegates()))
    return bench


def expected(row: Row, root: str) -> ToolCall:
    return understood(ToolCall(row.tool, placed(row.own, root)), TOOLS[row.tool]).call


def named(row: Row) -> str:
    return f"{row.name}-{row.tool}"


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=named)
def test_it_becomes_a_call_of_ours(row: Row) -> None:
    given, wanted = placed(row.given, "/w"), expected(row, "/w")
    said = check(row.name, given, SPECS)
    assert isinstance(said, ToolCall), said
    for call in (
        said,
        check("use_tool", {"name": row.name, "arguments": given}, SPECS),
        check(f"functions.{row.name}", given, SPECS),
        check(f"default_api:{row.name}", given, SPECS),
        own_spelling(ToolCall(row.name, given), SPECS),
        own_spelling(said, SPECS),
        check(said.name, said.arguments, SPECS),
    ):
        assert isinstance(call, ToolCall), call
        assert understood(call, TOOLS[row.tool]).call == wanted


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_resolving_twice_changes_nothing(row: Row) -> None:
    once = resolve_call(row.name, row.given, FORMS)
    assert once is not None and not once.problem
    assert resolve_call(once.tool, once.arguments, FORMS) == once


@pytest.mark.slow
@pytest.mark.parametrize("row", RUNNABLE, ids=named)
async def test_it_does_what_the_other_tool_does(row: Row, tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.rules(allow=("run_cmd",))
    if row.tool == "undo_patch":
        await bench.call("write_file", path="shop/cart.py", content="x\n")
    root = str(bench.root)
    given = placed(row.given, root)
    said = check(row.name, given, SPECS)
    assert isinstance(said, ToolCall)
    judge(row, await bench.executor.execute(said), bench)


@pytest.mark.slow
@pytest.mark.parametrize("row", RUNNABLE[::7], ids=named)
async def test_the_executor_alone_understands_it(row: Row, tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.rules(allow=("run_cmd",))
    if row.tool == "undo_patch":
        await bench.call("write_file", path="shop/cart.py", content="x\n")
    judge(row, await bench.call(row.name, **placed(row.given, str(bench.root))), bench)


def judge(row: Row, result: ToolResult, bench: Bench) -> None:
    assert result.ok, result.text
    for part in row.shows:
        assert part in result.text, result.text
    for part in row.hides:
        assert part not in result.text, result.text
    if row.lines is not None:
        first, last = row.lines
        shown = "\n".join(f"{number}|line {number}" for number in range(first, last + 1))
        assert result.text.partition("\n(")[0] == shown
    staged = {change.path: change for change in bench.changeset}
    if row.staged is not None:
        assert {str(Path(path).relative_to(bench.root)) for path in staged} == set(row.staged)
        for name, text in row.staged.items():
            assert (bench.text(name) if bench.seen(name) else None) == text
    else:
        assert not staged
    assert bench.disk() == {name: text.encode() for name, text in FILES.items()}
    if row.ran is not None:
        assert isinstance(bench.shell, FakeShell)
        assert [(command.script, command.seconds) for command in bench.shell.commands] == [row.ran]


def test_every_form_has_a_row() -> None:
    rows = {(row.name, row.tool) for row in ROWS}
    forms = {(foreign.name, name) for name, tool in TOOLS.items() for foreign in tool.forms.foreign}
    assert forms - rows == set()


def test_there_are_many_forms_of_many_agents() -> None:
    known = [
        (agent, foreign.name) for tool in TOOLS.values() for foreign in tool.forms.foreign for agent in foreign.agents
    ]
    agents = {agent for agent, _ in known}
    assert len(set(known)) >= 200 and len(agents) >= 13


def test_a_form_that_has_the_name_of_a_tool_has_a_condition() -> None:
    for tool in TOOLS.values():
        for foreign in tool.forms.foreign:
            assert foreign.when is not None or foreign.name not in TOOLS, foreign.name


def test_a_name_of_several_tools_has_conditions() -> None:
    owners: dict[str, list[bool]] = {}
    for tool in TOOLS.values():
        for foreign in tool.forms.foreign:
            owners.setdefault(foreign.name, []).append(foreign.when is None)
    assert [name for name, plain in owners.items() if sum(plain) > 1] == []


def test_forms_lead_to_parameters_that_exist() -> None:
    """Or to what a conversion of the tool or of the form then makes into one."""
    for name, tool in TOOLS.items():
        fields = {*tool.parameters.model_fields, *tool.forms.parameters, "limit", "output_mode", "case_sensitive"}
        for foreign in tool.forms.foreign:
            leads = {*foreign.arguments.values(), *foreign.fixed}
            assert leads <= fields or foreign.shapes, (name, foreign.name, leads - fields)


@pytest.mark.parametrize(("name", "given", "tool"), [
    ("Read", {"nonsense": 1}, "read_file"),
    ("Edit", {"file_path": "a.py"}, "edit_file"),
    ("MultiEdit", {"file_path": "a.py", "edits": "none"}, "batch_edit"),
    ("str_replace_editor", {"command": "rename", "path": "a.py"}, "edit_file"),
    ("str_replace_editor", {}, "read_file"),
    ("replace_in_file", {"path": "a.py", "diff": "no blocks"}, "batch_edit"),
    ("search_and_replace", {"path": "a.py", "search": "a.*", "replace": "b", "use_regex": True}, "edit_file"),
    ("Grep", {"regex_pattern": 1}, "grep"),
    ("shell", {"cmdline": 1}, "run_cmd"),
    ("Task", {"description": "d"}, "delegate"),
    ("fetch_webpage", {"urls": ["https://a.org/", "https://b.org/"]}, "web_scrape"),
    ("write_stdin", {"session_id": 1, "chars": "y\n"}, "command_output"),
    ("LSP", {"operation": "completion"}, "find_definition"),
    ("insert_edit_into_file", {"filePath": "a.py", "code": "// ...existing code..."}, "edit_file"),
    ("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": "x"}, "edit_file"),
    ("save_memory", {"fact": "Tabs."}, "write_file"),
    ("copy_path", {"source_path": "a", "destination_path": "b"}, "run_cmd"),
    ("switch_mode", {"mode_slug": "code", "reason": "why"}, "plan_enter"),
    ("run_slash_command", {"command": "init", "args": None}, "skill_loader"),
    ("browser_action", {"action": "launch", "url": "http://localhost"}, "web_scrape"),
])  # fmt: skip
async def test_nonsense_is_refused_with_the_nearest_tool(
    name: str, given: dict[str, Any], tool: str, tmp_path: Path
) -> None:
    said = check(name, given, SPECS)
    assert isinstance(said, str) and f"{tool} takes: {{" in said, said
    result = await made(tmp_path).call(name, **given)
    assert not result.ok and result.status in ("retry", "failed")


def test_a_tool_of_an_mcp_server_is_called_by_its_own_name() -> None:
    wanted = ("mcp.github.get_issue", {"number": 1})
    assert (
        unwrap_call("use_mcp_tool", {"server_name": "github", "tool_name": "get_issue", "arguments": '{"number": 1}'})
        == wanted
    )
    assert (
        unwrap_call("CallMcpTool", {"server": "github", "toolName": "get_issue", "arguments": {"number": 1}}) == wanted
    )
    assert unwrap_call("use_mcp_tool", {"server_name": "github"})[0] == "use_mcp_tool"


def test_what_holds_no_calls_is_a_call_of_its_own() -> None:
    assert several("batch", {}) == several("read_file", {"tool_calls": []}) == []


def test_settings_may_name_other_agents_tools() -> None:
    registry = ToolRegistry(TOOLS.values(), ("LS", "execute_command"))
    assert set(registry.names("disabled")) == {"list_dir", "run_cmd"}
    assert own_name("str_replace_editor", registry.entries()) == "str_replace_editor"  # it is several


@pytest.mark.parametrize(("written", "call"), [
    ("<tool_call>\n<function=Read>\n<parameter=file_path>\nnotes.md\n</parameter>\n<parameter=offset>\n10\n</parameter>\n"
     "</function>\n</tool_call>", ToolCall("read_file", {"path": "notes.md", "start_line": 10})),
    ("<tool_call>\n<function=Write>\n<parameter=file_path>\na.json\n</parameter>\n<parameter=contents>\n{\"a\":1}\n"
     "</parameter>\n</function>\n</tool_call>", ToolCall("write_file", {"path": "a.json", "content": '{"a":1}'})),
    ("<tool_call>\n<function=str_replace_editor>\n<parameter=command>\ncreate\n</parameter>\n<parameter=path>\na.json\n"
     "</parameter>\n<parameter=file_text>\n[1,2]\n</parameter>\n</function>\n</tool_call>",
     ToolCall("write_file", {"path": "a.json", "content": "[1,2]"})),
    ('Action: Grep[{"pattern": "x"}]', ToolCall("grep", {"pattern": "x", "output": "files"})),
    ('Bash(command="ls -l")', ToolCall("run_cmd", {"command": "ls -l"})),
])  # fmt: skip
def test_calls_in_a_text(written: str, call: ToolCall) -> None:
    assert parse(written, SPECS) == [call]


async def test_it_is_judged_as_our_tool(tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.rules(deny=("read_file(notes.md)", "run_cmd(rm *)"))
    assert (await bench.call("view", path="notes.md")).status == "denied"
    assert (await bench.call("shell", command=["bash", "-lc", "rm -rf shop"])).status == "denied"
    for names in (["*.md", "docs/a.md"], ["notes.md", "docs/a.md"]):
        text = (await bench.call("read_many_files", include=names)).text
        assert "line 1" not in text and "TODO one" in text


@pytest.mark.parametrize("steps", [
    [("TodoWrite", {"todos": [{"content": "fix", "status": "in_progress", "activeForm": "Fixing"}]}),
     ("Grep", {"pattern": "return 0", "output_mode": "content", "-n": True}),
     ("Read", {"file_path": "{root}/shop/cart.py", "offset": 2, "limit": 2}),
     ("Edit", {"file_path": "{root}/shop/cart.py", "old_string": "return 0", "new_string": "return 1"}),
     ("Bash", {"command": "pytest -q", "description": "Run the tests", "timeout": 120000}),
     ("ExitPlanMode", {"plan": "It is done."})],
    [("task_tracker", {"command": "view"}),
     ("think", {"thought": "Hm."}),
     ("execute_bash", {"command": "pytest -q", "is_input": "false", "security_risk": "LOW"}),
     ("str_replace_editor", {"command": "view", "path": "{root}", "security_risk": "LOW"}),
     ("str_replace_editor", {"command": "str_replace", "path": "{root}/shop/cart.py", "old_str": "return 0",
                             "new_str": "return 1", "security_risk": "LOW"}),
     ("finish", {"message": "It is done."})],
    [("update_plan", {"plan": [{"step": "fix", "status": "in_progress"}]}),
     ("shell", {"command": ["bash", "-lc", "pytest -q"], "workdir": "{root}"}),
     ("shell", {"command": ["apply_patch", PATCH]}),
     ("attempt_completion", {"result": "It is done."})],
])  # fmt: skip
async def test_a_whole_task_in_the_words_of_another_agent(steps: list[tuple[str, Any]], tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.rules(allow=("run_cmd",))
    calls = [ToolCall(name, placed(given, str(bench.root)), f"c{number}") for number, (name, given) in enumerate(steps)]
    model = ToolCallingModel(ScriptedModel([ScriptedReply(tool_calls=(call,)) for call in calls]), "native")
    told: list[events.Event] = []
    history = History([Message("system", "rules"), Message("user", "the task")])
    core, rest = (tuple(spec for spec in SPECS if _is_core(spec["name"]) is wanted) for wanted in (True, False))
    loop = AgentLoop(model, bench.executor, history, lambda: core, told.append, LoopLimits(), also=lambda: rest)
    result = await loop.run()
    assert result == LoopResult("answered", "It is done.")
    finished = [event for event in told if isinstance(event, events.ToolFinished)]
    assert [event.success for event in finished] == [True] * (len(steps) - 1), [event.output for event in finished]
    assert "".join(event.content for event in told if isinstance(event, events.Token)) == "It is done."
    assert {call.name for message in history.messages for call in message.tool_calls} <= set(TOOLS)
    assert "return 1" in bench.text("shop/cart.py")


def _is_core(name: str) -> bool:
    return TOOLS[name].traits.group == "core"


def test_hooks_on_edits_are_told_of_insertions() -> None:
    assert {"Edit", "edit_file"} <= set(names_of(TOOLS["insert_text"].traits))


async def test_inserting_keeps_line_ends_and_says_what_is_wrong(tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.write("dos.txt", "a\r\nb")
    await bench.call("insert_text", path="dos.txt", text="c")
    await bench.call("insert_text", path="dos.txt", text="top\n", line=0)
    assert bench.text("dos.txt") == "top\r\na\r\nb\r\nc\r\n"
    assert (await bench.call("insert_text", path="notes.md", text="x", line=21)).text.startswith("The file has only 20")
    assert (await bench.call("insert_text", path="notes.md", text="")).status == "failed"
    assert bench.text("notes.md") == NOTES
