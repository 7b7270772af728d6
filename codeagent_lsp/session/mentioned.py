"""Adds what the user's words point at to a request: lines, symbols, files, the diff, diagnostics, output, pictures.

It is the text as it is when the run begins: unsaved text over the disk. What cannot be found or shown is told, and the
words stay as they are. Not here: the spelling (`request.py`), files that are named without a sign
(`agent/context/gather.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePath
from unicodedata import normalize

from codeagent_lsp import events
from codeagent_lsp.agent.context.gather import BEGINNING, MOST_FILES, named_files, with_heading
from codeagent_lsp.agent.context.history import WHOLE
from codeagent_lsp.agent.limits import window_of
from codeagent_lsp.agent.prompt import shorten
from codeagent_lsp.errors import AgentError, UsageError
from codeagent_lsp.llm.model import Model
from codeagent_lsp.messages import MOST_IMAGES, Image
from codeagent_lsp.session.request import (
    MOST_MENTIONS,
    REWRITES,
    Mention,
    MentionKind,
    RunRequest,
    mentions_in,
    shorter_readings,
)
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.tools.code.source import source_of
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.diagnostics.difference import Diagnostics, show, sort_diagnostics
from codeagent_lsp.tools.files.find_tools import may_show
from codeagent_lsp.tools.files.read_tools import PICTURES, picture, render
from codeagent_lsp.tools.git.git_tools import GitDiff, GitDiffParameters
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.position import split_lines

_BARE_WORD = frozenset(("", "."))


@dataclass(frozen=True, slots=True)
class _Pointed:
    """A file of the workspace, or a part of it: 1-based lines, or a name in it."""

    path: str
    mention: Mention


async def resolve_mentions(parts: RunParts, request: RunRequest, model: Model) -> RunRequest:
    """Return the request with the texts and pictures that its words mention, as much as fits into the model's window.
    What is not found or cut is shown to the user as a status line; the request is returned unchanged without mentions.
    """
    own = mentions_in(request.arguments)  # also where the command's text puts them as code
    # One more than are used, so that it can be told that there were too many.
    mentions = tuple(dict.fromkeys((*mentions_in(request.task, MOST_MENTIONS + 1), *own)))
    if not mentions:
        return request
    await parts.toolbox.open()
    # A quick action sends code alone: half of the window is for the selection and its answer, and no pictures.
    rewrites = request.kind in REWRITES and request.target is not None
    resolver = _Resolver(parts, request, parts.toolbox.context(), pictures=not rewrites)
    return await resolver.resolved(mentions, window_of(model.info) // (2 if rewrites else 1))


class _Resolver:
    """Finds what mentions stand for in one run."""

    def __init__(self, parts: RunParts, request: RunRequest, context: ToolContext, *, pictures: bool) -> None:
        self._parts = parts
        self._request = request
        self._context = context
        self._view = context.view
        self._most_images = MOST_IMAGES if pictures else 0
        self._special: dict[MentionKind, Callable[[], Awaitable[str]]] = {
            "diff": self._diff,
            "diagnostics": self._diagnostics,
            "terminal-output": self._output,
        }

    async def resolved(self, mentions: tuple[Mention, ...], room: int) -> RunRequest:
        """Return the request with the texts, together at most about `room` characters, and the pictures."""
        request = self._request
        files = await asyncio.to_thread(_files, self._view)
        known = frozenset(named_files(request.task, files))
        suffixes = frozenset(PurePath(path).suffix for path in files)
        for given in mentions[:MOST_MENTIONS]:
            mention = await asyncio.to_thread(_meant, self._view, given, files)
            path = self._find_file(mention, files, suffixes) if mention.kind == "file" else None
            if path is not None and PurePath(path).suffix.lower() in PICTURES:
                request = await self._with_picture(request, path, mention)
                continue
            text = await self._of(path, mention)
            if text and (fitted := self._fit(mention, text, room)):
                room -= len(fitted)
                # A task that names the file in plain words too would show it twice.
                if path in known and mention.lines is None and not mention.symbol:
                    request = replace(request, files=(*request.files, (path, fitted)))
                else:
                    request = replace(request, given=(*request.given, fitted))
        for mention in mentions[MOST_MENTIONS:]:
            self._tell("mentions.too_many", mention, most=MOST_MENTIONS)
        return request

    async def _of(self, path: str | None, mention: Mention) -> str:
        """Return the text of a mention, '' if there is none."""
        if mention.kind != "file":
            return await self._of_kind(mention)
        return "" if path is None else await self._text(path, mention)

    async def _with_picture(self, request: RunRequest, path: str, mention: Mention) -> RunRequest:
        """Return the request with a picture, or as it is where it has as many as are used; this is told."""
        if len(request.images) >= self._most_images:
            self._tell(
                "mentions.many_pictures" if self._most_images else "mentions.no_picture", mention, most=MOST_IMAGES
            )
            return request
        return replace(request, images=(*request.images, await asyncio.to_thread(_picture, self._view, path)))

    def _fit(self, mention: Mention, text: str, room: int) -> str:
        """Return what of a text fits into `room` characters; less than all is told."""
        if len(text) <= room:
            return text
        self._tell("mentions.shortened" if room > 0 else "mentions.no_room", mention)
        # A heading that says "whole" would have the model take the cut text for all of the file.
        return shorten(text.replace(WHOLE, BEGINNING, 1), room) if room > 0 else ""

    def _find_file(self, mention: Mention, files: list[str], suffixes: frozenset[str]) -> str | None:
        """Return the absolute path of the file that is meant, which may be read; None, told where it matters: a word
        with a suffix that no file has is a decorator.
        """
        path = _locate(self._view, mention.path, files)
        if path is None:
            if _fitting(mention.path, files):
                self._tell("mentions.several", mention)
            elif "/" in mention.path or PurePath(mention.path).suffix in suffixes - _BARE_WORD:
                self._tell("mentions.not_found", mention)
            return None
        if not may_show(self._context, path, None):
            self._tell("mentions.secret", mention)
            return None
        return path

    async def _text(self, path: str, mention: Mention) -> str:
        """Return the text of a place, '' if there is none, which is told with the reason."""
        try:
            for one in (mention, *(each for each in shorter_readings(mention) if each.path == mention.path)):
                if text := await asyncio.to_thread(_render_place, self._view, _Pointed(path, one)):
                    return text
        except AgentError as error:
            self._tell("mentions.unreadable", mention, reason=str(error))
            return ""
        self._tell("mentions.not_found", mention)
        return ""

    async def _of_kind(self, mention: Mention) -> str:
        """Return the text of a special mention; one that is empty is told. The selection comes with the task itself."""
        if mention.kind == "selection":
            text = "selected" if self._request.target is not None else ""
        else:
            text = await self._special[mention.kind]()
        if not text:
            self._tell("mentions.empty", mention)
        return "" if mention.kind == "selection" else text

    async def _diff(self) -> str:
        try:
            output = await GitDiff().run(GitDiffParameters(path=None, staged=False), self._context)
        except AgentError:
            return ""
        return f"What differs from the last commit (@diff):\n{output.text}" if output.data else ""

    async def _diagnostics(self) -> str:
        port = self._context.get(Diagnostics)
        if port is None:
            return ""
        found = [item for path in sorted(self._view.over_disk()) for item in await port.of(path) or ()]
        shown = show(
            sort_diagnostics(item for item in found if may_show(self._context, item.path, None)),
            self._view.roots.relative,
        )
        return f"What the editor reports (@diagnostics):\n{shown}" if shown else ""

    async def _output(self) -> str:
        from codeagent_lsp.tools.catalogue import result_of  # late: it loads all tools

        said = (each for each in reversed(self._parts.session.context.conversation) if each.role == "tool")
        last = next((each.content for each in said if result_of(each.name or "") == "printed"), "")
        return f"The output of the last command (@terminal-output):\n{last}" if last else ""

    def _tell(self, key: str, mention: Mention, **values: object) -> None:
        words = self._parts.output.text(key, name=mention.text, **values)
        self._parts.output.emit(events.StatusChanged(message=words))


def _meant(view: FileView, mention: Mention, files: list[str]) -> Mention:
    """Return the mention, or what is left of it where the words of a language without blanks follow it."""
    if mention.kind == "file" and _locate(view, mention.path, files) is None:
        for shorter in shorter_readings(mention):
            if shorter.kind != "file" or _locate(view, shorter.path, files) is not None:
                return shorter
    return mention


def _files(view: FileView) -> list[str]:
    return [path for folder in view.roots.folders for path in islice(view.walk(folder), MOST_FILES)]


def _locate(view: FileView, name: str, files: list[str]) -> str | None:
    """Return the path of a file or folder: by its path in the workspace, or by the end of its path if only one fits."""
    try:
        # macOS stores names decomposed (NFD), keyboards give them composed (NFC).
        for written in dict.fromkeys((name, normalize("NFC", name), normalize("NFD", name))):
            path = view.roots.resolve(written)
            if view.exists(path) or view.roots.kind(path) in ("file", "folder"):
                return path
    except AgentError:
        return None
    fitting = _fitting(name, files)
    return fitting[0] if len(fitting) == 1 else None


def _fitting(name: str, files: list[str]) -> list[str]:
    tail = PurePath(normalize("NFC", name)).parts
    return [path for path in files if tail and PurePath(normalize("NFC", path)).parts[-len(tail) :] == tail]


def _render_place(view: FileView, place: _Pointed) -> str:
    """Return the text of a place with its heading; '' if there is none. AgentError if it cannot be read."""
    name, mention = view.roots.relative(place.path), place.mention
    if view.roots.kind(place.path) == "folder":
        listing = view.list_dir(place.path, 1)
        return f"In {name}:\n" + "\n".join(view.roots.relative(path) for path, _ in listing.entries)
    file = view.read(place.path)
    if mention.symbol:
        spans = _spans(name, file.text, mention.symbol)
        return "\n\n".join(f"{mention.symbol} in {name}:\n{render(file, first, last)}" for first, last in spans)
    if mention.lines is None:
        return with_heading(name, file)
    first, last = mention.lines
    if first > len(split_lines(file.text)):
        return ""
    return f"{name}, lines {first}-{last}, as they are now:\n{render(file, first, last)}"


def _spans(name: str, text: str, symbol: str) -> list[tuple[int, int]]:
    """Return the first and last lines of the definitions with this name, plain or dotted, 1-based."""
    source = source_of(name, text)
    if source is None:
        return []
    # Rust, C++ and Ruby write `Type::name`, JavaDoc `Type#name`.
    wanted = symbol.replace("::", ".").replace("#", ".")
    return [
        (source.line(each.outer.start_byte), source.line(source.trimmed_blanks(each.outer.end_byte)))
        for each in source.definitions
        if wanted in (each.symbol.name, each.qualified) or each.qualified.endswith(f".{wanted}")
    ][:3]


def _picture(view: FileView, path: str) -> Image:
    """Return a picture. UsageError if it is none, too large or cannot be read."""
    try:
        return picture(view, path)[0]
    except AgentError as error:
        raise UsageError("mentions.picture", name=view.roots.relative(path), reason=str(error)) from error
