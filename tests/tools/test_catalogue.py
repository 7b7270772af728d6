"""Every built-in tool once through the executor: a call that works, and one that does not with its code."""

from __future__ import annotations

import json
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from codeagent_lsp.call_forms import USE_TOOL
from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environment import Screens
from codeagent_lsp.environments.environments import Environments
from codeagent_lsp.errors import ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.language_servers.answers import CodeServers
from codeagent_lsp.session.screens import ScreenPorts, SessionScreens
from codeagent_lsp.shadow.shell import Command
from codeagent_lsp.texts import text
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.artifacts.artifact_tools import ImportFile, ImportFilesBatch
from codeagent_lsp.tools.catalogue import BUILTIN, result_of
from codeagent_lsp.tools.commands.background import BackgroundCommands
from codeagent_lsp.tools.composition import plain
from codeagent_lsp.tools.context import Complete
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.orchestration.orchestration_tools import Delegates
from codeagent_lsp.tools.plan.plan import Planner, StepDraft, UpdateAction
from codeagent_lsp.tools.skills.skill_library import RunSkills, SkillLibrary
from codeagent_lsp.tools.skills.trust import Trust
from codeagent_lsp.tools.tool import Tool
from codeagent_lsp.tools.traits import ToolGroups
from codeagent_lsp.tools.variables.variables import Variables
from codeagent_lsp.tools.web import searching
from codeagent_lsp.tools.web import web_tools as web
from codeagent_lsp.tools.web.http import Fetcher, PageLimits
from codeagent_lsp.tools.web.scraping import Web
from codeagent_lsp.tools.web.searching import Result, SearchRequest
from codeagent_lsp.workspace.files import uris
from scripts.generate.tools_page import COMMON, errors_of
from tests.mcp_server.calls import PATCH, WRITTEN, make_workspace
from tests.tools.code.fake_servers import FakeServers, edit, span
from tests.tools.code.indexes import real_index
from tests.tools.fakes import Bench
from tests.tools.git.models import Writer
from tests.tools.skills.samples import skill
from tests.tools.testing.rig import CopyShell
from tests.tools.web.net import PUBLIC, Net, answer, pages, server
from tests.tools.web.test_web_tools import HOST

pytestmark = pytest.mark.slow  # an index, a repository and real test runs

LACKING = "What measures coverage is not installed here"
ONCE, INSTALL = text("choice.once"), text("choice.install")
NOWHERE = {"path": "nowhere.py"}
TAX = {"path": "shop/tax.py", "symbol": "with_tax"}
EDIT = {"path": "shop/cart.py", "old_str": "Cart([])", "new_str": "Cart([0])"}
OPTIONS = [{"id": "a", "label": "One"}, {"id": "b", "label": "Two"}]


@dataclass(frozen=True, slots=True)
class Row:
    """Arguments that work, what the user answers and what the result says; arguments that do not, with their code, None
    for a tool that takes none: what it is given is passed over.
    """

    good: Mapping[str, Any]
    says: str
    bad: Mapping[str, Any] | None
    code: str = "INVALID_PARAM"
    answers: tuple[str, ...] = ()


