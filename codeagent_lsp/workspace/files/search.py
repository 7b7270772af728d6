"""Search for lines by pattern and for files by name, in the workspace as a run sees it.

Python's `re` decides what matches, in a child process that a time limit can kill; ripgrep, where installed, only
preselects files on disk, so the result is the same without it. Not here: semantic search (`index/`). No shell is
involved and nothing is written.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import ErrorCode, FileRefused, PathRefused, ToolFailed, ToolRetry
from codeagent_lsp.system import OWN_GROUP, end_tree
from codeagent_lsp.workspace.files import search_child
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.globs import Glob, compile_glob
from codeagent_lsp.workspace.files.paths import relative_name, within
from codeagent_lsp.workspace.process_group import reap

MAX_LINE = 500
TIME_LIMIT = 20.0

_BATCH_CHARS = 256 * 1024
_PIPE_LIMIT = 64 * 1024 * 1024
_MAX_PATTERN = 2000
_HOW = "Patterns are Python regular expressions and match within one line"

# Where the two engines read the same pattern differently, ripgrep is not used.
_PYTHON_ONLY = re.compile(r"\[[^\]]*\[|&&|~~|\[[^\]]*--|\\[<>AZ0-9]|\\b\{|\(\?(?!:)|\{,|[*+?}]\+")
_PLAIN = re.compile(r"[\x20-\x7e]*")
_META = re.compile(r"[.\\\[^$*+?{}()|]")
# Bytes that are not UTF-8: such a file is read as Latin-1 here, but not by ripgrep.
_NOT_UTF8 = (
    r"(?-u:[\xC0\xC1\xF5-\xFF]|(?:^|[\x00-\x7F])[\x80-\xBF]|[\xC2-\xF4](?:[^\x80-\xBF]|$)"
    r"|[\xE0-\xF4][\x80-\xBF](?:[^\x80-\xBF]|$)|[\xF0-\xF4][\x80-\xBF]{2}(?:[^\x80-\xBF]|$)"
    r"|[\xC2-\xDF][\x80-\xBF]{2}|[\xE0-\xEF][\x80-\xBF]{3}|[\xF0-\xF4][\x80-\xBF]{4}"
    r"|\xE0[\x80-\x9F]|\xED[\xA0-\xBF]|\xF0[\x80-\x8F]|\xF4[\x90-\xBF])"
)
# A lone CR ends a line here; and what the two engines disagree about: word characters, blanks, folded case.
_LONE_CR = r"\r[^\n]"
_DISPUTED = (
    r"[\p{No}\p{M}\x{203F}\x{2040}\x{2054}\x{FE33}\x{FE34}\x{FE4D}-\x{FE4F}\x{FF3F}\x{200C}\x{200D}"
    r"\x{24B6}-\x{24E9}\x{1F130}-\x{1F189}\x1c-\x1f]"
)
_CRLF = r"\r$"
_DISPUTED_CASE = r"[\x{130}\x{131}]"


@dataclass(frozen=True, slots=True)
class Match:
    """One matching line in the file at the absolute `path`, with its 1-based number and the lines around it, without
    line ends. Lines of more than 500 characters are cut, the matching one around the match, with `…` at each cut.
    """

    path: str
    line: int
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrepResult:
    """Matching lines in the order of the tree; `truncated` if there were more."""

    matches: tuple[Match, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class GlobResult:
    """Absolute paths, those open or staged first, then the newest on disk; `truncated` if there were more."""

    paths: tuple[str, ...]
    truncated: bool


async def grep(
    view: FileView,
    pattern: str,
    *,
    path: str | None = None,
    glob: str | None = None,
    case_insensitive: bool = False,
    multiline: bool = False,
    context: int = 0,
    max_results: int = 200,
    time_limit: float = TIME_LIMIT,
    ripgrep: str | None = "rg",
) -> GrepResult:
    """Return the lines that match `pattern` in the texts that `view.read` gives below `path`, an absolute path (None:
    all folders); none for one that does not exist. Only files whose path relative to it matches `glob` are searched;
    binary, too large and ignored files are skipped.

    With `multiline`, a match may span lines, of which all are returned. `context` is the number of lines before and
    after each match, `max_results` the most lines in all, `time_limit` is in seconds; `ripgrep` is the program's name
    or path, None to search without it. Raises ToolRetry for a bad pattern or glob, and ToolFailed on timeout.
    """
    compiled = _compile(pattern, (re.IGNORECASE if case_insensitive else 0) | (re.MULTILINE if multiline else 0))
    wanted = compile_glob(glob) if glob else None
    async with _limit_time(time_limit):
        # ripgrep matches within lines, and it lists matching files only, while all decide whether a glob is a very
        # name.
        every = multiline or (wanted is not None and wanted.as_written is not None)
        listing = await _candidates(view, compiled, path, None if every else ripgrep)
        # ripgrep only narrows down which files are opened. What matches is decided by Python's own engine on the text
        # as the editor has it, so that both ways find the same.
        files = iter(await asyncio.to_thread(_fitting, view, listing, wanted, path))
        return await _grep_files(view, compiled, files, context, max_results, multiline=multiline)


async def glob(view: FileView, pattern: str, path: str | None = None, *, limit: int = 200) -> GlobResult:
    """Return the files below `path`, an absolute path (None: all folders), whose path relative to it matches `pattern`,
    at most `limit`; ignored files are left out. The disk is read in threads. ToolRetry for a bad pattern, ToolFailed
    after 20 s.
    """
    wanted = compile_glob(pattern)
    async with _limit_time(TIME_LIMIT):
        every = await _in_thread(lambda: _walk(view, path))
        found = await asyncio.to_thread(_fitting, view, every, wanted, path)
        newest = await asyncio.to_thread(_newest_first, view, found)
    return GlobResult(tuple(newest[:limit]), len(newest) > limit)


@asynccontextmanager
async def _limit_time(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise ToolFailed(
            f"The search took longer than {seconds:g} s. Give a path or a glob, or a simpler pattern.",
            ErrorCode.TIMEOUT,
        ) from None


def _compile(pattern: str, flags: int) -> re.Pattern[str]:
    if len(pattern) > _MAX_PATTERN or "\n" in pattern:
        raise ToolRetry(f"The pattern is too long or has a line break. {_HOW}.")
    try:
        return re.compile(pattern, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise ToolRetry(
            f"The pattern is not valid: {error}. {_HOW}. To find the text as it is, use {re.escape(pattern)}"
        ) from None


async def _candidates(view: FileView, compiled: re.Pattern[str], path: str | None, ripgrep: str | None) -> list[str]:
    """Return the files to open, in the order of the tree."""
    program = shutil.which(ripgrep) if ripgrep and _is_shared(compiled) else None
    if program is not None and (listed := await _ripgrep(view, program, compiled, path)) is not None:
        return await asyncio.to_thread(_combine, view, listed, path)
    return await _in_thread(lambda: _walk(view, path))


def _is_shared(compiled: re.Pattern[str]) -> bool:
    """Return whether ripgrep can be used: it reads the pattern as Python does, and it can be passed as an argument."""
    pattern = compiled.pattern
    if compiled.flags & re.IGNORECASE and any(not c.isascii() and c.lower() != c.upper() for c in pattern):
        return False  # letters beyond ASCII are folded differently
    return not _PYTHON_ONLY.search(pattern) and pattern.isprintable()


def _combine(view: FileView, listed: set[str], path: str | None) -> list[str]:
    """Return the files that ripgrep listed and that are not ignored, and the open and staged files."""
    over = view.over_disk()
    # A file that is named itself is searched though it is ignored.
    disk = (file for file in listed - over if file == path or not view.is_ignored(file))
    return _in_order(view, disk, _over_disk_below(view, path))


def _over_disk_below(view: FileView, path: str | None) -> Iterator[str]:
    """Yield the open and staged files that a walk from `path` would reach."""
    starts = [path] if path else list(view.roots.folders)
    for file in view.over_disk():
        root = view.roots.root_of(file)
        start = next((start for start in starts if within(file, (start,))), None)
        if root is None or start is None or not view.exists(file):
            continue
        if file == start or view.is_ignored(start, is_dir=True) or not view.is_ignored(file):
            yield file


def _in_order(view: FileView, disk: Iterable[str], memory: Iterable[str]) -> list[str]:
    def place(path: str) -> tuple[int, list[bytes]]:
        root = view.roots.root_of(path)
        rank = view.roots.folders.index(root) if root else -1
        return rank, os.fsencode(path).split(b"/")

    return sorted({*disk, *memory}, key=place)


def _walk(view: FileView, path: str | None) -> Iterator[str]:
    return chain.from_iterable(view.walk(start) for start in ([path] if path else view.roots.folders))


def _fitting(view: FileView, files: Sequence[str], wanted: Glob | None, path: str | None) -> list[str]:
    """Return the files that a glob means: those of its very name, where there are some."""
    if wanted is None or wanted.as_written is None:
        return [file for file in files if _fits(view, file, wanted, path)]
    written = [file for file in files if _fits(view, file, wanted.as_written, path)]
    return written or [file for file in files if _fits(view, file, wanted, path)]


def _fits(view: FileView, file: str, wanted: Glob | None, path: str | None) -> bool:
    if wanted is None:
        return True
    start = path or view.roots.root_of(file) or os.sep
    return wanted.matches(Path(file).name if file == start else relative_name(file, start))


def _newest_first(view: FileView, files: Iterable[str]) -> list[str]:
    over = view.over_disk()

    def age(path: str) -> tuple[bool, int]:
        info = view.roots.stat(path)
        return path not in over, -(info.st_mtime_ns if info else 0)

    return sorted(files, key=age)


async def _grep_files(
    view: FileView, compiled: re.Pattern[str], files: Iterator[str], context: int, max_results: int, *, multiline: bool
) -> GrepResult:
    matches: list[Match] = []
    # One more than is wanted, by which it is seen that there are more.
    async with _matcher(compiled, max_results + 1, multiline=multiline) as find:
        while batch := await asyncio.to_thread(_read_batch, view, files):
            for (path, text), found in zip(batch, await find([text for _, text in batch]), strict=True):
                matches += _matches(path, text, found, context)
            if len(matches) > max_results:
                return GrepResult(tuple(matches[:max_results]), truncated=True)
    return GrepResult(tuple(matches), truncated=False)


def _read_batch(view: FileView, files: Iterator[str]) -> list[tuple[str, str]]:
    """Return the next paths and texts, enough to be worth a round trip to the child; empty at the end."""
    batch: list[tuple[str, str]] = []
    size = 0
    for path in files:
        try:
            text = view.read(path).text
        except (FileRefused, PathRefused):  # binary, too large, gone meanwhile
            continue
        batch.append((path, text))
        size += len(text) + 100
        if size > _BATCH_CHARS:
            break
    return batch


def _matches(path: str, text: str, found: list[tuple[int, int]], context: int) -> Iterator[Match]:
    lines = search_child.lines_of(text) if found else []
    for number, column in found:
        before = tuple(_cut(line) for line in lines[max(0, number - context) : number])
        after = tuple(_cut(line) for line in lines[number + 1 : number + 1 + context])
        yield Match(path, number + 1, _cut(lines[number], column), before, after)


def _cut(line: str, column: int = 0) -> str:
    if len(line) <= MAX_LINE:
        return line
    start = max(0, min(column - MAX_LINE // 4, len(line) - MAX_LINE))
    end = start + MAX_LINE
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


async def _ripgrep(view: FileView, program: str, compiled: re.Pattern[str], path: str | None) -> set[str] | None:
    """Return a superset of the files on disk that match; None if ripgrep cannot tell."""
    starts = [path] if path else list(view.roots.folders)
    if not starts or any(view.roots.kind(start) not in ("file", "folder") for start in starts):
        return None
    # Its own rules would leave out what was asked for by name.
    if path is not None and (view.is_ignored(path, is_dir=True) or view.is_ignored(path)):
        return None
    async with _process(program, *_ripgrep_options(compiled, view.max_bytes), "--", *starts) as process:
        output, _ = await process.communicate()
    if process.returncode not in (0, 1):  # 2: a pattern it does not know, or something unreadable
        return None
    return {os.fsdecode(name) for name in output.split(b"\0") if name}


def _ripgrep_options(compiled: re.Pattern[str], max_bytes: int) -> list[str]:
    """Return options that only exclude files which our own rules exclude as well."""
    pattern = compiled.pattern
    options = ["--no-config", "--files-with-matches", "--null", "--hidden", "--no-messages"]
    options += ["--no-require-git", "--no-ignore-parent", "--no-ignore-dot", "--no-ignore-global"]
    options += ["--no-ignore-exclude", f"--max-filesize={max_bytes}", "--glob=!.git", "--glob=!node_modules"]
    options += ["--ignore-case"] if compiled.flags & re.IGNORECASE else ["--case-sensitive"]
    # A plain ASCII text is found alike by both; for the rest, files on which they could differ are listed, too.
    if not _PLAIN.fullmatch(pattern) or _META.search(pattern):
        options += [f"--regexp={_NOT_UTF8}", f"--regexp={_LONE_CR}", f"--regexp={_DISPUTED}"]
    options += [f"--regexp={_CRLF}"] if "$" in pattern else []
    options += [f"--regexp={_DISPUTED_CASE}"] if compiled.flags & re.IGNORECASE else []
    return [*options, f"--regexp={pattern}"]


@asynccontextmanager
async def _matcher(
    compiled: re.Pattern[str], limit: int, *, multiline: bool
) -> AsyncIterator[Callable[[list[str]], Any]]:
    """Yield a function that finds the matching lines of texts, in a child process that is killed with this context."""
    script = search_child.__file__
    async with _process(sys.executable, "-I", "-S", "-X", "utf8", script, stdin=True) as process:
        assert process.stdin is not None and process.stdout is not None
        sink, source = process.stdin, process.stdout
        sink.write(_json_line([compiled.pattern, int(compiled.flags), limit, multiline]))

        async def find(texts: list[str]) -> list[list[tuple[int, int]]]:
            try:
                sink.write(_json_line(texts))
                await sink.drain()
                answer: list[list[tuple[int, int]]] = json.loads(await source.readline())
            except (ConnectionError, ValueError):
                raise ToolFailed("The search process ended unexpectedly. Try a simpler pattern.") from None
            return answer

        yield find


def _json_line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


@asynccontextmanager
async def _process(*command: str, stdin: bool = False) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a child in its own process group and kill the group when the context ends."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        **OWN_GROUP,
        limit=_PIPE_LIMIT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            end_tree(process.pid)
        # Waited for even when cancelled, or it would stay as a zombie.
        await asyncio.shield(reap(process))


async def _in_thread(make: Callable[[], Iterator[str]]) -> list[str]:
    """Collect the items of an iterator in a thread, which stops soon after a cancel."""
    stop = threading.Event()

    def collect() -> list[str]:
        items: list[str] = []
        for item in make():
            if stop.is_set():
                break
            items.append(item)
        return items

    try:
        return await asyncio.to_thread(collect)
    finally:
        stop.set()
