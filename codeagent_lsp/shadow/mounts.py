"""Mounting of overlays in a command's own mount namespace, detection of mounts inside the workspace, and whether a
command was begun at all, by the words of those that mount for it.

They mount what was there a moment ago, folders of the system, and masks over sockets. Where one of these is gone by
then, as sockets come and go, they end before the command: nothing has run, and the same can be tried again. Not here:
what lies in the layers (`upper.py`), the sandbox around the command (`sandbox.py`), when it is tried again
(`workspace.py`, `probe.py`).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.shadow.shell import Finished, Launch, OnOutput, Stream
from codeagent_lsp.system import is_superuser
from codeagent_lsp.workspace.files.paths import within

OUTER_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
"""The environment of programs outside of the sandbox, which a command cannot influence."""

OPTIONS = "options"
NOT_MOUNTED = 125
"""The exit code where a mount failed, which is before the command."""
TRYING_SECONDS = 30.0
"""A busy machine is waited for: where a try gets no answer, every command asks until the next start."""

# Words: the private folder; a name there and a folder to lay over, again and again; "--"; the sandbox with its
# command. No path of the user is ever parsed: each is bound to a name of ours first. `volatile`: what will be thrown
# away needs no syncing. `index=off`: the view of a command that was killed may still be going away. The folders that
# are only read are mounted by one process, from a table; a command that would miss one is not begun.
_SCRIPT = """
cd -- "$1" || exit 125
shift
while [ "$1" != -- ]; do
  mount -n -o bind "$2" $1/low &&
  mount -n -t overlay -o userxattr,index=off,volatile,lowerdir=$1/low,upperdir=$1/up,workdir=$1/work overlay $1/view ||
    exit 125
  shift 2
done
shift
if [ -e table ]; then
  mount -n -a -T table || exit 125
