"""Makes each start of our program quick for tests: Python runs this first in each process that has it in PYTHONPATH.

A process that is to be `codeagent-lsp` hands its streams, its folder and its environment to the process that forks
(`tests/server/warm.py`), passes signals on to the fork and ends as it does; one that is killed takes the fork with it.
Every other Python goes on as it is, and so does ours where its streams are not UTF-8 or nobody forks. Few imports:
they are what is left of a start.
"""

import os
import sys

MODULES = ("codeagent_lsp.cli", "tests.bench.mcp_conformance")
SCRIPT = "codeagent-lsp"


def _arguments(words: list[str]) -> list[str] | None:
    """The module to run and its arguments; None if this is another program."""
    if words[:1] == ["-P"]:
        words = words[1:]
    if words[:1] == ["-m"] and words[1:2] and words[1] in MODULES:
        return words[1:]
    if words[:1] and words[0].endswith(f"/{SCRIPT}"):
        return ["codeagent_lsp.cli", *words[1:]]
    return None


def _hand_over(address: str, words: list[str]) -> None:
    import json
    import signal
    import socket

    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        link.connect(address)
        spec = {
            "words": words,
            "cwd": os.getcwd(),  # noqa: PTH109 - pathlib is slow to import
            "env": dict(os.environ),
            "errors": sys.stdout.errors,
            "leads": os.getsid(0) == os.getpid(),
        }
        signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED)  # until it is known whom they are for
        socket.send_fds(link, [json.dumps(spec).encode()], [0, 1, 2])
        pid = int.from_bytes(link.recv(8), "big")
    except OSError:
        pid = 0
    if pid:
        for number in _PASSED:
            signal.signal(number, lambda number, _: os.kill(pid, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED)
    if not pid:  # nobody forks any more
        return
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # they are the fork's alone
        os.dup2(nothing, stream)
    code = int.from_bytes(link.recv(8), "big", signed=True)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


_PASSED = (1, 2, 3, 10, 12, 15)  # HUP, INT, QUIT, USR1, USR2, TERM
_address = os.environ.get("CODEAGENT_TEST_FORKER")
_words = _arguments(sys.orig_argv[1:]) if _address else None
if _address and _words and sys.stdout and sys.stdout.encoding == "utf-8":
    _hand_over(_address, _words)
