"""The output of a command as text: decoded, in order, without terminal controls, and with bounded memory.

Not here: reading the pipes and the limit at which a command is stopped (`process.py`), what of it the model gets
(`tools/`).
"""

from __future__ import annotations

import codecs
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from codeagent_lsp.shadow.shell import Stream
from codeagent_lsp.system import open_new
from codeagent_lsp.workspace.text.excerpts import LinesOfInterest

KEPT_BYTES = 200 * 1024
_WRITE_BYTES = 64 * 1024
_LINE_CHARACTERS = 64 * 1024

# Sequences are bounded, and none can begin inside another, so that each pattern takes linear time.
_CSI = r"(?:\x1b\[|\x9b)[0-?]{0,128}[ -/]{0,16}"
_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]{0,4096}"
# Colours and cursor movements, titles and links, choices of character sets, and two-character sequences.
_ESCAPES = re.compile(rf"{_CSI}[@-~]|{_STRING}(?:\x07|\x1b\\|\x9c)|\x1b[ -/]{{1,16}}[0-~]|\x1b[0-OQ-WYZ\\`-~]")
_UNFINISHED = re.compile(rf"(?:{_CSI}|{_STRING}\x1b?|\x1b[ -/]{{0,16}}|\r)\Z")
_OVERSTRUCK = re.compile(r"[^\n\x08]\x08")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """The output of a command: all of it, or its head, its tail, and the most telling lines between them; then `whole`
    is the path of the file with all of it, if there is one. `streams` are the texts of both streams, each by itself, if
    they were kept apart.
    """

    text: str
    whole: str | None = None
    streams: Mapping[Stream, str] = field(default_factory=dict)


class Output:
    """Collects both streams of one command, in the order they are fed. Up to `kept_bytes` of UTF-8 (200 KiB) stay in
    memory: of a longer output its head, its tail, and lines between them with errors or with `keywords`.

    All of a longer output goes to a new file in `folder`, which is the caller's to remove; without a folder the rest is
    lost. `flush` and `finish` write to the file and may block. With `apart` each stream is also kept by itself.
    """

    def __init__(
        self,
        folder: Path | None,
        keywords: Sequence[str] = (),
        *,
        kept_bytes: int = KEPT_BYTES,
        apart: bool = False,
    ) -> None:
        self.size = 0
        self._readers: dict[Stream, _StreamReader] = {"stdout": _StreamReader(), "stderr": _StreamReader()}
        self._line = ""
        # A fifth each for the tail and for the lines between; the head has the rest.
        part = kept_bytes // 5
        self._ends = _Ends(kept_bytes - 2 * part, part, LinesOfInterest(part, keywords), kept_bytes)
        self._spool = _Spool(folder)
        self._alone: dict[Stream, Output] = {name: Output(None) for name in self._readers} if apart else {}

    def feed(self, stream: Stream, data: bytes) -> str:
        """Take bytes of one stream and return the new text for display; '' while a character is incomplete. Carriage
        returns without a line feed stay in it.
        """
        self.size += len(data)
        if (alone := self._alone.get(stream)) is not None:
            alone.feed(stream, data)
            if alone.wants_flush:
                alone.flush()  # it has no file
        return self._take(self._readers[stream].feed(data))

    @property
    def wants_flush(self) -> bool:
        """Whether at least 64 KiB of an output beyond `kept_bytes` wait to be written to the file; look after each
        `feed` to bound the memory.
        """
        return self._ends.over and len(self._spool.waiting) >= _WRITE_BYTES

    def flush(self) -> None:
        """Write the waiting data to the file; blocks. On a full disk the file ends there, without an error."""
        self._spool.write()

    def finish(self) -> KeptOutput:
        """Write the rest, close the file and return the output, whose `whole` is None if all of it is in the text. Call
        it once; blocks.
        """
        for reader in self._readers.values():
            self._take(reader.finish())
        self._keep(_overwritten(self._line))
        self._line = ""
        if self._ends.over:
            self._spool.write()
        self._spool.close()
        streams = {name: alone.finish().text for name, alone in self._alone.items()}
        return KeptOutput(self._ends.text(), self._spool.path if self._ends.over else None, streams)

    def discard(self) -> None:
        """Close and remove the file, if there is one; instead of `finish`, or after it. Never raises for a file that is
        gone.
        """
        self._spool.close()
        self._spool.remove()

    def _take(self, text: str) -> str:
        done, newline, rest = (self._line + text).rpartition("\n")
        if newline:
            # A carriage return overwrites within its line; without one, all lines can go as one piece.
            lines = done.split("\n") if "\r" in done else [done]
            self._keep("\n".join(map(_overwritten, lines)) + newline)
        self._line = _overwritten(rest, finished=False)
        # Output without line ends must not wait in memory for one.
        if len(self._line) > _LINE_CHARACTERS:
            self._keep(self._line)
            self._line = ""
        return text

    def _keep(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self._ends.add(data)
        self._spool.waiting += data


@dataclass
class _StreamReader:
    """Decodes the bytes of one stream to text without escape sequences and control characters, across any chunking."""

    decoder: codecs.IncrementalDecoder = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))
    held: str = ""

    def feed(self, data: bytes) -> str:
        text = self.held + self.decoder.decode(data)
        # An unfinished sequence has at most 4096 characters and its introduction, so it begins no further back.
        unfinished = _UNFINISHED.search(text, max(0, len(text) - 4200))
        self.held = unfinished[0] if unfinished else ""
        return _harmless(text[: len(text) - len(self.held)])

    def finish(self) -> str:
        text, self.held = self.held + self.decoder.decode(b"", final=True), ""
        return _harmless(text)


