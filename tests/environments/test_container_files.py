"""Archives between a folder and a container: what travels, and what a hostile archive cannot do."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.environments.container_files import difference, pack, seen_in, unpack
from codeagent_lsp.environments.environment import EnvironmentProblem
from codeagent_lsp.errors import ErrorCode

THERE = "/w"


def member(
    name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644
) -> Callable[[tarfile.TarFile], None]:
    """Something that adds an entry to an archive."""

    def add(archive: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size, info.mode = kind, link, len(data), mode
        archive.addfile(info, io.BytesIO(data))

    return add


def archive(*members: Callable[[tarfile.TarFile], None]) -> io.BytesIO:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as made:
        for add in members:
            add(made)
    data.seek(0)
    return data


def tree(folder: Path) -> dict[str, bytes | str | None]:
    """Files with their bytes, links with their targets, folders with None."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = str(path.readlink()) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
    return found


def carried(source: Path, target: Path) -> None:
    data = io.BytesIO()
    pack(str(source), sorted(seen_in(str(source))), data, 1 << 20)
    with tarfile.open(fileobj=data) as packed, tarfile.open(fileobj=(there := io.BytesIO()), mode="w") as moved:
        for info in packed:
            content = packed.extractfile(info) if info.isreg() else None
            info.name = f"w/{info.name}"
            moved.addfile(info, content)
    there.seek(0)
    unpack(there, {THERE: str(target)})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def test_everything_arrives_as_it_was(tmp_path: Path, place: Path) -> None:
    source = tmp_path / "source"
    (source / "a/b").mkdir(parents=True)
    (source / "a/b/c.txt").write_bytes(b"text\n")
    (source / "large").write_bytes(os.urandom((1 << 20) + 5))
    os.link(source / "a/b/c.txt", source / "twin")
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("a/b/c.txt")
    os.mkfifo(source / "pipe")
    archive = io.BytesIO()
    with pytest.raises(EnvironmentProblem):
        pack(str(source), ["large"], archive, 1 << 10)
    assert len(archive.getvalue()) < 1 << 16, "too large is found before it is copied"
    (source / "large").unlink()
    carried(source, place)
    (source / "pipe").unlink()
    assert tree(place) == tree(source)
    assert (place / "run.sh").stat().st_mode & 0o777 == 0o755


def test_what_is_not_in_it_goes_and_what_is_the_same_stays_untouched(place: Path) -> None:
    (place / "gone/deep").mkdir(parents=True)
    (place / "gone/deep/x").write_text("x")
    (place / "same").write_bytes(b"as it was")
    (place / "same").chmod(0o644)
    before = (place / "same").stat()
    unpack(archive(member("w/same", b"as it was"), member("w/new", b"n")), {THERE: str(place)})
    assert tree(place) == {"same": b"as it was", "new": b"n"}
    after = (place / "same").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize(
    "name", ["../out", "w/../../out", "/w/../out", "w/a/../../../out", "out", "wx/out", "/etc/out", "w", "w/", "./w/.."]
)
def test_no_name_leads_out(place: Path, name: str) -> None:
    unpack(archive(member(name, b"bad"), member("w/ok", b"good")), {THERE: str(place)})
    assert tree(place.parent) == {"place": None, "place/ok": b"good"}


def test_no_link_leads_out(tmp_path: Path, place: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    evil = archive(
        member("w/folder", kind=tarfile.SYMTYPE, link=str(outside)),
        member("w/folder/made", b"through the link"),
        member("w/file", kind=tarfile.SYMTYPE, link=str(outside / "secret")),
        member("w/file", b"over the link"),
        member("w/hard", kind=tarfile.LNKTYPE, link=str(outside / "secret")),
        member("w/hard2", kind=tarfile.LNKTYPE, link="../outside/secret"),
        member("w/sym", kind=tarfile.SYMTYPE, link=str(outside / "secret")),
        member("w/hard3", kind=tarfile.LNKTYPE, link="w/sym"),
    )
    unpack(evil, {THERE: str(place)})
    assert tree(outside) == {"secret": b"secret"}
    assert tree(place) == {
        "folder": None,
        "folder/made": b"through the link",
        "file": b"over the link",
        "hard": b"",
        "hard2": b"",
        "sym": str(outside / "secret"),
        "hard3": b"",
    }


def test_nothing_special_is_made_and_no_right_is_given(place: Path) -> None:
    kinds = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    special = [member(f"w/special{number}", kind=kind) for number, kind in enumerate(kinds)]
    unpack(archive(*special, member("w/suid", b"", mode=0o6755)), {THERE: str(place)})
    assert list(tree(place)) == ["suid"]
    assert (place / "suid").stat().st_mode & 0o7000 == 0


@pytest.mark.parametrize("data", [b"x" * 2000, b"\0" * 100 + b"y" * 1000, os.urandom(1500)])
def test_what_is_no_archive(place: Path, data: bytes) -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        unpack(io.BytesIO(data), {THERE: str(place)})
    assert caught.value.code == ErrorCode.VALIDATION_ERROR


def test_an_archive_that_is_cut(place: Path) -> None:
    whole = archive(member("w/a", b"x" * 5000)).getvalue()
    with pytest.raises(EnvironmentProblem):
        unpack(io.BytesIO(whole[:3000]), {THERE: str(place)})


NAMES = st.dictionaries(
    st.lists(st.sampled_from(["a", "b", "ü", "a b"]), min_size=1, max_size=3).map("/".join),
    st.binary(max_size=20),
    max_size=6,
)


def filled(folder: Path, files: dict[str, bytes]) -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    for name, data in files.items():
        if not any(name.startswith(f"{other}/") for other in made) and not any(o.startswith(f"{name}/") for o in made):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
            made[name] = data
    return made


@given(NAMES, NAMES)
def test_a_difference_is_all_that_has_to_travel(
    tmp_path_factory: pytest.TempPathFactory, one: dict[str, bytes], other: dict[str, bytes]
) -> None:
    first, second = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")
    filled(first, one)
    before = seen_in(str(first))
    filled(second, other)
    what = difference(before, seen_in(str(second)))
    assert set(what.gone) >= set(before) - set(seen_in(str(second)))
    for name in what.gone:  # as the container does it: `rm -rf`
        path = first / name
        if path.is_dir():
            for inner in sorted(path.rglob("*"), reverse=True):
                inner.rmdir() if inner.is_dir() else inner.unlink()
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
    for name in what.send:
        (first / name).mkdir(exist_ok=True) if (second / name).is_dir() else (first / name).write_bytes(
            (second / name).read_bytes()
        )
    assert tree(first) == tree(second)
    assert difference(before, before) == difference({}, {})
