"""A server that fails in every way: we live, the code is right, the limit holds, the next call works where it can."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import pytest

from tests.children import command_lines
from tests.tools.mcp.rig import Rig, faulty, running

pytestmark = pytest.mark.slow  # every test starts a process

MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("dies", "MCP_NETWORK_ERROR", "exit code 7"),
        ("silent", "MCP_TIMEOUT", "did not answer within 2 s"),
    ],
)
async def test_a_server_that_does_not_start_is_off(tmp_path: Path, fault: str, code: str, words: str) -> None:
    began = time.monotonic()
    async with running(tmp_path, faulty(tmp_path, fault, timeoutSeconds=2)) as rig:
        row = await rig.row()
        assert (row["state"], row["tools"]) == ("failed", [])
        assert words in str(row["error"])
        assert [str(problem) for problem in rig.told] == [str(row["error"])]
        result = await rig.call("mcp.f.echo", text="a")
        assert result.error is not None and result.error.code == code
        assert words in result.text
        rig.servers.begin()
        assert (await rig.row())["state"] == "failed"
        assert len(rig.told) == 1
    assert time.monotonic() - began < 12


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    async with running(tmp_path, {"f": {"command": "no-such-program-here"}}) as rig:
        row = await rig.row()
        assert row["state"] == "failed"
        assert "there is no program no-such-program-here" in str(row["error"])
        result = await rig.call("mcp.f.echo")
        assert result.error is not None and result.error.code == "MCP_NOT_FOUND"
        assert result.text == f"[MCP Error] {result.error.message}"


@pytest.mark.parametrize(
    ("fault", "code", "words", "seconds"),
    [
        ("exits", "MCP_NETWORK_ERROR", "exit code 3). Its last output: out of luck", 8),
        ("hangs", "MCP_TIMEOUT", "did not answer in 2 s", 4),
        ("garbage", "MCP_PARSE_ERROR", "Traceback (most recent call last): no JSON", 4),
        ("noisy", "MCP_PARSE_ERROR", "DEBUG something", 5),
        ("wrong-id", "MCP_TIMEOUT", "did not answer", 4),
        ("huge", "MCP_PARSE_ERROR", "has 100 MiB", 8),
        ("huge-last", "MCP_PARSE_ERROR", "has 100 MiB", 8),
        ("endless", "MCP_PARSE_ERROR", "more than 256 MiB", 12),
    ],
)
async def test_a_call_that_goes_wrong(tmp_path: Path, fault: str, code: str, words: str, seconds: float) -> None:
    patience = 2 if seconds == 4 else 20
    async with running(tmp_path, faulty(tmp_path, fault, timeoutSeconds=patience)) as rig:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.monotonic()
        result = await rig.call("mcp.f.work")
        assert time.monotonic() - began < seconds
        assert result.status == "failed" and result.error is not None
        assert result.error.code == code, result.text
        assert words in result.text and "\x1b" not in result.text
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        assert grown < 100 * MEBIBYTE
        assert (await rig.call("mcp.f.echo", text="still here")).text.endswith("still here")


async def test_a_server_that_dies_in_every_call_is_given_up(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "exits")) as rig:
        codes = []
        for name in ("mcp.f.work", "mcp.f.work", "mcp.f.work", "mcp.f.work"):
            result = await rig.call(name)
            assert result.error is not None
            codes.append(result.error.code)
            await asyncio.sleep(0.3)
        assert codes[:3] == ["MCP_NETWORK_ERROR"] * 3
        assert (await rig.row())["state"] == "failed"
        assert sum(line.startswith("pid") for line in rig.seen()) == 3
        assert rig.tools() == []
        await rig.servers.reload()
        await rig.settled()
        assert (await rig.row())["state"] == "ready"


async def test_a_late_reply_hurts_nobody(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "late", timeoutSeconds=2)) as rig:
        late = await rig.call("mcp.f.work", seconds=2.5)
        assert late.error is not None and late.error.code == "MCP_TIMEOUT"
        assert (await rig.call("mcp.f.echo", text="mine")).text.endswith("mine")
        await asyncio.sleep(0.6)
        assert (await rig.call("mcp.f.echo", text="mine too")).text.endswith("mine too")


async def test_a_timeout_and_a_cancelled_call_are_told_to_the_server(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "hangs", timeoutSeconds=1)) as rig:
        await rig.call("mcp.f.work")
        await rig.until_seen("cancelled ")
    async with running(tmp_path / "two", faulty(tmp_path, "hangs", timeoutSeconds=30)) as rig:
        (tmp_path / "notes").unlink()
        call = asyncio.create_task(rig.call("mcp.f.work"))
        rig.folder = tmp_path
        await rig.until_seen('"name":"work"')
        began = time.monotonic()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - began < 1
        await rig.until_seen("cancelled ")


async def test_a_server_that_reads_nothing_is_left_in_time(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "deaf", timeoutSeconds=1)) as rig:
        first = await rig.call("mcp.f.work")
        big = await rig.call("mcp.f.echo", text="x" * MEBIBYTE)
        assert [result.error and result.error.code for result in (first, big)] == ["MCP_TIMEOUT", "MCP_TIMEOUT"]
        began = time.monotonic()
        await rig.servers.close()
        assert time.monotonic() - began < 3


async def test_a_server_that_ends_at_the_newer_greeting_gets_the_older(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "old-only")) as rig:
        assert (await rig.row())["state"] == "ready"
        assert (await rig.call("mcp.f.echo", text="hello")).ok
        greetings = [line for line in rig.seen() if line.startswith("in ") and '"initialize"' in line]
        assert len(greetings) == 1


async def test_a_changed_list_is_plugged_in_and_a_changed_tool_asks_again(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "changes")) as rig:
        assert rig.tools() == ["mcp.f.echo", "mcp.f.work"]
        assert (await rig.call("mcp.f.echo", text="a")).ok and not rig.bench.asker.asked
        await rig.call("mcp.f.work")
        await rig.until_tools("mcp.f.work", "mcp.f.echo", "mcp.f.more")
        assert (await rig.row())["changed"] == ["mcp.f.echo"]
        rig.bench.mode = "bypass"
        assert (await rig.call("mcp.f.echo", text="a")).status == "denied"
        (question,) = rig.bench.asker.asked
        assert "changed what it says" in question.detail and "sends it to me" in question.detail
        rig.bench.asker.answers = ["Allow once"]
        assert (await rig.call("mcp.f.echo", text="a")).ok
        assert (await rig.call("mcp.f.echo", text="a")).ok
        assert len(rig.bench.asker.asked) == 2
        assert (await rig.row())["changed"] == []
        assert (await rig.call("mcp.f.more")).ok


async def test_a_tool_with_an_endless_name_is_left_out_and_costs_no_pin(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "long-name")) as rig:
        assert rig.tools() == ["mcp.f.echo", "mcp.f.work"]
    async with running(tmp_path, faulty(tmp_path, "changes")) as rig:
        await rig.call("mcp.f.work")
        await rig.until_tools("mcp.f.work", "mcp.f.echo", "mcp.f.more")


async def test_progress_is_a_note_now_and_then(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "chatty")) as rig:
        assert (await rig.call("mcp.f.work")).ok
        assert rig.notes == [f"mcp.f.work: {step}/3 on\\u202e it" for step in (1, 2, 3)]


async def test_roots_are_the_folders_and_sampling_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "roots")) as rig:
        result = await rig.call("mcp.f.work")
        answers = {row["id"]: row for row in json.loads(result.text.splitlines()[1])}
        assert answers["roots-1"]["result"]["roots"] == [{"uri": rig.bench.root.as_uri(), "name": "work"}]
        assert "error" in answers["sample-1"]


async def ask(rig: Rig, **params: Any) -> dict[str, Any]:
    result = await rig.call("mcp.f.work", params=params)
    answer: dict[str, Any] = json.loads(result.text.splitlines()[1])
    return answer


async def test_a_server_asks_the_user_in_a_call(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    async with running(tmp_path, faulty(tmp_path, "asks", timeoutSeconds=2)) as rig:
        rig.bench.asker.answers = ["Answer", "Kyoto"]
        given = await ask(rig, message="Where\u200b to?", requestedSchema=schema, mode="form")
        assert given == {"action": "accept", "content": {"city": "Kyoto"}}
        assert rig.bench.asker.asked[0].title == "The MCP server f asks: Where\\u200b to?"
        assert (await ask(rig, message="Again?", requestedSchema=schema))["action"] == "decline"
        asked = len(rig.bench.asker.asked)
        secret = {"type": "object", "properties": {"password": {"type": "string"}}}
        assert (await ask(rig, message="Log in", requestedSchema=secret))["action"] == "decline"
        url = {"mode": "url", "url": "https://example.com/", "elicitationId": "1", "message": "Open it"}
        assert (await ask(rig, **url))["action"] == "decline"
        assert len(rig.bench.asker.asked) == asked
        assert "asked for a secret" in rig.notes[-1]


@pytest.mark.parametrize("ends", ["result", "cancelled"])
async def test_the_questions_of_a_call_end_with_it(tmp_path: Path, ends: str) -> None:
    open_ones, began = list[object](), asyncio.Event()

    class Patient:
        async def ask(self, question: object) -> None:
            open_ones.append(question)
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                open_ones.remove(question)

    fault = "asks-and-ends" if ends == "result" else "asks"
    async with running(tmp_path, faulty(tmp_path, fault)) as rig:
        context = rig.bench.context
        object.__setattr__(context, "asker", Patient())
        rig.bench.executor._context = context
        params = {"message": "Hm?", "requestedSchema": {"type": "object", "properties": {}}}
        call = asyncio.create_task(rig.call("mcp.f.work", params=params))
        if ends == "cancelled":
            await began.wait()
            call.cancel()
        await asyncio.wait([call])
        await rig.until_seen('"action":')
        assert open_ones == []


async def test_the_clock_stands_while_the_user_thinks(tmp_path: Path) -> None:
    class Slow:
        async def ask(self, question: object) -> None:
            await asyncio.sleep(1.5)

    async with running(tmp_path, faulty(tmp_path, "asks", timeoutSeconds=1)) as rig:
        context = rig.bench.context
        object.__setattr__(context, "asker", Slow())
        rig.bench.executor._context = context
        given = await ask(rig, message="Hm?", requestedSchema={"type": "object", "properties": {}})
        assert given == {"action": "decline"}


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (-32602, "Unknown argument", ("retry", "MCP_PARAM_ERROR")),
        (-32601, "No such method", ("failed", "MCP_NOT_FOUND")),
        (-32700, "Cannot read it", ("failed", "MCP_PARSE_ERROR")),
        (-32603, "Broken inside", ("failed", "MCP_EXECUTION_ERROR")),
        (-32603, "connection to the database lost", ("failed", "MCP_NETWORK_ERROR")),
        (-1, "whatever\u202e", ("failed", "MCP_EXECUTION_ERROR")),
    ],
)
async def test_what_a_server_answers_is_graded(
    tmp_path: Path, code: int, message: str, expected: tuple[str, str]
) -> None:
    async with running(tmp_path, faulty(tmp_path, "refuses")) as rig:
        result = await rig.call("mcp.f.work", code=code, message=message)
        assert result.error is not None
        assert (result.status, result.error.code) == expected
        assert "\u202e" not in result.text


async def test_the_environment_is_scrubbed_and_has_what_is_set(tmp_path: Path) -> None:
    secret = "s" + os.urandom(8).hex()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "MY_TOKEN": secret,
        "SSH_AUTH_SOCK": "/x",
        "LANG": "C",
    }
    given = faulty(tmp_path, "none", env={"OWN": "value ${env:MY_TOKEN}"})
    async with running(tmp_path, given, environ) as rig:
        seen = json.loads(next(line for line in rig.seen() if line.startswith("env "))[4:])
        assert seen["OWN"] == f"value {secret}"
        assert {"MY_TOKEN", "SSH_AUTH_SOCK"}.isdisjoint(seen)
        assert secret not in str(await rig.servers.status())


async def test_the_whole_tree_ends(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "forks")) as rig:
        pids = {int(line.split()[1]) for line in rig.seen() if line.startswith("pid")}
        assert len(pids) == 2 and pids <= set(command_lines())
    assert not pids & set(command_lines())


async def test_tools_are_known_before_their_server_runs(tmp_path: Path) -> None:
    given = faulty(tmp_path, "none")
    async with running(tmp_path, given):
        pass
    rig = Rig(tmp_path, given)
    rig.servers.begin()
    await rig.until_tools("mcp.f.echo", "mcp.f.work", seconds=0.3)
    assert (await rig.call("mcp.f.echo", text="early")).text.endswith("early")
    await rig.servers.close()


async def test_a_tool_that_changed_while_nobody_looked_is_not_called(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "none")):
        pass
    kept = tmp_path / "mcp.json"
    kept.write_text(kept.read_text().replace("Says it again.", "Says it again, kindly."))
    rows = json.loads(kept.read_text())
    rows["f"]["pins"] = {}
    kept.write_text(json.dumps(rows))
    rig = Rig(tmp_path, faulty(tmp_path, "none"))
    rig.servers.begin()
    await rig.until_tools("mcp.f.echo", "mcp.f.work", seconds=0.3)
    tool = rig.bench.registry.get("mcp.f.echo")
    result = await rig.call("mcp.f.echo", text="early")
    assert (result.status, "has just changed it" in result.text) == ("retry", True)
    await rig.until_tool("mcp.f.echo", other_than=tool)
    await rig.servers.close()


async def test_settings_that_change_take_effect(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "none")) as rig:
        rig.disabled.append("mcp.g.work")
        rig.given["g"] = {**rig.given["f"]}
        await rig.start()
        assert rig.tools() == ["mcp.f.echo", "mcp.f.work", "mcp.g.echo"]
        rig.given["f"]["disabled"] = True
        rig.given["bad name"] = {"command": "x"}
        await rig.start()
        assert rig.tools() == ["mcp.g.echo"]
        rows = {row["name"]: row["state"] for row in await rig.servers.status()}
        assert rows == {"f": "disabled", "g": "ready", "bad name": "failed"}
        rig.given.clear()
        await rig.start()
        assert rig.tools() == [] and await rig.servers.status() == []


async def test_arguments_are_checked_before_anybody_is_asked(tmp_path: Path) -> None:
    async with running(tmp_path, faulty(tmp_path, "none", autoApprove=[])) as rig:
        result = await rig.call("mcp.f.echo", words="x")
        assert result.status == "retry" and "missing: text" in result.text and "Parameters: text" in result.text
        assert not rig.bench.asker.asked
        assert (await rig.call("mcp.f.echo", text="x")).status == "denied"
        assert rig.bench.asker.asked[0].choices[0] == "Deny"
        rig.bench.asker.answers = ["Allow exactly this for the session"]
        assert (await rig.call("mcp.f.echo", text="x")).ok and (await rig.call("mcp.f.echo", text="x")).ok
        assert (await rig.call("mcp.f.echo", text="y")).status == "denied"
        assert len(rig.bench.asker.asked) == 3
