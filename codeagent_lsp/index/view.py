"""The index overlaid with texts that are not on disk: open buffers and the staged texts of a run.

Every method answers as the store's does. A view is a snapshot; make a new one for a new query. Not here: which texts
these are (`answers.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from codeagent_lsp.index.symbols import FileTags, SymbolInfo

if TYPE_CHECKING:
    from codeagent_lsp.index.store import Reader

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Unsaved:
    """The text of one file that is not on disk, with its digest (16 bytes, see `digest_of` in `intake.py`) and tags."""

    digest: bytes
    tags: FileTags
    text: str

    @property
    def defined(self) -> tuple[str, ...]:
        """The names it defines (not dotted), each once, in its order."""
        return tuple(dict.fromkeys(symbol.name for symbol in self.tags.symbols))

    @property
    def used(self) -> Mapping[str, int]:
        """How often it uses each name, by the name (not dotted)."""
        return Counter(reference.name for reference in self.tags.references)


@dataclass(frozen=True, slots=True)
class View:
    """The index `store` with the `unsaved` texts over it, by index path. `gone` are files on disk that are deleted or
    moved away in the editor or run; `version` differs whenever the overlay differs. Methods block on the disk.
    """

    store: Reader
    unsaved: Mapping[str, Unsaved] = field(default_factory=dict)
    version: int = 0
    gone: frozenset[str] = frozenset()

    def files(self) -> dict[str, bytes]:
        """Return the digest (16 bytes) of the text of every file, by index path."""
        known = self.store.files() | {path: each.digest for path, each in self.unsaved.items()}
        for path in self.gone:
            known.pop(path, None)
        return known

    def tags(self, path: str) -> FileTags | None:
        """Return the tags of a file, by its index path; None if it is not indexed, or gone."""
        over = self.unsaved.get(path)
        return over.tags if over else None if path in self.gone else self.store.tags(path)

    def symbols(self, path: str) -> tuple[SymbolInfo, ...]:
        """Return the definitions of a file, by its index path; () if it is not indexed, or gone. Faster than `tags`."""
        over = self.unsaved.get(path)
        return over.tags.symbols if over else () if path in self.gone else self.store.symbols(path)

    def all_tags(self) -> Iterator[tuple[str, FileTags]]:
        """Yield pairs of index path and tags for every file, sorted by path."""
        return self._over(self.store.all_tags(), {path: each.tags for path, each in self.unsaved.items()})

    def definitions(self) -> Iterator[tuple[str, tuple[SymbolInfo, ...]]]:
        """Yield pairs of index path and definitions for every file, sorted by path."""
        return self._over(self.store.definitions(), {path: each.tags.symbols for path, each in self.unsaved.items()})

    def defined(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield pairs of index path and the names that it defines for every file, sorted by path."""
        return self._over(self.store.defined(), {path: each.defined for path, each in self.unsaved.items()})

    def used(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Yield pairs of index path and how often the file uses each name, for every file, sorted by path."""
        return self._over(self.store.used(), {path: each.used for path, each in self.unsaved.items()})

    def defining(self, name: str) -> tuple[str, ...]:
        """Return the index paths of the files with a definition called `name` (not dotted), sorted."""
        return self._with(self.store.defining(name), lambda each: name in each.defined)

    def using(self, name: str) -> tuple[str, ...]:
        """Return the index paths of the files with a reference to `name` (not dotted), sorted."""
        return self._with(self.store.using(name), lambda each: name in each.used)

    def generation(self) -> int:
        """Return a number that is equal only for equal states: it changes with every change of the index or of the
        overlay.
        """
        # Above all bits of the store's number: the sum is equal for equal states only.
        return self.store.generation() + (self.version << 64)

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT, as `Reader.query`, which knows saved texts only."""
        return self.store.query(sql, values)

    def _with(self, found: Iterable[str], fits: Callable[[Unsaved], bool]) -> tuple[str, ...]:
        saved = {path for path in found if path not in self.unsaved and path not in self.gone}
        return tuple(sorted(saved.union(path for path, each in self.unsaved.items() if fits(each))))

    def _over(self, saved: Iterable[tuple[str, _T]], over: Mapping[str, _T]) -> Iterator[tuple[str, _T]]:
        # Two sorted sequences are merged; of the smaller one the next is taken from the end.
        waiting = sorted(over.items(), reverse=True)
        for path, each in saved:
            while waiting and waiting[-1][0] < path:
                yield waiting.pop()
            if path not in over and path not in self.gone:
                yield path, each
        yield from reversed(waiting)
