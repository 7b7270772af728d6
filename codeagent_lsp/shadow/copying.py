"""Level `copy`: commands run in a private copy of the workspace folders, in the sandbox if there is one; on macOS,
where there is none, under a profile in the language of `sandbox-exec` (Seatbelt), of which the last rule counts.

In the sandbox the copy is mounted at the place of the real folder, and what is not copied (ignored folders such as
`node_modules`, repositories) is readable there: commands are confined and git can read but not commit. Without it a
command runs in the copy as the user, ignored folders are links to the real ones, and there is no repository; links that
lead out of the workspace are left out. The profile is a second wall around the copy, and no test of this repository has
run it: so each command asks all the same. Not here: keeping a copy in step (`mirror.py`), which parts of the home are
hidden (`hiding.py`), the arguments of the sandbox (`sandbox.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codeagent_lsp.shadow.collect import WrittenFiles, WrittenLimits
from codeagent_lsp.shadow.environment import scrub_environment
from codeagent_lsp.shadow.folder import LayerFolder, open_way, remove_tree
from codeagent_lsp.shadow.hiding import Hidden
from codeagent_lsp.shadow.interpreters import is_interpreter
from codeagent_lsp.shadow.mirror import Mirror
from codeagent_lsp.shadow.mounts import OUTER_ENVIRONMENT
from codeagent_lsp.shadow.private_copy import FileChangeKind
from codeagent_lsp.shadow.sandbox import STATUS, Bind, Sandbox, services, write_options
from codeagent_lsp.shadow.seccomp import ENVIRONMENT as WITHOUT_CALLS
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command, Isolation, Launch, Writings
from codeagent_lsp.shadow.upper_walk import is_folder
from codeagent_lsp.system import bash
from codeagent_lsp.workspace.files.ignore import IgnoreRules
from codeagent_lsp.workspace.files.paths import entries_of, path_of, within

_LIBRARIES = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/include", "/usr/local/bin", "/usr/local/lib", "/nix/store")
"""Programs and libraries of the system, which environments of the workspace link to."""
_REASON = (
    "Commands run in the real folders: what they write is written at once, they do not see unsaved or proposed text, "
    "and nothing is hidden from them."
)

PROGRAM = "/usr/bin/sandbox-exec"
ALLOWS_ALL = "(version 1)(allow default)"
"""A profile to try the program with."""

_ALWAYS = """
(version 1)
(deny default)
; programs, and signals to those of the command alone
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
; semaphores and shared memory, as Python's multiprocessing needs
(allow ipc-posix-sem ipc-posix-shm*)
; names of users and groups
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
; the system is readable
(allow file-read*)
""".strip()

_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")
_OTHERS = ("/private/tmp", "/private/var/tmp", "/private/var/folders")
"""Temporary files of the user's programs; commands have a folder of their own."""

_NETWORK = """
(allow network-outbound network-inbound system-socket)
(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd" "com.apple.dnssd.service"))
(allow file-read* file-write* (literal "/private/var/run/mDNSResponder"))
""".strip()


def copy_isolation(*, sandboxed: bool, reason: str = "") -> Isolation:
    """Return the guarantees of this level with or without a sandbox; `reason` is, in English, why it is not a better
    level, '' if there is no better one.
    """
    return Isolation("copy", confined=sandboxed, offline=sandboxed, hidden=sandboxed, reason=reason)