ROWS: Mapping[str, Row] = {
    "list_dir": Row({"path": "shop"}, "cart.py", NOWHERE, "NOT_FOUND"),
    "read_file": Row({"path": "shop/tax.py"}, "RATE", {"path": "/etc/passwd"}, "PERMISSION_DENIED"),
    "read_files": Row({"files": [{"path": "shop/tax.py"}, {"path": "shop/c*.py"}]}, "shop/cart.py", {"files": []}),
    "think": Row({"thought": "The tax is added twice."}, "ok", {"thought": 3}),
    "insert_text": Row(
        {"path": "shop/cart.py", "text": "# the end"}, "shop/cart.py", {"path": "shop/cart.py", "line": 0}
    ),
    "glob_file_search": Row({"pattern": "**/*.py"}, "shop/cart.py", {}),
    "grep": Row({"pattern": "RATE"}, "shop/tax.py", {"pattern": "("}),
    "search_semantic": Row({"query": "with_tax"}, "", {"query": ""}),
    "run_cmd": Row({"command": "echo hello"}, "hello", {"command": "rm -rf /"}, "PERMISSION_DENIED"),
    "run_beside": Row({"id": "bg1", "command": "echo there"}, "there", {"id": "bg9", "command": "true"}),
    "command_output": Row({"id": "bg1", "wait": 30}, "running", {"id": "bg9"}),
    "stop_command": Row({"id": "bg1"}, "bg1 was stopped", {"id": "bg9"}),
    "terminal": Row({"action": "status"}, "Web terminal: not running", {"action": "fly"}),
    "desktop": Row({"action": "status"}, "Desktop: not running", {"resolution": "huge"}),
    "run_tests": Row({"path": "tests"}, "1 passed", NOWHERE),
    "edit_file": Row(EDIT, "shop/cart.py", {**EDIT, "old_str": "not there"}, "EDIT_REFUSED"),
    "write_file": Row(
        {"path": "new.py", "content": "x = 1\n"}, "Created", {"path": "../x", "content": ""}, "PERMISSION_DENIED"
    ),
    "apply_patch": Row({"patch": PATCH}, "shop/tax.py", {"patch": "no patch"}, "EDIT_REFUSED"),
    "undo_patch": Row({}, "shop/tax.py", {"change_id": "c99"}, "NOT_FOUND"),
    "move_file": Row({"path": "new.py", "new_path": "newer.py"}, "newer.py", {"path": "newer.py"}),
    "delete_file": Row({"path": "newer.py"}, "newer.py", NOWHERE, "NOT_FOUND"),
    "batch_edit": Row(
        {"edits": [{"path": "shop/tax.py", "old_str": "= 2", "new_str": "= 1 + 1"}]}, "shop/tax.py", {"edits": []}
    ),
    "preview_edit": Row(
        {"path": "shop/tax.py", "old_str": "1 + 1", "new_str": "2"},
        "+RATE = 2",
        {**NOWHERE, "old_str": "a", "new_str": "b"},
        "NOT_FOUND",
    ),
    "analyze_coverage": Row({}, "", NOWHERE),
    "generate_tests": Row({"path": "shop/tax.py"}, "its tests pass", {"path": "tests/test_cart.py"}),
    "get_diagnostics": Row({"path": "shop/tax.py"}, "", NOWHERE, "NOT_FOUND"),
    "git_diff": Row({}, "+RATE = 1 + 1", {"staged": "perhaps"}),
    "git_log": Row({}, "First", {"limit": -1}),
    "generate_commit": Row({}, "Double the rate", {"staged_only": True}, "NOT_FOUND"),
    "AskUser": Row(
        {"questions": [{"text": "Which?", "options": ["One", "Two"]}]}, "One", {"questions": []}, answers=("One",)
    ),
    "todowrite": Row({"todos": [{"id": "1", "content": "test", "status": "pending"}]}, "test", {"todos": [{}]}),
    "todoread": Row({}, "test", {"status": "never"}),
    "create_plan": Row({"goal": "g", "steps": [{"title": "s"}]}, "created g", {"goal": "g", "steps": []}),
    "plan_enter": Row({"title": "Taxes"}, "entered Taxes", {"title": ""}),
    "plan_update": Row({"action": "append", "content": "x"}, "append x", {"action": "burn", "content": ""}),
    "plan_exit": Row({}, "approved", {"more": 1}),
    "skill_loader": Row({"skill_name": "pdf"}, "Do it well.", {"skill_name": "no-such"}, "NOT_FOUND"),
    "skill_installer": Row({"skill_source": "{source}"}, "other", {"skill_source": ""}, answers=(ONCE, INSTALL)),
    "delegate": Row(
        {"agent": "reviewer", "task": "look"}, "reviewer did look", {"agent": "nobody", "task": "x"}, "EXECUTION_ERROR"
    ),
    "use_tool": Row(
        {"name": "read_file", "arguments": {"path": "shop/tax.py"}},
        "RATE",
        {"name": "use_tool", "arguments": {"name": "read_file"}},
    ),
    "enable_tools": Row({"group": "git"}, "git_diff", {"group": "magic"}),
    "ask_clarification": Row({"question": "Which?", "options": OPTIONS}, "One", {"question": ""}, answers=("One",)),
    "request_decision": Row(
        {"question": "Which?", "options": OPTIONS}, "Two", {"question": "Which?", "options": []}, answers=("Two",)
    ),
    "request_env_var": Row({"name": "TOKEN"}, "TOKEN is set", {"name": "not a name"}, answers=("a value",)),
    "get_env_var": Row({"name": "TOKEN"}, "TOKEN", {"name": "1"}),
    "check_env_vars": Row({"names": ["TOKEN", "OTHER"]}, "OTHER", {"names": []}),
    "code_index_build": Row({}, "ready", {"path": ".."}, "PERMISSION_DENIED"),
    "ast_parse": Row({"path": "shop/cart.py"}, "Cart", NOWHERE, "NOT_FOUND"),
    "ast_find_symbols": Row({"name": "total"}, "shop/cart.py", {"kind": "planet"}),
    "ast_extract_function": Row(
        {"path": "shop/cart.py", "function_name": "Cart.total"},
        "with_tax",
        {"path": "shop/cart.py", "function_name": "none"},
        "EDIT_REFUSED",
    ),
    "ast_get_imports": Row({"path": "shop/cart.py"}, "shop.tax", NOWHERE, "NOT_FOUND"),
    "code_actions": Row({"path": "shop/tax.py"}, "Sort (quickfix, fake)", {"path": "shop/tax.py", "apply": "Fly"}),
    "hover": Row(TAX, "how much it is", {"path": "shop/tax.py"}),
    "type_hierarchy": Row({"path": "shop/cart.py", "symbol": "Cart"}, "Cart", {"path": "shop/tax.py"}),
    "find_definition": Row({"symbol": "with_tax"}, "shop/tax.py", {"symbol": ""}),
    "find_references": Row({"symbol": "with_tax"}, "shop/cart.py", {}),
    "call_graph": Row({"function_name": "with_tax"}, "total", {"function_name": "nothing"}, "NOT_FOUND"),
    "dependency_graph": Row({"path": "shop/cart.py"}, "shop/tax.py", {"path": ".."}, "PERMISSION_DENIED"),
    "edit_by_ast": Row(
        {"path": "shop/cart.py", "edits": [{"target": "empty", "operation": "delete"}]},
        "shop/cart.py",
        {"path": "shop/cart.py", "edits": []},
    ),
    "web_search": Row({"query": "tax"}, "A page", {"query": "tax", "max_results": 99}, answers=(ONCE,)),
    "web_scrape": Row({"url": f"http://{HOST}/"}, "words", {"url": "file:///etc/passwd"}, answers=(ONCE,)),
    "export_artifact": Row({"file_path": "shop/tax.py"}, "Exported tax.py", {"file_path": "nowhere.py"}, "NOT_FOUND"),
    "list_artifacts": Row({}, "tax.py", None),
    "batch_export_artifacts": Row({"file_paths": ["shop/cart.py"]}, "Exported cart.py", {"file_paths": []}),
    "import_file": Row(
        {"source_url": f"http://{HOST}/", "dest_path": "page.html"},
        "Created page.html",
        {"source_url": "http://127.0.0.1/", "dest_path": "page.html"},
        answers=(ONCE,),
    ),
    "import_files_batch": Row(
        {"files": [{"source_url": "artifact:tax.py", "dest_path": "copied/tax.py"}]},
        "Created copied/tax.py",
        {"files": [{"source_url": "artifact:none.py", "dest_path": "x.py"}]},
        "NOT_FOUND",
    ),
    "compose": Row(
        {"steps": [{"tool": "git_log", "arguments": {}}, {"tool": "list_dir", "arguments": {"path": "shop"}}]},
        "tax.py",
        {"steps": [{"tool": "git_log"}]},
    ),
    "rename_symbol": Row({**TAX, "new_name": "taxed"}, "by fake (lsp)", {**TAX, "new_name": "1 tax"}),
}


