"""The index of the present folders: one at a time, and the client is asked once to report changes, however many come.

Which folders get none, and in what words, is in `test_host.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.index.host import FRESH, TRUSTED, CurrentIndex
from codeagent_lsp.state import STATE_VARIABLE
from tests.index.workspaces import write


@pytest.mark.parametrize("watched", [True, False])
async def test_one_index_for_the_folders_of_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, watched: bool
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    write(tmp_path, {"one/a.py": "", "two/b.py": ""})
    folders, asked = [str(tmp_path / "one")], []

    async def watch() -> bool:
        asked.append(folders[0])
        return watched

    current = CurrentIndex(lambda: folders, IndexSettings, lambda status: None, watch, lambda store, places: None)
    assert (current.index, current.watched, current.age, current.was_built()) == (None, None, FRESH, False)
    first = await current.opened()
    assert (await current.opened(), current.index) == (first, first)
    assert current.was_built()
    await first.looked(0.0)
    assert (current.watched, current.age) == (watched, TRUSTED if watched else FRESH)
    folders[:] = [str(tmp_path / "two")]
    second = await current.opened()
    await second.looked(0.0)
    assert second.folders == tuple(folders)
    assert len(asked) == 1
    folders.clear()
    with pytest.raises(ToolFailed):
        await current.opened()
    assert current.index is None
    await current.close()
