"""The index of the present folders: one at a time, and the client is asked once to report changes, however many come.

Which folders get none, and in what words, is in `test_host.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.index.host import IndexHost
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

    host = IndexHost(lambda: folders, IndexSettings, lambda status: None, watch)
    assert not host.was_built()
    first = await host.opened()
    assert await host.opened() is first
    assert host.was_built()
    await first.looked(0.0)
    assert (await host.status())["watched"] is watched
    folders[:] = [str(tmp_path / "two")]
    second = await host.opened()
    await second.looked(0.0)
    assert second.folders == tuple(folders)
    assert len(asked) == 1
    folders.clear()
    with pytest.raises(ToolFailed):
        await host.opened()
    await host.close()