class Plans:
    """The `Planner` port: says what it was told."""

    plan_id = "r1"

    def create(self, goal: str, steps: tuple[StepDraft, ...], complexity: str) -> str:
        return f"created {goal}"

    def enter(self, title: str) -> str:
        return f"entered {title}"

    def update(self, action: UpdateAction, content: str, section: str) -> str:
        return f"{action} {content}"

    async def exit(self) -> str:
        return "approved"


class Others:
    """The `Delegates` port: knows one agent."""

    async def delegate(self, agent: str, task: str) -> str:
        if agent != "reviewer":
            raise ToolFailed(f"There is no agent {agent}.")
        return f"{agent} did {task}"


class Groups:
    """The `ToolGroups` port: knows one group."""

    def enable(self, group: str) -> tuple[str, ...]:
        if group != "git":
            raise ToolRetry(f"There is no group {group}.")
        return ("git_diff",)

    def described(self, group: str) -> str:
        return ""

    def offer(self, names: Iterable[str]) -> None:
        pass


def words(key: str, /, **values: object) -> str:
    return text(key, "en", **values)


async def nobody(paths: tuple[str, ...]) -> bool:
    return False


def furnished(folder: Path, net: Net) -> Bench:
    """A bench with everything that a tool may ask for."""
    fetching = Web(Fetcher(net.dialer, PageLimits(seconds=3)), "")
    ours = [cls(fetching) for cls in (web.WebSearch, web.WebScrape, ImportFile, ImportFilesBatch)]
    names = {tool.traits.name for tool in ours}
    bench = Bench(make_workspace(folder / "w"), [cls() for cls in BUILTIN if cls.traits.name not in names])
    for tool in ours:
        bench.registry.register(tool)
    shelf = SkillLibrary(folder / "own", Trust(folder / "trusted.json"))
    for place, name in (("own/pdf", "pdf"), ("source", "other")):
        (folder / place).mkdir(parents=True)
        (folder / place / "SKILL.md").write_text(skill(name))
    shell = bench.shell = CopyShell(bench.root, bench.view)
    screens = SessionScreens(Environments(ShellSettings, folder / "state", folder / "spool"))
    bench.context = replace(bench.context, shell=bench.shell, words=words).having(
        (Complete, Writer([WRITTEN, "Double the rate"])),
        (Planner, Plans()),
        (Delegates, Others()),
        (ToolGroups, Groups()),
        (RunSkills, RunSkills(shelf, words)),
        (Variables, Variables(lambda: None, {})),
        (ArtifactStore, ArtifactStore(folder / "artifacts")),
        (CodeServers, language_servers(bench.path("shop/tax.py"), bench.path("shop/cart.py"))),
        (BackgroundCommands, BackgroundCommands(constant(shell), constant(None))),
        (Screens, screens.of("session", ScreenPorts(bench.view, bench.staging, nobody))),
    )
    bench.executor = ToolExecutor(bench.registry, bench.context, lambda: bench.mode, bench.approvals)
    return bench


