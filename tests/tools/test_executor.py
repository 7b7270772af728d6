"""How a call runs: understood, judged, limited, recorded; never an exception but cancellation."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field

from codeagent_lsp.errors import CircuitOpen, CodeAgentError, ToolFailed, ToolRetry, WrongArguments
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.tools.code.reading_tools import SearchSemantic
from codeagent_lsp.tools.commands.command_tools import RunCmd
from codeagent_lsp.tools.context import TaskWords, ToolContext
from codeagent_lsp.tools.executor import MAX_CALLS, ToolExecutor, validate_arguments
from codeagent_lsp.tools.files.find_tools import Grep
from codeagent_lsp.tools.files.read_tools import ListDir, ReadFile, ReadFiles
from codeagent_lsp.tools.permissions.approvals import fingerprint
from codeagent_lsp.tools.testing.testing_tools import RunTests
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from tests.tools.fakes import Bench


class ProbeParameters(Parameters):
    path: str = "."
    count: int = 1
    names: list[str] = Field(default_factory=list)
    options: dict[str, int] = Field(default_factory=dict)


class Probe(Tool[ProbeParameters]):
    """Does what it is told to by `act` and keeps what it got."""

    traits: ClassVar[ToolTraits] = ToolTraits("probe", "For tests.", "read", path_parameters=("path",))
    parameters = ProbeParameters

    def __init__(self, act: Any = None) -> None:
        self.got: list[ProbeParameters] = []
        self.act = act

    async def run(self, arguments: ProbeParameters, context: ToolContext) -> ToolOutput:
        self.got.append(arguments)
        result = self.act() if callable(self.act) else self.act
        if asyncio.iscoroutine(result):
            result = await result
        if isinstance(result, BaseException):
            raise result
        return ToolOutput(str(result), {"data": 1})


class Runner(Probe):
    traits: ClassVar[ToolTraits] = ToolTraits("runner", "For tests.", "run")


class Waiter(Probe):
    traits: ClassVar[ToolTraits] = ToolTraits("waiter", "For tests.", "ask", timeout=None)


class Impatient(Probe):
    traits: ClassVar[ToolTraits] = ToolTraits("impatient", "For tests.", "read", timeout=0.01)


class Terse(Probe):
    traits: ClassVar[ToolTraits] = ToolTraits("terse", "For tests.", "read", max_output_bytes=2000)


class Plain(Tool[Parameters]):
    traits: ClassVar[ToolTraits] = ToolTraits("plain", "For tests.", "read")
    parameters = Parameters

    async def run(self, arguments: Parameters, context: ToolContext) -> ToolOutput:
        return ToolOutput("done")


def make(folder: Path, *tools: Tool[Any]) -> Bench:
    return Bench(folder / "work", tools)


# --- what comes back


async def test_a_good_call(tmp_path: Path) -> None:
    bench = make(tmp_path, Probe("fine"))
    result = await bench.call("probe", count=2)
    assert (result.status, result.text, result.data, result.error) == ("ok", "fine", {"data": 1}, None)
    assert result.context == {"cwd": str(bench.root), "params_input": {"count": 2}}
    assert result.stats["time_ms"] >= 0


@pytest.mark.parametrize(
    ("error", "status", "code", "kind"),
    [
        (ToolFailed("no"), "failed", "EXECUTION_ERROR", "execution_error"),
        (ToolRetry("other"), "retry", "INVALID_PARAM", "param_error"),
        (CircuitOpen("rests"), "failed", "CIRCUIT_OPEN", "execution_error"),
        (OSError("disk"), "failed", "EXECUTION_ERROR", "execution_error"),
        (TimeoutError("a socket's own"), "failed", "EXECUTION_ERROR", "execution_error"),
    ],
)
async def test_errors_become_results(tmp_path: Path, error: Exception, status: str, code: str, kind: str) -> None:
    result = await make(tmp_path, Probe(error)).call("probe")
    assert result.error is not None
    assert (result.status, result.error.code, result.error.type) == (status, code, kind)
    assert str(error) in result.text


async def test_a_tool_without_time_limit_may_raise_a_time_out_of_its_own(tmp_path: Path) -> None:
    result = await make(tmp_path, Waiter(TimeoutError("gone"))).call("waiter")
    assert (result.status, result.error and result.error.code) == ("failed", "EXECUTION_ERROR")


async def test_unknown_and_disabled_tools_say_what_there_is(tmp_path: Path) -> None:
    bench = make(tmp_path, Probe("x"), Plain())
    unknown = await bench.call("prob")
    assert unknown.error is not None
    assert (unknown.error.code, "probe, plain" in unknown.text) == ("NOT_FOUND", True)
    bench.registry.disable("probe", "switched off in the settings")
    disabled = await bench.call("probe")
    assert disabled.error is not None
    assert (disabled.error.code, "switched off in the settings" in disabled.text) == ("TOOL_DISABLED", True)


async def test_stats_count_calls_and_errors(tmp_path: Path) -> None:
    answers = iter(["a", ToolFailed("b"), "c"])
    bench = make(tmp_path, Probe(lambda: next(answers)), Plain())
    for _ in range(3):
        await bench.call("probe")
    await bench.call("nothing")
    (stats, untouched) = (entry.stats for entry in bench.registry.entries())
    assert (stats.calls, stats.errors, untouched.calls) == (3, 1, 0)
    assert stats.mean_ms == pytest.approx(stats.total_ms / 3)


async def test_a_tool_unregistered_while_it_runs(tmp_path: Path) -> None:
    bench = make(tmp_path)
    bench.registry.register(Probe(lambda: bench.registry.unregister("probe")))
    assert (await bench.call("probe")).ok


# --- arguments


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"count": "many"}, "count:"),
        ({"count": None}, "count:"),
        ({"path": 5}, "path:"),
        ({"names": [1]}, "names.0:"),
        ({"names": "no list"}, "names:"),
        ({"names": '["a", 1]'}, "names:"),
        ({"options": '{"a": '}, "options:"),
        ({"coutn": 1}, "coutn:"),
        ({"path": 5, "count": "x"}, "count:"),
        ({"options": "[" * 100_000}, "options:"),
    ],
)
async def test_wrong_arguments_name_the_parameter(tmp_path: Path, arguments: dict[str, Any], named: str) -> None:
    probe = Probe("x")
    result = await make(tmp_path, probe).call("probe", **arguments)
    assert (result.status, result.error and result.error.code) == ("retry", "INVALID_PARAM")
    assert named in result.text and "Parameters: path, count, names, options" in result.text
    assert probe.got == []


@pytest.mark.parametrize(
    ("tool", "arguments", "left"),
    [
        (RunTests, {"path": "", "pattern": ""}, {}),
        (ReadFile, {"path": "a.py", "start_line": 3, "end_line": -1}, {"path": "a.py", "start_line": 3}),
        (ReadFile, {"path": "a.py", "start_line": 0, "end_line": 0}, {"path": "a.py", "start_line": 1}),
        (ReadFiles, {"files": [{"path": "a.py", "end_line": 0}]}, {"files": [{"path": "a.py"}]}),
        (ReadFile, {"path": "a.py", "view_range": [7, -1]}, {"path": "a.py", "start_line": 7}),
        (ListDir, {"path": "", "depth": 0}, {"path": ""}),
        (Grep, {"pattern": "x", "path": "", "glob": "", "max_results": 0, "context": 0}, {"pattern": "x"}),
        (RunCmd, {"command": "ls", "timeout": 0, "working_dir": "", "env_vars": []}, {"command": "ls"}),
    ],
)
def test_what_an_optional_argument_does_not_say_is_left_out(
    tool: type[Tool[Any]], arguments: dict[str, Any], left: dict[str, Any]
) -> None:
    assert validate_arguments(tool(), arguments) == tool.parameters.model_validate(left)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (ReadFile, {"path": "", "start_line": "x"}),
        (ReadFile, {"path": "a.py", "start_line": -7}),
        (SearchSemantic, {"query": "", "limit": 5}),
    ],
)
def test_a_required_argument_that_says_nothing_is_refused(tool: type[Tool[Any]], arguments: dict[str, Any]) -> None:
    with pytest.raises(WrongArguments):
        validate_arguments(tool(), arguments)


async def test_a_tool_without_parameters_says_so(tmp_path: Path) -> None:
    assert "no such argument: x" in (await make(tmp_path, Plain()).call("plain", x=1)).text


async def test_texts_that_hold_json_are_unpacked_once_and_only_where_needed(tmp_path: Path) -> None:
    probe = Probe("x")
    bench = make(tmp_path, probe)
    await bench.call("probe", names='["a", "[1]"]', options='{"b": 1}', count="3")
    await bench.call("probe", path="[1]")
    await bench.call("probe", names=json.dumps(json.dumps(["twice"])))
    assert [(got.names, got.options, got.count) for got in probe.got] == [(["a", "[1]"], {"b": 1}, 3), ([], {}, 1)]
    assert probe.got[1].path == "[1]"


# --- time


async def test_a_time_out_is_told_and_stops_the_tool(tmp_path: Path) -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("stopped")

    result = await make(tmp_path, Impatient(slow)).call("impatient")
    assert (result.status, result.error and result.error.code) == ("failed", "TIMEOUT")
    assert "0.01 s" in result.text
    assert ended == ["stopped"]


async def test_the_setting_is_the_limit_of_ordinary_tools(tmp_path: Path) -> None:
    bench = make(tmp_path, Probe(lambda: asyncio.sleep(30)))
    bench.limits(timeout_seconds=0)
    result = await bench.call("probe")
    assert (result.error and result.error.code) == "TIMEOUT"


async def test_waiting_for_the_user_does_not_count_as_the_tools_time(tmp_path: Path) -> None:
    class SlowUser:
        async def ask(self, question: Any) -> tuple[str, ...]:
            await asyncio.sleep(0.05)
            return ("Allow once",)

    class ImpatientRunner(Probe):
        traits: ClassVar[ToolTraits] = ToolTraits("quick", "For tests.", "run", timeout=0.02)

    bench = make(tmp_path, ImpatientRunner("ran"))
    bench.asker = SlowUser()  # type: ignore[assignment]
    bench.configure(bench.context.settings)
    assert (await bench.call("quick")).text == "ran"


async def test_cancellation_passes_through_and_leaves_nothing(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def slow() -> None:
        started.set()
        await asyncio.sleep(30)

    bench = make(tmp_path, Probe(slow))
    task = asyncio.create_task(bench.call("probe"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.registry.entries()[0].stats.calls == 0
    assert len(asyncio.all_tasks()) == 1


# --- batches


async def test_reading_calls_run_at_once_and_others_one_after_the_other(tmp_path: Path) -> None:
    order: list[str] = []

    async def work(name: str) -> None:
        order.append(f"{name} begins")
        await asyncio.sleep(0)
        order.append(f"{name} ends")

    bench = make(tmp_path, Probe(lambda: work("probe")), Waiter(lambda: work("waiter")))
    await bench.executor.execute_batch([ToolCall("probe", {}), ToolCall("probe", {})])
    assert order == ["probe begins"] * 2 + ["probe ends"] * 2
    order.clear()
    results = await bench.executor.execute_batch([ToolCall("probe", {}), ToolCall("waiter", {}), ToolCall("no", {})])
    assert order == ["probe begins", "probe ends", "waiter begins", "waiter ends"]
    assert [result.status for result in results] == ["ok", "ok", "failed"]


@pytest.mark.parametrize("names", [("probe", "probe", "probe"), ("waiter", "probe", "waiter")])
async def test_each_result_is_told_in_order_and_not_only_at_the_end(tmp_path: Path, names: tuple[str, ...]) -> None:
    told: list[str] = []
    seen: list[list[str]] = []

    async def work() -> None:
        await asyncio.sleep(0)
        seen.append(list(told))

    bench = make(tmp_path, Probe(work), Waiter(work))
    calls = [ToolCall(name, {}, id=str(at)) for at, name in enumerate(names)]
    await bench.executor.execute_batch(calls, lambda call, result: told.append(call.id))
    assert told == ["0", "1", "2"]
    if "waiter" in names:
        assert seen == [[], ["0"], ["0", "1"]]


class Broken(Probe):
    traits: ClassVar[ToolTraits] = ToolTraits("broken", "For tests.", "read")


async def test_a_tool_with_a_fault_fails_alone(tmp_path: Path) -> None:
    bench = make(tmp_path, Probe("fine"), Broken(KeyError("a bug")))
    fine, broken = await bench.executor.execute_batch([ToolCall("probe", {}), ToolCall("broken", {})])
    assert (fine.ok, broken.ok) == (True, False)
    assert "KeyError" in broken.text and "Try another way" in broken.text


async def test_a_batch_that_breaks_leaves_no_task(tmp_path: Path) -> None:
    """What is wrong with the run itself ends it."""
    bench = make(tmp_path, Probe(lambda: asyncio.sleep(30)), Broken(CodeAgentError("the run is over")))
    with pytest.raises(ExceptionGroup):
        await bench.executor.execute_batch([ToolCall("probe", {}), ToolCall("broken", {})])
    assert len(asyncio.all_tasks()) == 1


async def test_an_empty_batch(tmp_path: Path) -> None:
    assert await make(tmp_path).executor.execute_batch([]) == ()


# --- output


async def test_long_output_keeps_head_and_tail(tmp_path: Path) -> None:
    bench = make(tmp_path, Probe("first\n" + "é\n" * 5000 + "last"))
    bench.limits(max_output_bytes=1024)
    result = await bench.call("probe")
    assert result.text.startswith("first\n") and result.text.endswith("last")
    assert "characters left out" in result.text
    assert len(result.text.encode()) < 1200


async def test_of_long_output_the_lines_with_errors_and_the_words_of_the_task_are_kept(tmp_path: Path) -> None:
    quiet = "nothing here\n" * 2000
    bench = make(tmp_path, Probe(f"{quiet}before\nFAILED a.py::test_it\n{quiet}see parse_width\n{quiet}last"))
    bench.limits(max_output_bytes=2048)
    bench.context = bench.context.having((TaskWords, TaskWords(("parse_width",))))
    bench.executor = ToolExecutor(bench.registry, bench.context, lambda: bench.mode, bench.approvals)
    text = (await bench.call("probe")).text
    assert "\nbefore\nFAILED a.py::test_it\n" in text and "\nsee parse_width\n" in text and text.endswith("last")
    assert len(text.encode()) < 2300
    gaps = sum(map(int, re.findall(r"\[\.\.\. (\d+) characters left out", text)))
    assert abs(gaps + len(re.sub(r"\[\.\.\. .*", "", text)) - (3 * len(quiet) + 50)) < 20


@pytest.mark.parametrize(("setting", "limit"), [(50_000, 2000), (1024, 1024)])
async def test_a_tool_may_say_less_than_the_setting_allows_and_never_more(
    tmp_path: Path, setting: int, limit: int
) -> None:
    bench = make(tmp_path, Terse("x" * 10_000))
    bench.limits(max_output_bytes=setting)
    assert limit <= len((await bench.call("terse")).text.encode()) < limit + 100


async def test_output_with_lone_surrogates_is_no_trouble(tmp_path: Path) -> None:
    bench = make(tmp_path, Probe("\ud800" * 10_000))
    bench.limits(max_output_bytes=1024)
    assert (await bench.call("probe")).ok


# --- asking


async def test_an_approval_holds_for_the_exact_call_of_the_session(tmp_path: Path) -> None:
    bench = make(tmp_path, Runner("ran"))
    bench.asker.answers = ["Allow exactly this for the session"]
    assert (await bench.call("runner", count=1)).ok
    assert (await bench.call("runner", count="1", path=".")).ok, "the same call, written in another way"
    assert len(bench.asker.asked) == 1
    denied = await bench.call("runner", count=2)
    assert (denied.status, denied.error and denied.error.code) == ("denied", "PERMISSION_DENIED")
    assert len(bench.asker.asked) == 2


async def test_allowed_once_is_asked_again(tmp_path: Path) -> None:
    bench = make(tmp_path, Runner("ran"))
    bench.asker.answers = ["Allow once", "Deny"]
    assert [(await bench.call("runner")).status for _ in range(2)] == ["ok", "denied"]


@pytest.mark.parametrize("answer", [None, (), "Deny", "something else", ("Deny", "Allow once")])
async def test_everything_but_a_clear_yes_is_no(tmp_path: Path, answer: Any) -> None:
    runner = Runner("ran")
    bench = make(tmp_path, runner)
    bench.asker.answers = [answer]
    assert (await bench.call("runner")).status == "denied"
    assert runner.got == []


async def test_the_question_shows_the_whole_call_and_hides_nothing(tmp_path: Path) -> None:
    bench = make(tmp_path, Runner("ran"))
    await bench.call("runner", path="evil\u202etxt.exe\nAllow ls: ok?", names=["x" * 300])
    (question,) = bench.asker.asked
    assert question.choices[0] == "Deny" and question.danger
    assert "\n" not in question.title and "\u202e" not in question.title and len(question.title) < 900
    assert "\\u202e" in question.detail and "x" * 300 in question.detail


async def test_wrong_arguments_are_not_asked_about(tmp_path: Path) -> None:
    bench = make(tmp_path, Runner("ran"))
    assert (await bench.call("runner", count="x")).status == "retry"
    assert bench.asker.asked == []


def test_fingerprints_tell_calls_apart() -> None:
    same = [ToolCall("t", {"a": 1, "b": [2]}), ToolCall("t", {"b": [2], "a": 1}, id="other")]
    others = [ToolCall("u", {"a": 1, "b": [2]}), ToolCall("t", {"a": "1", "b": [2]}), ToolCall("t", {"a": 1})]
    assert len({fingerprint(call) for call in same}) == 1
    assert len({fingerprint(call) for call in [*same, *others]}) == 4


@pytest.mark.parametrize("tool", [Probe, Runner])
async def test_thousands_of_calls_in_one_reply_are_bounded(tmp_path: Path, tool: type[Probe]) -> None:
    probe = tool("fine")
    bench = make(tmp_path, probe)
    bench.mode = "bypass"
    name = probe.traits.name
    results = await bench.executor.execute_batch([ToolCall(name, {"count": n}, id=str(n)) for n in range(3000)])
    assert len(results) == 3000 and len(probe.got) == MAX_CALLS
    assert all(result.ok for result in results[:MAX_CALLS])
    assert {result.status for result in results[MAX_CALLS:]} == {"retry"} and "Not run" in results[-1].text
    (entry,) = bench.registry.entries()
    assert entry.stats.errors == 3000 - MAX_CALLS
