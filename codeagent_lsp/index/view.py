"""The index with unsaved texts over it: what the editor shows counts, not what the disk has.

Every method answers as the store's does. A view is a value of one moment; take a new one for a new question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from codeagent_lsp.index.base import FileTags, SymbolInfo
from codeagent_lsp.index.packing import Names
from codeagent_lsp.index.store import Reader

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Unsaved:
    """An unsaved text that has been looked into."""

    digest: bytes
    tags: FileTags
    text: str

    @property
    def names(self) -> Names:
        """What it defines and uses."""
        used: dict[str, int] = {}
        for reference in self.tags.references:
            used[reference.name] = used.get(reference.name, 0) + 1
        return Names(tuple(dict.fromkeys(symbol.name for symbol in self.tags.symbols)), used)


@dataclass(frozen=True, slots=True)
class View:
    """`version` differs whenever `unsaved` does."""

    store: Reader
    unsaved: Mapping[str, Unsaved]
    version: int

    def files(self) -> dict[str, bytes]:
        """The path of every file and the digest of its text."""
        return self.store.files() | {path: each.digest for path, each in self.unsaved.items()}

    def tags(self, path: str) -> FileTags | None:
        """The tags of a file, None if it is not indexed."""
        over = self.unsaved.get(path)
        return over.tags if over else self.store.tags(path)

    def all_tags(self) -> Iterator[tuple[str, FileTags]]:
        """Every file with its tags, by path."""
        return self._over(self.store.all_tags(), {path: each.tags for path, each in self.unsaved.items()})

    def definitions(self) -> Iterator[tuple[str, tuple[SymbolInfo, ...]]]:
        """Every file with what it defines, by path."""
        return self._over(self.store.definitions(), {path: each.tags.symbols for path, each in self.unsaved.items()})

    def names(self) -> Iterator[tuple[str, Names]]:
        """Every file with the names it defines and uses, by path."""
        return self._over(self.store.names(), {path: each.names for path, each in self.unsaved.items()})

    def defining(self, name: str) -> tuple[str, ...]:
        """The files with a definition called `name`, by path."""
        return self._with(self.store.defining(name), lambda each: name in each.names.defined)

    def using(self, name: str) -> tuple[str, ...]:
        """The files with a reference to `name`, by path."""
        return self._with(self.store.using(name), lambda each: name in each.names.used)

    def generation(self) -> int:
        """A number that changes whenever anything has changed."""
        return self.store.generation() + (self.version << 64)

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """As `Store.query`: of what is saved only."""
        return self.store.query(sql, values)

    def _with(self, found: Iterable[str], fits: Callable[[Unsaved], bool]) -> tuple[str, ...]:
        saved = {path for path in found if path not in self.unsaved}
        return tuple(sorted(saved.union(path for path, each in self.unsaved.items() if fits(each))))

    def _over(self, saved: Iterable[tuple[str, _T]], over: Mapping[str, _T]) -> Iterator[tuple[str, _T]]:
        waiting = sorted(over.items(), reverse=True)
        for path, each in saved:
            while waiting and waiting[-1][0] < path:
                yield waiting.pop()
            if path not in over:
                yield path, each
        yield from reversed(waiting)
