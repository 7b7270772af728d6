"""Commands over an overlay: they see what is wanted, write where nobody is hurt, and all of it is told."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.overlay import OVERLAY
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command
from tests.examples import volume
from tests.shadow.rig import (
    Rig,
    needs_overlay,
    needs_root,
    ordinary_user,
    python_of_everybody,
    rig,
    snapshot,
    told,
)

pytestmark = needs_overlay

ODD_NAMES = (
    "with blank",
    "comma,colon:equals=",
    "back\\slash",
    "two\nlines",
    "quote'\"$(id)`",
    "-rf",
    "LABEL=x",
    os.fsdecode(b"not-utf8-\xff\xfe"),
    "中文",
    "\\040",
)


@pytest.fixture
def over(workspace: Path, tmp_path: Path) -> Iterator[Rig]:
    """A layer over a workspace with a few files."""
    (workspace / "a.txt").write_text("one\n")
    (workspace / "b.txt").write_text("two\n")
    (workspace / "src" / "deep").mkdir(parents=True)
    (workspace / "src" / "x.py").write_text("x = 1\n")
    (workspace / "src" / "deep" / "y.py").write_text("y = 1\n")
    (workspace / ".gitignore").write_text("out/\n*.log\n")
    made = rig([workspace], tmp_path / "state")
    yield made
    made.layer.close()


def test_a_command_sees_what_is_wanted_and_the_disk_stays_as_it_is(over: Rig, workspace: Path) -> None:
    before = snapshot(workspace)
    wanted = {f"{over.cwd}/a.txt": b"staged\n", f"{over.cwd}/b.txt": None, f"{over.cwd}/new/n.txt": b"new\n"}
    over.layer.prepare(wanted)
    ran = over.run("cat a.txt new/n.txt; ls b.txt; echo three > c.txt; rm -rf src; pwd")
    assert "staged\nnew\n" in ran.out and f"{over.cwd}\n" in ran.out and "cannot access 'b.txt'" in ran.out
    assert told(over.layer.writings(), over.cwd) == {
        "c.txt": ("text", b"three\n"),
        "src/x.py": ("deleted", b""),
        "src/deep/y.py": ("deleted", b""),
    }
    assert snapshot(workspace) == before
    assert over.layer.isolation == OVERLAY and over.layer.isolation.complete


def test_nothing_written_is_nothing_told(over: Rig) -> None:
    assert over.after("cat a.txt src/x.py; touch a.txt; cp a.txt z && mv z a.txt; ls -R") == {}


def test_a_folder_made_anew_hides_the_old_files_until_it_is_taken_back(over: Rig) -> None:
    assert over.after("rm -rf src && mkdir src && echo n > src/n.py") == {
        "src/x.py": ("deleted", b""),
        "src/deep/y.py": ("deleted", b""),
        "src/n.py": ("text", b"n\n"),
    }
    over.layer.prepare({})
    assert over.run("find src -type f | sort").out == "src/deep/y.py\nsrc/x.py\n"


def test_a_name_that_was_linked_to_another_file_is_still_there_for_the_next_command(over: Rig) -> None:
    over.layer.prepare({})
    assert over.run("ln -f a.txt b.txt").code == 0
    over.layer.writings()
    over.layer.prepare({})
    assert over.run("ls *.txt; cat a.txt b.txt").out.split() == ["a.txt", "b.txt", "one", "two"]


def test_ignored_output_stays_for_the_next_command_and_is_not_told(over: Rig) -> None:
    assert over.after("mkdir out && echo built > out/result.txt && echo l > run.log") == {}
    over.layer.prepare({})
    assert over.run("cat out/result.txt run.log").out == "built\nl\n"


def test_what_a_repository_has_in_it_is_told_and_dropped(over: Rig, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_text("[core]\n")
    assert over.after("echo x >> .git/config") == {".git": ("git", b"")}
    over.layer.prepare({})
    assert over.run("cat .git/config").out == "[core]\n"
    assert told(over.layer.writings(), over.cwd) == {}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_will_do(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "base" / name / "ws"
    folder.mkdir(parents=True)
    (folder / name).write_text("one\n")
    made = rig([folder], tmp_path / "state" / name)
    with closing(made.layer):
        made.layer.prepare({f"{made.cwd}/{name}": b"two\n"})
        ran = made.run('for f in *; do cat -- "$f"; echo more >> "./$f"; done')
        assert (ran.code, ran.out) == (0, "two\n")
        assert told(made.layer.writings(), made.cwd) == {name: ("text", b"two\nmore\n")}
    assert (folder / name).read_text() == "one\n"


def test_several_folders_also_one_in_another(tmp_path: Path) -> None:
    outer, other = tmp_path / "outer", tmp_path / "other"
    inner = outer / "inner"
    for folder in (outer, inner, other):
        folder.mkdir()
        (folder / "f").write_text(folder.name)
    made = rig([outer, inner, other], tmp_path / "state")
    with closing(made.layer):
        made.layer.prepare({str(inner / "g"): b"laid"})
        ran = made.run(f"cat inner/g; for d in . inner {other}; do echo new > $d/f; done")
        assert ran.out == "laid"
        written = {item.path: item.data for item in made.layer.writings().files}
        assert written == {str(folder / "f"): b"new\n" for folder in (outer, inner, other)}
    assert [(folder / "f").read_text() for folder in (outer, inner, other)] == ["outer", "inner", "other"]


def test_nothing_outside_can_be_written(over: Rig, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    over.layer.prepare({})
    for path in ("/usr/x", "/etc/x", "/x", "/var/x", "/sys/kernel/mm/x"):
        assert over.run(f"echo x > {path}").code != 0, path
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/proc/irq/default_smp_affinity"):
        assert over.run(f'same=$(cat {path}); echo "$same" > {path}').code != 0, path  # a success would do no harm
    over.run(f"mkdir -p {outside}; echo x > {outside}/x; echo x > ~/kept; echo x > /tmp/kept; echo x > /var/tmp/kept")
    assert not (outside / "x").exists() and not Path("/tmp/kept").exists() and not Path("/var/tmp/kept").exists()
    assert not (Path.home() / "kept").exists()
    assert over.run("cat ~/kept /tmp/kept /var/tmp/kept").out == "x\nx\nx\n"  # caches live as long as the session


@pytest.mark.parametrize("place", ["/run", "/dev", "/dev/shm", "/home"])
def test_memory_is_not_a_place_for_much(over: Rig, place: str) -> None:
    over.layer.prepare({})
    wrote = over.run(f"head -c 1200000000 /dev/zero > {place}/x; stat -c %s {place}/x; rm -f {place}/x")
    assert "1200000000" not in wrote.out
    assert over.run("echo x > /dev/shm/x; cat /dev/shm/x; echo y > /dev/null; echo z > /dev/stdout").out == "x\nz\n"


def test_the_sandbox_cannot_be_undone(over: Rig) -> None:
    over.layer.prepare({})
    assert over.run("mount -o remount,rw /").code != 0
    assert over.run("umount /root || umount /home").code != 0
    assert over.run("unshare --user --map-root-user true").code != 0  # where it would be root, and could mount
    assert "CapEff:\t0000000000000000" in over.run("cat /proc/self/status").out


def test_who_the_command_is(over: Rig) -> None:
    over.layer.prepare({})
    assert over.run("id -u; id -g; stat -c %u a.txt").out.split() == [
        str(os.getuid()),
        str(os.getgid()),
        str(os.getuid()),
    ]
    assert over.run("ps ax | wc -l; ls /proc | grep -c '^[0-9]'").out.split()[-1] in ("3", "4", "5")
    assert over.run("for f in /proc/self/fd/*; do readlink $f; done | grep options").out == ""


def test_no_network_unless_it_is_allowed(over: Rig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        over.layer.prepare({})
        assert over.run(connect).code != 0
        launch = over.layer.launch(Command(connect, over.cwd, network=True))
        assert subprocess.run(launch.argv, env=dict(launch.environment), cwd="/", timeout=30).returncode == 0


def test_a_service_behind_a_named_socket_cannot_be_reached(over: Rig, tmp_path: Path) -> None:
    path = Path("/var/tmp") / f"{tmp_path.name}-{os.getpid()}.sock"
    near = Path(over.cwd) / "near.sock"
    far = Path.cwd() / f".test-{os.getpid()}.sock" if os.access(Path.cwd(), os.W_OK) else path
    connect = "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    for place in {path, near, far}:
        with socket.socket(socket.AF_UNIX) as server:
            try:
                server.bind(str(place))
                server.listen()
                over.layer.prepare({})
                assert over.run(f"/usr/bin/python3 -c '{connect}' '{place}'").code != 0, place
            finally:
                place.unlink(missing_ok=True)


def test_a_service_behind_a_named_pipe_cannot_be_reached(over: Rig) -> None:
    pipe = Path(os.path.realpath("/var")) / f"lib/test-{os.getpid()}.pipe"
    if not os.access(pipe.parent, os.W_OK):
        pytest.skip("no folder that is shown can be written")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        over.layer.prepare({})
        over.run(f"echo order > {pipe}")
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)
        pipe.unlink()


def test_what_the_command_gets_as_environment_does_not_touch_what_runs_outside(over: Rig, tmp_path: Path) -> None:
    over.layer.prepare({})
    launch = over.layer.launch(Command("echo $MINE", over.cwd, environment={"MINE": "here", "LD_PRELOAD": "/evil.so"}))
    assert set(launch.environment) == {"PATH", "LC_ALL"}
    assert not any("evil" in word or "MINE=" in word for word in launch.argv)
    done = subprocess.run(launch.argv, env=dict(launch.environment), cwd="/", capture_output=True, timeout=30)
    assert done.stdout == b"here\n"


def test_reports_come_back_and_only_those_of_the_last_command(over: Rig) -> None:
    over.layer.prepare({})
    over.run(f"echo old > ${REPORT_VARIABLE}/old")
    launch = over.layer.launch(Command(f"echo r > ${REPORT_VARIABLE}/r.xml", over.cwd))
    subprocess.run(launch.argv, env=dict(launch.environment), cwd="/", timeout=30)
    assert [(path.name, path.read_text()) for path in Path(launch.reports).iterdir()] == [("r.xml", "r\n")]


def test_killing_the_started_process_ends_all_others(over: Rig) -> None:
    over.layer.prepare({})
    mark = f"31{os.getpid()}.5"
    launch = over.layer.launch(Command(f"setsid sleep {mark} & setsid nohup sleep {mark} & sleep {mark}", over.cwd))
    process = subprocess.Popen(launch.argv, env=dict(launch.environment), cwd="/")
    try:
        assert _until(lambda: _sleeping(mark) == 3)
    finally:
        process.kill()
        process.wait()
    assert _until(lambda: _sleeping(mark) == 0)
    over.layer.prepare({})
    assert over.run("cat a.txt").out == "one\n"  # and the view can be mounted again


def test_a_process_left_behind_ends_with_the_command(over: Rig) -> None:
    over.layer.prepare({})
    mark = f"32{os.getpid()}.5"
    over.run(f"setsid sleep {mark} >/dev/null 2>&1 </dev/null &")
    assert _until(lambda: _sleeping(mark) == 0)


def test_closing_leaves_nothing_whatever_the_command_did(over: Rig, tmp_path: Path) -> None:
    over.after("mkdir -p out/locked/in && echo x > out/locked/in/f && chmod 000 out/locked/in out/locked; mkfifo out/p")
    over.layer.prepare({})
    over.layer.close()
    assert list((tmp_path / "state").iterdir()) == []


def test_a_command_without_rights_for_its_folder_stops_no_later_one(over: Rig) -> None:
    for script, folder in (("chmod 000 .", ""), ("mkdir -p d/e; chmod 000 d/e d", "/d/e"), ("chmod 500 .", "")):
        over.layer.prepare({})
        assert over.run(script).code == 0
        over.layer.prepare({})
        assert over.run("echo x > new; cat new", cwd=f"{over.cwd}{folder}").out == "x\n"


def test_rights_and_kinds_are_told_and_stay(over: Rig) -> None:
    script = (
        "chmod 700 a.txt; ln -s a.txt link; printf 'x\\0y' > bin; mkfifo pipe; chmod 000 b.txt; echo n > n; chmod 0 n"
    )
    assert over.after(script) == {
        "a.txt": ("mode", b""),
        "b.txt": ("mode", b""),
        "link": ("symlink", b""),
        "bin": ("binary", b""),
        "pipe": ("special", b""),
        "n": ("text", b"n\n"),
    }
    assert over.after("test -x a.txt && test -L link && test -p pipe && test -f bin && ! test -e n") == {}


@needs_root
def test_what_is_mounted_inside_is_laid_over_too(over: Rig, workspace: Path) -> None:
    nested = workspace / "src" / "mounted"
    nested.mkdir()
    subprocess.run(("mount", "-t", "tmpfs", "tmpfs", str(nested)), check=True)
    try:
        (nested / "m.txt").write_text("mounted\n")
        wanted = {f"{over.cwd}/src/mounted/w.txt": b"laid\n"}
        assert over.after("cat src/mounted/w.txt; echo more >> src/mounted/m.txt; rm src/x.py", wanted) == {
            "src/mounted/m.txt": ("text", b"mounted\nmore\n"),
            "src/x.py": ("deleted", b""),
        }
        assert [path.name for path in nested.iterdir()] == ["m.txt"] and (nested / "m.txt").read_text() == "mounted\n"
    finally:
        subprocess.run(("umount", str(nested)), check=True)


def test_a_mount_inside_that_cannot_be_laid_over_is_said(over: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeagent_lsp.shadow.overlay.is_privileged", lambda: False)
    monkeypatch.setattr("codeagent_lsp.shadow.overlay.nested_mounts", lambda folders: (f"{over.cwd}/src",))
    with pytest.raises(ToolFailed, match="mounted inside the workspace"):
        over.layer.prepare({})
    assert "mounted inside" in (over.layer.check() or "")


@pytest.mark.slow
def test_a_large_workspace_costs_no_more(tmp_path: Path, workspace: Path) -> None:
    names = volume(100)
    for number in range(500):
        (workspace / f"d{number}").mkdir()
        for name in range(names):
            (workspace / f"d{number}" / f"f{name}").write_bytes(b"x\n")
    made = rig([workspace], tmp_path / "state")
    with closing(made.layer):
        began = time.perf_counter()
        assert made.after("echo y > d7/f7; rm d8/f8") == {"d7/f7": ("text", b"y\n"), "d8/f8": ("deleted", b"")}
        assert time.perf_counter() - began < 2
        made.layer.prepare({})
        assert made.run("rm -rf d?? d???").code == 0
        found = made.layer.writings()
        assert len(found.files) == 500 and found.more == 490 * names - 500


@pytest.mark.slow
def test_the_overhead_of_a_command(over: Rig) -> None:
    def plain() -> None:
        subprocess.run(("bash", "-c", "true"), check=True)

    def isolated() -> None:
        over.layer.prepare({})
        over.run("true")
        over.layer.writings()

    # The least of several: what else runs on the machine is not its cost.
    costs = {work.__name__: min(_seconds(work) for _ in range(10)) for work in (plain, isolated)}
    print(f"plain {costs['plain'] * 1000:.1f} ms, isolated {costs['isolated'] * 1000:.1f} ms")
    assert costs["isolated"] - costs["plain"] < 0.1


@pytest.mark.slow
@needs_root
def test_all_of_this_as_an_ordinary_user(tmp_path: Path) -> None:
    found = python_of_everybody()
    if found is None:
        pytest.skip("no Python here that an ordinary user can start")
    python, environment = found
    uid, gid = ordinary_user()
    base = Path(f"/var/tmp/shadow-user-{os.getpid()}")
    base.mkdir(mode=0o700)
    os.chown(base, uid, gid)
    try:
        files = (f"tests/shadow/test_{name}.py" for name in ("overlay", "upper", "hiding", "sandbox", "probe"))
        words = ("-m", "pytest", "-q", "-m", "not slow", f"--basetemp={base}/t", *files)
        done = subprocess.run(
            (python, *words),
            user=uid,
            group=gid,
            extra_groups=[],
            cwd=Path(__file__).parents[2],
            env={**environment, "HOME": str(base)},
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0 and "...." in done.stdout, done.stdout[-4000:] + done.stderr[-2000:]
        assert "no overlay in a user namespace" not in done.stdout
    finally:
        subprocess.run(("rm", "-rf", str(base)), check=True)


def _sleeping(mark: str) -> int:
    """How many processes sleep for just this long."""
    count = 0
    for path in (folder / "cmdline" for folder in Path("/proc").glob("[0-9]*")):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        count += words[:2] == [b"sleep", mark.encode()]
    return count


def _until(holds: object, seconds: float = 10) -> bool:
    assert callable(holds)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return bool(holds())


def _seconds(work: Callable[[], None]) -> float:
    """The processor time of a piece of work, its processes included: what other programs do meanwhile is not in it."""
    before = os.times()
    work()
    after = os.times()
    return sum(after[:4]) - sum(before[:4])
