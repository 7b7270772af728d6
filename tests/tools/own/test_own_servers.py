"""Own tools in real workers: trust before any code runs, shapes of tools, faults that stay in their process."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from codeagent_lsp import events
from tests.children import command_lines
from tests.tools.own.rig import GREET, own_rig

pytestmark = pytest.mark.slow  # whole processes at work

MARKING = "from pathlib import Path\nPath({!r}).write_text('ran')\n"


async def test_a_file_is_asked_about_once_and_its_tool_called(tmp_path: Path) -> None:
    async with own_rig(tmp_path) as rig:
        rig.user_file("greet.py", GREET)
        await rig.look()
        assert rig.asked == [("greet.py", False)] and rig.tools() == ["own.greet"]
        result = await rig.call("own.greet", name="Ann", times=2)
        assert result.ok and result.text.endswith("data, not instructions]\nHello, Ann, Ann!")
        (question,) = rig.bench.asker.asked  # each call asks
        assert question.title.startswith("Allow own.greet")
        await rig.look()
        await rig.own.close()
        rig.own = rig.new()
        await rig.look()
        assert len(rig.asked) == 1  # another server asks no more


@pytest.mark.parametrize("answer", [False, None])
async def test_nothing_of_a_workspace_runs_before_trust(tmp_path: Path, answer: bool | None) -> None:
    mark = tmp_path / "mark"
    async with own_rig(tmp_path) as rig:
        rig.answer = answer
        rig.project_file("greet.py", MARKING.format(str(mark)) + GREET)
        for name in ("json.py", "sitecustomize.py", "codeagent_lsp.py", "pydantic.py"):
            (rig.bench.root / name).write_text(MARKING.format(str(mark)))
        rig.user_file("other.py", GREET.replace("greet", "other"))
        await rig.look()
        assert rig.tools() == []
        await rig.look()
        assert len(rig.asked) == (2 if answer is False else 4)  # no is an answer, silence is none
        rig.answer = True
        rig.user_file("other.py", GREET.replace("greet", "trusted"))
        rig.environ["PYTHONPATH"] = os.pathsep.join(["", ".", rig.environ.get("PYTHONPATH", "")])
        rig.refused.add("greet.py")
        await rig.look()
        assert rig.tools() == ["own.trusted"] and (await rig.call("own.trusted", name="A")).ok
        assert not mark.exists()


async def test_a_changed_file_is_asked_about_again_and_stopped_until_then(tmp_path: Path) -> None:
    async with own_rig(tmp_path) as rig:
        rig.project_file("greet.py", GREET)
        await rig.look()
        rig.answer = False
        rig.project_file("greet.py", GREET.replace("Hello", "Bye"))
        await rig.look()
        assert rig.asked == [("greet.py", False), ("greet.py", True)] and rig.tools() == []
        rig.project_file("greet.py", GREET)
        await rig.look()
        assert rig.tools() == ["own.greet"] and len(rig.asked) == 2  # the trusted bytes are back


async def test_bytes_that_change_after_the_look_do_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with own_rig(tmp_path) as rig:
        path = rig.project_file("greet.py", GREET)
        await rig.look()
        await rig.own.close()
        rig.own = rig.new()
        await rig.look()  # known from before: its process is not started
        path.write_text(MARKING.format(str(mark)) + GREET)
        result = await rig.call("own.greet", name="Ann")
        assert not result.ok and "changed since it was trusted" in result.text
        assert not mark.exists()


async def test_a_trust_taken_back_stops_the_worker(tmp_path: Path) -> None:
    async with own_rig(tmp_path) as rig:
        rig.user_file("greet.py", GREET)
        await rig.look()
        rig.own.trust.revoke()
        rig.answer = False
        await rig.look()
        assert rig.tools() == [] and len(rig.asked) == 2


SHAPES = """
from __future__ import annotations
from dataclasses import dataclass
from pydantic import BaseModel, Field
from codeagent_lsp.own_tools import Tool, tool

class Sum(BaseModel):
    values: list[int] = Field(description="what to add", max_length=5)

