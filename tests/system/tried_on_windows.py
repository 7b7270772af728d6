"""What is tried inside of Windows: files, locks, process trees, commands, and an editor with unsaved text.

A program for the Python of `wine.py`, where pytest is not: it prints what falls, and "all held" at the end. The
functions named `try_...` are the tests.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))


from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.lsp_client.disk import Disk, FileWrite, commit
from codeagent_lsp.shadow.copying import CopyLayer
from codeagent_lsp.shadow.environment import scrub_environment
from codeagent_lsp.shadow.folder import LayerFolder
from codeagent_lsp.shadow.process import run_process
from codeagent_lsp.shadow.shell import Command, Finished, Launch, ProcessLimits
from codeagent_lsp.system import (
    OWN_GROUP,
    copy_new,
    end_tree,
    is_alive,
    lock,
    memory_bytes,
    open_appending,
    open_reading,
    read_at,
)
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.files.paths import Roots, path_of, relative_name
from tests.server.stock_editor import StockEditor

SLEEPS = "import time; time.sleep(100)"
PARENT = "import subprocess, sys, time; c = subprocess.Popen([sys.executable, '-c', {child!r}]); "
PARENT += "open({file!r}, 'w').write(str(c.pid)); time.sleep({seconds})"


def try_writing_all_or_none(folder: Path) -> None:
    """Files are written, made with their folders, deleted; what changed meanwhile stops it all."""
    (folder / "a.py").write_bytes(b"a\r\n")
    (folder / "b.py").write_bytes(b"b\n")
    disk, new = Disk(folder), folder / "n" / "m" / "c.py"
    commit([FileWrite(folder / "a.py", b"a\r\n", b"A\r\n"), FileWrite(new, None, b"c")], disk)
    assert ((folder / "a.py").read_bytes(), new.read_bytes()) == (b"A\r\n", b"c")
    try:
        commit([FileWrite(new, b"c", b"d"), FileWrite(folder / "b.py", b"other", None)], disk)
    except OSError:
        assert (new.read_bytes(), (folder / "b.py").read_bytes()) == (b"c", b"b\n")
    else:
        raise AssertionError("a file that changed was deleted")
    commit([FileWrite(folder / "b.py", b"b\n", None)], disk)
    assert sorted(path.name for path in folder.iterdir()) == ["a.py", "n"]


def try_a_lock_and_its_file(folder: Path) -> None:
    """One holds it, both write and read; it is free once it is closed."""
    one, other = (open_appending(folder / "lock", readable=True) for _ in range(2))
    lock(one)
    try:
        lock(other)
    except BlockingIOError:
        pass
    else:
        raise AssertionError("two hold it")
    os.write(one, b"one")
    os.write(other, b" other")
    assert read_at(one, 100, 0) == b"one other"
    os.close(one)
    lock(other)
    os.close(other)


def try_what_is_no_file(folder: Path) -> None:
    """A folder and a device are refused, a file is copied."""
    for path in (folder, Path("NUL"), folder / "missing"):
        try:
            open_reading(path)
        except OSError:
            continue
        raise AssertionError(f"{path} was opened")
    (folder / "a").write_bytes(b"a\r\n\x1ab")
    source = open_reading(folder / "a")
    os.close(copy_new(source, folder / "b"))
    os.close(source)
    assert (folder / "b").read_bytes() == b"a\r\n\x1ab"


def try_names(folder: Path) -> None:
    """Names have slashes, paths have backslashes, drives a letter in any case."""
    root = os.path.realpath(folder)
    roots = Roots([str(folder)])
    path = path_of(root, "src/pkg/a.py")
    assert relative_name(path, root) == "src/pkg/a.py" == roots.relative(path)
    spellings = ["src/pkg/a.py", "src\\pkg\\a.py", path, path.replace("\\", "/"), uris.from_path(path)]
    lower = path[0].lower() + path[1:]
    spellings += [uris.from_path(lower), f"file:///{lower.replace(os.sep, '/')}"]
    assert {roots.resolve(spelling) for spelling in spellings} == {path}


def try_a_process_tree_is_ended(folder: Path) -> None:
    """A process and its child."""
    code = PARENT.format(child=SLEEPS, file=str(folder / "pid"), seconds=100)
    process = subprocess.Popen([sys.executable, "-c", code], **OWN_GROUP)
    child = _pid(folder / "pid")
    assert is_alive(child)
    end_tree(process.pid)
    process.wait(20)
    assert _gone(child)
    assert memory_bytes() > 1 << 28


def try_commands_in_a_job(folder: Path) -> None:
    """Output, exit codes, input, limits; no child is left, by an end of its parent, by its time, or by a cancel."""
    asyncio.run(_commands(folder))


async def _commands(folder: Path) -> None:
    done = await _run(sys.executable, "-c", "import sys; print(sys.stdin.read()); sys.exit(3)", stdin=b"said")
    assert (done.exit_code, done.output, done.ending) == (3, "said\n", "exited")
    assert (await _run(sys.executable, "-c", SLEEPS, seconds=2)).ending == "timeout"
    flood = await _run(sys.executable, "-c", "while True: print('y' * 1000)", output_bytes=100_000)
    assert flood.ending == "output"
    try:
        await _run("not-there")
    except ToolFailed as error:
        assert "could not be started" in str(error)
    else:
        raise AssertionError("it was started")
    file = folder / "pid"
    began = time.monotonic()
    await _run(sys.executable, "-c", PARENT.format(child=SLEEPS, file=str(file), seconds=0))
    assert time.monotonic() - began < 60
    assert _gone(_pid(file))
    file.unlink()
    running = asyncio.ensure_future(
        _run(sys.executable, "-c", PARENT.format(child=SLEEPS, file=str(file), seconds=100))
    )
    child = await asyncio.to_thread(_pid, file)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert _gone(child)


def try_a_private_copy(folder: Path) -> None:
    """What a command finds there and what it writes there, and no folder is left of it."""
    workspace, place = folder / "ws", folder / "layers"
    (workspace / "src").mkdir(parents=True)
    (workspace / "a.py").write_bytes(b"a = 1\r\n")
    (workspace / "src" / "b.py").write_bytes(b"b = 1\n")
    root = os.path.realpath(workspace)
    layer = CopyLayer([root], LayerFolder(str(place)), None)
    layer.prepare({path_of(root, "src/b.py"): b"b = 2\n", path_of(root, "n/c.py"): b"new\n"})
    copy = Path(layer.launch(Command("echo", root)).cwd)
    assert (copy / "src" / "b.py").read_bytes() == b"b = 2\n"
    assert (copy / "n" / "c.py").read_bytes() == b"new\n"
    (copy / "src" / "b.py").write_bytes(b"b = 3\n")
    (copy / "a.py").unlink()
    (copy / "src" / "d.py").write_bytes(b"d")
    found = {(relative_name(file.path, root), file.kind, file.data) for file in layer.writings().files}
    assert found == {("src/b.py", "text", b"b = 3\n"), ("a.py", "deleted", b""), ("src/d.py", "text", b"d")}
    layer.close()
    assert not list(place.iterdir())
    assert (workspace / "a.py").exists()


def try_unsaved_text_is_the_truth(folder: Path) -> None:
    """A run reads and changes what the editor shows, not the disk, and goes back."""
    workspace, state = folder / "ws", folder / "state"
    workspace.mkdir()
    file = workspace / "a.py"
    file.write_bytes(b"old = 1\r\n")
    script: list[dict[str, Any]] = [
        {"tool_calls": [{"name": "read_file", "arguments": {"path": "a.py"}}], "expect": "Change"},
        {"tool_calls": [{"name": "edit_file", "arguments": {"path": "a.py", "old_str": "two", "new_str": "three"}}]},
        {"text": "Done."},
    ]
    asked: list[str] = []

    def choose(params: dict[str, Any]) -> str:
        asked.append(params["message"])
        return "Apply"

    with StockEditor(workspace, state, script=script, choose=choose) as editor:
        uri = editor.open(file, "one = 'typed'\r\ntwo = 2\r\n")
        ended = editor.run("codeagent.run", seconds=100, task="Change a.py")
        assert editor.text(file) == "one = 'typed'\r\nthree = 2\r\n", (ended, editor.text(file))
        assert file.read_bytes() == b"old = 1\r\n"
        assert uri.startswith("file:///C")
        assert asked
        editor.command("codeagent.undo")
        until = time.monotonic() + 60
        while editor.text(file) != "one = 'typed'\r\ntwo = 2\r\n" and time.monotonic() < until:
            time.sleep(0.1)
        assert editor.text(file) == "one = 'typed'\r\ntwo = 2\r\n"


async def _run(*argv: str, stdin: bytes = b"", **limits: Any) -> Finished:
    launch = Launch(argv, str(Path.cwd()), scrub_environment(os.environ), "")
    return await run_process(launch, ProcessLimits(**limits), spool_folder=None, stdin=stdin)


def _pid(file: Path) -> int:
    until = time.monotonic() + 60
    while not (file.exists() and file.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    return int(file.read_text())


def _gone(pid: int) -> bool:
    until = time.monotonic() + 20
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.1)
    return not is_alive(pid)


def main() -> None:
    """Try all, or those that are named."""
    trials: list[Callable[[Path], None]] = [each for name, each in globals().items() if name.startswith("try_")]
    fell = []
    for trial in trials:
        if sys.argv[1:] and trial.__name__ not in sys.argv[1:]:
            continue
        try:
            trial(Path(tempfile.mkdtemp()))
        except Exception:
            fell.append(trial.__name__)
            traceback.print_exc()
    print("fell: " + ", ".join(fell) if fell else "all held")


if __name__ == "__main__":
    main()
