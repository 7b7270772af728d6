"""Commands of a session: in turn, on what the run sees, staged as one step or not at all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.errors import EditRefused, ToolFailed
from codeagent_lsp.shadow.shell import Command, Finished, Isolation, Launch, Layer, OnOutput, Shell, no_output
from codeagent_lsp.shadow.workspace import Execute, ShadowWorkspace, executing
from codeagent_lsp.workspace.changes.changeset import Current
from tests.shadow.fakes import Desk, FakeLayer, desk, fake_isolation


@dataclass
class Bench:
    """A desk with a shadow workspace; `approve` is what the user answers."""

    desk: Desk
    layer: FakeLayer
    execute: Execute
    approve: bool = True
    asked: list[tuple[str, ...]] = field(default_factory=list)
    opened: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shadow = ShadowWorkspace(self.layer.isolation, self.open, self.execute, wait_seconds=5)
        self.shell: Shell = self.shadow.bind(self.desk.view, self.desk.staging, self.ask)

    def open(self, folders: tuple[str, ...]) -> Layer:
        self.opened.append(folders)
        return self.layer

    async def ask(self, paths: tuple[str, ...]) -> bool:
        self.asked.append(paths)
        return self.approve

    def command(self, script: str, seconds: float | None = None) -> Command:
        return Command(script, str(self.desk.root), seconds)


@pytest.fixture
async def bench(workspace: Path, tmp_path: Path) -> AsyncIterator[Bench]:
    ws = desk(workspace)
    made = Bench(ws, FakeLayer(ws.root, tmp_path / "view"), executing(ShellSettings, tmp_path / "spool"))
    yield made
    await made.shadow.close()


def instead(bench: Bench, act: Callable[[Launch], Awaitable[Finished]]) -> Bench:
    """A bench whose commands are python functions."""

    async def execute(launch: Launch, command: Command, on_output: OnOutput) -> Finished:
        return await act(launch)

    return Bench(bench.desk, bench.layer, execute)


def left(launch: Launch, name: str, text: str) -> None:
    Path(launch.cwd, name).write_text(text)


def found(launch: Launch, name: str) -> str:
    path = Path(launch.cwd, name)
    return path.read_text() if path.exists() else ""


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen in time")


async def test_a_command_sees_the_run_and_leaves_staged_changes(bench: Bench) -> None:
    ws = bench.desk
    ws.write("disk.txt", "disk\n")
    ws.write("open.txt", "saved\n")
    ws.open("open.txt", "typed\n")
    ws.stage("staged.txt", "staged\n")
    printed: list[str] = []
    result = await bench.shell.run(
        bench.command("cat *.txt; echo new > new.txt; rm disk.txt; sed -i s/typed/TYPED/ open.txt"),
        lambda stream, text: printed.append(text),
    )
    assert result.finished.output == "".join(printed) == "disk\ntyped\nstaged\n"
    assert ws.changes == {
        "staged.txt": "staged\n",
        "disk.txt": None,
        "new.txt": "new\n",
        "open.txt": "TYPED\n",
    }
    assert set(result.staged) == {ws.path(name) for name in ("disk.txt", "new.txt", "open.txt")}
    assert (ws.root / "disk.txt").read_text() == "disk\n"
    assert not (ws.root / "new.txt").exists()


async def test_a_command_that_only_looks_proposes_nothing(bench: Bench) -> None:
    bench.desk.write("a.py", "a\n")
    result = await bench.shell.run(replace(bench.command("cat a.py; echo x > litter; rm a.py"), proposes=False))
    assert result.finished.output == "a\n"
    assert (result.staged, result.left_out, bench.desk.changes) == ((), (), {})
    again = await bench.shell.run(bench.command("ls"))
    assert again.finished.output == "a.py\n" and bench.desk.changes == {}


async def test_the_next_command_sees_what_the_last_one_left(bench: Bench) -> None:
    bench.desk.write("a.py", "a\n")
    await bench.shell.run(bench.command("mv a.py b.py"))
    assert bench.desk.changes == {"a.py -> b.py": "a\n"}
    result = await bench.shell.run(bench.command("ls; mv b.py a.py"))
    assert result.finished.output == "b.py\n"
    assert bench.desk.changes == {}


async def test_a_new_file_in_the_place_of_one_moved_away(bench: Bench) -> None:
    bench.desk.write("a.py", "a\n")
    await bench.shell.run(bench.command("mv a.py b.py"))
    result = await bench.shell.run(bench.command("echo 'from b import *' > a.py"))
    assert result.left_out == ()
    assert bench.desk.changes == {"b.py": "a\n", "a.py": "from b import *\n"}
    assert bench.desk.seen() == {"a.py": "from b import *\n", "b.py": "a\n"}
    bench.desk.staging.undo()
    assert bench.desk.changes == {"a.py -> b.py": "a\n"}


async def test_one_command_is_one_step_that_undoes_cleanly(bench: Bench) -> None:
    for name in ("a.py", "b.py", "c.py"):
        bench.desk.write(name, f"{name}\n")
    bench.desk.stage("staged.py", "before\n")
    before = bench.desk.staging.changeset
    await bench.shell.run(bench.command("mv a.py d.py; rm b.py; echo x >> c.py; echo y > e.py; echo z > staged.py"))
    assert len(bench.desk.changes) == 5
    bench.desk.staging.undo()
    assert bench.desk.staging.changeset == before


async def test_what_is_typed_while_a_command_runs_stays_and_merges(bench: Bench) -> None:
    ws = bench.desk
    path = ws.write("a.py", "one\ntwo\nthree\nfour\n")
    ws.open("a.py", "ONE\ntwo\nthree\nfour\n", 1)

    async def format_while_typing(launch: Launch) -> Finished:
        ws.type("a.py", "ONE", "ONE and more")
        left(launch, "a.py", found(launch, "a.py").replace("four", "FOUR"))
        return Finished(0, "")

    other = instead(bench, format_while_typing)
    await other.shell.run(other.command(""))
    (change,) = ws.staging.changeset
    assert (change.base, change.version) == ("ONE\ntwo\nthree\nfour\n", 1)
    now = ws.buffers.documents[path]
    rebased = ws.staging.changeset.rebase({path: Current(now.text, now.version)})
    assert rebased.conflicts == ()
    assert rebased.changeset.files[0].text == "ONE and more\ntwo\nthree\nFOUR\n"


async def test_a_change_that_was_applied_while_a_command_ran_is_the_base(bench: Bench) -> None:
    ws = bench.desk
    path = ws.write("a.py", "one\ntwo\nthree\n")
    ws.stage("a.py", "ONE\ntwo\nthree\n")

    async def apply_and_type(launch: Launch) -> Finished:
        ws.staging.reset(type(ws.staging.changeset)())
        ws.open("a.py", "ONE\ntyped\ntwo\nthree\n", 9)
        left(launch, "a.py", "ONE\ntwo\nTHREE\n")
        return Finished(0, "")

    other = instead(bench, apply_and_type)
    await other.shell.run(other.command(""))
    rebased = ws.staging.changeset.rebase({path: Current(ws.buffers.documents[path].text, 9)})
    assert rebased.conflicts == ()
    assert rebased.changeset.files[0].text == "ONE\ntyped\ntwo\nTHREE\n"


# --- consent


async def test_protected_files_are_staged_with_consent_only(bench: Bench) -> None:
    script = "mkdir .vscode; echo '{}' > .vscode/tasks.json; echo a > a.py"
    bench.approve = False
    result = await bench.shell.run(bench.command(script))
    assert bench.asked == [(bench.desk.path(".vscode/tasks.json"),)]
    assert bench.desk.changes == {"a.py": "a\n"}
    assert "did not approve" in dict(result.left_out)[bench.desk.path(".vscode/tasks.json")]
    bench.approve = True
    await bench.shell.run(bench.command(script))
    assert bench.desk.changes == {"a.py": "a\n", ".vscode/tasks.json": "{}\n"}


async def test_nobody_is_asked_about_ordinary_files(bench: Bench) -> None:
    await bench.shell.run(bench.command("echo a > a.py"))
    assert bench.asked == []


# --- commands that do not end by themselves


@pytest.mark.slow
async def test_a_time_out_stages_nothing_and_says_so(bench: Bench) -> None:
    result = await bench.shell.run(bench.command("echo half > a.py; sleep 60", seconds=0.5))
    assert result.finished.ending == "timeout"
    assert result.staged == ()
    assert bench.desk.changes == {}
    ((path, reason),) = result.left_out
    assert path == bench.desk.path("a.py")
    assert "stopped at a limit (timeout)" in reason
    result = await bench.shell.run(bench.command("ls"))
    assert result.finished.output == ""


async def test_a_failing_command_still_leaves_its_writings(bench: Bench) -> None:
    result = await bench.shell.run(bench.command("echo a > a.py; exit 3"))
    assert result.finished.exit_code == 3
    assert bench.desk.changes == {"a.py": "a\n"}


async def test_a_cancelled_command_stages_nothing_and_frees_the_turn(bench: Bench) -> None:
    started = asyncio.Event()

    async def hang(launch: Launch) -> Finished:
        left(launch, "a.py", "half\n")
        started.set()
        await asyncio.sleep(60)
        raise AssertionError

    other = instead(bench, hang)
    task = asyncio.create_task(other.shell.run(other.command("")))
    await asyncio.wait_for(started.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert other.desk.changes == {}

    async def look(launch: Launch) -> Finished:
        return Finished(0, found(launch, "a.py"))

    again = instead(other, look)
    assert (await again.shell.run(again.command(""))).finished.output == ""


async def test_cancelling_while_the_view_is_prepared_lets_it_end_before_the_next(bench: Bench) -> None:
    entered, go = threading.Event(), threading.Event()

    def slow() -> None:
        entered.set()
        assert go.wait(5)

    bench.layer.before_prepare = slow  # the layer itself asserts that it is never prepared twice at once
    task = asyncio.create_task(bench.shell.run(bench.command("true")))
    await asyncio.to_thread(entered.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    next_one = asyncio.create_task(bench.shell.run(bench.command("echo second")))
    await asyncio.sleep(0.05)
    go.set()
    assert (await asyncio.wait_for(next_one, 5)).finished.output == "second\n"
    assert len(bench.layer.prepared) == 2


# --- taking turns


async def test_commands_of_a_session_run_one_at_a_time(bench: Bench) -> None:
    running, most = 0, 0

    async def work(launch: Launch) -> Finished:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        left(launch, "count.txt", str(int(found(launch, "count.txt") or "0") + 1))
        running -= 1
        return Finished(0, "")

    other = instead(bench, work)
    await asyncio.gather(*(other.shell.run(other.command("")) for _ in range(6)))
    assert most == 1
    assert other.desk.changes == {"count.txt": "6"}
    assert len(other.layer.threads) == 1
    assert threading.get_ident() not in other.layer.threads


async def test_waiting_for_the_turn_is_bounded(bench: Bench) -> None:
    gate = asyncio.Event()

    async def wait(launch: Launch) -> Finished:
        await gate.wait()
        return Finished(0, "")

    other = instead(bench, wait)
    other.shadow._wait_seconds = 0.05
    first = asyncio.create_task(other.shell.run(other.command("")))
    await asyncio.sleep(0)
    with pytest.raises(ToolFailed, match="still running"):
        await other.shell.run(other.command(""))
    gate.set()
    await first


async def test_waiting_can_be_cancelled(bench: Bench) -> None:
    gate = asyncio.Event()

    async def wait(launch: Launch) -> Finished:
        await gate.wait()
        return Finished(0, "")

    other = instead(bench, wait)
    first, second, third = (asyncio.create_task(other.shell.run(other.command(""))) for _ in range(3))
    await asyncio.sleep(0.02)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.set()
    await asyncio.wait_for(asyncio.gather(first, third), 5)


# --- the layer


async def test_the_view_is_opened_by_the_first_command_and_once(bench: Bench) -> None:
    assert bench.shell.isolation == bench.layer.isolation
    assert bench.opened == []
    await bench.shell.run(bench.command("true"))
    await bench.shell.run(bench.command("true"))
    assert bench.opened == [(str(bench.desk.root),)]


async def test_other_folders_need_another_view(bench: Bench, tmp_path: Path) -> None:
    await bench.shell.run(bench.command("true"))
    more = desk(bench.desk.root, tmp_path / "more")
    await bench.shadow.bind(more.view, more.staging, bench.ask).run(bench.command("true"))
    assert bench.opened == [(str(bench.desk.root),), (str(bench.desk.root), str(tmp_path / "more"))]
    assert bench.layer.closed == 1


async def test_a_layer_that_fails_says_what_to_do(bench: Bench) -> None:
    bench.layer.failing = "No space left on device"
    with pytest.raises(ToolFailed, match=r"No space left.*Free some space.*doctor"):
        await bench.shell.run(bench.command("true"))
    bench.layer.failing = ""
    assert (await bench.shell.run(bench.command("echo ok"))).finished.output == "ok\n"


async def test_weaker_isolation_than_promised_is_not_used_unasked(bench: Bench) -> None:
    promised = Isolation("overlay", confined=True, offline=True, hidden=True)
    shadow = ShadowWorkspace(promised, bench.open, bench.execute)
    shell = shadow.bind(bench.desk.view, bench.desk.staging, bench.ask)
    with pytest.raises(ToolFailed, match="another way"):
        await shell.run(bench.command("touch ran"))
    assert bench.layer.prepared == []
    assert shell.isolation == bench.layer.isolation  # what the user is asked about from now on
    assert (await shell.run(bench.command("true"))).isolation == bench.layer.isolation


async def test_level_direct_says_what_the_command_did_not_see(bench: Bench) -> None:
    bench.layer.isolation = fake_isolation("direct")
    shadow = ShadowWorkspace(bench.layer.isolation, bench.open, bench.execute)
    bench.desk.stage("new.py", "new\n")
    shell = shadow.bind(bench.desk.view, bench.desk.staging, bench.ask)
    ((path, reason),) = (await shell.run(bench.command("true"))).left_out
    assert path == bench.desk.path("new.py")
    assert "level direct" in reason


async def test_what_could_not_be_laid_over_is_told(bench: Bench) -> None:
    bench.desk.write("a.txt", b"caf\xe9\n")
    bench.desk.open("a.txt", "😀\n")
    result = await bench.shell.run(bench.command("true"))
    assert "saw the saved file" in dict(result.left_out)[bench.desk.path("a.txt")]


async def test_a_file_that_changed_twice_keeps_its_first_base(bench: Bench) -> None:
    path = bench.desk.write("a.py", "1\n")
    await bench.shell.run(bench.command("echo 2 > a.py"))
    await bench.shell.run(bench.command("echo 3 > a.py"))
    (change,) = bench.desk.staging.changeset
    assert (change.path, change.base, change.text) == (path, "1\n", "3\n")


async def test_undone_changes_are_not_there_for_the_next_command(bench: Bench) -> None:
    await bench.shell.run(bench.command("echo a > a.py"))
    bench.desk.staging.undo()
    result = await bench.shell.run(bench.command("ls"))
    assert result.finished.output == ""


# --- the end


async def test_closing_removes_the_view_and_ends_the_thread(bench: Bench) -> None:
    await bench.shell.run(bench.command("true"))
    threads = {thread.ident for thread in threading.enumerate()}
    assert bench.layer.threads <= threads
    await bench.shadow.close()
    await bench.shadow.close()
    assert bench.layer.closed == 1
    await until(lambda: not bench.layer.threads & {thread.ident for thread in threading.enumerate()})
    with pytest.raises(ToolFailed, match="closed"):
        await bench.shell.run(bench.command("true"))


async def test_closing_what_was_never_opened(bench: Bench) -> None:
    await bench.shadow.close()
    assert bench.layer.closed == 0


async def test_closing_waits_for_the_command_that_runs(bench: Bench) -> None:
    gate = asyncio.Event()

    async def wait(launch: Launch) -> Finished:
        await gate.wait()
        left(launch, "a.py", "a\n")
        return Finished(0, "")

    other = instead(bench, wait)
    task = asyncio.create_task(other.shell.run(other.command("")))
    await until(lambda: bool(other.layer.prepared))
    closing = asyncio.create_task(other.shadow.close())
    await asyncio.sleep(0.02)
    assert not closing.done()
    gate.set()
    await asyncio.gather(task, closing)
    assert other.desk.changes == {"a.py": "a\n"}
    assert other.layer.closed == 1


async def test_a_cancelled_close_still_removes_the_view(bench: Bench) -> None:
    gate = asyncio.Event()

    async def wait(launch: Launch) -> Finished:
        await gate.wait()
        return Finished(0, "")

    other = instead(bench, wait)
    task = asyncio.create_task(other.shell.run(other.command("")))
    await until(lambda: bool(other.layer.prepared))
    closing = asyncio.create_task(other.shadow.close())
    await asyncio.sleep(0.02)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    gate.set()
    with pytest.raises(ToolFailed, match="closed while"):
        await task
    await until(lambda: other.layer.closed == 1)


async def test_limits_come_from_the_command_or_the_settings(bench: Bench, tmp_path: Path) -> None:
    execute = executing(lambda: replace(ShellSettings(), max_output_bytes=1024), tmp_path / "spool")
    bench.layer.prepare({})
    command = bench.command("yes | head -c 200000; true")
    finished = await execute(bench.layer.launch(command), command, no_output)
    assert finished.ending == "output"
    command = replace(command, output_bytes=1 << 20)
    finished = await execute(bench.layer.launch(command), command, no_output)
    assert finished.ending == "exited"


async def test_a_long_output_is_kept_whole_only_where_somebody_wants_it(bench: Bench, tmp_path: Path) -> None:
    execute = executing(ShellSettings, tmp_path / "spool")
    bench.layer.prepare({})
    command = bench.command("yes | head -c 400000")
    finished = await execute(bench.layer.launch(command), command, no_output)
    assert (finished.whole, finished.size) == (None, 400_000)
    assert not (tmp_path / "spool").exists()
    command = replace(command, whole=True)
    finished = await execute(bench.layer.launch(command), command, no_output)
    assert [path.stat().st_size for path in (tmp_path / "spool").iterdir()] == [400_000]
    assert finished.whole == str(next((tmp_path / "spool").iterdir()))


async def test_a_raw_output_that_nobody_gets_is_removed(bench: Bench, tmp_path: Path) -> None:
    """The session is closed between the command's end and the look at what it wrote."""
    raw = tmp_path / "raw"

    async def execute(launch: Launch) -> Finished:
        raw.write_text("a secret")
        other.shadow._shut = True
        return Finished(0, "", whole=str(raw))

    other = instead(bench, execute)
    with pytest.raises(ToolFailed):
        await other.shell.run(other.command("make"))
    assert not raw.exists()


async def test_a_text_is_staged_as_its_check_wants_it_and_one_that_is_refused_is_left_out(bench: Bench) -> None:
    def check(path: str, before: str | None, text: str) -> str:
        if "lost" in text:
            raise EditRefused("not_found", "a mark is lost")
        return text.replace("mark", "secret")

    bench.desk.staging.check = check
    result = await bench.shell.run(bench.command("echo mark > a.txt; echo lost > b.txt"))
    root = str(bench.desk.root)
    staged = {change.path: change.text for change in bench.desk.staging.changeset}
    assert staged == {f"{root}/a.txt": "secret\n"} and result.staged == (f"{root}/a.txt",)
    assert (f"{root}/b.txt", "a mark is lost") in result.left_out