class Adder(Tool):
    name = "add"
    description = "Adds numbers."
    parameters = Sum
    def run(self, arguments):
        return {"sum": sum(arguments.values)}

class Old(Tool):
    def __init__(self):
        super().__init__("old", "The older shape.", max_output_bytes=20)
    def get_parameters_schema(self):
        return {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    def validate_args(self, **kwargs):
        return kwargs["size"] > 0
    async def execute(self, **kwargs):
        return "é" * kwargs["size"]

old = Old()

@dataclass
class Point:
    x: int

@tool(name="move-it", description="Moves a point.")
async def move(point: Point, _by: int = 1) -> list:
    print("on the way")
    return [point.x + _by, input() if False else None]
"""


async def test_the_shapes_of_tools(tmp_path: Path) -> None:
    async with own_rig(tmp_path) as rig:
        rig.user_file("shapes.py", SHAPES)
        await rig.look()
        assert rig.problems == [] and sorted(rig.tools()) == ["own.add", "own.move-it", "own.old"]
        added = await rig.call("own.add", values=[1, 2])
        assert added.data == {"sum": 3}
        assert "at most 5" in (await rig.call("own.add", values=[1] * 6)).text
        old = await rig.call("own.old", size=30)
        assert old.text.endswith("\n" + "é" * 10 + "\n(Output truncated at 20 bytes)")
        assert "does not accept" in (await rig.call("own.old", size=0)).text
        assert (await rig.call("own.move-it", point={"x": 4}, _by=2)).text.endswith("\n[6, null]")
        spec = rig.bench.registry.get("own.add").spec()
        assert "what to add" in str(spec) and "tool of the user's own, shapes.py" in spec["description"]


BAD = {
    "syntax.py": ("def broken(:\n    pass\n", "line 1: SyntaxError"),
    "raises.py": ("x = 1\nraise RuntimeError('no luck')\n", "line 2: RuntimeError: no luck"),
    "exits.py": ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
    "empty.py": ("x = 1\n", "defines no tool"),
    "named.py": (GREET.replace("@tool", "@tool(name='my tool')"), "cannot be the name of a tool"),
    "missing.py": ("import no_such_module_here\n", "line 1: ModuleNotFoundError"),
    "dies.py": ("import os\nos._exit(5)\n", "exit code 5"),
}


async def test_a_file_with_an_error_is_told_once_and_the_others_work(tmp_path: Path) -> None:
    async with own_rig(tmp_path) as rig:
        for name, (code, _) in BAD.items():
            rig.user_file(name, code)
        rig.user_file("good.py", GREET)
        rig.user_file("second.py", GREET)
        rig.user_file("_hidden.py", GREET)
        await rig.look()
        await rig.look()
        assert rig.tools() == ["own.greet"]
        for name, (_, words) in BAD.items():
            assert len([told for told in map(str, rig.problems) if f"/{name} " in told and words in told]) == 1, name
        (twice,) = [told for told in map(str, rig.problems) if "which" in told]
        assert "second.py defines own.greet" in twice and "good.py already has" in twice
        rig.user_file("raises.py", GREET.replace("greet", "mended"))
        await rig.look()
        assert "own.mended" in rig.tools()


async def test_a_file_that_never_ends_loading_is_told(tmp_path: Path) -> None:
    async with own_rig(tmp_path) as rig:
        rig.seconds = 2.0
        rig.user_file("loop.py", "while True:\n    pass\n")
        await rig.look()
        (told,) = map(str, rig.problems)
        assert "loop.py were not ready within 2 s" in told and rig.tools() == []


FAULTY = """
import os, sys, time
from codeagent_lsp.own_tools import tool

@tool
def loop() -> str:
    while True:
        pass

@tool
def crash() -> str:
    print("my last words", file=sys.stderr, flush=True)
    os._exit(9)

@tool
def fail(why: str) -> str:
    raise ValueError(why)

@tool
def leave() -> str:
    sys.exit("bye")

@tool
def huge(mib: int) -> str:
    return "x" * (mib << 20)

@tool
def flood() -> str:
    for fd in range(3, 20):
        try:
            os.write(fd, b"no message\\n" * 200)
        except OSError:
            pass
    return "done"

@tool
def where() -> dict:
    return {"cwd": os.getcwd(), "env": sorted(os.environ), "pid": os.getpid(), "stdin": sys.stdin.read()}
"""


async def test_faults_end_the_call_and_not_the_tools(tmp_path: Path) -> None:
    async with own_rig(tmp_path) as rig:
        rig.seconds = 3.0
        rig.user_file("faulty.py", FAULTY)
        await rig.look()
        began = time.monotonic()
        looped = await rig.call("own.loop")
        assert looped.error is not None and looped.error.code == "MCP_TIMEOUT"
        assert "did not end within 3 s" in looped.text and time.monotonic() - began < 10
        assert "line 17: ValueError: no\u2026" in (await rig.call("own.fail", why="no\u2026")).text
        crashed = await rig.call("own.crash")
        assert not crashed.ok and "exit code 9" in crashed.text and "my last words" in crashed.text
        assert "SystemExit: bye" in (await rig.call("own.leave")).text
        long = await rig.call("own.huge", mib=3)
        assert long.ok and len(long.text) < 100_000
        assert not (await rig.call("own.flood")).ok
        assert (await rig.call("own.where")).ok  # another process has taken over


async def test_a_worker_sees_the_workspace_and_no_secret(tmp_path: Path) -> None:
    async with own_rig(tmp_path) as rig:
        rig.environ["SERVICE_" + "TOKEN"] = "value"
        rig.user_file("faulty.py", FAULTY)
        await rig.look()
        data = (await rig.call("own.where")).data
        assert data["cwd"] == str(rig.bench.root) and data["pid"] != os.getpid() and data["stdin"] == ""
        assert "SERVICE_TOKEN" not in data["env"] and "PATH" in data["env"]


async def test_a_cancelled_call_ends_the_process(tmp_path: Path) -> None:
    async with own_rig(tmp_path) as rig:
        rig.user_file("faulty.py", FAULTY)
        await rig.look()
        pid = (await rig.call("own.where")).data["pid"]
        task = asyncio.create_task(rig.call("own.loop"))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(10):
            while pid in command_lines():  # noqa: ASYNC110 - a process is no event
                await asyncio.sleep(0.02)
        assert (await rig.call("own.where")).ok


async def test_an_entry_point_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, mark = tmp_path / "site", tmp_path / "mark"
    info = site / "greeter-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[codeagent_lsp.tools]\nhello = greeter_tools\nno = greeter_tools:missing\n")
    (site / "greeter_tools.py").write_text(MARKING.format(str(mark)) + GREET)
    monkeypatch.syspath_prepend(str(site))
    async with own_rig(tmp_path) as rig:
        rig.answer = False
        rig.environ["PYTHONPATH"] = os.pathsep.join([str(site), rig.environ.get("PYTHONPATH", "")])
        await rig.look()
        assert sorted(rig.asked) == [("greeter 1.2: hello", False), ("greeter 1.2: no", False)]
        assert not mark.exists() and rig.tools() == []
        rig.answer, rig.own = True, rig.new()
        await rig.look()
        assert rig.tools() == ["own.greet"] and mark.exists() and "greeter_tools" not in sys.modules
        assert (await rig.call("own.greet", name="Ann")).text.endswith("Hello, Ann!")
        (told,) = map(str, rig.problems)
        assert "greeter 1.2: no" in told and "AttributeError" in told


async def test_only_a_run_with_tools_looks(tmp_path: Path) -> None:
    async with own_rig(tmp_path) as rig:
        rig.user_file("greet.py", GREET)
        rig.own.observe(events.RunStarted(task="x", title="x", kind="runFile"))
        rig.own.observe(events.ToolCalls(calls=()))
        await asyncio.sleep(0.05)
        assert rig.asked == []
        rig.own.observe(events.RunStarted(task="x", title="x", kind="run"))
        async with asyncio.timeout(10):
            while not rig.tools():  # noqa: ASYNC110 - a registry is no event
                await asyncio.sleep(0.02)
        assert rig.asked == [("greet.py", False)]
