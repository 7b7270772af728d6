"""The way between an editor's server and a client of `editor-mcp`: the folder in which they find each other before
anything listens, and the frames of the connection after that.

A server announces itself by a folder below the state folder of its workspace, locked as long as it lives. A client puts
a request file into it; the server answers by a file beside it: that the user is being asked, that they refused, or the
address and a token. All is readable by this user alone.

A frame is one JSON object per line, of bounded length. The client begins with `{"hello": {protocol, token, workspace,
client}}`, which is answered by `{"welcome": {...}}` or `{"refused": {reason, message}}`. Then the client sends
`{"call": {id, tool, arguments}}` and `{"cancel": id}`; each call is answered by `{"answer": {id, text, ok}}`, and
`{"closed": {reason, message}}` is the last frame of the server. Not here: the user's decision (`server/lender.py`), who
may connect (`server/door.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from codeagent_lsp.state import json_object, make_private, replace_json
from codeagent_lsp.system import belongs_to_us, is_alive, lock, open_new, open_reading

FOLDER = "lend"
MAX_FILE = 16 << 10
"""Most bytes of a file that is read here."""
MAX_REQUESTS = 32
"""Most requests that are looked at; those beyond wait."""
MAX_SERVERS = 4000
REQUEST_SECONDS = 900.0
"""How old a request gets; a client that still wants it writes it anew."""
MAX_NAME = 64
_SERVER, _LOCK, _REQUEST, _ANSWER = "server.json", "lock", ".request", ".answer"
_NONCE = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Announcement:
    """An editor's server that can be asked: its meeting folder, its workspace folders (absolute), the editor's name,
    and when it started, in seconds since the epoch.
    """

    place: Path
    folders: tuple[str, ...]
    editor: str
    started: float


@dataclass(frozen=True, slots=True)
class LendRequest:
    """One client that wants to use the editor: the id of its request (32 hexadecimal digits), its name, its process id
    and the absolute path of the folder that it means.
    """

    nonce: str
    client: str
    pid: int
    workspace: str


@dataclass(frozen=True, slots=True)
class LendAnswer:
    """What became of a request: `state` is `asking`, `granted` or `refused`. A granted one has the address and the
    token, a refused one a reason: `not_now`, `never` or `workspace`.
    """

    state: str
    reason: str = ""
    address: str = ""
    token: str = ""


def clean_name(name: str) -> str:
    """Return the name of a client in one line of at most 64 printable characters; '' if nothing is left of it."""
    shown = "".join(character if character.isprintable() else " " for character in name[: 4 * MAX_NAME])
    return " ".join(shown.split())[:MAX_NAME].strip()


# The server's side.


class MeetingPlace:
    """The folder in which clients find one server, from `open` to `close`. Methods read or write small files, so they
    block shortly; all but `close` and `forget` may raise OSError.
    """

    def __init__(self, state: Path) -> None:
        self._siblings = state / FOLDER
        self.path = self._siblings / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._lock: int | None = None

    def open(self, folders: Iterable[str], editor: str) -> None:
        """Create and lock the folder, remove those of servers that have ended, and announce this server with its
        folders (absolute paths) and the name of its editor. OSError if that fails.
        """
        make_private(self._siblings)
        for other in list(_folders(self._siblings)):
            if not is_held(other):
                shutil.rmtree(other, ignore_errors=True)
        self.path.mkdir(mode=0o700)
        self._lock = open_new(self.path / _LOCK)
        # Held until the process ends, however it ends: others tell by it whether the server lives, which a process id,
        # given again, cannot say.
        lock(self._lock)
        # Last: who finds it finds it locked.
        self.announce(folders, editor)

    def announce(self, folders: Iterable[str], editor: str) -> None:
        """Write which folders (absolute paths) are open in which editor, in place of what was announced before; the
        editor's name is cut to 64 characters. OSError if that fails.
        """
        announced = {"folders": list(folders), "editor": editor[:MAX_NAME], "started": time.time()}
        replace_json(self.path / _SERVER, announced)

    def requests(self) -> list[LendRequest]:
        """Return at most 32 waiting requests, the oldest first. Malformed ones, those older than 900 s and those of
        processes that have ended are removed.
        """
        found: list[tuple[float, LendRequest]] = []
        with os.scandir(self.path) as entries:
            # Any program of the user can write here; a folder of a million files must not hold up the server.
            names = [entry.name for entry in islice(entries, 4 * MAX_REQUESTS)]
        for name in names:
            if not name.endswith(_REQUEST):
                continue
            path = self.path / name
            request = _request(path)
            age = _age(path)
            if request is None or age is None or age > REQUEST_SECONDS or not is_alive(request.pid):
                self.forget(name.removesuffix(_REQUEST))
            else:
                found.append((-age, request))
        return [request for _, request in sorted(found, key=lambda pair: pair[0])[:MAX_REQUESTS]]

    def answer(self, nonce: str, answer: LendAnswer) -> None:
        """Write the answer to the request with this id, in place of an earlier one. OSError if that fails."""
        values = {"state": answer.state, "reason": answer.reason, "address": answer.address, "token": answer.token}
        replace_json(self.path / f"{nonce}{_ANSWER}", values)

    def forget(self, nonce: str) -> None:
        """Remove the request with this id and its answer; never raises."""
        for name in (f"{nonce}{_REQUEST}", f"{nonce}{_ANSWER}"):
            with suppress(OSError):
                (self.path / name).unlink()

    def close(self) -> None:
        """Remove the folder with its requests, so that no client finds this server; never raises."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            self._siblings.rmdir()


