"""What shows that a form of `forms.tsv` is accepted or produced: small checks, called by the name in the table."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema

from codeagent_lsp import events, own_tools
from codeagent_lsp.agent.prompt import Environment, system_prompt
from codeagent_lsp.call_forms import translate_arguments
from codeagent_lsp.config import PermissionsSettings
from codeagent_lsp.environments.environment import PORTS
from codeagent_lsp.environments.failures import grade
from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.llm.calls.bare_calls import check
from codeagent_lsp.llm.calls.streamed_calls import StreamParser
from codeagent_lsp.llm.calls.toolcalls import parse
from codeagent_lsp.mcp_server.command import DEFAULT_PORT
from codeagent_lsp.mcp_server.table import BY_NAME
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.records.mark import MARK
from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.session.run_output import with_details
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.settings_layers import catalogue, environment_layer, load, value_of
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.code.reading_tools import described
from codeagent_lsp.tools.composition import Transformation, arguments_for, at, transform
from codeagent_lsp.tools.executor import _failure, understood
from codeagent_lsp.tools.orchestration.orchestration_tools import Compose
from codeagent_lsp.tools.permissions.policy import decide
from codeagent_lsp.tools.permissions.shell_policy import judge
from codeagent_lsp.tools.plan.plan import Plan, StepDraft
from codeagent_lsp.tools.skills.skill_library import Skill, list_skills
from codeagent_lsp.workspace.files.paths import Roots

TOOLS = {cls.traits.name: cls() for cls in BUILTIN}
SPECS = tuple(tool.spec() for tool in TOOLS.values())
REPOSITORY = Path(__file__).resolve().parents[2]


def call(name: str, given: dict[str, Any], tool: str, own: dict[str, Any]) -> None:
    """A model's call becomes the tool's own, on its way from the model and in the executor."""
    read = check(name, given, SPECS)
    assert isinstance(read, ToolCall) and read.name == tool, read
    wanted = understood(ToolCall(tool, own), TOOLS[tool]).call
    assert understood(read, TOOLS[tool]).call == wanted
    assert understood(ToolCall(tool, given), TOOLS[tool]).call == wanted


def sandbox(name: str, given: dict[str, Any], says: str = "") -> None:
    """A client of the sandbox may call its tool like this, also one that checks by the published schema; `says` is what
    the answer has then (`test_sandbox_calls.py`).
    """
    entry = BY_NAME[name]
    jsonschema.validate(given, entry.schema())
    assert not [key for key in translate_arguments(given, entry.tool.forms) if entry.hides(key)]
    understood(ToolCall(name, {**given, **entry.fixed}), entry.made())


def event(kind: str, *names: str) -> None:
    """An event has these fields, also in the mapping that is sent and stored."""
    cls = events.EVENT_TYPES[kind]
    assert set(names) <= {item.name for item in fields(cls)}
    filled: Any = dict.fromkeys(names, "x")
    sent = events.to_dict(cls(**filled))
    assert next(iter(sent)) == "type" and set(names) <= set(sent)


def text(words: str, calls: list[Any]) -> None:
    """A reply holds these calls, as a whole and streamed."""
    wanted = [ToolCall(name, arguments) for name, arguments in calls]
    assert parse(words, SPECS) == wanted
    parser = StreamParser(SPECS)
    for character in words:
        parser.feed(character)
    assert parser.close() == wanted


def setting(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    """The settings that an editor sends become these."""
    _settled(given, wanted)


def environment(variables: dict[str, str], wanted: dict[str, Any]) -> None:
    """Environment variables become these settings."""
    _settled(environment_layer(variables), wanted)


def judged(command: str, decision: str) -> None:
    assert judge(command).decision == decision


def rule(rule: str, tool: str, arguments: dict[str, Any]) -> None:
    """A rule of the settings covers a call."""
    found, settings = TOOLS[tool], PermissionsSettings(deny=(rule,))
    decision = decide(found.traits, arguments, settings, Roots([str(REPOSITORY)]), names=found.forms.names)
    assert "deny rule" in decision.reason, decision


def graded(error: str, code: str) -> None:
    assert grade(getattr(builtins, error)("it said nothing")) == code


def words(said: str, code: str) -> None:
    assert grade(RuntimeError(f"it said: {said}.")) == code


def retried(yes: list[str], no: list[str]) -> None:
    assert [ErrorCode(code).advice.retry for code in (*yes, *no)] == [True] * len(yes) + [False] * len(no)


def codes(*names: str) -> None:
    assert [ErrorCode(name).value for name in names] == list(names)


def types(known: dict[str, str]) -> None:
    assert {code: ErrorCode(code).advice.type.value for code in known} == known


def prefix(start: str) -> None:
    """Errors of MCP servers begin so in what a model reads, others do not."""
    said = {code: _failure("failed", code, "no").text.startswith(start) for code in ErrorCode}
    assert said == {code: code.startswith("MCP_") for code in ErrorCode}


def path(value: Any, way: str, found: Any) -> None:
    assert at(value, way) == found


def fitted(value: Any, transformation: dict[str, Any], arguments: dict[str, Any]) -> None:
    schema = {"properties": {name: {"type": "string"} for name in arguments}}
    assert arguments_for(value, schema, Transformation.model_validate(transformation)) == arguments


def chain(value: Any, take: dict[str, Any], result: Any) -> None:
    """A step of a chain takes this of the result before it."""
    steps = [{"tool": "grep", "arguments": {"pattern": "x"}}, {"tool": "read_file", "take": take}]
    step = understood(ToolCall("compose", {"steps": steps}), Compose()).arguments.steps[1]
    assert transform(value, step.take) == result


def hidden(*keys: str) -> None:
    """The value of these keys, in any case, is in no record."""
    for key in (*keys, *(name.upper() for name in keys)):
        clean = Sanitizer(homes=()).sanitize({"in": [{key: "some value"}]})
        assert MARK.fullmatch(clean["in"][0][key]), key


def masked(value: Any, clean: Any) -> None:
    assert Sanitizer(homes=()).sanitize(value) == clean


def marked(key: str) -> None:
    clean = Sanitizer(homes=()).sanitize([{key: "one"}, {key: "one"}, {key: "other"}])
    assert clean[0] == clean[1] != clean[2] and all(MARK.fullmatch(item[key]) for item in clean)


def plan(*names: str) -> None:
    """The plan in an event has these fields."""
    assert set(names) <= set(_plan())


def step(*names: str) -> None:
    """Each step of the plan in an event has these fields; `index` counts from 1."""
    steps = _plan()["steps"]
    assert all(set(names) <= set(item) for item in steps) and [item["index"] for item in steps] == [1, 2]


def skill(modes: list[str], served: list[str]) -> None:
    known = Skill("a", "about", "text", "/f", "user", "a", agent_modes=tuple(modes))
    assert {mode for mode in ("direct", "ask", "plan", "other") if list_skills([known], mode, 1000)} == set(served)


def symbol(*names: str) -> None:
    """A definition in the data of a tool has these fields."""
    data = described(SymbolInfo("f", "function", "a.py", 1, 2, "def f()"))
    assert set(names) <= set(data) and (data["type"], data["file_path"]) == ("function", "a.py")


def prompt(kind: str, *parts: str) -> None:
    said = system_prompt(kind, Environment(("/w",)))
    assert all(part in said for part in parts)


def ports(*numbers: int) -> None:
    assert {*PORTS.values(), DEFAULT_PORT} == set(numbers)


def own(method: str, *parameters: str) -> None:
    """The base class of users' own tools has a method with these parameters."""
    assert set(parameters) <= set(inspect.signature(getattr(own_tools.Tool, method)).parameters)