@dataclass
class _Ends:
    """The first and the last bytes of an output, and the best lines `between` them where it has more than `most`."""

    head_bytes: int
    tail_bytes: int
    between: LinesOfInterest
    most: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    @property
    def over(self) -> bool:
        return self.total > self.most

    def add(self, data: bytes) -> None:
        room = max(0, self.head_bytes - self.total)
        self.total += len(data)
        self.head += data[:room]
        self.tail += data[room:]
        # At twice the size only, so that the bytes that stay are rarely moved.
        if self.over and len(self.tail) > 2 * self.tail_bytes:
            self._drop(len(self.tail) - self.tail_bytes)

    def text(self) -> str:
        if not self.over:
            return (self.head + self.tail).decode("utf-8", "ignore")
        self._drop(max(0, len(self.tail) - self.tail_bytes))
        # So that the tail begins with a whole line.
        self._drop(self.tail.find(b"\n") + 1)
        head = self.head.decode("utf-8", "ignore")
        parts, shown = [head if head.endswith("\n") else f"{head}\n"], 0
        for line in self.between.found():
            parts += [_left_out(line.start - shown), line.text, "\n"]
            shown = line.start + line.size
        tail = self.tail.decode("utf-8", "ignore")
        return "".join([*parts, _left_out(self.between.total - shown), tail])

    def _drop(self, count: int) -> None:
        """Move bytes from the beginning of the tail to those between; with the first of them the head ends at a line's
        end, if it has one.
        """
        if count and not self.between.total and (end := self.head.rfind(b"\n") + 1):
            self.between.add(bytes(self.head[end:]))
            del self.head[end:]
        self.between.add(bytes(self.tail[:count]))
        del self.tail[:count]


def _left_out(count: int) -> str:
    return f"[... {count:,} bytes left out ...]\n" if count else ""


@dataclass
class _Spool:
    """A file created at the first write, readable by its owner only; none without a folder."""

    folder: Path | None
    waiting: bytearray = field(default_factory=bytearray)
    path: str | None = None
    file: BinaryIO | None = None
    failed: bool = False

    def write(self) -> None:
        try:
            if self.folder is not None and self.file is None and not self.failed:
                self.file = self._create(self.folder)
            if self.file is not None:
                self.file.write(self.waiting)
        except OSError:
            self.failed = True
            self.close()
            self.remove()
        self.waiting.clear()

    def close(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            file.close()

    def remove(self) -> None:
        path, self.path = self.path, None
        if path is not None:
            Path(path).unlink(missing_ok=True)

    def _create(self, folder: Path) -> BinaryIO:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"command-{secrets.token_hex(8)}.txt"
        descriptor = open_new(path)
        self.path = str(path)
        return os.fdopen(descriptor, "wb", buffering=0)


def _harmless(text: str) -> str:
    """Return the text with LF line ends and without escape sequences; lone carriage returns stay."""
    if "\x1b" in text or "\x9b" in text or "\x9d" in text or "\x90" in text:
        text = _ESCAPES.sub("", text)
    # `man` prints bold as a letter, a backspace and the letter again.
    if "\x08" in text:
        text = _OVERSTRUCK.sub("", text)
    return _CONTROLS.sub("", text.replace("\r\n", "\n"))


def _overwritten(line: str, *, finished: bool = True) -> str:
    """Return a line as a terminal shows it after carriage returns; an unfinished line keeps one at its end."""
    if "\r" not in line:
        return line
    last = line.rstrip("\r").rpartition("\r")[2]
    return last if finished or not line.endswith("\r") else f"{last}\r"
