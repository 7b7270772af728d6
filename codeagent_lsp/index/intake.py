"""Preparation of one file or unsaved text for the store: read, hashed, and parsed if its content is new.

Not here: the choice of files (`scan.py`), and the processes that do it (`worker.py`, `service.py`).
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.index.grammars import grammar_of, is_made
from codeagent_lsp.index.parse import MAX_BYTES, find
from codeagent_lsp.index.store import IndexEntry, Stamp, Store, Work
from codeagent_lsp.index.symbols import FileTags, Packed, RawTags, pack_found, unpack_symbols
from codeagent_lsp.system import open_reading
from codeagent_lsp.workspace.text.encoding import decode

_FRESH_NS = 100_000_000  # a file changed so recently may change again without a new stamp
_FRESH_COARSE_NS = 2_000_000_000  # the same, where the file system counts whole seconds

MAX_DATA = 3_000  # characters of data files that are indexed: what follows is more of the same records
MAX_MADE = 300  # the same for generated data: its head says what it is
_DATA_ENDINGS = "csv html ipynb json jsonl lock log map ndjson po snap svg tsv txt xml yaml yml"
_DATA = frozenset(_DATA_ENDINGS.split())

NOTHING = pack_found(RawTags(""))
_NAMES = ("passw", "passphrase", "secret", "token", "apikey", "api_key", "bearer", "authoriz", "-----", "://")
_LONG = re.compile(r"[A-Za-z0-9+/_=.~-]{16,}")
_DIGIT = re.compile(r"[0-9]")
_NEAR = 1  # lines between two suspects that are examined with them: a key may have many lines


class Same(NamedTuple):
    """A file, by its index path, whose content the index already has; only its stamp is new."""

    path: str
    stamp: Stamp


def take(store: Store, work: Work) -> IndexEntry | Same | None:
    """Read a file and return the entry to write for it, or that its content is known; None if it is gone or cannot be
    read. Blocks.
    """
    now = time.time_ns()
    read = _read(work.absolute)
    if read is None:
        return None
    data, stamp = read
    stamp = _settled_stamp(stamp, now)
    if data is None:
        # The content was not read, so the stamp stands for it: a changed file still has another digest.
        return _without_tags(store, work, blake2b(repr(stamp).encode(), digest_size=16).digest(), stamp, "large")
    digest = digest_of(work.path, data)
    if digest == work.digest:
        return Same(work.path, stamp)
    try:
        text = decode(data).text
    except FileRefused:
        return _without_tags(store, work, digest, stamp, "binary")
    text = indexed_part(work.path, text)
    known = store.content(digest)
    if known is None:
        found = find(work.path, text)
        packed, symbols = pack_found(found), found.symbols
    else:
        packed, symbols = None, unpack_symbols(work.path, known.outline)
    return IndexEntry(work.path, digest, packed, store.prepare(work.path, FileTags("", symbols), text), stamp)


def failure_entry(store: Store, work: Work) -> IndexEntry | None:
    """Return the entry for a file that crashed the process that parsed it, so that no other tries again until it
    changes; None if it is gone.
    """
    try:
        stamp = Stamp.of(os.lstat(work.absolute))
    except OSError:
        return None
    return _without_tags(store, work, blake2b(repr(stamp).encode(), digest_size=16).digest(), stamp, "failed")


def looked_at(path: str, size: int) -> int:
    """Return about how many of the `size` bytes of a file are processed: all, or at most the limit for its kind of
    file.
    """
    return min(size, _longest(path) or size)


def indexed_part(path: str, text: str) -> str:
    """Return the part of a saved text at an index path that is indexed: of data files only the beginning, and with
    secrets masked.
    """
    return mask_secrets(_head(text, _longest(path) or len(text)))


def digest_of(path: str, data: bytes) -> bytes:
    """Return the key of a content, 16 bytes (BLAKE2b); the same bytes in another language, by the path or the first
    line, have another key.
    """
    grammar = grammar_of(path, data)
    return blake2b(data, digest_size=16, person=grammar.name.encode()[:16] if grammar else b"").digest()


def packed_text(path: str, text: str) -> tuple[bytes, Packed]:
    """Return the digest (16 bytes) and the packed tags of an unsaved text at an index path; without tags if it is
    longer than 1 MiB. Parses it, so it may take seconds.
    """
    data = text.encode("utf-8", "replace")
    return digest_of(path, data), pack_found(find(path, text) if len(data) <= MAX_BYTES else RawTags(""))


def _longest(path: str) -> int:
    """Return how many characters of a file are indexed; 0 for all of them."""
    if path.rpartition(".")[2].lower() not in _DATA:
        return 0
    return MAX_MADE if is_made(path) else MAX_DATA


def _head(text: str, length: int) -> str:
    """Return the beginning of a text, cut between two words: half a secret would not be recognised as one."""
    return text if len(text) <= length else text[:length].rsplit(None, 1)[0]


def _without_tags(store: Store, work: Work, digest: bytes, stamp: Stamp, note: str) -> IndexEntry:
    return IndexEntry(work.path, digest, NOTHING, store.prepare(work.path, FileTags(""), ""), stamp, note)


def _read(path: str) -> tuple[bytes | None, Stamp] | None:
    """Return the bytes of a regular file (None if they are too many) and its stamp; None if it cannot be read."""
    try:
        fd = open_reading(path)
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return None
        with open(fd, "rb", buffering=0, closefd=False) as file:
            data = file.read(MAX_BYTES + 1) if info.st_size <= MAX_BYTES else None
        return (data if data is not None and len(data) <= MAX_BYTES else None), Stamp.of(info)
    except OSError:
        return None
    finally:
        os.close(fd)


def _settled_stamp(stamp: Stamp, now: int) -> Stamp:
    """Return the stamp, or the unknown stamp if the file was changed so recently that it may change again unnoticed."""
    coarse = stamp.mtime % 1_000_000_000 == 0
    fresh = now - max(stamp.mtime, stamp.ctime) < (_FRESH_COARSE_NS if coarse else _FRESH_NS)
    return Stamp() if fresh else stamp


# Masking of secrets in a text before the index stores any of it; line numbers do not change.


def mask_secrets(text: str) -> str:
    """Return the text of a file with secrets replaced by marks, with as many lines as before, so that line numbers
    stay.
    """
    pieces: list[str] = []
    end = 0
    for start, stop in _blocks(text):
        block = text[start:stop]
        hidden = _sanitize()(block)
        if hidden != block:
            pieces += (text[end:start], _as_long(hidden, block))
            end = stop
    return "".join((*pieces, text[end:])) if pieces else text


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield spans of whole lines that may contain secrets, neighbouring ones joined."""
    begun = ended = -1
    for at in _suspects(text):
        if at < ended:
            continue
        start, stop = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        if begun >= 0 and text.count("\n", ended, start) > _NEAR + 1:
            yield begun, ended
            begun = -1
        begun, ended = (start if begun < 0 else begun), (len(text) if stop < 0 else stop)
    if begun >= 0:
        yield begun, ended


def _suspects(text: str) -> list[int]:
    """Return the offsets of possible secrets or names of secrets, in order."""
    found = [match.start() for match in _LONG.finditer(text) if _DIGIT.search(match[0])]
    lower = text.lower()
    if len(lower) != len(text):  # a letter whose lower case has more than one character
        lower = text
    for name in _NAMES:
        at = lower.find(name)
        while at >= 0:
            found.append(at)
            at = lower.find(name, at + 1)
    return sorted(found)


def _as_long(hidden: str, block: str) -> str:
    """Append the line ends that were lost with a secret of several lines."""
    return hidden + "\n" * (block.count("\n") - hidden.count("\n"))


@cache
def _sanitize() -> Callable[[str], str]:
    from codeagent_lsp.records.sanitizer import Sanitizer  # late: it is heavy, and many workspaces have no suspects

    return Sanitizer(identities=False, homes=()).text
