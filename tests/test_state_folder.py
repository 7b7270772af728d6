"""The folder of all state is of this user alone, or refused; a damaged file in it is an empty one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from codeagent_lsp.errors import SettingError
from codeagent_lsp.state import STATE_VARIABLE, read_json, replace_json, state_root, workspace_state

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "above" / "state"
    monkeypatch.setenv(STATE_VARIABLE, str(folder))
    return folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_made_for_this_user_alone(root: Path) -> None:
    workspace_state(["/w"]).mkdir(parents=True)
    assert mode(root) == 0o700


@pytest.mark.parametrize("bits", [0o755, 0o770])
def test_one_that_was_left_open_is_closed(root: Path, bits: int) -> None:
    root.mkdir(parents=True)
    root.chmod(bits)
    assert state_root() == root and mode(root) == 0o700


@pytest.mark.parametrize("bits", [0o702, 0o777])
def test_one_that_anybody_can_write_is_refused(root: Path, bits: int) -> None:
    root.mkdir(parents=True)
    root.chmod(bits)
    with pytest.raises(SettingError, match="chmod 700"):
        state_root()
    assert mode(root) == bits


def test_one_of_another_user_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.mkdir(parents=True)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(SettingError, match="another user"):
        workspace_state(["/w"])


def test_one_that_cannot_be_made_is_left_to_what_needs_it(root: Path) -> None:
    root.parent.write_text("a file")
    assert state_root() == root


@pytest.mark.parametrize("text", ["", "null", "[1]", "{", '{"a": 1', "[" * 100_000, "{\udcff}"])
def test_a_damaged_file_is_an_empty_object(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert read_json(file) == {}


def test_a_file_is_read_as_far_as_it_may_be_long(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    assert read_json(file) == {}
    replace_json(file, {"name": "ü"})
    size = file.stat().st_size
    assert (read_json(file), read_json(file, size), read_json(file, size - 2)) == ({"name": "ü"}, {"name": "ü"}, {})


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    replace_json(file, {"a": 1})
    with pytest.raises(UnicodeEncodeError):
        replace_json(file, {"a": "\ud800"})
    assert read_json(file) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