def constant(value: Any) -> Callable[[str], Awaitable[Any]]:
    """Open or close the shell of a background command."""

    async def given(name: str) -> Any:
        return value

    return given


def language_servers(tax: str, cart: str) -> FakeServers:
    """Servers for the tools that need one; the others have an index."""
    item = {"name": "Cart", "uri": uris.from_path(cart), "selectionRange": span(0, 0, 1)}
    action = {"title": "Sort", "kind": "quickfix", "edit": edit(tax, (0, 0, 0, ""))}
    return FakeServers(
        {
            "textDocument/rename": lambda question: edit(tax, renamed(tax)),
            "textDocument/codeAction": lambda question: [action],
            "textDocument/hover": lambda question: {"contents": "how much it is"},
            "textDocument/prepareTypeHierarchy": lambda question: [item],
        }
    )


def renamed(path: str) -> tuple[int, int, int, str]:
    """The edit of the first `with_tax` in a file."""
    lines = Path(path).read_text().splitlines()
    line = next(number for number, line in enumerate(lines) if "with_tax" in line)
    start = lines[line].index("with_tax")
    return line, start, start + len("with_tax"), "taxed"


def misshaped(tool: Tool[Any], data: Any) -> str:
    """How the data of a result differs from what its tool says that it gives; '' for not at all."""
    if tool.output is None:
        return "" if data is None or tool.traits.name == "compose" else f"data without a shape: {data!r}"
    try:
        TypeAdapter(tool.output).validate_json(json.dumps(plain(data)), strict=True)
    except ValidationError as error:
        return str(error)
    return ""


def test_every_tool_of_a_program_s_output_is_known_as_such() -> None:
    others = {"terminal", "desktop", "generate_tests"}  # what they say is their own
    runs = {cls.traits.name for cls in BUILTIN if cls.traits.effect == "run"} - others
    assert runs <= {cls.traits.name for cls in BUILTIN if result_of(cls.traits.name) == "printed"}


def test_every_tool_has_a_row() -> None:
    assert set(ROWS) == {cls.traits.name for cls in BUILTIN}


async def test_every_tool_well_and_badly(tmp_path: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def found(wanted: SearchRequest, *_: object) -> list[Result]:
        return [Result("A page", f"http://{HOST}/", "about tax")]

    monkeypatch.setattr(searching, "search_web", found)
    net = Net({HOST: [[PUBLIC]]})
    bench = furnished(tmp_path, net)
    reply = {"/": answer("words", media="text/plain")}
    wrong: dict[str, object] = {}
    async with real_index(bench, tmp_path), server(pages(reply), net, (PUBLIC, 80)):
        running = Command("echo running; exec sleep 600", str(bench.root))
        await bench.context.need(BackgroundCommands, "").start(running, "", 0)
        for name, row in ROWS.items():
            bench.asker.answers = list(row.answers)
            given = {key: str(tmp_path / "source") if value == "{source}" else value for key, value in row.good.items()}
            good = await bench.call(name, **given)
            if name == "analyze_coverage" and LACKING in good.text:
                warnings.warn("analyze_coverage could only say that there is no coverage.py here", stacklevel=1)
            elif not good.ok or row.says not in good.text:
                wrong[name] = good
            elif problem := misshaped(bench.registry.get(given["name"] if name == USE_TOOL else name), good.data):
                wrong[f"{name}, its data"] = problem
            bench.asker.answers = []
            bad = await bench.call(name, **({"anything": 1} if row.bad is None else row.bad))
            if row.bad is None:
                assert bad.ok and "no such argument: anything" in bad.text
            elif bad.error is None or bad.error.code != row.code:
                wrong[f"{name}, badly"] = bad
    assert wrong == {}


@pytest.mark.parametrize("cls", BUILTIN, ids=lambda cls: cls.traits.name)
def test_the_code_of_the_bad_call_is_on_the_page(cls: Any) -> None:
    assert ErrorCode(ROWS[cls.traits.name].code) in (*COMMON, *errors_of(cls()))
