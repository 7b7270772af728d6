"""The folder in which a client and a server meet: what is found, what is removed, and what of it others can write."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeagent_lsp.lend import (
    MAX_FILE,
    MAX_REQUESTS,
    LendAnswer,
    MeetingPlace,
    Ticket,
    clean_name,
    find_editor,
    is_held,
)
from tests.examples import examples

NONCE = "0123456789abcdef0123456789abcdef"
FINE = {"client": "claude-code", "pid": os.getpid(), "workspace": "/project"}


def opened(root: Path, *folders: Path) -> MeetingPlace:
    place = MeetingPlace(root / "workspaces" / folders[0].name)
    place.open(map(str, folders), "Neovim")
    return place


def put(place: MeetingPlace, values: Any, name: str = NONCE) -> Path:
    path = place.path / f"{name}.request"
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return path


def test_a_request_and_its_answer(state: Path, tmp_path: Path) -> None:
    place = opened(state, tmp_path)
    found = find_editor(state, str(tmp_path))
    assert found is not None and found.place == place.path and found.editor == "Neovim"
    ticket = Ticket(found.place, "claude-code", str(tmp_path))
    ticket.put()
    ticket.put()
    (request,) = place.requests()
    assert (request.client, request.pid, request.workspace) == ("claude-code", os.getpid(), str(tmp_path))
    assert ticket.answer() is None
    place.answer(request.nonce, LendAnswer("granted", address="unix:/x", token="t"))
    assert ticket.answer() == LendAnswer("granted", address="unix:/x", token="t")
    assert {stat.S_IMODE(file.stat().st_mode) for file in place.path.iterdir()} == {0o600}
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o700
    ticket.withdraw()
    assert place.requests() == [] and ticket.answer() is None
    place.close()
    assert find_editor(state, str(tmp_path)) is None and not list(state.glob("workspaces/*/lend"))
    with pytest.raises(OSError, match="lend"):
        ticket.put()


def test_the_nearest_folder_and_the_newest_editor(state: Path, tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(inner)
    outer, first, second = opened(state, tmp_path), opened(state, tmp_path / "a"), opened(state, tmp_path / "a")
    for folder, place in ((inner, second), (link, second), (tmp_path / "a", second), (tmp_path, outer)):
        found = find_editor(state, str(folder))
        assert found is not None and found.place == place.path
    assert find_editor(state, str(tmp_path.parent)) is None
    assert find_editor(state, f"{tmp_path}x") is None
    for place in (outer, first, second):
        place.close()


def test_a_server_that_has_gone_is_not_found_and_is_removed(state: Path, tmp_path: Path) -> None:
    place = opened(state, tmp_path)
    assert is_held(place.path) and place._lock is not None
    os.close(place._lock)  # as the system does when a process is killed
    place._lock = None
    assert not is_held(place.path) and find_editor(state, str(tmp_path)) is None
    later = opened(state, tmp_path)
    assert not place.path.exists() and is_held(later.path)
    later.close()


@pytest.mark.parametrize(
    "values",
    [
        "",
        "no json",
        "[]",
        "[" * 5000,
        "x" * (MAX_FILE + 1),
        {**FINE, "client": ""},
        {**FINE, "client": "a\nb"},
        {**FINE, "client": "x" * 65},
        {**FINE, "client": " claude-code"},
        {**FINE, "client": "claude\u202ecode"},
        {**FINE, "client": 1},
        {**FINE, "pid": -1},
        {**FINE, "pid": "1"},
        {**FINE, "pid": 2**40},
        {**FINE, "workspace": None},
        {**FINE, "workspace": "a\0b"},
        {},
    ],
)
def test_what_is_no_request_is_removed(state: Path, tmp_path: Path, values: Any) -> None:
    place = opened(state, tmp_path)
    path = put(place, values)
    assert place.requests() == [] and not path.exists()
    put(place, FINE)
    assert len(place.requests()) == 1
    place.close()


def test_names_that_lead_elsewhere_old_ones_links_and_too_many(state: Path, tmp_path: Path) -> None:
    place = opened(state, tmp_path)
    other = tmp_path / "other"
    other.write_text(json.dumps(FINE))
    (place.path / f"{NONCE}.request").symlink_to(other)
    put(place, FINE, "..")
    old = put(place, FINE, NONCE.replace("0", "1"))
    os.utime(old, (time.time() - 1000, time.time() - 1000))
    assert place.requests() == [] and other.exists()
    assert sorted(file.name for file in place.path.iterdir()) == ["lock", "server.json"]
    for number in range(3 * MAX_REQUESTS):
        put(place, FINE, f"{number:032x}")
    assert len(place.requests()) == MAX_REQUESTS
    place.close()


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=200))
def test_names_are_one_line_and_stay_as_they_are_once_cleaned(name: str) -> None:
    cleaned = clean_name(name)
    assert cleaned == clean_name(cleaned) and len(cleaned) <= 64 and cleaned.isprintable()


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=300), st.recursive(st.none() | st.text() | st.integers(), st.lists).map(repr)))
def test_any_file_is_read_or_removed(state: Path, tmp_path: Path, content: bytes | str) -> None:
    place = opened(state, tmp_path)
    path = place.path / f"{NONCE}.request"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    assert place.requests() == [] and not path.exists()
    place.close()
