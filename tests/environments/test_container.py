"""Environments in real containers: a session of work, what it is kept from, its limits, and that nothing is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.config import Settings, ShellSettings
from codeagent_lsp.doctor import diagnose
from codeagent_lsp.environments.container import ContainerAdapter, label_of
from codeagent_lsp.environments.container_box import Box, BoxLimits, Plan
from codeagent_lsp.environments.container_engine import Engine
from codeagent_lsp.environments.environment import EnvironmentProblem
from codeagent_lsp.errors import ErrorCode, SettingError
from codeagent_lsp.shadow.shell import Command, CommandResult, Shell
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.executor import ToolExecutor
from tests.environments.engine_rig import IMAGE, Podman, needs_engine
from tests.tools.fakes import Bench

pytestmark = [pytest.mark.slow, needs_engine]

SMALL = BoxLimits(memory=192 << 20, processes=48, processors=1.0, disk=64 << 20, temporary=16 << 20, reports=32 << 20)
TAX = "RATE = 2\n\n\ndef with_tax(price):\n    return price * RATE\n"
TESTS = """\
import unittest

from shop.tax import with_tax


class TaxTest(unittest.TestCase):
    def test_triples(self):
        self.assertEqual(with_tax(2), 6)
"""


async def yes(paths: tuple[str, ...]) -> bool:
    return True


class Session:
    """A workspace with its tools, whose commands run in a container."""

    def __init__(self, folder: Path, shell: Shell, bench: Bench) -> None:
        self.bench = bench
        self.shell = shell
        bench.shell = shell
        bench.context = replace(bench.context, shell=shell).having((ArtifactStore, ArtifactStore(folder / "artifacts")))
        bench.executor = ToolExecutor(bench.registry, bench.context, lambda: "bypass", bench.approvals)

    async def run(self, script: str, **options: float | bool | Mapping[str, str]) -> CommandResult:
        return await self.shell.run(Command(script, str(self.bench.root), **options))  # type: ignore[arg-type]

    async def says(self, script: str, **options: float | bool | Mapping[str, str]) -> str:
        return (await self.run(script, **options)).finished.output


@asynccontextmanager
async def session(engine: Podman, folder: Path, limits: BoxLimits = SMALL) -> AsyncGenerator[Session, None]:
    """A session; when it is over, nothing of it is left anywhere."""
    bench = Bench(folder / "ws")
    settings = ShellSettings(container_image=IMAGE)
    adapter = ContainerAdapter(
        lambda: settings, folder / "state", folder / "spool", environ=engine.environ, limits=limits
    )
    environment = await adapter.create(settings, bench.view.roots.folders)
    try:
        yield Session(folder, environment.bind(bench.view, bench.staging, yes), bench)
    finally:
        await environment.close()
    assert engine.listed() == []
    assert engine.volumes() == []
    assert list((folder / "state/containers").iterdir()) == []
    assert engine.inside() == []


async def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


async def test_a_network_is_for_the_command_alone_that_was_allowed_it(engine: Podman, tmp_path: Path) -> None:
    async with session(engine, tmp_path) as work:
        try:
            allowed = await work.says("ls /sys/class/net", network=True)
        except EnvironmentProblem as problem:
            pytest.skip(f"the engine has no network to give here: {problem}")
        assert set(allowed.split()) > {"lo"}
        assert (await work.says("ls /sys/class/net")).split() == ["lo"]


@pytest.mark.journey
async def test_a_session_writes_tests_and_exports(engine: Podman, tmp_path: Path) -> None:
    async with session(engine, tmp_path) as work:
        bench = work.bench
        for name, text in {"shop/__init__.py": "", "shop/tax.py": TAX, "tests/__init__.py": ""}.items():
            bench.write(name, text)
        bench.write("tests/test_tax.py", TESTS)
        bench.write(".venv/bin/python", "of the host")
        bench.open("notes.txt", "not saved\n")
        before = bench.disk()

        red = await bench.call("run_tests", path="tests/test_tax.py")
        assert "1 failed" in red.text
        assert (await bench.call("edit_file", path="shop/tax.py", old_str="= 2", new_str="= 3")).ok
        green = await bench.call("run_tests", path="tests/test_tax.py")
        assert "1 passed" in green.text

        built = await bench.call(
            "run_cmd", command=r"cat notes.txt && echo made > made.txt && mkdir dist && printf 'a\0b' > dist/shop.bin"
        )
        assert "not saved" in built.text and "isolation: container" in built.text
        assert bench.text("made.txt") == "made\n"
        exported = await bench.call("export_artifact", file_path="dist/shop.bin")
        assert exported.ok, exported.text
        assert Path(exported.data["path"]).read_bytes() == b"a\0b"  # noqa: ASYNC240
        assert "shop.bin (3 bytes)" in (await bench.call("list_artifacts")).text
        missing = await bench.call("export_artifact", file_path="dist/none.bin")
        assert missing.error is not None and missing.error.code == "NOT_FOUND"
        assert bench.disk() == before


async def test_what_it_is_kept_from(engine: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/of/the/user")
    (tmp_path / "outside.txt").write_text("of the user\n")
    async with session(engine, tmp_path) as work:
        who = await work.says("id -u; id -g; id -G")
        assert who.split() == ["1001", "1001", "1001"]
        assert "Read-only file system" in await work.says("mkdir /tmp/../new")
        assert "Read-only file system" in await work.says("touch /usr/bin/x /etc/x")
        status = await work.says("grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp:' /proc/self/status")
        assert [line.split()[1] for line in status.splitlines()] == [*["0" * 16] * 5, "1", "2"]
        assert (await work.says("ls /sys/class/net")).split() == ["lo"]
        assert "unreachable" in await work.says(
            "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 3)'"
        )
        assert "No such file" in await work.says(f"cat {tmp_path}/outside.txt")
        assert "/of/the/user" not in await work.says("env")
        seen = await work.says("ps ax -o pid=")
        assert len(seen.split()) < 8  # its own, and none of ours
        mounts = await work.says("mount")
        assert str(engine.socket) not in mounts and " / " in mounts
        assert "not permitted" in await work.says("mount -t tmpfs x /tmp 2>&1; python3 -c 'import os; os.setuid(0)'")
        assert "No such file" in await work.says("ls /var/run/docker.sock /run/podman/podman.sock")


async def test_its_limits(engine: Podman, tmp_path: Path) -> None:
    limits = replace(SMALL, memory=96 << 20, disk=8 << 20, temporary=4 << 20)
    async with session(engine, tmp_path, limits) as work:
        hungry = await work.run("python3 -c 'x = bytearray(200 << 20)'")
        assert hungry.finished.ending == "memory" and hungry.finished.exit_code == 137
        many = await work.says("for i in $(python3 -c 'print(*range(90))'); do sleep 2 & done 2>&1; true")
        assert "Resource temporarily unavailable" in many
        assert "No space left" in await work.says("head -c 20000000 /dev/zero > big")
        assert "No space left" in await work.says("head -c 20000000 /dev/zero > /tmp/big")
        slow = await work.run("echo begun; touch late.txt; sleep 60", seconds=3)
        assert slow.finished.ending == "timeout" and "begun" in slow.finished.output
        assert slow.staged == () and slow.finished.seconds < 20
        loud = await work.run("while :; do echo yes; done", output_bytes=10_000)
        assert loud.finished.ending == "output" and loud.finished.size == 10_000
        assert "still here" in await work.says("echo still here")


async def test_files_travel_both_ways(engine: Podman, tmp_path: Path) -> None:
    async with session(engine, tmp_path) as work:
        bench = work.bench
        bench.write("a.txt", "one\n")
        bench.write("old/b.txt", "two\n")
        bench.write("node_modules/x.js", "")
        bench.write(".gitignore", "node_modules\nbuild\n")
        first = await work.run(
            "ls -A; mkdir -p build; echo kept > build/out; echo more >> a.txt; rm -r old; mkdir -p n/m; echo x > n/m/x"
        )
        assert first.finished.output.split() == [".gitignore", "a.txt", "old"]
        assert {Path(path).name for path in first.staged} == {"a.txt", "b.txt", "x"}
        bench.staging.undo()
        again = await work.says("cat a.txt old/b.txt build/out; ls")
        assert again.split() == ["one", "two", "kept", "a.txt", "build", "old"]
        odd = await work.run(
            "ln -s /etc/passwd link; mkfifo pipe; head -c 5000 /dev/zero > zeros; mkdir -p 'a b'; echo > 'a b/ü'"
        )
        assert {Path(path).name for path, _ in odd.left_out} == {"link", "zeros"}
        assert (await work.says("test -L link && ls zeros 'a b'")).split() == ["zeros", "a", "b:", "ü"]
        apart = await work.run("echo out; echo err >&2; exit 3", apart=True)
        assert sorted(apart.finished.output.split()) == ["err", "out"] and apart.finished.exit_code == 3
        kept = await work.run('echo hello > "$CODEAGENT_REPORTS/one"')
        assert kept.finished.reports == {"one": b"hello\n"}
        assert (await work.run("true")).finished.reports == {}


async def test_what_a_command_leaves_running_is_ended(engine: Podman, tmp_path: Path) -> None:
    async with session(engine, tmp_path) as work:
        await work.run("setsid sleep 1000 & (sleep 1001 &) ; true")
        assert "sleep" not in await work.says("ps ax -o stat,args | grep -v grep | grep -E 'sleep|Z' || true")


async def test_cancelling_takes_the_container_along(engine: Podman, tmp_path: Path) -> None:
    async with session(engine, tmp_path) as work:
        work.bench.write("a.txt", "one\n")
        running = asyncio.create_task(work.run("echo late > a.txt; sleep 100"))
        await until(lambda: engine.listed() != [])
        await asyncio.sleep(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert engine.listed() == []
        assert await work.says("cat a.txt") == "one\n"


async def test_a_container_that_is_gone_is_made_again(engine: Podman, tmp_path: Path) -> None:
    async with session(engine, tmp_path) as work:
        work.bench.write("a.txt", "one\n")
        await work.run("mkdir kept; echo x > kept/.nothing")
        (name,) = engine.listed()
        await Engine(engine.socket).delete(f"/containers/{name}", force="true")
        assert await work.says("cat a.txt") == "one\n"
        assert engine.listed() != [name]
        running = asyncio.create_task(work.run("sleep 100"))
        await until(lambda: any("sleep 100" in words for words in engine.inside()))
        await Engine(engine.socket).delete(f"/containers/{engine.listed()[0]}", force="true")
        with pytest.raises(EnvironmentProblem) as caught:
            await running
        assert caught.value.code in (ErrorCode.SANDBOX_TERMINATED, ErrorCode.SANDBOX_NOT_FOUND)


KILLED = """
import asyncio, sys
from pathlib import Path
from codeagent_lsp.environments.container_box import Box, Plan
from codeagent_lsp.environments.container_engine import Engine

