"""The upper folder without any mount: what is laid into it, taken back from it and read out of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeagent_lsp.shadow.collect import WrittenFiles, WrittenLimits
from codeagent_lsp.shadow.upper import Upper
from codeagent_lsp.shadow.upper_walk import OPAQUE
from codeagent_lsp.workspace.files.ignore import IgnoreRules
from tests.examples import examples
from tests.shadow.rig import snapshot

Told = dict[str, tuple[str, bytes]]


class Pair:
    """A folder on the disk and its upper."""

    def __init__(self, base: Path, limits: WrittenLimits | None = None) -> None:
        self.disk, self.up = base / "disk", base / "up"
        self.disk.mkdir()
        self.up.mkdir()
        rules = IgnoreRules(str(self.disk))
        self.limits = limits or WrittenLimits()
        self.upper = Upper(str(self.disk), str(self.up), rules.at_root, self.limits)

    def prepare(self, **wanted: bytes | None) -> None:
        """Names with `__` for a slash and `_` for a dot."""
        names = {name.replace("__", "/").replace("_", "."): data for name, data in wanted.items()}
        self.upper.prepare({str(self.disk / name): data for name, data in names.items()})

    def told(self) -> Told:
        found = self.found()
        return {os.path.relpath(path, self.disk): (item.kind, item.data) for path, item in found.files.items()}

    def found(self) -> WrittenFiles:
        found = WrittenFiles(self.limits)
        self.upper.collect(found)
        return found

    def whiteout(self, name: str) -> None:
        os.mknod(self.up / name, stat.S_IFCHR, 0)

    def opaque(self, name: str) -> None:
        (self.up / name).mkdir(exist_ok=True)
        os.setxattr(self.up / name, OPAQUE, b"y")


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    made = Pair(tmp_path)
    (made.disk / "d" / "e").mkdir(parents=True)
    (made.disk / "a").write_bytes(b"a\n")
    (made.disk / "d" / "b").write_bytes(b"b\n")
    (made.disk / "d" / "e" / "c").write_bytes(b"c\n")
    (made.disk / ".gitignore").write_bytes(b"*.o\nbuild/\n")
    return made


def test_wanted_files_are_laid_with_the_mode_of_the_file(pair: Pair) -> None:
    (pair.disk / "a").chmod(0o750)
    before = snapshot(pair.disk)
    pair.prepare(a=b"new\n", n__m=b"fresh", d__b=None, d__missing=None)
    assert (pair.up / "a").read_bytes() == b"new\n" and (pair.up / "a").stat().st_mode & 0o777 == 0o750
    assert (pair.up / "n" / "m").read_bytes() == b"fresh" and (pair.up / "n" / "m").stat().st_mode & 0o777 == 0o644
    info = (pair.up / "d" / "b").lstat()
    assert stat.S_ISCHR(info.st_mode) and info.st_rdev == 0
    assert not os.path.lexists(pair.up / "d" / "missing")
    assert pair.told() == {} and snapshot(pair.disk) == before


def test_the_same_again_touches_nothing(pair: Pair) -> None:
    pair.prepare(a=b"new\n", n__m=b"fresh")
    before = snapshot(pair.up)
    pair.prepare(a=b"new\n", n__m=b"fresh")
    assert snapshot(pair.up) == before


def test_what_is_not_wanted_any_more_goes_with_its_folders(pair: Pair) -> None:
    pair.prepare(a=b"new\n", n__x__m=b"fresh", d__b=None, x_o=b"ignored but wanted")
    pair.prepare()
    assert list(pair.up.iterdir()) == []


def test_text_of_a_command_is_taken_back_and_the_rest_stays(pair: Pair) -> None:
    pair.prepare()
    (pair.up / "text").write_bytes(b"t")
    (pair.up / "bin").write_bytes(b"\0\1")
    (pair.up / "link").symlink_to("a")
    (pair.up / "x.o").write_bytes(b"ignored")
    (pair.up / "build").mkdir()
    (pair.up / "build" / "f").write_bytes(b"ignored")
    (pair.up / "empty").mkdir()
    pair.whiteout("a")
    assert pair.told() == {
        "text": ("text", b"t"),
        "bin": ("binary", b""),
        "link": ("symlink", b""),
        "a": ("deleted", b""),
    }
    pair.prepare()
    assert sorted(path.name for path in pair.up.iterdir()) == ["bin", "build", "empty", "link", "x.o"]
    assert pair.told() == {}  # what stays is told once


def test_a_command_that_undoes_a_wanted_change_has_changed_something(pair: Pair) -> None:
    pair.prepare(a=b"new\n", n=b"n", d__b=None)
    (pair.up / "a").write_bytes(b"a\n")
    (pair.up / "n").unlink()
    (pair.up / "d" / "b").unlink()
    (pair.up / "d" / "b").write_bytes(b"b\n")
    assert pair.told() == {"a": ("text", b"a\n"), "n": ("deleted", b""), "d/b": ("text", b"b\n")}


def test_a_plain_copy_of_the_disk_is_nothing(pair: Pair) -> None:
    pair.prepare()
    (pair.up / "a").write_bytes(b"a\n")
    assert pair.told() == {}
    pair.prepare()
    assert not (pair.up / "a").exists()  # or it would hide what the user writes later


def test_a_deleted_folder_is_all_files_in_it_but_the_ignored(pair: Pair) -> None:
    (pair.disk / "d" / "x.o").write_bytes(b"")
    (pair.disk / "d" / ".git").mkdir()
    pair.prepare()
    pair.whiteout("d")
    assert pair.told() == {"d/b": ("deleted", b""), "d/e/c": ("deleted", b""), "d/.git": ("git", b"")}


def test_an_opaque_folder_hides_what_it_does_not_have_itself(pair: Pair) -> None:
    pair.prepare()
    pair.opaque("d")
    (pair.up / "d" / "e").mkdir()
    (pair.up / "d" / "b").write_bytes(b"b\n")
    assert pair.told() == {"d/e/c": ("deleted", b"")}
    pair.prepare(d__e__c=None)
    assert pair.told() == {}
    with pytest.raises(OSError):
        os.getxattr(pair.up / "d", OPAQUE)


def test_files_and_folders_that_take_each_others_place(pair: Pair) -> None:
    pair.prepare()
    (pair.up / "a").mkdir()
    (pair.up / "a" / "in").write_bytes(b"in")
    (pair.up / "d").write_bytes(b"file")
    told = {
        "a": ("deleted", b""),
        "a/in": ("text", b"in"),
        "d": ("text", b"file"),
        "d/b": ("deleted", b""),
        "d/e/c": ("deleted", b""),
    }
    assert pair.told() == told
    pair.prepare(a=None, a__in=b"in", d=b"file", d__b=None, d__e__c=None)
    assert pair.told() == {} and (pair.up / "a" / "in").read_bytes() == b"in" and (pair.up / "d").is_file()


def test_a_link_in_the_way_is_never_followed(pair: Pair, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b").write_bytes(b"mine")
    pair.prepare()
    (pair.up / "d").symlink_to(outside)
    (pair.up / "n").symlink_to(outside)
    pair.prepare(d__b=b"laid", n__m=b"laid", n__b=None)
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"b": b"mine"}
    assert (pair.up / "d" / "b").read_bytes() == b"laid" and not (pair.up / "d").is_symlink()
    (pair.disk / "away").symlink_to(outside)
    pair.prepare(away__b=None)
    assert pair.told() == {} and (outside / "b").read_bytes() == b"mine"


def test_repositories_are_told_and_never_kept(pair: Pair) -> None:
    pair.prepare()
    for folder in (pair.up / ".git", pair.up / "d" / ".hg"):
        folder.mkdir(parents=True)
        (folder / "index").write_bytes(b"i")
    (pair.up / "sub").mkdir()
    (pair.up / "sub" / ".git").write_bytes(b"gitdir: x")
    (pair.up / "empty").mkdir()
    (pair.up / "empty" / ".git").mkdir()
    assert pair.told() == {".git": ("git", b""), "d/.hg": ("git", b""), "sub/.git": ("git", b"")}
    pair.prepare()
    assert not list(pair.up.rglob(".git")) and not list(pair.up.rglob(".hg"))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "text"),
        (b"caf\xe9", "text"),
        ("wide".encode("utf-16"), "text"),
        (b"x" * 9000 + b"\0", "text"),
        (b"x\0", "binary"),
        (b"x" * 101_000, "large"),
    ],
)
def test_the_kind_of_a_file(tmp_path: Path, data: bytes, kind: str) -> None:
    made = Pair(tmp_path, WrittenLimits(file_bytes=100_000))
    made.prepare()
    (made.up / "f").write_bytes(data)
    assert made.told() == {"f": (kind, data if kind == "text" else b"")}


def test_what_is_too_much_is_counted(tmp_path: Path) -> None:
    made = Pair(tmp_path, WrittenLimits(files=3, total_bytes=10))
    made.prepare()
    for number in range(5):
        (made.up / f"f{number}").write_bytes(b"1234")
    assert (len(made.found().files), made.found().more) == (2, 3)  # ten bytes hold two of them


@pytest.mark.slow
def test_folders_nested_without_end_stop_somewhere(pair: Pair) -> None:
    pair.prepare()
    here = pair.up
    for _ in range(260):
        here = here / "n"
        here.mkdir()
    (here / "deep").write_bytes(b"x")
    assert [kind for kind, *_ in pair.told().values()] == ["deep"]
    pair.prepare()
    assert pair.told() == {}


_NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/e/a", "n/a"])
_DATA = st.sampled_from([b"", b"one", b"two", b"x\0"])


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(disk=st.dictionaries(_NAMES, _DATA), first=st.dictionaries(_NAMES, _DATA), second=st.dictionaries(_NAMES, _DATA))
def test_after_preparing_there_is_what_is_wanted_and_nothing_to_tell(
    tmp_path_factory: pytest.TempPathFactory,
    disk: dict[str, bytes],
    first: dict[str, bytes],
    second: dict[str, bytes],
) -> None:
    made = Pair(tmp_path_factory.mktemp("pair"))
    for name, data in disk.items():
        if not _clashes(name, disk):
            (made.disk / name).parent.mkdir(parents=True, exist_ok=True)
            (made.disk / name).write_bytes(data)
    for wanted in (first, second):
        files = {name: data for name, data in wanted.items() if not _clashes(name, wanted)}
        made.upper.prepare({str(made.disk / name): data for name, data in files.items()})
        for name, data in files.items():
            assert (made.up / name).read_bytes() == data
        assert made.told() == {}


def _clashes(name: str, names: dict[str, bytes]) -> bool:
    """Whether another name would have to be a folder and a file at once."""
    return any(other.startswith(name + "/") for other in names)
