"""The package on Windows, as Wine has it: tasks, edits, commands, process trees, what `doctor` says.

Not here: links and their attacks, which this Wine has no real ones of; an editor of Windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.wine import Windows, missing
from tests.tidy.source import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.volume,
    pytest.mark.timeout(900),
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A call of a tool in a script."""
    return {"name": name, "arguments": arguments}


@pytest.fixture
def windows() -> Iterator[Windows]:
    """A folder on the disk of Windows, and no server left afterwards."""
    made = Windows.made()
    yield made
    left = made.python(
        "-c",
        "import psutil; print([p.pid for p in psutil.process_iter(['cmdline']) "
        f"if {made.folder.name!r} in ' '.join(p.info['cmdline'] or ()) and p.pid != __import__('os').getpid()])",
    )
    made.remove()
    assert left.strip() == "[]"


def test_a_task_changes_files_of_each_folder(windows: Windows) -> None:
    (windows.workspace / "a.py").write_bytes(b"def f():\r\n    return 1\r\n")
    (windows.workspace / "src" / "pkg").mkdir(parents=True)
    (windows.workspace / "src" / "pkg" / "b.py").write_bytes(b"X = 1\n")
    said = windows.run(
        "Change all",
        [
            {"tool_calls": [call("list_dir", path=".", depth=3), call("glob_file_search", pattern="src/**/*.py"),
                            call("grep", pattern="X = ", glob="src/**")]},
            {"tool_calls": [call("read_file", path="a.py"), call("read_file", path="src/pkg/b.py")]},
            {"tool_calls": [call("edit_file", path="a.py", old_str="return 1", new_str="return 2"),
                            call("edit_file", path="src\\pkg\\b.py", old_str="X = 1", new_str="X = 2"),
                            call("write_file", path="src/new/c.py", content="Y = 3\n")]},
            {"text": "Done."},
        ],
        "--yes",
    )  # fmt: skip
    assert "✓ Applied 3 files." in said
    assert (windows.workspace / "a.py").read_bytes() == b"def f():\r\n    return 2\r\n"
    assert (windows.workspace / "src" / "pkg" / "b.py").read_bytes() == b"X = 2\n"
    assert (windows.workspace / "src" / "new" / "c.py").read_bytes() == b"Y = 3\n"


def test_what_a_command_writes_waits_for_a_decision(windows: Windows) -> None:
    (windows.workspace / "b.txt").write_text("before\n")
    script: list[dict[str, Any]] = [
        {"tool_calls": [call("run_cmd", command="echo hi> new.txt\ntype b.txt\ndel b.txt")]},
        {"text": "Done."},
    ]
    said = windows.run("Run it", script)
    assert "not isolated from your files" in said
    assert "before" not in said, "nobody was there to allow it"
    assert (windows.workspace / "b.txt").read_text() == "before\n"
    assert not (windows.workspace / "new.txt").exists()
    said = windows.run("Run it", script, "--yes")
    assert "before" in said
    assert not (windows.workspace / "b.txt").exists()
    assert (windows.workspace / "new.txt").read_text() == "hi\n"


def test_doctor_ends_and_says_how_commands_run(windows: Windows) -> None:
    said = " ".join(windows.agent("doctor").split())
    assert "copy: commands run in a copy of the workspace" in said
    assert "in a job object" in said


def test_processes_files_and_locks(windows: Windows) -> None:
    program = f"Z:{ROOT}/tests/system/tried_on_windows.py".replace("/", "\\")
    assert windows.python(program).splitlines()[-1] == "all held"