async def main():
    box = await Box.started(Engine(sys.argv[1]), Plan(sys.argv[2], ("/tmp/x/ws",), "killed"))
    print("started", flush=True)
    await asyncio.sleep(1000)
    await box.remove()

asyncio.run(main())
"""


async def test_it_ends_with_a_server_that_is_killed(engine: Podman, tmp_path: Path) -> None:
    program = (sys.executable, "-c", KILLED, engine.socket, IMAGE)
    server = subprocess.Popen(program, stdout=subprocess.PIPE)  # noqa: ASYNC220 - a fork, and it is killed below
    try:
        assert server.stdout is not None
        assert await asyncio.to_thread(server.stdout.readline) == b"started\n"
        assert len(engine.listed()) == 1
    finally:
        os.kill(server.pid, signal.SIGKILL)
        server.communicate()
    await until(lambda: engine.listed() == [])
    assert engine.inside() == []


async def test_the_next_server_sweeps_what_is_left(engine: Podman, tmp_path: Path) -> None:
    state = label_of(tmp_path / "state")
    api = Engine(engine.socket)
    lost = await Box.started(api, Plan(IMAGE, ("/tmp/x/ws",), state, owner=str(tmp_path / "gone")))
    others = await Box.started(api, Plan(IMAGE, ("/tmp/x/ws",), "of another", owner=str(tmp_path / "gone")))
    try:
        settings = ShellSettings(container_image=IMAGE)
        adapter = ContainerAdapter(lambda: settings, tmp_path / "state", tmp_path, environ=engine.environ)
        environment = await adapter.create(settings, [str(tmp_path / "ws")])
        await environment.close()
        assert not await lost.runs() and await others.runs()
    finally:
        await others.remove()
        await lost.remove()
    assert engine.listed() == []


async def test_an_image_that_is_not_here(engine: Podman, tmp_path: Path) -> None:
    settings = ShellSettings(container_image="localhost/none:1")
    adapter = ContainerAdapter(lambda: settings, tmp_path, tmp_path, environ=engine.environ)
    with pytest.raises(SettingError, match="no image localhost/none:1"):
        await adapter.create(settings, [str(tmp_path / "ws")])


async def test_the_doctor_tries_it(engine: Podman, state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for socket, image, verdict in ((engine.socket, IMAGE, "ok"), (engine.socket, "none:1", "failed")):
        monkeypatch.setenv("DOCKER_HOST", f"unix://{socket}")
        settings = Settings(shell=ShellSettings(container_image=image))
        check = next(check for check in await diagnose(settings, state_dir, "en") if check.name == "commands")
        assert check.verdict == verdict and image in check.detail
