"""Completion in prompt documents: `@` for files and what the editor knows, `#` for definitions, `/` for commands.

What is offered is from memory (`workspace_names.py`). Not here: what a mention stands for (`session/mentioned.py`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Literal

from lsprotocol import types

from codeagent_lsp.agent.context.mentions import SPECIAL, written
from codeagent_lsp.server.prompting.prompt_documents import without_head
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.server.documents import Documents
    from codeagent_lsp.server.prompting.prompt_documents import PromptDocuments
    from codeagent_lsp.server.prompting.workspace_names import KnownNames, Names, Symbol

MOST_OFFERED = 50

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


@dataclass(frozen=True, slots=True)
class Asked:
    """What stands before the cursor: the kind of name, what is typed of it, and where it begins in its line."""

    kind: Literal["file", "inside", "symbol", "command"]
    typed: str
    start: int
    path: str = ""


@dataclass(frozen=True, slots=True)
class Offered:
    """One name: what is shown, what it becomes, and what it is."""

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
        """Begin to read the names, as completion will be asked for."""
        self._names.warm()
        self._commands()

    async def complete(self, uri: str, line: int, character: int) -> types.CompletionList | None:
        """Return what can stand at a position; None where nothing can, and in all other documents."""
        document = self._documents.get(uri)
        if document is None or not self._prompts.is_prompt(uri):
            return None
        end = document.offset(line, character, self._documents.encoding)
        begin = document.text.rfind("\n", 0, end) + 1
        asked = asked_at(document.text[begin:end], first=not without_head(document.text[:begin]).strip())
        if asked is None:
            return None
        names = await self._names.now()
        if asked.kind == "command":  # they are read again in the background of this loop
            found = list(islice(self._of_user(asked.typed), MOST_OFFERED))
        else:  # a workspace may have very many names
            found = await asyncio.to_thread(lambda: list(islice(self._offered(asked, names), MOST_OFFERED)))
        start = document.position(begin + asked.start, self._documents.encoding)
        span = types.Range(types.Position(start.line, start.character), types.Position(line, character))
        typed = document.text[begin + asked.start : end]
        return types.CompletionList(True, [_item(each, span, typed, rank) for rank, each in enumerate(found)])

    def _of_user(self, typed: str) -> Iterator[Offered]:
        fitting = [known for known in self._commands() if typed in known[0]]
        for name, description in sorted(fitting, key=lambda known: not known[0].startswith(typed)):
            yield Offered(f"/{name}", f"/{name} ", types.CompletionItemKind.Keyword, description)

    def _offered(self, asked: Asked, names: Names) -> Iterator[Offered]:
        match asked.kind:
            case "file":
                for special in SPECIAL:
                    if special.startswith(asked.typed):
                        detail = text(f"prompt.{special.replace('-', '_')}", self._language())
                        yield Offered(f"@{special}", f"@{special}", types.CompletionItemKind.Keyword, detail)
                for path in best(names.files, asked.typed):
                    yield Offered(f"@{path}", written(path), types.CompletionItemKind.File)
            case "inside":
                symbols = [symbol for symbol in names.symbols if _ends_with(symbol.path, asked.path)]
                yield from _definitions(symbols, asked.typed)
            case "symbol":
                yield from _definitions(names.symbols, asked.typed)


def asked_at(before: str, *, first: bool) -> Asked | None:
    """Return what is asked for at the end of this part of a line; commands only in the `first` line of the task."""
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
    """Return the paths that fit what is typed, the best first: the file's name begins so, the path does, the name
    contains it, the path does, its letters occur in this order.
    """
    wanted = typed.lower()
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
        yield Offered(f"#{symbol.name}", f"{written(symbol.path)}#{symbol.name}", kind, symbol.path)


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
