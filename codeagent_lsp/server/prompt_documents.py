"""Prompt documents: Markdown files in the state folder in which a user of any editor writes a task, and the completion
of what it points at.

Not here: the commands about them (`commands/run_commands.py`), what mentions stand for in a run
(`session/mentioned.py`).
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lsprotocol import types

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import AgentError, UsageError, UserError
from codeagent_lsp.server.actions import Waiting
from codeagent_lsp.session.request import SPECIAL, write_mention
from codeagent_lsp.state import make_private
from codeagent_lsp.texts import LANGUAGES, text
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:
    from codeagent_lsp.agent.custom_commands import CommandMenu
    from codeagent_lsp.index.port import Indexing
    from codeagent_lsp.index.view import View
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.server.documents import Documents
    from codeagent_lsp.server.front import Client
    from codeagent_lsp.workspace.files.file_view import FileView

MOST_OFFERED = 50

# At the end of what is typed: `@src/a.py`, `@"a b.py"`, `@a.py#name`, `#name`, `/command`; not in `me@host` or `a/b`.
_ASKED = re.compile(
    r"""(?<![A-Za-z0-9_@/.`\\])(?:
        @(?:"(?P<quoted>[^"\n]*)"?|(?P<path>[^\s"@#]*))(?P<inside>\#(?P<name>[\w.:~$-]*))?
      | (?:^|(?<=[\s(\[]))\#(?P<symbol>[\w.:~$-]*)
      | (?P<command>(?<![^\s])/[\w.:-]*)
    )$""",
    re.VERBOSE,
)
_KINDS = {
    "class": types.CompletionItemKind.Class,
    "method": types.CompletionItemKind.Method,
    "function": types.CompletionItemKind.Function,
    "variable": types.CompletionItemKind.Variable,
    "constant": types.CompletionItemKind.Constant,
}
# In all languages: a document may be older than the setting.
_HEADS = "|".join(re.escape(text("prompt.head", language)) for language in LANGUAGES)
_HEAD = re.compile(rf"\s*<!-- (?:{_HEADS})(?: -->|\Z)")
FRESH_SECONDS = 5.0
FIRST_SECONDS = 0.03
INDEX_SECONDS = 2.0
MOST_FILES = 50_000
MOST_SYMBOLS = 200_000
INNER = ("documents", "prompt")
MOST_KEPT = 50
KEPT_SECONDS = 30 * 24 * 3600


class Prompting:
    """The prompt documents of one server with their completion; `menu` has the users' own commands. `close` when the
    server ends.
    """

    def __init__(self, backend: Backend, menu: CommandMenu) -> None:
        front = backend.front
        self.documents = PromptDocuments(PromptFiles(front.client, lambda: backend.state), backend.documents)
        self.names = KnownNames(backend.index, backend.views.plain)
        self.completion = PromptCompletion(self.documents, backend.documents, self.names, menu.offered, front.language)

    def close(self) -> None:
        """Cancel reading names in the background."""
        self.names.close()


# Completion in prompt documents: `@` for files and what the editor knows, `#` for definitions, `/` for commands.


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be completed in a prompt: the kind of name before the cursor, the part of it that is typed, and its
    first column; for `symbol` and `inside`, `path` is the file before it.
    """

    kind: Literal["file", "inside", "symbol", "command"]
    typed: str
    start: int
    path: str = ""


@dataclass(frozen=True, slots=True)
class Offered:
    """One entry of a completion: the label shown, the words inserted, its kind, and a detail."""

    label: str
    words: str
    kind: types.CompletionItemKind
    detail: str = ""


class PromptCompletion:
    """Completes in the prompt documents of one server. `commands` returns the users' own ones, with descriptions."""

    def __init__(
        self,
        prompts: PromptDocuments,
        documents: Documents,
        names: KnownNames,
        commands: Callable[[], tuple[tuple[str, str], ...]],
        language: Callable[[], str],
    ) -> None:
        self._prompts = prompts
        self._documents = documents
        self._names = names
        self._commands = commands
        self._language = language

    def warm(self) -> None:
        """Start to read the names in the background, as completion will be needed soon; returns at once."""
        self._names.warm()
        self._commands()

    async def complete(self, uri: str, line: int, character: int) -> types.CompletionList | None:
        """Return the entries for a position in a prompt document (`line` and `character` of LSP, from 0, in the
        client's encoding); None if there are none, and for all other documents.
        """
        document = self._documents.get(uri)
        if document is None or not self._prompts.is_prompt(uri):
            return None
        end = document.offset(line, character, self._documents.encoding)
        begin = document.text.rfind("\n", 0, end) + 1
        # A command counts only as the first word of the task.
        asked = asked_at(document.text[begin:end], first=not without_head(document.text[:begin]).strip())
        if asked is None:
            return None
        found = await self._find(asked)
        start = document.position(begin + asked.start, self._documents.encoding)
        span = types.Range(types.Position(start.line, start.character), types.Position(line, character))
        typed = document.text[begin + asked.start : end]
        # Incomplete, so that the client asks again at each letter: ours are more than it gets.
        return types.CompletionList(True, [_item(each, span, typed, rank) for rank, each in enumerate(found)])

    async def complete_text(self, before: str) -> list[dict[str, Any]]:
        """Return entries for the end of a task that is written elsewhere, with `label`, `words`, `detail` and `start`,
        the offset in `before`, in characters from 0, of what they replace; [] for none.
        """
        begin = before.rfind("\n") + 1
        asked = asked_at(before[begin:], first=not before[:begin].strip())
        if asked is None:
            return []
        return [
            {"label": each.label, "words": each.words, "detail": each.detail, "start": begin + asked.start}
            for each in await self._find(asked)
        ]

    async def _find(self, asked: Asked) -> list[Offered]:
        names = await self._names.now()
        if asked.kind == "command":  # they are read again in the background of this loop
            return list(islice(self._of_user(asked.typed), MOST_OFFERED))
        # A workspace may have very many names.
        return await asyncio.to_thread(lambda: list(islice(self._offer(asked, names), MOST_OFFERED)))

    def _of_user(self, typed: str) -> Iterator[Offered]:
        fitting = [known for known in self._commands() if typed in known[0]]
        for name, description in sorted(fitting, key=lambda known: not known[0].startswith(typed)):
            yield Offered(f"/{name}", f"/{name} ", types.CompletionItemKind.Keyword, description)

    def _offer(self, asked: Asked, names: Names) -> Iterator[Offered]:
        match asked.kind:
            case "file":
                for special in SPECIAL:
                    if special.startswith(asked.typed):
                        detail = text(f"prompt.{special.replace('-', '_')}", self._language())
                        yield Offered(f"@{special}", f"@{special}", types.CompletionItemKind.Keyword, detail)
                for path in best(names.files, asked.typed):
                    yield Offered(f"@{path}", write_mention(path), types.CompletionItemKind.File)
            case "inside":
                symbols = [symbol for symbol in names.symbols if _ends_with(symbol.path, asked.path)]
                yield from _definitions(symbols, asked.typed)
            case "symbol":
                yield from _definitions(names.symbols, asked.typed)


def asked_at(before: str, *, first: bool) -> Asked | None:
    """Return what is to be completed at the end of this part of a line, None for nothing; commands only in the `first`
    line of the task. Columns are characters from 0.
    """
    match = _ASKED.search(before)
    if match is None:
        return None
    if match["command"] is not None:
        alone = first and not before[: match.start()].strip()
        return Asked("command", match["command"][1:], match.start()) if alone else None
    if match["symbol"] is not None:
        return Asked("symbol", match["symbol"], match.start())
    path = match["quoted"] if match["quoted"] is not None else match["path"]
    if match["inside"] is not None:
        return Asked("inside", match["name"], match.start(), path)
    return Asked("file", path, match.start())


def best(paths: Iterable[str], typed: str) -> list[str]:
    """Return at most 50 paths that fit what is typed, whatever its case, the best first: the file's name begins so, the
    path does, the name contains it, the path does, its letters occur in this order.
    """
    wanted = typed.lower()
    # `abc` becomes `[^a]*+a[^b]*+b[^c]*+c`: possessive, so that a path that does not fit fails at once.
    in_order = re.compile("".join(f"[^{re.escape(letter)}]*+{re.escape(letter)}" for letter in wanted)).match
    fitting = ((_rank(low, wanted), len(path), path) for path in paths if in_order(low := path.lower()))
    return [path for _, _, path in nsmallest(MOST_OFFERED, fitting)]


def _rank(path: str, wanted: str) -> int:
    name = path[path.rfind("/") + 1 :]
    if name.startswith(wanted):
        return 0
    if path.startswith(wanted):
        return 1
    if wanted in name:
        return 2
    return 3 if wanted in path else 4


def _ends_with(path: str, typed: str) -> bool:
    return path == typed or path.endswith(f"/{typed}")


def _definitions(symbols: Iterable[Symbol], typed: str) -> Iterator[Offered]:
    """Yield the definitions that fit, best first: the last part of the name begins so, or any part contains it."""
    wanted = typed.lower()
    ranked = []
    for number, symbol in enumerate(symbols):
        name = symbol.name.lower()
        if wanted in name:
            last = name[name.rfind(".") + 1 :]
            ranked.append((not last.startswith(wanted), len(name), number, symbol))
    for *_, symbol in sorted(ranked)[:MOST_OFFERED]:
        kind = _KINDS.get(symbol.kind, types.CompletionItemKind.Reference)
        yield Offered(f"#{symbol.name}", f"{write_mention(symbol.path)}#{symbol.name}", kind, symbol.path)


def _item(offered: Offered, span: types.Range, typed: str, rank: int) -> types.CompletionItem:
    """Return the item; its filter begins with what is typed, as it was chosen by other rules than the client's."""
    return types.CompletionItem(
        label=offered.label,
        kind=offered.kind,
        detail=offered.detail or None,
        filter_text=f"{typed}{offered.label}",
        sort_text=f"{rank:04}",
        text_edit=types.TextEdit(span, offered.words),
    )


# The prompt documents: made and opened, recognised, and read as a task.


def without_head(words: str) -> str:
    """Return the text of a prompt document without the comment that it was created with; other comments are the
    user's.
    """
    return _HEAD.sub("", words, count=1)


class PromptDocuments:
    """The prompt documents of one workspace, also those of earlier servers, and which of this server's were not sent
    yet.
    """

    def __init__(self, files: PromptFiles, documents: Documents) -> None:
        self._files = files
        self._documents = documents
        self._unsent: list[str] = []

    async def open(self, words: str, language: str) -> str:
        """Write a new file in the workspace's state folder that begins with these words, open it in the client, and
        return its URI. UserError if it cannot be written.
        """
        name = f"{time.strftime('%Y-%m-%d-%H%M%S')}-{uuid.uuid4().hex[:4]}.md"
        uri = self._files.write(name, f"<!-- {text('prompt.head', language)} -->\n\n{words}")
        self._unsent.append(uri)
        await self._files.open(uri)
        return uri

    def is_prompt(self, uri: str) -> bool:
        """Return whether a document, by its URI, is a prompt document, also one of an earlier server."""
        return self._files.has(uri)

    def task(self, uri: str) -> str:
        """Return the words of the task in a prompt document, unsaved ones first: all but the head. UsageError if there
        are none, or for another document.
        """
        if not self.is_prompt(uri):
            raise UsageError("prompt.none")
        document = self._documents.get(uri)
        words = without_head(self._files.saved(uri) if document is None else document.text).strip()
        if not words:
            raise UsageError("prompt.empty")
        return words

    def sent(self, uri: str) -> None:
        """Note that the task of a document was sent, so that a closed one is no longer offered."""
        self._unsent = [other for other in self._unsent if other != uri]

    def waiting(self, language: str) -> tuple[Waiting, ...]:
        """Return the offers to send prompt documents, for code lenses and code actions. Each open one has its own; the
        newest one that is neither open nor sent is offered in every document.
        """
        opened = [document.uri for document in self._documents.all() if self.is_prompt(document.uri)]
        elsewhere = [uri for uri in self._unsent if self._documents.get(uri) is None][-1:]
        title, offer = text("prompt.title", language), text("prompt.send", language)
        places = [*((uri, uri) for uri in opened), *((uri, None) for uri in elsewhere)]
        return tuple(
            Waiting("prompt", title, place, ((offer, "codeagent.prompt.send", {"uri": uri}),), lens=place is not None)
            for uri, place in places
        )


# The names of the workspace's files and definitions, for completion: as they were a few seconds ago.


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition: its dotted name, its kind, and its file as the user reads it."""

    name: str
    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Names:
    """The names that can be completed: paths of files relative to the workspace, and definitions."""

    files: tuple[str, ...] = ()
    symbols: tuple[Symbol, ...] = field(default=(), repr=False)


class KnownNames:
    """The names of one workspace, read again in the background when they are some seconds old; only the first reading
    is waited for.
    """

    def __init__(self, index: Indexing, view: Callable[[], FileView]) -> None:
        self._index = index
        self._view = view
        self._names = Names()
        self._read_at = 0.0
        self._first = asyncio.Event()
        self._tasks = BackgroundTasks()

    def warm(self) -> None:
        """Begin to read the names again in the background, if that was more than 5 s ago and no reading goes on;
        returns at once.
        """
        if time.monotonic() - self._read_at > FRESH_SECONDS and not len(self._tasks):
            self._read_at = time.monotonic()
            self._tasks.start(self._refresh())

    async def now(self) -> Names:
        """Return the names as last read; before the first reading has ended, wait for it for at most 30 ms, and return
        an empty `Names` if it takes longer.
        """
        self.warm()
        if not self._first.is_set():
            try:
                async with asyncio.timeout(FIRST_SECONDS):
                    await self._first.wait()
            except TimeoutError:
                pass
        return self._names

    def close(self) -> None:
        """Cancel reading in the background."""
        self._tasks.cancel()

    async def _refresh(self) -> None:
        view = self._view()
        if not self._first.is_set():
            self._names = Names(await asyncio.to_thread(_walk_names, view))
            self._first.set()
        try:
            answers = await self._index.ready(INDEX_SECONDS)
        except AgentError:  # not built yet, or there is none
            self._names = Names(await asyncio.to_thread(_walk_names, view), self._names.symbols)
            return
        self._names = await asyncio.to_thread(lambda: _index_names(answers.view(view)))
        self._read_at = time.monotonic()


class PromptFiles:
    """The files of prompt documents of one workspace; `state` returns its state folder. Methods block, except
    `open`.
    """

    def __init__(self, client: Client, state: Callable[[], Path]) -> None:
        self._client = client
        self._state = state

    def write(self, name: str, content: str) -> str:
        """Write a new file, `name` without a folder, and return its URI; above 50 files, those not saved for 30 days
        are deleted. UserError if it cannot be written.
        """
        path = self._folder / name
        try:
            make_private(path.parent)
            path.write_text(content, "utf-8", "replace")
            self._forget_old()
        except OSError as error:
            raise UserError("prompt.unwritten", reason=error.strerror or str(error)) from error
        return uris.from_path(str(path))

    def _forget_old(self) -> None:
        saved = sorted((path.stat().st_mtime, path) for path in self._folder.glob("*.md"))
        for when, path in saved[:-MOST_KEPT]:
            if time.time() - when > KEPT_SECONDS:
                path.unlink(missing_ok=True)

    async def open(self, uri: str) -> None:
        """Open a file for editing; if the client cannot, show its path to the user."""
        if not await self._client.show(uri, take_focus=True):
            self._client.tell(text("document.at", self._client.language, place=uris.to_path(uri) or uri))

    def has(self, uri: str) -> bool:
        """Return whether a URI is that of a file in the folder of prompt documents."""
        # Real paths on both sides, as the state folder may be behind a link.
        path = uris.real_path(uri)
        return path is not None and path.endswith(".md") and Path(path).parent == self._folder.resolve()

    def saved(self, uri: str) -> str:
        """Return the text of a prompt document on disk, its head included; '' if it cannot be read."""
        try:
            return Path(uris.to_path(uri) or "").read_text("utf-8", "replace")
        except OSError:
            return ""

    @property
    def _folder(self) -> Path:
        return self._state().joinpath(*INNER)


def _walk_names(view: FileView) -> tuple[str, ...]:
    paths = (path for folder in view.roots.folders for path in view.walk(folder))
    return tuple(sorted(map(view.roots.relative, islice(paths, MOST_FILES))))


def _index_names(view: View) -> Names:
    symbols = (Symbol(symbol.qualified, symbol.kind, path) for path, found in view.definitions() for symbol in found)
    return Names(tuple(sorted(view.files()))[:MOST_FILES], tuple(islice(symbols, MOST_SYMBOLS)))
