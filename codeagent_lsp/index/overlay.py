"""Overlay of texts that are not on disk over the index: open buffers, and over them the staged texts of a run.

They are parsed when a query comes, each text once: while a user types nothing is done. Blocking; use it in
a thread, any thread. Not here: reading the texts (`workspace/files/file_view.py`), answering (`view.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from threading import Lock

from codeagent_lsp.index.packing import unpack
from codeagent_lsp.index.scan import Folders
from codeagent_lsp.index.store import Store
from codeagent_lsp.index.view import Unsaved, View
from codeagent_lsp.workspace.files.file_view import FileView

_KEPT = 256


class Overlay:
    """Makes views over `store`, which has the files of `folders`, and caches the parsed texts."""

    def __init__(self, store: Store, folders: Folders) -> None:
        self._store = store
        self._folders = folders
        self._known: OrderedDict[tuple[str, bytes], Unsaved] = OrderedDict()
        self._lock = Lock()

    def view(self, files: FileView) -> View:
        """Return a view of the index, overlaid with the texts of `files` that differ from the indexed ones."""
        over = sorted(files.over_disk())
        if not over:
            return View(self._store)
        from codeagent_lsp.index.intake import digest_of  # late: it loads the parser

        unsaved: dict[str, Unsaved] = {}
        gone: set[str] = set()
        for absolute in over:
            path = self._folders.path_of(absolute)
            if path is None or files.is_ignored(absolute):
                continue
            if not files.exists(absolute):
                gone.add(path)
            elif (text := files.text(absolute)) is not None:
                digest = digest_of(path, text.encode("utf-8", "replace"))
                if digest != self._store.digest(path):
                    unsaved[path] = self._looked_into(path, digest, text)
        return View(self._store, unsaved, _version(unsaved, gone), frozenset(gone))

    def _looked_into(self, path: str, digest: bytes, text: str) -> Unsaved:
        key = (path, digest)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        from codeagent_lsp.index.intake import packed_text  # late: it loads the parser

        digest, packed = packed_text(path, text)
        found = Unsaved(digest, unpack(path, packed), text)
        with self._lock:
            self._known[key] = found
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found


def _version(unsaved: dict[str, Unsaved], gone: set[str]) -> int:
    """Return a number that is equal for equal texts, so that results computed from them stay valid."""
    if not unsaved and not gone:
        return 0
    told = [*(f"{path}\0{each.digest.hex()}" for path, each in sorted(unsaved.items())), "\n", *sorted(gone)]
    return int.from_bytes(blake2b("\n".join(told).encode("utf-8", "replace"), digest_size=8).digest(), "big")
