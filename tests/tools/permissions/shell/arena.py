"""A workspace full of traps, in which commands really run, many a second, and whether anything came of them.

Where bubblewrap works, nothing outside can be written, there is no network, and no process is left; elsewhere the
commands run as they are, which is why only allowed ones and harmless traps are ever put in.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

DRIVER = """
while IFS= read -r -d '' script; do
  timeout --signal=KILL 2 bash --noprofile --norc -c "$script" </dev/null
done
exit 0
"""
TRAP = "#!/bin/sh\ntouch made made-by-a-trap\n"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "TZ": "UTC"}
# Names that a pattern could turn into options.
OPTION_NAMES = ("-o.py", "-i.py", "--output=made.py", "--pre=trap.py", "-exec.py", "-delete.py", "-R.py", "-f.py")
FILES = ("README.md", "a.txt", "b.txt", "src/main.py", "src/util.py", "src/app/x.py", "data.bin", ".env")
PROGRAMS = ("ls", "cat", "trap.py", "odd.sh", "grep", "evilfilter.sh")


class Arena:
    """`place` holds the workspace `ws` and a folder beside it that a link leads to."""

    def __init__(self, place: Path) -> None:
        self.workspace = place / "ws"
        self._place = place
        self._bubble = _bubble(place, self.workspace)
        _fill(self.workspace, place / "outside")

    def effects_of(self, scripts: Sequence[str]) -> list[str]:
        """What is different after all of them ran, by path; empty when nothing is."""
        before = self._state()
        feed = "".join(f"{script}\0" for script in scripts).encode("utf-8", "replace")
        command = [*self._bubble, "bash", "--noprofile", "--norc", "-c", DRIVER]
        subprocess.run(
            command, input=feed, env=ENVIRONMENT, cwd=self.workspace, timeout=280, check=True, capture_output=True
        )
        after = self._state()
        return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))

    def culprits(self, scripts: Sequence[str]) -> list[str]:
        """Those of `scripts` that have an effect, found by halving; the effects stay."""
        if not self.effects_of(scripts):
            return []
        if len(scripts) == 1:
            return list(scripts)
        middle = len(scripts) // 2
        return self.culprits(scripts[:middle]) + self.culprits(scripts[middle:]) or list(scripts)

    def _state(self) -> dict[str, tuple[object, ...]]:
        """All but the access times, which reading may change."""
        found: dict[str, tuple[object, ...]] = {}
        for folder, folders, files in os.walk(self._place):
            for path in (Path(folder), *(Path(folder) / name for name in (*folders, *files))):
                info = path.lstat()
                found[str(path)] = (info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_nlink)
        return found


def _bubble(place: Path, workspace: Path) -> list[str]:
    """The command that shuts commands in; nothing where it does not work."""
    program = shutil.which("bwrap")
    if program is None:
        return []
    shut = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(place), str(place)]
    shut += ["--unshare-all", "--die-with-parent", "--new-session", "--chdir", str(place)]
    works = subprocess.run([*shut, "true"], capture_output=True, timeout=20).returncode == 0
    return [*shut[:-1], str(workspace)] if works else []


def _fill(workspace: Path, outside: Path) -> None:
    for folder in (workspace / "src/app", workspace / "conf", workspace / ".git/hooks", outside):
        folder.mkdir(parents=True)
    for name in FILES:
        (workspace / name).write_text(f"first line of {name}\nneedle\na,b,c\n42\n" * 3)
    (workspace / "package.json").write_text('{"name": "x", "scripts": {"a": "b"}}')
    (workspace / ".git/config").write_text("[core]\n\tfsmonitor = touch made; false\n\tpager = touch made\n")
    (outside / "secret.txt").write_text("outside\n")
    (workspace / "link").symlink_to(outside)
    for name in OPTION_NAMES:
        (workspace / name).write_text("needle\n")
        (workspace / "src" / name).write_text("needle\n")
    for name in PROGRAMS:
        program = workspace / name
        program.write_text(TRAP)
        program.chmod(0o755)