def is_held(place: Path) -> bool:
    """Return whether the server of a meeting folder still runs, by its lock; False if the folder is gone."""
    try:
        descriptor = open_reading(place / _LOCK)
    except OSError:
        return False
    try:
        lock(descriptor, shared=True)
    except BlockingIOError:  # the server has it
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _folders(siblings: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(siblings) as entries:
        yield from (Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))


def _request(path: Path) -> LendRequest | None:
    values, nonce = _read(path), path.name.removesuffix(_REQUEST)
    if values is None or not _NONCE.fullmatch(nonce):
        return None
    client, pid, workspace = values.get("client"), values.get("pid"), values.get("workspace")
    if not isinstance(client, str) or not isinstance(workspace, str) or not isinstance(pid, int) or pid <= 0:
        return None
    if "\0" in workspace:
        return None
    # As it is, or not at all: the user is asked about exactly this name.
    return LendRequest(nonce, client, pid, workspace) if client and client == clean_name(client) else None


def _age(path: Path) -> float | None:
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return None


# The client's side.


def find_editor(root: Path, folder: str) -> Announcement | None:
    """Return the editor that has a folder open, or one of those above it: the nearest, and of several the one that
    started last; None if there is none. `root` is the folder of all our state. Blocks.
    """
    wanted = os.path.realpath(folder)
    found: list[tuple[int, float, Announcement]] = []
    for path in islice((root / "workspaces").glob(f"*/{FOLDER}/*/{_SERVER}"), MAX_SERVERS):
        values = _read(path)
        announced = None if values is None else _announcement(path.parent, values)
        # Whether it lives comes last, as it opens a file.
        if announced is None or (opened := holding(announced.folders, wanted)) is None or not is_held(announced.place):
            continue
        found.append((len(opened), announced.started, announced))
    return max(found, key=lambda each: each[:2])[2] if found else None


def holding(folders: Iterable[str], wanted: str) -> str | None:
    """Return the real path of the folder among these that is or contains the real path `wanted`, the deepest one; None
    if none does.
    """
    real = (os.path.realpath(folder) for folder in folders)
    # With the separator behind it: a folder `cart` does not hold its sibling `cart-old`.
    inside = [folder for folder in real if wanted == folder or wanted.startswith(folder.rstrip(os.sep) + os.sep)]
    return max(inside, key=len, default=None)


class Ticket:
    """One request of a client in the meeting folder of a server, until `withdraw`. Methods read or write small files,
    so they block shortly.
    """

    def __init__(self, place: Path, client: str, workspace: str) -> None:
        self._place = place
        # Not to be guessed: who knows it can read the answer, with the token in it.
        self._nonce = secrets.token_hex(16)
        self._values = {"client": client, "pid": os.getpid(), "workspace": workspace}

    def put(self) -> None:
        """Write the request, again if it is there, which renews its age. OSError if the server has ended or the file
        cannot be written.
        """
        if not self._place.is_dir():  # else it would be made anew, and nobody would look into it
            raise FileNotFoundError(self._place)
        replace_json(self._place / f"{self._nonce}{_REQUEST}", self._values)

    def answer(self) -> LendAnswer | None:
        """Return the answer so far; None if there is none yet or it cannot be read. The latest one counts."""
        values = _read(self._place / f"{self._nonce}{_ANSWER}")
        if values is None:
            return None
        state, reason, address, token = (str(values.get(name, "")) for name in ("state", "reason", "address", "token"))
        return LendAnswer(state, reason, address, token)

    def withdraw(self) -> None:
        """Remove the request and its answer; never raises."""
        for name in (f"{self._nonce}{_REQUEST}", f"{self._nonce}{_ANSWER}"):
            with suppress(OSError):
                (self._place / name).unlink()


PROTOCOL = 1
MAX_FRAME = 4 << 20
"""Most bytes of a frame."""
MAX_HELLO = 16 << 10
"""Most bytes of a frame of which the sender is not known yet."""
WRITE_SECONDS = 10.0
"""How long the other side may take nothing of what is written."""
_CHUNK = 1 << 16
_HTTP = re.compile(rb"[A-Z]{3,10} [^\n]*HTTP/|(?:GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PRI) ")

