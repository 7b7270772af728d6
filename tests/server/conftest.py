"""Fixtures for tests that drive the real server with a small editor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.stock_editor import StockEditor

StartEditor = Callable[..., StockEditor]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture
def start(workspace: Path, tmp_path: Path) -> Iterator[StartEditor]:
    """Starts an editor with its own server on `workspace`; all of them end with the test."""
    editors: list[StockEditor] = []

    def begin(*script: dict[str, Any], **options: Any) -> StockEditor:
        state = options.pop("state", tmp_path / "state")
        editors.append(StockEditor(workspace, state, script=script, **options))
        return editors[-1]

    yield begin
    for editor in editors:
        editor.client.kill()