class CopyLayer:
    """The layer of one session at level `copy`: a private copy of the workspace `folders` (absolute real paths) in
    `folder`, which `close` removes. `environment` is that of commands (None: this process's, scrubbed), `reason` goes
    into the isolation, `home` is the user's (None: that of this process).

    `seatbelt` confines commands on macOS, where there is no sandbox.
    """

    def __init__(
        self,
        folders: Sequence[str],
        folder: LayerFolder,
        sandbox: Sandbox | None,
        *,
        environment: Mapping[str, str] | None = None,
        reason: str = "",
        home: str | None = None,
        seatbelt: Seatbelt | None = None,
    ) -> None:
        self._folder = folder
        self._sandbox = sandbox
        self._seatbelt = seatbelt
        self._environment = scrub_environment(os.environ) if environment is None else environment
        self._limits = WrittenLimits()
        self.isolation = copy_isolation(sandboxed=sandbox is not None, reason=reason)
        # A folder inside another one would be copied twice, and its changes reported twice.
        outermost = [path for path in folders if not within(path, [other for other in folders if other != path])]
        copies = os.path.realpath(folder.make("copies"))
        self._links = OutwardLinks((*folders, copies), os.path.realpath(home or Path.home()))
        # In the sandbox a link leads to what the sandbox shows; without it, a command would write through the link.
        strays = self._links.leads_out if sandbox is None else None
        self._mirrors = [
            Mirror(path, folder.make("copies", str(number)), IgnoreRules(path).at_root, self._limits, strays=strays)
            for number, path in enumerate(dict.fromkeys(outermost))
        ]
        for path in sandbox.folders if sandbox else ():
            Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Update the copy as `Layer.prepare` says. Paths outside the workspace folders and in linked folders are
        ignored.
        """
        for mirror in self._mirrors:
            mirror.prepare(wanted)
            # Without the sandbox a link to the real repository could be committed to, so there is none.
            for name in (*mirror.linked, *(mirror.repositories if self._sandbox else ())):
                self._stand_in(mirror, name)

    def lay(self, wanted: Mapping[str, bytes | None]) -> None:
        """Change only the files in which `wanted` (bytes by absolute path, None: no such file) differs from the last
        state; call `prepare` before. Quick even for large folders, but does not see changes on the disk.
        """
        for mirror in self._mirrors:
            mirror.lay(wanted)

    @property
    def changed(self) -> Mapping[str, FileChangeKind]:
        """The changes that the last `prepare` or `lay` made to files, by their absolute paths in the workspace."""
        changed = ((mirror.root, *each) for mirror in self._mirrors for each in mirror.copy.changed.items())
        return {path_of(root, name): kind for root, name, kind in changed}

    def launch(self, command: Command) -> Launch:
        """Return how to start `command` in the copy, in the sandbox if there is one; `prepare` must have updated the
        copy. ToolFailed if the command is too long, OSError if its folders cannot be made.
        """
        for mirror in self._mirrors:
            # An earlier command may have taken the rights that the next one needs to start there.
            open_way(mirror.place, command.cwd.removeprefix(mirror.root) if within(command.cwd, (mirror.root,)) else "")
        return self._outside(command) if self._sandbox is None else self._inside(self._sandbox, command)

    def writings(self) -> Writings:
        """Return the files that differ from the prepared copy, by their paths in the workspace. Looks at every file of
        it, so it blocks; what lies beyond the limits is only counted.
        """
        found = WrittenFiles(self._limits)
        for mirror in self._mirrors:
            mirror.collect(found)
        return Writings(tuple(found.files.values()), found.more)

    def close(self) -> None:
        """Remove the copy; no command may be running in it. Blocks, for large copies up to minutes;
        twice does no harm.
        """
        self._folder.close()

    def _inside(self, sandbox: Sandbox, command: Command) -> Launch:
        remove_tree(f"{sandbox.private}/reports")
        Path(sandbox.private, "reports").mkdir(mode=0o700)
        options = sandbox.options(
            self._binds(),
            cwd=command.cwd,
            network=command.network,
            environment={**WITHOUT_CALLS, **self._environment, **command.environment},
            sockets=services(),
        )
        file = f"{self._folder.path}/options"
        write_options(file, options)
        reports, status = f"{sandbox.private}/reports", f"{self._folder.path}/{STATUS}"
        return Launch(sandbox.argv(file, command), "/", OUTER_ENVIRONMENT, reports, status)

    def _outside(self, command: Command) -> Launch:
        # Or git would find a repository above the copy, such as that of a home folder.
        ours = {"GIT_CEILING_DIRECTORIES": self._folder.path}
        launch = plain_launch(command, self._in_copy(command.cwd), self._folder, {**self._environment, **ours})
        if self._seatbelt is None:
            return launch
        environment = {**launch.environment, "TMPDIR": self._folder.make("tmp")}
        argv = self._seatbelt.argv(launch.argv, network=command.network)
        return replace(launch, argv=argv, environment=environment)

    def _binds(self) -> Iterator[Bind]:
        for mirror in self._mirrors:
            yield Bind(mirror.place, mirror.root)
            for name in (*mirror.linked, *mirror.repositories):
                path = f"{mirror.root}/{name}"
                # bubblewrap does not start at all if a source or a mount point is missing.
                if os.path.lexists(f"{mirror.place}/{name}") and os.path.lexists(path):
                    yield Bind(path, path, writable=False)

    def _stand_in(self, mirror: Mirror, name: str) -> None:
        """Create a mount point in the copy for something that is not copied, or a link to it without a sandbox."""
        source, target = f"{mirror.root}/{name}", Path(mirror.place, name)
        # A command may have removed the folder above, or put a link in its place.
        if os.path.lexists(target) or not is_folder(str(target.parent)):
            return
        if self._sandbox is None:
            self._links.stand_in(source, str(target))
        elif is_folder(source):
            target.mkdir()
        else:
            target.touch()

    def _in_copy(self, path: str) -> str:
        for mirror in self._mirrors:
            if within(path, (mirror.root,)):
                return mirror.place + path.removeprefix(mirror.root)
        return path


# Links of a workspace that lead out of it, which a command that is not confined must not be able to follow.


@dataclass(frozen=True, slots=True)
class OutwardLinks:
    """Decides which symbolic links lead out of `folders` (absolute real paths), for the user with the home folder
    `home`. Reads the disk.
    """

    folders: tuple[str, ...]
    home: str

    def leads_out(self, link: str) -> bool:
        """Return whether a link, by absolute path, leads out of the folders, unless it is to an interpreter or a
        library.
        """
        real = os.path.realpath(link)
        return not within(real, (*self.folders, *_LIBRARIES)) and not is_interpreter(real, self.home)

    def stand_in(self, source: str, target: str) -> None:
        """Make `target`, which must not exist, a link to the folder `source`; if there are links in it that lead out, a
        folder of links to everything else. OSError if that fails.
        """
        # Only folders on the way to such a link must be made anew; any other is one link.
        holders = {str(parent) for link in self._below(source) for parent in Path(link).parents}
        waiting = [(source, target)]
        while waiting:
            folder, place = waiting.pop()
            if folder not in holders:
                Path(place).symlink_to(folder)
                continue
            Path(place).mkdir()
            for entry in entries_of(folder):
                if not (entry.is_symlink() and self.leads_out(entry.path)):
                    waiting.append((entry.path, f"{place}/{entry.name}"))

    def _below(self, folder: str) -> Iterator[str]:
        """Yield the links below a folder that lead out."""
        waiting = [folder]
        while waiting:
            for entry in entries_of(waiting.pop()):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_symlink() and self.leads_out(entry.path):
                    yield entry.path


# Level `direct`: commands run in the real folders, so nothing is isolated and nothing becomes a proposal.


def direct_isolation() -> Isolation:
    """Return the isolation of this level, which keeps nothing from a command."""
    return Isolation("direct", confined=False, offline=False, hidden=False, reason=_REASON)


class DirectLayer:
    """The layer at level `direct`: commands run in the user's own folders. `folder` holds the reports, and `close`
    removes it.
    """

    def __init__(self, folder: LayerFolder) -> None:
        self._folder = folder

    @property
    def isolation(self) -> Isolation:
        """The isolation of this level, which guarantees nothing: commands run as the user, in the user's folders."""
        return direct_isolation()

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Do nothing: commands see the saved files."""

    def launch(self, command: Command) -> Launch:
        """Return a launch of the command itself, in the user's folders, with the user's environment but for secrets and
        what could make programs load code.
        """
        return plain_launch(command, command.cwd, self._folder, scrub_environment(os.environ))

    def writings(self) -> Writings:
        """Return no writings: they are on the disk already."""
        return Writings()

    def close(self) -> None:
        """Remove the folder of the reports. Blocks; twice does no harm."""
        self._folder.close()


def plain_launch(command: Command, cwd: str, folder: LayerFolder, environment: Mapping[str, str]) -> Launch:
    """Return a launch of a command as a plain process of the user in the folder `cwd`, with `environment` and the
    command's own variables over it. Its folder for reports, in `folder`, is emptied. OSError if that cannot be made.
    """
    remove_tree(f"{folder.path}/reports")
    reports = folder.make("reports")
    variables = {**environment, **command.environment, REPORT_VARIABLE: reports}
    argv = _by_shell(command.script, folder) if isinstance(command.script, str) else command.script
    return Launch(argv, cwd, variables, reports)


@dataclass(frozen=True, slots=True)
class Seatbelt:
    """The profile of `sandbox-exec` for the commands of one session on macOS, all paths real ones. `private` is the
    session's folder, with the copy and `tmp` in it; `folders` are those of the workspace, to whose ignored folders the
    copy has links.
    """

    private: str
    folders: tuple[str, ...]
    hidden: Hidden

    def profile(self, *, network: bool) -> str:
        """Return the text of the profile in the language of `sandbox-exec`; `network` says whether the command may
        connect.
        """
        return "\n".join(self._rules(network=network)) + "\n"

    def argv(self, words: Iterable[str], *, network: bool) -> tuple[str, ...]:
        """Return the command line that runs `words`, a program and its arguments, under the profile."""
        return (PROGRAM, "-p", self.profile(network=network), *words)

    def _rules(self, *, network: bool) -> Iterator[str]:
        yield _ALWAYS
        yield "; but no home and no other program's temporary files"
        yield from _each("deny file-read*", (*self.hidden.areas, *_OTHERS))
        yield "; that a path exists may be asked, or none could be resolved"
        yield "(allow file-read-metadata)"
        yield "; toolchains, and the workspace for the folders that are not copied"
        yield from _each("allow file-read*", (*self.hidden.visible, *self.folders))
        yield "; never credentials"
        yield from _each("deny file-read*", self.hidden.masked)
        yield "; written is the private copy alone"
        yield from _each("allow file-read* file-write*", (self.private,))
        yield from (f"(allow file-read* file-write-data file-ioctl (literal {_quote(path)}))" for path in _DEVICES)
        yield "; the network" if network else "; no network, no sockets of services"
        if network:
            yield _NETWORK


def _by_shell(script: str, folder: LayerFolder) -> tuple[str, ...]:
    """Return what runs a script: bash, or the shell of Windows where there is none."""
    if shell := bash():
        return (shell, "-c", script)
    file = Path(folder.make("script"), "command.cmd")
    # In a file, as no way to quote a line for this shell is safe; it reads the file as what `chcp` says.
    file.write_text(f"@echo off\nchcp 65001 >nul\n{script}\n", encoding="utf-8", newline="\r\n")
    return ("cmd", "/d", "/c", str(file))


def _each(rule: str, paths: Iterable[str]) -> Iterator[str]:
    return (f"({rule} (subpath {_quote(path)}))" for path in dict.fromkeys(paths))


def _quote(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