REASONS = {
    "http": "This is no web server.",
    "json": "A frame is one JSON object per line.",
    "large": "The frame is too long.",
    "slow": "The first frame did not come in time.",
    "hello": "The first frame must be a hello with protocol, token, workspace and client.",
    "protocol": f"This editor speaks protocol {PROTOCOL}; use the codeagent-lsp of the editor's version.",
    "user": "Only the user of the editor may connect.",
    "token": "The token is not one that this editor has given.",
    "workspace": "This editor has another workspace open.",
    "client": "The token was given to another client.",
    "busy": "Too many connections are open.",
    "frame": "The frame is neither a call nor a cancel.",
    "off": "The user's settings do not lend the editor.",
    "cancelled": "The user has ended this.",
    "ended": "The editor has ended.",
}
"""What the reason of a refusal or an end means, for the client."""


class BadFrame(Exception):
    """Raised for a frame that cannot be read; `reason` is `http` (a browser's request), `json` (no JSON object) or
    `large` (over the limit).
    """

    def __init__(self, reason: str) -> None:
        super().__init__(REASONS[reason])
        self.reason = reason


class Frames:
    """The frames (lines of JSON) of one connection, which this closes. Only one task may read at a time; any may
    write.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._kept = bytearray()
        self._searched = 0
        self._writing = asyncio.Lock()

    async def read(self, limit: int = MAX_FRAME) -> dict[str, Any] | None:
        """Wait for the next frame and return it; None at the end. BadFrame for anything else and for more than `limit`
        bytes, OSError if the connection breaks.
        """
        while (end := self._kept.find(b"\n", self._searched)) < 0:
            # At its first bytes: a browser that waits for an answer sends no more.
            if _HTTP.match(self._kept):
                raise BadFrame("http")
            if len(self._kept) > limit:
                raise BadFrame("large")
            # What has been searched for the end is not searched again: a frame of 4 MiB comes in many pieces.
            self._searched = len(self._kept)
            data = await self._reader.read(_CHUNK)
            if not data:
                return None
            self._kept += data
        line = bytes(self._kept[:end])
        del self._kept[: end + 1]
        self._searched = 0
        if len(line) > limit:
            raise BadFrame("large")
        return decode_frame(line)

    async def write(self, frame: dict[str, Any]) -> None:
        """Send a frame; a lock keeps frames of several tasks apart. OSError if the other side is gone, or takes nothing
        for 10 s; the connection is aborted then.
        """
        async with self._writing:
            if self._writer.is_closing():
                raise ConnectionResetError("the connection is closed")
            self._writer.write(encode_frame(frame))
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    await self._writer.drain()
            except TimeoutError:
                self._writer.transport.abort()
                raise ConnectionResetError("the other side does not read") from None

    async def end(self, kind: str, reason: str) -> None:
        """Send the last frame, with the key `kind` (`refused` or `closed`) and the reason, a key of `REASONS`, and
        close. Waits at most 10 s; never raises OSError.
        """
        with suppress(OSError):
            await self.write({kind: {"reason": reason, "message": REASONS[reason]}})
        self.close()

    def close(self) -> None:
        """Begin to close the connection; what is written is still sent, see `closed`."""
        self._writer.close()

    async def closed(self) -> None:
        """Wait until the connection is closed, without a time limit; never raises OSError."""
        with suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """Close the connection immediately; what is not sent is lost. Twice does no harm."""
        self._writer.transport.abort()


def encode_frame(frame: dict[str, Any]) -> bytes:
    """Return a frame as one line of JSON in ASCII, with LF at its end. The length is not checked."""
    return json.dumps(frame, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def decode_frame(line: bytes) -> dict[str, Any]:
    """Return the frame in a line, with or without its line end. BadFrame with the reason `json` if it is no JSON
    object, `http` for a request of HTTP.
    """
    if _HTTP.match(line):
        raise BadFrame("http")
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError):
        raise BadFrame("json") from None
    if not isinstance(frame, dict):
        raise BadFrame("json")
    return frame


def _announcement(place: Path, values: Mapping[str, Any]) -> Announcement | None:
    folders, editor, started = values.get("folders"), values.get("editor"), values.get("started")
    if not isinstance(folders, list) or not all(isinstance(folder, str) for folder in folders):
        return None
    began = float(started) if isinstance(started, int | float) else 0.0
    return Announcement(place, tuple(folders), editor if isinstance(editor, str) else "", began)


def _read(path: Path) -> dict[str, Any] | None:
    """Return the values in a small file of this user; None for anything else."""
    try:
        descriptor = open_reading(path)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(descriptor)
        if not belongs_to_us(status) or status.st_size > MAX_FILE:
            return None
        return json_object(os.read(descriptor, MAX_FILE + 1))
    except OSError:
        return None
    finally:
        os.close(descriptor)
