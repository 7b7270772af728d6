"""A worker process that parses files at low priority and writes to the store as it goes; one of several.

As a program: `python -m codeagent_lsp.index.worker STORE`, a job per line on its input. It ends with its input, and
is killed by an alarm when one file takes too long. Few imports on purpose: a build waits for these processes to start.
Not here: handing out jobs (`service.py`), the choice of files (`scan.py`) and their processing (`intake.py`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, NamedTuple

from codeagent_lsp.index.intake import Same, take
from codeagent_lsp.index.store import IndexEntry, Stamp, Store, Work, open_index
from codeagent_lsp.system import end_after, limit_memory, lower_priority

FILE_SECONDS = 20
MEMORY = 2 << 30
NICE = 10

Job = tuple[Work, ...]


class Findings(NamedTuple):
    """The data to write: entries of changed files, new stamps of unchanged files by index path, index paths of files
    that are gone.
    """

    entries: list[IndexEntry]
    same: dict[str, Stamp]
    gone: list[str]


def do(store: Store, work: Iterable[Work]) -> None:
    """Process files and write the results to the index, in one transaction for contents and one for stamps; blocks.
    Raises sqlite3.Error or OSError if the index cannot be written.
    """
    _write(store, _look(store, work))


def dump(job: Job) -> bytes:
    """Return a job as one line of JSON in ASCII, with LF at its end, as the worker process reads it."""
    return json.dumps([(each.path, each.absolute, each.digest.hex(), each.size) for each in job]).encode() + b"\n"


def _look(store: Store, work: Iterable[Work], begin: Callable[[int], None] = lambda number: None) -> Findings:
    """Process files; `begin` is called with the 0-based number of each."""
    findings = Findings([], {}, [])
    for number, each in enumerate(work):
        begin(number)
        taken = take(store, each)
        if isinstance(taken, IndexEntry):
            findings.entries.append(taken)
        elif isinstance(taken, Same):
            findings.same[taken.path] = taken.stamp
        else:
            findings.gone.append(each.path)
    return findings


def _write(store: Store, findings: Findings) -> None:
    if findings.entries or findings.gone:
        store.write(findings.entries, findings.gone)
    if findings.same:
        store.touch(findings.same)


def _load(line: bytes) -> Job:
    return tuple(Work(path, name, bytes.fromhex(digest), size) for path, name, digest, size in json.loads(line))


def _main(path: str, lines: IO[bytes]) -> None:
    _modest()
    store = open_index(Path(path))

    def begin(number: int) -> None:
        # The alarm kills the process even inside a parser that does not return.
        end_after(FILE_SECONDS)
        os.write(1, b"%d\n" % number)

    for line in lines:
        findings = _look(store, _load(line), begin)
        end_after(0)  # waiting for another writer must not count against a file
        _write(store, findings)
        os.write(1, b"done\n")


def _modest() -> None:
    """Lower this process's priority and limit its memory."""
    lower_priority(NICE)
    limit_memory(MEMORY)


if __name__ == "__main__":
    try:
        _main(sys.argv[1], sys.stdin.buffer)
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # the parent is gone; what was written is complete
