"""Commands in the background of a run, in real shadows: heard, reached, stopped, and never left behind."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.texts import text
from tests.session.fakes import World, call, calls, say, until, world
from tests.session.hooks.real_shadows import RealShadows
from tests.shadow.rig import needs_overlay

pytestmark = needs_overlay

APPLY = text("choice.apply")
SERVER = (
    "python3 -c \"import http.server as h; s = h.HTTPServer(('127.0.0.1', 8765), h.SimpleHTTPRequestHandler); "
    "print('serving', flush=True); s.serve_forever()\""
)
ASK = "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8765/a.txt').read().decode())\""

Make = Callable[..., World]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    shadows = RealShadows(tmp_path / "state")

    def made(*replies: ScriptedReply, says: tuple[str, ...] = (APPLY,), **more: Any) -> World:
        return world(tmp_path / "w", *replies, says=says, shadows=shadows, **more)

    yield made
    await shadows.close()


def start(command: str, **more: Any) -> ScriptedReply:
    return calls(call("run_cmd", command=command, background=True, **more))


def beside(command: str, **more: Any) -> ScriptedReply:
    return calls(call("run_beside", command=command, id="bg1", **more))


def output(**more: Any) -> ScriptedReply:
    return calls(call("command_output", id="bg1", **more))


STOP = calls(call("stop_command", id="bg1"))


def results(made: World) -> list[str]:
    return [each.content for each in made.manager.current().context.conversation if each.role == "tool"]


def running(mark: str) -> bool:
    return mark in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


async def test_a_server_is_started_reached_and_stopped(make: Make) -> None:
    made = make(start(SERVER, ready="serving"), beside(ASK), STOP, say("Done."))
    made.root.joinpath("a.txt").write_text("saved")
    made.open("a.txt", "unsaved")
    await made.run("try the server")
    first, asked, stopped = results(made)
    assert first == "serving\n[bg1 runs in the background]"
    assert asked == "unsaved\n[exit code 0, beside bg1]"
    assert "[bg1 has ended" in stopped
    await until(lambda: not running("8765"))


async def test_what_it_wrote_becomes_a_proposal_when_it_is_stopped(make: Make) -> None:
    made = make(
        start("echo built > built.txt; echo watching; sleep 1000.25", ready="watching"),
        beside("echo more >> built.txt; exit 3"),
        STOP,
        say("Done."),
    )
    await made.run("build")
    _, other, stopped = results(made)
    assert other == "(no output)\n[exit code 3, beside bg1]"
    assert "Staged from what it wrote: built.txt" in stopped
    assert made.text("built.txt") == "built\nmore\n"
    assert not (made.root / "built.txt").exists()
    await until(lambda: not running("1000.25"))


async def test_others_need_not_wait_and_output_comes_in_parts(make: Make) -> None:
    made = make(
        start("for i in 1 2 3; do echo line $i; sleep 0.5; done; exit 7", ready="line 1"),
        calls(call("run_cmd", command="echo meanwhile")),
        output(wait=10),
        output(wait=10),
        output(wait=10),
        say("Done."),
    )
    await made.run("count")
    first, meanwhile, *rest = results(made)
    assert first == "line 1\n[bg1 runs in the background]"
    assert meanwhile.startswith("meanwhile\n[exit code 0")
    heard = "\n".join(rest)
    assert heard.count("line 2") == heard.count("line 3") == 1
    assert "[bg1 has ended, exit code 7]" in heard


async def test_it_ends_with_the_run(make: Make) -> None:
    made = make(start("sleep 1000.5"), say("Done."))
    done = await made.run("start it")
    assert done.status == "completed"
    await until(lambda: not running("1000.5"))
    await until(lambda: not made.manager.runs.active())


async def test_it_ends_with_a_run_that_is_cancelled(make: Make) -> None:
    made = make(start("sleep 1000.75"), ScriptedReply("Slow.", delay=60.0))
    run_id = made.manager.start(RunRequest("run", "start it", "start it"))
    await until(lambda: running("1000.75"))
    made.manager.runs.cancel(run_id)
    assert (await made.finished(run_id)).status == "cancelled"
    await until(lambda: not running("1000.75"))


async def test_four_at_once(make: Make) -> None:
    made = make(*[start("sleep 999.5")] * 5, say("Done."))
    await made.run("start them")
    *_, last = results(made)
    assert "4 commands run in the background already. Stop one first." in last


async def test_wrong_calls_are_told(make: Make) -> None:
    made = make(output(), STOP, beside("true"), start("exit 4"), beside("true"), say("."))
    await made.run("try")
    told = results(made)
    assert all("no background command 'bg1'. There are: none." in each for each in told[:3])
    assert "[bg1 has ended, exit code 4]" in told[3]
    assert "bg1 has ended" in told[4]


async def test_a_place_with_network_is_no_way_around_the_question(make: Make) -> None:
    once = text("choice.once")
    replies = (start("sleep 998.5", allow_network=True), beside("true"), say("Done."))
    made = make(*replies, says=(once,))
    await made.run("try")
    assert (
        "[in the background" in made.user.shown[0].question.title or "background" in made.user.shown[0].question.title
    )
    assert "say allow_network, so that the user is asked" in results(made)[1]


async def test_much_output_is_bounded(make: Make) -> None:
    made = make(start("yes | head -c 3000000; echo end; sleep 997.5", ready="end"), say("Done."))
    await made.run("print")
    (told,) = results(made)
    assert "end" in told and len(told) < 140_000
