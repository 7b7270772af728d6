"""The arguments of bubblewrap: what a command sees of the system, and what it can do there.

Pure, except that it checks the types of files. Not here: which parts of the home are hidden (`hiding.py`) and where the
workspace it sees comes from (`overlay.py`, `copying.py`).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import iglob
from pathlib import Path
from types import MappingProxyType

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.hiding import Hidden
from codeagent_lsp.shadow.seccomp import filter_program
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command
from codeagent_lsp.system import group_id, user_id
from codeagent_lsp.workspace.files.paths import within

FILTER = "filter"
"""The file with the filter of system calls, in the folder of the options; open for bubblewrap as descriptor 8."""
STATUS = "status"
"""The file in which bubblewrap says what became of the command, in the folder of the options; descriptor 7."""

REPORTS = "/run/codeagent/reports"
_NO_HOME = "/tmp"  # noqa: S108 - the private one
_ARGUMENT_LIMIT = 120_000  # Linux takes 128 KiB for one argument

_SHARED_BYTES = 1 << 30
_SMALL_BYTES = 64 << 20

_NAMESPACES = ("user", "pid", "ipc", "uts", "cgroup-try")
_RUN_KEPT = ("/run/current-system", "/run/opengl-driver")
_RUN_KEPT_ONLINE = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf")
_PROC_COVERED = tuple(
    f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver", "asound", "mtrr")
)
"""Parts of /proc that root can write without any capability, as only their file modes protect them."""
_DROPPED = frozenset(
    """
    XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DOCKER_HOST CONTAINER_HOST
    DISPLAY WAYLAND_DISPLAY XAUTHORITY BASH_ENV ENV TMPDIR TMP TEMP
    """.split()  # noqa: SIM905
)
"""Variables that lead to services outside of the sandbox, or run code before the command."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A bind mount of the folder or file `source` at `target`, both absolute real paths; read-only
    unless `writable`.
    """

    source: str
    target: str
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The sandbox of one session's commands. `private` is the session's folder on the disk, with `home`, `tmp`,
    `vartmp` and `reports` in it; `home` is the real path of the user's home. `uid` and `gid` are the command's, inside
    and outside.

    With `locked` a command cannot create user namespaces, in which it would be root, and file systems in memory are
    small; needs bubblewrap 0.8.
    """

    bwrap: str
    private: str
    home: str
    hidden: Hidden = field(default_factory=Hidden)
    uid: int = field(default_factory=user_id)
    gid: int = field(default_factory=group_id)
    locked: bool = True

    @property
    def folders(self) -> tuple[str, ...]:
        """The absolute paths of the folders below `private` that must exist before a command starts; the caller makes
        them.
        """
        return tuple(f"{self.private}/{name}" for name in ("home", "tmp", "vartmp", "reports"))

    def options(
        self,
        binds: Iterable[Bind],
        *,
        cwd: str,
        network: bool,
        environment: Mapping[str, str],
        sockets: Iterable[str] = (),
        views: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[str, ...]:
        """Return bubblewrap's options without the program, as words. They are to be written to a file, as they hold the
        environment. `binds` are the mounts of the workspace, `sockets` paths that nobody may reach, `views` maps each
        folder that is read through an overlay to the place where that is mounted.
        """
        # A folder that lies inside another one has to be mounted after it.
        ordered = sorted(binds, key=lambda bind: bind.target.split("/"))
        # bubblewrap mounts in this order, and each mount covers what was there: the workspace comes after the emptied
        # homes that it may lie in, the masks after everything that they hide.
        return (
            *(("--seccomp", "8") if filter_program() is not None else ()),
            *_namespaces(self.uid, self.gid, network=network),
            *(("--disable-userns",) if self.locked else ()),
            *("--ro-bind", "/", "/", *self._views(views), "--dev", "/dev", *self._memory("/dev/shm", _SHARED_BYTES)),  # noqa: S108
            *("--remount-ro", "/dev", "--proc", "/proc"),
            *(word for path in _PROC_COVERED for word in ("--ro-bind-try", path, path)),
            *self._runtime(network=network),
            *self._homes(views),
            *(
                word
                for bind in ordered
                for word in ("--bind" if bind.writable else "--ro-bind", bind.source, bind.target)
            ),
            *_masks(self._paths_to_mask(ordered, sockets, views)),
            *("--bind", f"{self.private}/reports", REPORTS, "--chdir", cwd, "--clearenv"),
            *(word for name, value in self._environment(environment) for word in ("--setenv", name, value)),
        )

    def argv(self, options_file: str, command: Command) -> tuple[str, ...]:
        """Return the command line that starts `command` with the options in `options_file`, which the started process
        removes. ToolFailed if the command is too long.
        """
        return (
            "/bin/sh",
            "-c",
            f'exec 9<"$1" 7>"${{1%/*}}/{STATUS}"; rm -f -- "$1"; f=${{1%/*}}/{FILTER}; [ ! -e "$f" ] || exec 8<"$f"; '
            'shift; exec "$@"',
            "sh",
            options_file,
            *self.start(command),
        )

    def start(self, command: Command) -> tuple[str, ...]:
        """Return the words that start bubblewrap with its options on descriptor 9 and its status on 7. ToolFailed if a
        word of the command has more than 120,000 bytes.
        """
        words = ("bash", "-c", command.script) if isinstance(command.script, str) else command.script
        if any(len(os.fsencode(word)) > _ARGUMENT_LIMIT for word in words):
            raise ToolFailed("The command is too long. Write the long part to a file and run that.")
        return (self.bwrap, "--json-status-fd", "7", "--args", "9", "--", *words)

    def _views(self, views: Mapping[str, str]) -> Iterator[str]:
        for path, view in views.items():
            if not within(path, self.hidden.areas):
                yield from ("--ro-bind", view, path)

    def _homes(self, views: Mapping[str, str]) -> Iterator[str]:
        """Yield mounts of empty private folders over the home folders, and of what is visible in those."""
        yield from ("--bind", f"{self.private}/tmp", "/tmp", "--bind", f"{self.private}/vartmp", "/var/tmp")  # noqa: S108
        for area in self.hidden.areas:
            yield from ("--bind", f"{self.private}/home", area) if area == self.home else self._memory(area)
        for path in self.hidden.visible:
            yield from ("--ro-bind-try", _through(views, path), path)

    def _runtime(self, *, network: bool) -> Iterator[str]:
        """Yield an empty `/run`, without the sockets of services, except for what name resolution and programs need."""
        yield from self._memory("/run")
        # A folder of its own, not a link to /run, has sockets too.
        if os.path.isdir("/var/run") and not os.path.islink("/var/run"):  # noqa: PTH112, PTH114 - a look, no more
            yield from self._memory("/var/run")
        for path in (*_RUN_KEPT, *(_RUN_KEPT_ONLINE if network else ())):
            yield from ("--ro-bind-try", path, path)

    def _memory(self, path: str, size: int = _SMALL_BYTES) -> tuple[str, ...]:
        """Return the mount of an empty file system in memory, of limited size where bubblewrap can do that."""
        return (*(("--size", str(size)) if self.locked else ()), "--tmpfs", path)

    def _paths_to_mask(self, binds: Sequence[Bind], sockets: Iterable[str], views: Iterable[str]) -> Iterator[str]:
        """Yield the visible paths that must be masked."""
        yield from self.hidden.masked
        empty = ("/tmp", "/var/tmp", "/run", "/dev", "/proc", *self.hidden.areas, *self.hidden.masked)  # noqa: S108
        shown = [*self.hidden.visible]
        for path in sockets:
            inside = [bind for bind in binds if within(path, [bind.target])]  # the innermost is the last
            # Through an overlay a command sees a copy of the socket's name, and nobody listens there: the less is
            # masked, the less can be gone when it is. A pipe's copy would keep waiting who writes to it.
            is_copy = inside[-1].writable if inside else within(os.path.realpath(path), views) and not _is_pipe(path)
            if not is_copy and (inside or within(path, shown) or not within(path, empty)):
                yield path

    def _environment(self, environment: Mapping[str, str]) -> list[tuple[str, str]]:
        # A home that is not shown, such as `/`, would be the real one and read-only.
        home = self.home if self.home in self.hidden.areas else _NO_HOME
        kept = {name: value for name, value in environment.items() if name not in _DROPPED}
        git = {"GIT_OPTIONAL_LOCKS": "0", "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1"}  # our mounts are no boundaries
        ours = {"HOME": home, "TMPDIR": "/tmp", REPORT_VARIABLE: REPORTS, **git}  # noqa: S108
        return sorted({**kept, **ours}.items())


def write_options(path: str, options: Sequence[str]) -> None:
    """Write options in the format of bubblewrap's `--args` (each word ended by NUL) to the file `path`, readable by the
    user only, and the filter of system calls beside it; the status of the command before is removed. OSError if that
    fails.
    """
    Path(path).with_name(STATUS).unlink(missing_ok=True)
    _write(path, b"".join(os.fsencode(word) + b"\0" for word in options))
    if (program := filter_program()) is not None:
        _write(str(Path(path).with_name(FILTER)), program)


def services() -> tuple[str, ...]:
    """Return the absolute paths by which other processes can be reached: Unix sockets, and named pipes that one has
    open.
    """
    return tuple(sorted({*listening(), *named_pipes()}))


def named_pipes() -> Iterator[str]:
    """Yield the absolute paths of the named pipes that processes have open, as far as this user may see them, by
    `/proc` (proc(5)); some more than once.
    """
    for link in iglob("/proc/[0-9]*/fd/*"):  # noqa: PTH207 - plain strings are several times faster
        try:
            path = os.readlink(link)  # noqa: PTH115 - as above
            if path.startswith("/") and _is_pipe(path):
                yield path
        except OSError:  # closed, deleted, or not ours to see
            continue


def listening(table: str | None = None) -> tuple[str, ...]:
    """Return the absolute paths of the Unix sockets that exist; () if unknown. `table` is the text of `/proc/net/unix`,
    which is read if None.
    """
    if table is None:
        try:
            table = Path("/proc/net/unix").read_text("utf-8", "surrogateescape")
        except OSError:
            return ()
    fields = (line.split(maxsplit=7) for line in table.splitlines()[1:])
    paths = {row[7] for row in fields if len(row) == 8 and row[7].startswith("/")}
    return tuple(sorted(filter(_is_socket, paths)))


def _write(path: str, data: bytes) -> None:
    if sys.platform != "win32":
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(data)


def _is_socket(path: str) -> bool:
    return stat.S_ISSOCK(_mode(path))


def _is_pipe(path: str) -> bool:
    return stat.S_ISFIFO(_mode(path))


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - `is_socket` raises for the folders of others
    except OSError:  # gone, or in a folder that we, and so a command, cannot enter
        return 0


def _namespaces(uid: int, gid: int, *, network: bool) -> Iterator[str]:
    yield from (f"--unshare-{name}" for name in _NAMESPACES)
    if not network:
        yield "--unshare-net"
    # `--new-session`: without a terminal, a command cannot type into the user's shell (TIOCSTI).
    yield from ("--uid", str(uid), "--gid", str(gid), "--new-session", "--die-with-parent", "--cap-drop", "ALL")


def _through(views: Mapping[str, str], path: str) -> str:
    """Return where a path lies in the views; its own real path if it is in none."""
    # The views are of real paths, while what is visible is named as toolchains name it.
    real = os.path.realpath(path)
    return next((view + real.removeprefix(root) for root, view in views.items() if within(real, [root])), path)


def _masks(paths: Iterable[str]) -> Iterator[str]:
    for path in sorted(set(paths)):
        if os.path.isdir(path):  # noqa: PTH112
            yield from ("--tmpfs", path, "--remount-ro", path)
        else:
            yield from ("--dev-bind", "/dev/null", path)  # as a device, or it would not even open
