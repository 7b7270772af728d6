"""The system calls that commands in the sandbox are refused, as a program for the kernel's filter (seccomp, BPF).

They reach what no namespace separates: the keys of the user, other machines on the host (`AF_VSOCK`), the memory of
other processes, the kernel itself. A refused call fails with EPERM, a program for another architecture is killed. Not
here: how bubblewrap gets the program (`sandbox.py`).
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {"ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}  # it needs ptrace, and fails without
)
"""The variables by which programs do without the refused system calls."""


class _Machine(NamedTuple):
    """An architecture: its number in audit records, and which column of the table has its system calls."""

    audit: int
    column: int


_MACHINES: Mapping[str, _Machine] = MappingProxyType(
    {"x86_64": _Machine(0xC000003E, 0), "aarch64": _Machine(0xC00000B7, 1)}
)

_REFUSED: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        # keys
        "add_key": (248, 217),
        "request_key": (249, 218),
        "keyctl": (250, 219),
        # other processes
        "ptrace": (101, 117),
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
        "process_madvise": (440, 440),
        "pidfd_getfd": (438, 438),
        # the kernel; operations of io_uring, sockets among them, are not seen by this filter
        "bpf": (321, 280),
        "userfaultfd": (323, 282),
        "perf_event_open": (298, 241),
        "io_uring_setup": (425, 425),
        "io_uring_enter": (426, 426),
        "io_uring_register": (427, 427),
        "kexec_load": (246, 104),
        "kexec_file_load": (320, 294),
        "init_module": (175, 105),
        "finit_module": (313, 273),
        "delete_module": (176, 106),
        "reboot": (169, 142),
        "swapon": (167, 224),
        "swapoff": (168, 225),
        "acct": (163, 89),
        "syslog": (103, 116),
        # mounts
        "mount": (165, 40),
        "umount2": (166, 39),
        "pivot_root": (155, 41),
        "setns": (308, 268),
        "open_tree": (428, 428),
        "move_mount": (429, 429),
        "fsopen": (430, 430),
        "fsconfig": (431, 431),
        "fsmount": (432, 432),
        "fspick": (433, 433),
        "mount_setattr": (442, 442),
        "open_tree_attr": (467, 467),
        "open_by_handle_at": (304, 265),
    }
)

_SOCKET = (41, 198)
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (the interfaces of the sandbox)
_SHMGET = (29, 194)
_SEGMENT_BYTES = 64 << 10  # such memory is in no process once it is detached, so it must be little

_X32 = 0x40000000  # calls of the x32 ABI of x86-64 have other numbers
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_LOAD, _EQUAL, _GREATER, _AT_LEAST, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _SECOND_HIGH = 0, 4, 16, 24, 28  # offsets in `struct seccomp_data`


def filter_program(machine: str | None = None) -> bytes | None:
    """Return the filter of system calls as bytes for the kernel (seccomp(2), classic BPF), for this machine or for the
    one of that name as in `uname -m`; None if the machine is not known.
    """
    found = _MACHINES.get(machine or _machine())
    if found is None:
        return None
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in _instructions(found))


def _machine() -> str:
    if sys.platform == "win32":
        return ""
    else:  # noqa: RET505 - or mypy finds it unreachable there
        return os.uname().machine


def _instructions(machine: _Machine) -> Iterator[tuple[int, int, int, int]]:
    """Yield code, jump if true, jump if false and value of each instruction; jumps count instructions to skip."""
    column = machine.column
    # Calls of another architecture have other numbers, so that nothing below would fit them.
    yield (_LOAD, 0, 0, _ARCHITECTURE)
    yield (_EQUAL, 1, 0, machine.audit)
    yield (_RETURN, 0, 0, _KILL)
    yield (_LOAD, 0, 0, _NUMBER)
    yield from _refuse_if(_AT_LEAST, _X32)
    for numbers in _REFUSED.values():
        yield from _refuse_if(_EQUAL, numbers[column])
    # If not: over the load, the families and both returns.
    yield (_EQUAL, 0, len(_FAMILIES) + 3, _SOCKET[column])
    yield (_LOAD, 0, 0, _FIRST)
    for place, family in enumerate(_FAMILIES):
        # To the second return.
        yield (_EQUAL, len(_FAMILIES) - place, 0, family)
    yield (_RETURN, 0, 0, _REFUSE)
    yield (_RETURN, 0, 0, _ALLOW)
    # If not: over two loads and two pairs of a comparison and a return.
    yield (_EQUAL, 0, 6, _SHMGET[column])
    # The size has 64 bits, and the filter compares 32 at a time.
    yield (_LOAD, 0, 0, _SECOND_HIGH)
    yield from _refuse_if(_GREATER, 0)
    yield (_LOAD, 0, 0, _SECOND)
    yield from _refuse_if(_GREATER, _SEGMENT_BYTES)
    yield (_RETURN, 0, 0, _ALLOW)


def _refuse_if(comparison: int, value: int) -> Iterator[tuple[int, int, int, int]]:
    yield (comparison, 0, 1, value)
    yield (_RETURN, 0, 0, _REFUSE)