def test(file: str, *names: str) -> None:
    """The tests that show it exist; they run with all others."""
    assert set(names) <= _tests(file), file


def _settled(layer: Mapping[str, Any], wanted: dict[str, Any]) -> None:
    settings, problems = load(layer)
    assert problems == []
    known = {setting.key: value_of(settings, setting) for setting in catalogue()}
    assert {key: known[key] for key in wanted} == wanted and set(wanted) <= {item.key for item in catalogue()}


def _plan() -> dict[str, Any]:
    record = RunRecord("r", plan=Plan.create("goal", [StepDraft("one"), StepDraft("two")], "low"))
    sent = events.to_dict(with_details(events.ExecutionStarted(), record, str))
    found: dict[str, Any] = sent["plan"]
    return found


@lru_cache
def _tests(file: str) -> frozenset[str]:
    tree = ast.parse((REPOSITORY / file).read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


_BY_THEIR_NAME = (
    *(call, sandbox, event, text, setting, environment, rule, words, retried, codes, types, prefix, fitted),
    *(chain, hidden, masked, marked, plan, step, skill, symbol, prompt, ports, own, test),
)
CHECKS: Mapping[str, Callable[..., None]] = {
    "judge": judged,
    "grade": graded,
    "at": path,
    **{found.__name__: found for found in _BY_THEIR_NAME},
}
