"""WorkspaceEdits whose parts come in any order: made as the protocol says, one after the other, or refused whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.language_servers.answers import ServerAnswer, Texts
from codeagent_lsp.language_servers.server_edits import server_edit
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots
from tests.examples import examples

FILES = {"a.py": "aa = 1\n", "b.py": "x = aa\n", "sub/d.py": "d = 3\n"}
NAMES = st.sampled_from([*FILES, "c.py", "new/e.py"])
PARTS = st.one_of(
    st.tuples(st.just("edit"), NAMES, st.integers(0, 3)),
    st.tuples(st.just("create"), NAMES),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("rename"), NAMES, NAMES),
)


def by_the_protocol(parts: list[tuple[Any, ...]]) -> dict[str, str] | None:
    """The files after each part was made in its turn; None where one cannot be made."""
    files = dict(FILES)
    for kind, name, *rest in parts:
        if kind == "create":
            if name in files:
                return None
            files[name] = ""
            continue
        if name not in files or (kind == "rename" and rest[0] in files):
            return None
        if kind == "delete":
            del files[name]
        elif kind == "rename":
            files[rest[0]] = files.pop(name)
        else:  # in a new file, every place is its beginning
            files[name] = files[name][: rest[0]] + "Q" + files[name][rest[0] :]
    return files


def as_change(root: Path, part: tuple[Any, ...]) -> dict[str, Any]:
    kind, uri = part[0], uris.from_path(str(root / part[1]))
    if kind == "edit":
        place = {"line": 0, "character": part[2]}
        edits = [{"range": {"start": place, "end": place}, "newText": "Q"}]
        return {"textDocument": {"uri": uri, "version": None}, "edits": edits}
    if kind == "rename":
        return {"kind": kind, "oldUri": uri, "newUri": uris.from_path(str(root / part[2]))}
    return {"kind": kind, "uri": uri}


@pytest.mark.hypothesis
def test_parts_in_any_order_are_made_as_the_protocol_says_or_refused(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    view = FileView(Roots([str(root)]), NoBuffers(), NothingStaged())
    made = []

    @given(st.lists(PARTS, min_size=1, max_size=4, unique_by=lambda part: part if part[0] != "edit" else part[:2]))
    @settings(max_examples=examples(120), deadline=None)
    def check(parts: list[tuple[Any, ...]]) -> None:
        edit = {"documentChanges": [as_change(root, part) for part in parts]}
        try:
            found = server_edit(ServerAnswer("fake", None, "utf-16"), edit, Texts(view))
        except EditRefused:
            return
        after = {str(root / name): text for name, text in FILES.items()}
        placed = {found.moves.get(path, path): text for path, text in found.texts.items()}
        for old, new in found.moves.items():
            after[new] = after.pop(old)
        after.update({path: text for path, text in placed.items() if text is not None})
        for path in (path for path, text in placed.items() if text is None):
            del after[path]
        wanted = by_the_protocol(parts)
        assert wanted is not None and after == {str(root / name): text for name, text in wanted.items()}
        made.append(parts)

    check()
    assert made
