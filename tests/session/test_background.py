"""Commands in the background of a run, in real environments: heard, reached, stopped, and never left behind."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.texts import text
from codeagent_lsp.tools.commands import background, command_tools
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
    environments = RealShadows(tmp_path / "state")

    def made(*replies: ScriptedReply, says: tuple[str, ...] = (APPLY,), **more: Any) -> World:
        return world(tmp_path / "w", *replies, says=says, environments=environments, **more)

    yield made
    await environments.close()


def start(command: str, **more: Any) -> ScriptedReply:
    return calls(call("run_cmd", command=command, background=True, **more))


def beside(command: str, **more: Any) -> ScriptedReply:
    return calls(call("run_beside", command=command, id="bg1", **more))


def output(**more: Any) -> ScriptedReply:
    return calls(call("command_output", id="bg1", **more))


STOP = calls(call("stop_command", id="bg1"))
TOOLS = command_tools.BESIDE.format(name="bg1")


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
    assert first == f"serving\n[bg1 runs in the background]\n{TOOLS}"
    assert asked == "unsaved\n[exit code 0, beside bg1]"
    assert "[bg1 was stopped]" in stopped
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
    assert first == f"line 1\n[bg1 runs in the background]\n{TOOLS}"
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
    made = make(output(), STOP, beside("true"), start("exit 4", ready="never"), beside("true"), say("."))
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


async def test_one_that_is_never_ready_is_told_as_it_is(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_tools, "READY_SECONDS", 3.0)
    made = make(start("echo starting; sleep 996.5", ready="listening"), output(wait=0), STOP, say("Done."))
    await made.run("try")
    first, later, stopped = results(made)
    assert first == f"starting\n[bg1 runs in the background, and has not printed 'listening' yet]\n{TOOLS}"
    assert later == "(no output)\n[bg1 runs in the background]"
    assert "[bg1 was stopped]" in stopped


async def test_one_that_ends_before_it_is_ready(make: Make) -> None:
    made = make(start("echo no such port >&2; exit 3", ready="listening"), say("Done."))
    await made.run("try")
    assert results(made) == ["no such port\n[bg1 has ended, exit code 3]"]


async def test_its_time_limit_is_told_and_what_it_wrote_is_not_lost_in_silence(make: Make) -> None:
    made = make(
        start("echo x > x.txt; echo at work; sleep 996.25", ready="at work", timeout=1), output(wait=20), say("Done.")
    )
    await made.run("try")
    _, ended = results(made)
    assert "[bg1 was stopped at its time limit]" in ended
    assert "Not staged: x.txt" in ended
    assert made.text("x.txt") is None


@pytest.mark.parametrize(
    "flood",
    ["yes | head -c 8000000", "yes | head -c 8000000 | tr -d '\\n'", "yes 文字🙂 | head -c 5000000 | tr '\\n' '\\r'"],
    ids=["lines", "one line", "carriage returns"],
)
async def test_a_flood_does_not_hold_anything_up(make: Make, flood: str) -> None:
    """It is heard in part, others go on meanwhile, a command beside is answered, and the loop never stands still."""
    made = make(
        start(f"echo up; while :; do {flood}; sleep 995.5; done", ready="up"),
        beside("echo 7"),
        output(),
        STOP,
        say("."),
    )
    longest, last = 0.0, time.monotonic()

    async def watch() -> None:
        nonlocal longest, last
        while True:
            await asyncio.sleep(0.01)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()

    watching = asyncio.ensure_future(watch())
    started = time.monotonic()
    done = await made.run("try")
    watching.cancel()
    assert done.status == "completed"
    _, asked, heard, _ = results(made)
    assert asked == "7\n[exit code 0, beside bg1]"
    assert len(heard) < 140_000
    assert time.monotonic() - started < 30
    assert longest < 5, "the loop stood still"
    await until(lambda: not running("995.5"))


async def test_a_flood_beside_is_bounded(make: Make) -> None:
    made = make(start("sleep 994.5"), beside("yes | head -c 6000000; exit 5"), beside("echo and on"), say("."))
    await made.run("try")
    _, flood, after = results(made)
    assert len(flood) < 140_000 and "[exit code 5, beside bg1]" in flood
    assert after == "and on\n[exit code 0, beside bg1]"


async def test_children_that_leave_their_group_end_too(make: Make) -> None:
    """Daemons by a double fork in sessions of their own, that ignore what they can."""
    daemon = "setsid sh -c \"trap '' TERM HUP INT; sleep 993.5 & wait\" >/dev/null 2>&1 </dev/null &"
    made = make(start(f"({daemon}); (nohup setsid sleep 993.5 >/dev/null 2>&1 &); echo up", ready="up"), say("Done."))
    await made.run("try")
    await until(lambda: not running("993.5"))


async def test_a_stop_ends_children_that_are_left(make: Make) -> None:
    made = make(start("(setsid sleep 992.5 &); echo up; sleep 992.75", ready="up"), STOP, beside("true"), say("Done."))
    await made.run("try")
    assert "bg1 has ended" in results(made)[2]
    await until(lambda: not running("992.5") and not running("992.75"))


async def test_two_servers_on_the_same_port_do_not_meet(make: Make) -> None:
    """Each is in a place of its own, with a loopback network of its own."""
    made = make(
        *(start(SERVER, ready="serving"), start(SERVER, ready="serving")),
        *(beside("echo one > a.txt"), beside(ASK), calls(call("run_beside", command=ASK, id="bg2"))),
        say("Done."),
    )
    made.open("a.txt", "two")
    await made.run("try")
    first, second, _, one, two = results(made)
    assert first.startswith("serving") and second.startswith("serving")
    assert (one.split()[0], two.split()[0]) == ("one", "two")


async def test_a_beside_that_takes_too_long_and_a_cancel(make: Make) -> None:
    made = make(start("sleep 991.5"), beside("sleep 991.25", timeout=0.5), beside("sleep 991.75"))
    run_id = made.manager.start(RunRequest("run", "try", "try"))
    await until(lambda: running("991.75"))
    assert any("It took longer than 0.5 s" in str(event) for event in made.of(events.ToolFinished))
    made.manager.runs.cancel(run_id)
    assert (await made.finished(run_id)).status == "cancelled"
    await until(lambda: not any(running(mark) for mark in ("991.5", "991.25", "991.75")))


async def test_one_beside_that_runs_on_does_not_answer_for_the_next(make: Make) -> None:
    late = beside("sleep 0.6; echo late; exit 9", timeout=0.2)
    made = make(start("sleep 990.5"), late, beside("sleep 1; echo mine; exit 4"), say("."))
    await made.run("try")
    assert "It took longer than 0.2 s" in results(made)[1]
    assert results(made)[2] == "mine\n[exit code 4, beside bg1]"


async def test_the_end_of_a_command_is_no_success_of_one_beside(make: Make) -> None:
    made = make(start("sleep 1; exit 7"), beside("sleep 990.25", timeout=20), output(), say("."))
    await made.run("try")
    assert "The background command bg1 has ended meanwhile, and this one with it." in results(made)[1]
    assert "[bg1 has ended, exit code 7]" in results(made)[2]


async def test_a_line_that_is_not_ended_is_heard(make: Make) -> None:
    made = make(start("printf 'listening on [::1'; sleep 989.5", ready="listening"), output(wait=0), say("."))
    await made.run("try")
    assert results(made) == [
        f"listening on [::1\n[bg1 runs in the background]\n{TOOLS}",
        "(no output)\n[bg1 runs in the background]",
    ]


async def test_one_that_prints_too_much_is_stopped_and_says_so(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MOST_PRINTED", 300_000)
    made = make(start("echo up; yes", ready="up"), beside("sleep 5", timeout=20), output(wait=20), say("."))
    await made.run("try")
    _, meanwhile, ended = results(made)
    assert "has ended meanwhile" in meanwhile or "has ended." in meanwhile
    assert "[bg1 was stopped, as it printed too much]" in ended


async def test_words_of_any_kind_are_run_beside(make: Make) -> None:
    made = make(
        start("sleep 988.5"),
        beside("cat <<'E'\n$mark 中文 🙂 \\ %s \\n 1 ended 0\nE\nprintf 'no end'"),
        beside("cat"),  # its input is empty
        beside("exec 1>&- 2>&-; exit 6"),
        beside("echo $$; kill -9 $BASHPID"),
        say("."),
    )
    await made.run("try")
    _, words, empty, silent, killed = results(made)
    assert words == "$mark 中文 🙂 \\ %s \\n 1 ended 0\nno end\n[exit code 0, beside bg1]"
    assert empty == "(no output)\n[exit code 0, beside bg1]"
    assert silent == "(no output)\n[exit code 6, beside bg1]"
    assert "[exit code 137, beside bg1]" in killed


async def test_its_output_is_pointed_at(make: Make) -> None:
    made = make(start("echo up; sleep 987.5", ready="up"), beside("echo what came beside"), say("."))
    await made.run("try")
    model = made.script(say("I see."))
    await made.run("what is @terminal-output")
    told = "\n".join(message.content for message in model.requests[0].messages)
    assert "The output of the last command (@terminal-output):\nwhat came beside" in told
