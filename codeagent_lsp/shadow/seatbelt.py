"""The profile under which a command runs on macOS, in the language of `sandbox-exec` (Seatbelt): the last rule counts.

It is a second wall around level `copy`, and no test of this repository has run it: so each command asks all the same.
Pure text. Not here: the copy (`copying.py`), which parts of the home are hidden (`hiding.py`), Linux (`sandbox.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codeagent_lsp.shadow.hiding import Hidden

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


def _each(rule: str, paths: Iterable[str]) -> Iterator[str]:
    return (f"({rule} (subpath {_quote(path)}))" for path in dict.fromkeys(paths))


def _quote(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
