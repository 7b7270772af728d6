"""The filter of system calls: its table, its assembly, and which calls a command in the sandbox cannot make."""

from __future__ import annotations

import errno
import os
import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeagent_lsp.shadow import seccomp
from codeagent_lsp.shadow.seccomp import filter_program
from tests.shadow.rig import Rig, needs_overlay, rig

MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
ALLOWED, KILLED, REFUSED = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
HEADERS = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h")


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """Interpret the program as the kernel does, for one call."""
    program = filter_program(machine)
    assert program is not None
    code = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    audit = MACHINES[machine][0] if architecture is None else architecture
    data = struct.pack("<IIQ6Q", number, audit, 0, *arguments, *(0,) * (6 - len(arguments)))
    loaded, at = 0, 0
    while True:
        operation, true, false, value = code[at]
        at += 1
        if operation == 0x06:
            return int(value)
        if operation == 0x20:
            loaded = struct.unpack_from("<I", data, value)[0]
        else:
            is_true = {0x15: loaded == value, 0x25: loaded > value, 0x35: loaded >= value}[operation]
            at += true if is_true else false


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_refused_and_what_is_not(machine: str) -> None:
    column = MACHINES[machine][1]
    refused = {numbers[column] for numbers in seccomp._REFUSED.values()}
    special = {seccomp._SOCKET[column], seccomp._SHMGET[column]}
    for number in set(range(1000)) - special:
        assert verdict(machine, number) == (REFUSED if number in refused else ALLOWED), number
    for architecture in (0x40000003, 0x40000028, 0, MACHINES["aarch64" if machine == "x86_64" else "x86_64"][0]):
        assert verdict(machine, 0, architecture=architecture) == KILLED
    assert verdict(machine, 0x40000000 | 1) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_by_their_family_and_segments_by_their_size(machine: str) -> None:
    create, segment = seccomp._SOCKET[MACHINES[machine][1]], seccomp._SHMGET[MACHINES[machine][1]]
    for family in range(64):
        assert verdict(machine, create, family, 1) == (ALLOWED if family in {1, 2, 10, 16} else REFUSED), family
    assert verdict(machine, create, (7 << 32) | 40, 1) == REFUSED  # the kernel looks at the lower half only
    for size, expected in ((56, ALLOWED), (64 << 10, ALLOWED), ((64 << 10) + 1, REFUSED), (1 << 32, REFUSED)):
        assert verdict(machine, segment, 0, size) == expected


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert filter_program("riscv64") is None


@pytest.mark.parametrize("column", [0, 1])
def test_the_numbers_are_those_of_the_headers(column: int) -> None:
    header = Path(HEADERS[column])
    if not header.is_file():
        pytest.skip("the headers of the kernel are not installed")
    known = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", header.read_text())}
    table = {**seccomp._REFUSED, "socket": seccomp._SOCKET, "shmget": seccomp._SHMGET}
    found = {name: known[name] for name in table if name in known}
    assert len(found) > 30
    assert found == {name: table[name][column] for name in found}


@pytest.mark.slow
@needs_overlay
@pytest.mark.skipif(shutil.which("gcc", path="/usr/bin") is None, reason="needs gcc")
def test_programs_are_compiled_and_sanitizers_end_well(over: Rig) -> None:
    over.run("echo 'int main(void) { return 0; }' > a.c; printf 'all:\\n\\tgcc -o a a.c\\n' > Makefile")
    assert over.run("make -s && ./a").code == 0
    for name in ("address", "leak"):
        if over.run(f"gcc -fsanitize={name} -o b a.c").code == 0:  # else its library is not installed
            assert over.run("./b").out == ""


@pytest.fixture
def over(workspace: Path, tmp_path: Path) -> Iterator[Rig]:
    made = rig([workspace], tmp_path / "state")
    made.layer.prepare({})
    yield made
    made.layer.close()


REAL = {
    "keyctl": "c.syscall({keyctl}, 0, -3, 0)",
    "add_key": "c.syscall({add_key}, b'user', b'a', b'b', 1, -3)",
    "bpf": "c.syscall({bpf}, 0, 0, 0)",
    "ptrace": "c.syscall({ptrace}, 0, 0, 0, 0)",
    "process_vm_readv": "c.syscall({process_vm_readv}, 1, 0, 0, 0, 0, 0)",
    "userfaultfd": "c.syscall({userfaultfd}, 1)",
    "io_uring_setup": "c.syscall({io_uring_setup}, 1, ctypes.create_string_buffer(200))",
    "mount": "c.syscall({mount}, b'a', b'/tmp', b'tmpfs', 0, 0)",
    "fsopen": "c.syscall({fsopen}, b'tmpfs', 0)",
    "vsock": "c.socket(40, 1, 0)",
    "alg": "c.socket(38, 5, 0)",
    "shmget": "c.shmget(0, 1 << 20, 0o1600)",
}


@pytest.mark.slow
@needs_overlay
@pytest.mark.parametrize("call", REAL.values(), ids=REAL.keys())
def test_a_command_cannot_make_the_call(over: Rig, call: str) -> None:
    column = MACHINES[os.uname().machine][1]
    numbers = {name: pair[column] for name, pair in seccomp._REFUSED.items()}
    code = f"import ctypes; c = ctypes.CDLL(None, use_errno=True); r = {call.format(**numbers)}"
    assert over.run(f'/usr/bin/python3 -c "{code}; print(r, ctypes.get_errno())"').out == f"-1 {errno.EPERM}\n"


@pytest.mark.slow
@needs_overlay
def test_usual_programs_run(over: Rig) -> None:
    code = "import socket, multiprocessing as m, subprocess as s; socket.socket(); socket.socketpair();"
    code += "socket.create_server(('127.0.0.1', 0))"
    code += "; socket.if_nameindex(); print(m.Pool(2).map(abs, [-1, 2]), s.check_output(['echo', 'x']))"
    assert over.run(f'/usr/bin/python3 -c "{code}"').out == "[1, 2] b'x\\n'\n"
    assert over.run("ls /proc/self/fd | wc -l").out == "4\n"  # no descriptor of ours