fi
exec 9<options 7>status
rm -f options
[ ! -e filter ] || exec 8<filter
exec "$@"
"""

# Some mounts may fail here: which, is the question.
_TRIAL = 'cd -- "$1" || exit 125; mount -n -a -T table 2>/dev/null; exec cat /proc/self/mountinfo'

_SYS_ADMIN = 1 << 21
# `\040`: a blank, as the kernel writes it in a mount table.
_ESCAPED = re.compile(rb"\\([0-7]{3})")

TRIES = 5
"""How often a command is started that is not begun: each time with what is there then."""

_SPEAKERS = ("bwrap: ", "mount: ")
_LONGEST = max(map(len, _SPEAKERS))
_NO_PROGRAM = "bwrap: execvp "
_MOST_HELD = 4096


@dataclass(frozen=True, slots=True)
class Programs:
    """Absolute paths of the programs that isolation needs: bubblewrap, `unshare` of util-linux, and a shell. `locks`
    says that this bwrap supports `--disable-userns`.
    """

    bwrap: str
    unshare: str
    shell: str = "/bin/sh"
    locks: bool = True


@dataclass(frozen=True, slots=True)
class Over:
    """An overlay over the folder `root`, an absolute real path; `name` is the folder of its layers, relative to the
    private folder.
    """

    name: str
    root: str


def mounting(programs: Programs, private: str, overlays: Sequence[Over], start: Sequence[str]) -> tuple[str, ...]:
    """Return the command line that mounts `overlays` at `<name>/view` of the folder `private`, and what its file
    `table` lists, and then executes `start`. A mount inside one of the folders prevents all but root from overlaying
    it.

    `start` has the file `options` of the private folder open as descriptor 9, already deleted, as it may hold secrets;
    `filter`, if there is one, as descriptor 8; and `status`, for writing, as descriptor 7.
    """
    words = (word for overlay in overlays for word in (overlay.name, overlay.root))
    return (*_apart(programs), _SCRIPT, "sh", private, *words, "--", *start)


def mount_table(private: str, read: Sequence[Over]) -> str:
    """Return the text of the file `table` for read-only overlays at `<name>/view`. Their second layer is empty, as one
    is not enough.
    """
    lines = [("empty", f"{private}/empty", "tmpfs", "size=4k,mode=755")]
    for over in read:
        lines.append(("overlay", f"{private}/{over.name}/view", "overlay", f"userxattr,lowerdir={over.root}:empty"))
    return "".join(" ".join(map(_escape, line)) + " 0 0\n" for line in lines)


def mountable(programs: Programs, private: str, read: Sequence[Over]) -> frozenset[str]:
    """Return the names of those overlays in the file `table` that the system mounts: some file systems permit none.
    Blocks, for at most 30 s.
    """
    argv = (*_apart(programs), _TRIAL, "sh", private)
    try:
        table = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRYING_SECONDS, env=OUTER_ENVIRONMENT, cwd="/"
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    overlays = b"\n".join(line for line in table.splitlines() if b" - overlay " in line)
    shown = nested_mounts([private], overlays)
    return frozenset(over.name for over in read if f"{private}/{over.name}/view" in shown)


def fails(argv: Sequence[str], seconds: float = TRYING_SECONDS) -> str | None:
    """Run a command outside of the sandbox and block until it ends, at most `seconds`. Return None if it succeeds, else
    an error message in English.
    """
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, env=OUTER_ENVIRONMENT, cwd="/"
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {seconds:g} seconds"
    except OSError as error:
        return str(error)
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return None if done.returncode == 0 else (lines[0][:300] if lines else f"exit code {done.returncode}")


def is_privileged() -> bool:
    """Return whether this process may mount without a user namespace, as root with CAP_SYS_ADMIN (capabilities(7)) may;
    False if unknown.
    """
    if not is_superuser():
        return False
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return False
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) & _SYS_ADMIN)


def nested_mounts(folders: Sequence[str], table: bytes | None = None) -> tuple[str, ...]:
    """Return the absolute mount points below workspace folders, outermost first; () if they cannot be read. `table` is
    the text of `/proc/self/mountinfo`, which is read if None.
    """
    if table is None:
        try:
            table = Path("/proc/self/mountinfo").read_bytes()
        except OSError:
            return ()
    # The fifth field is the mount point.
    points = {os.fsdecode(_ESCAPED.sub(_unescape, line.split(b" ")[4])) for line in table.splitlines()}
    inside = (path for path in points if within(path, folders) and path not in folders)
    return tuple(sorted(inside, key=lambda path: path.split("/")))


def with_patience(attempt: Callable[[], str | None]) -> str | None:
    """Return the result of an attempt, None or why it failed, made again where a mount failed. Blocks."""
    problem = attempt()
    for _ in range(TRIES - 1):
        if problem is None or not problem.startswith(_SPEAKERS):
            break
        problem = attempt()
    return problem


def never_began(launch: Launch, finished: Finished) -> bool:
    """Return whether a command in bubblewrap ended before it was begun. Reads a file."""
    if not launch.status or finished.ending != "exited" or finished.exit_code not in (1, NOT_MOUNTED):
        return False
    if not finished.output.startswith(_SPEAKERS) or finished.output.startswith(_NO_PROGRAM):
        return False
    try:
        # Bubblewrap's own word: what a command prints proves nothing.
        return b'"exit-code"' not in Path(launch.status).read_bytes()
    except FileNotFoundError:
        return True
    except OSError:
        return False


class HeldOutput:
    """Passes the output of a command on, but not yet what may be words of those that start it: whether they are
    its own is known at its end.
    """

    def __init__(self, on_output: OnOutput) -> None:
        self._on_output = on_output
        self._held: list[tuple[Stream, str]] = []
        self._begins = ""  # as much of the first words as tells whose they are
        self._size = 0
        self._holds = True

    def __call__(self, stream: Stream, text: str) -> None:
        """Take a piece of output."""
        if not self._holds:
            self._on_output(stream, text)
            return
        self._held.append((stream, text))
        self._size += len(text)
        self._begins += text[: _LONGEST - len(self._begins)]
        may_be = any(each.startswith(self._begins) or self._begins.startswith(each) for each in _SPEAKERS)
        if self._size > _MOST_HELD or not may_be:
            self.release()

    def release(self) -> None:
        """Pass on what is held, and all that follows."""
        self._holds = False
        for stream, text in self._held:
            self._on_output(stream, text)
        self._held.clear()


def _apart(programs: Programs) -> tuple[str, ...]:
    """Return the words before a shell script that mounts in a namespace of its own."""
    # An ordinary user may mount as root of a user namespace only.
    names = ("--mount",) if is_privileged() else ("--user", "--map-root-user", "--mount")
    return (programs.unshare, *names, programs.shell, "-c")


def _escape(text: str) -> str:
    """Return a field of a mount table; `_unescape` is the reverse."""
    return re.sub(r"[\s\\#]", lambda match: f"\\{ord(match[0]):03o}", text, flags=re.ASCII)


def _unescape(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8) & 0xFF])
