"""Confinement: what is refused, what needs its own approval, and what simply works."""

from __future__ import annotations

import os
import socket
import threading
import unicodedata
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codeagent_lsp.errors import FileRefused, PathRefused
from codeagent_lsp.workspace.files.paths import Roots
from tests.examples import examples, volume

LIMIT = 1 << 20


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """`ws` with some files, beside it `outside` and `ws_evil`, links of every kind between them."""
    for folder in ("ws/src", "ws/tests", "outside", "ws_evil", "ws_b"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ws/src/a.py").write_text("a = 1\n")
    (tmp_path / "ws/weird name;$(x) .py").write_text("w")
    (tmp_path / "outside/secret.txt").write_text("SECRET")
    (tmp_path / "ws_evil/x").write_text("EVIL")
    (tmp_path / "ws/link").symlink_to("../outside")
    (tmp_path / "ws/dangling").symlink_to("../outside/nope")
    (tmp_path / "ws/inner").symlink_to("src")
    (tmp_path / "ws/loop").symlink_to("loop")
    (tmp_path / "ws/to_b").symlink_to("../ws_b")
    (tmp_path / "ws_link").symlink_to("ws")
    os.link(tmp_path / "outside/secret.txt", tmp_path / "ws/hard.txt")
    os.mkfifo(tmp_path / "ws/fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "ws/sock"))
    return tmp_path.resolve()


@pytest.fixture
def roots(base: Path) -> Roots:
    return Roots([str(base / "ws")])


# Each is written with {base} for the folder above the workspace.
REFUSED = {
    "a sibling with the workspace as prefix": "{base}/ws_evil/x",
    "prefix and dots": "{base}/ws/../ws_evil/x",
    "double slash and dots": "{base}/ws//../outside/secret.txt",
    "dots": "../outside/secret.txt",
    "many dots": "src/../../outside/secret.txt",
    "absolute": "/etc/passwd",
    "new file under a linked folder": "link/new.txt",
    "a link and then dots": "link/../f.txt",
    "dangling link": "dangling",
    "dangling link, more": "dangling/more.txt",
    "link loop": "loop",
    "below a link loop": "loop/x",
    "process root": "/proc/self/root/etc/passwd",
    "process memory": "/proc/self/mem",
    "endless device": "/dev/zero",
    "home": "~/.bashrc",
    "home keys": "~/.ssh/authorized_keys",
    "home alone": "~",
    "system": "/etc/cron.d/x",
    "other workspace by link": "{base}/ws/to_b/f",
    "NUL": "a\0b",
    "empty": "",
    "network share": "\\\\evil\\share\\x",
    "backslash": "src\\a.py",
    "drive": "C:/x.txt",
    "drive, backslash": "C:\\x.txt",
    "drive, relative": "C:x.txt",
    "uri outside": "file://{base}/outside/secret.txt",
    "uri with encoded dots": "file://{base}/ws/%2e%2e/outside/secret.txt",
    "uri encoded twice": "file://{base}/ws/%252e%252e/outside/secret.txt",
    "uri with NUL": "file://{base}/ws/a%00b",
    "uri with a host": "file://evil.invalid/share/x",
    "uri with an encoded host": "file:////evil.invalid/share/x",
    "uri with an encoded backslash": "file://{base}/ws/..%5coutside",
    "uri without a slash": "file:src/a.py",
    "read-only scheme": "git:{base}/ws/a.py?%7B%7D",
    "web": "https://example.com/a.py",
    "trailing dot": "new.txt.",
    "trailing blank": "new.txt ",
    "no bytes": "a\ud800b",
}


@pytest.mark.parametrize("written", REFUSED.values(), ids=REFUSED.keys())
def test_refused(roots: Roots, base: Path, written: str) -> None:
    with pytest.raises(PathRefused) as caught:
        roots.resolve(written.replace("{base}", str(base)))
    assert str(caught.value).endswith(".")


ALLOWED = {
    "src/new.py": "src/new.py",
    "src/a.py": "src/a.py",
    "./src/../src/a.py": "src/a.py",
    "src//a.py": "src/a.py",
    "weird name;$(x) .py": "weird name;$(x) .py",
    "{base}/ws/src/a.py": "src/a.py",
    "{base}/ws_link/f.txt": "f.txt",
    "{base}/outside/../ws/src/a.py": "src/a.py",
    "file://{base}/ws/src/a.py": "src/a.py",
    "file://localhost{base}/ws/src/a.py": "src/a.py",
    "FILE://{base}/ws/weird%20name;$(x)%20.py": "weird name;$(x) .py",
    "inner/a.py": "src/a.py",
    "src": "src",
    "~tilde.txt": "~tilde.txt",
    "a:b.txt".replace(":", "-"): "a-b.txt",
    "100%.txt": "100%.txt",
    "naïve.py": "naïve.py",
    "..dots/x": "..dots/x",
}


@pytest.mark.parametrize(("written", "expected"), ALLOWED.items(), ids=ALLOWED.keys())
def test_allowed(roots: Roots, base: Path, written: str, expected: str) -> None:
    resolved = roots.resolve(written.replace("{base}", str(base)))
    assert resolved == str(base / "ws" / expected)
    assert not roots.is_protected(resolved)
    assert not roots.is_secret(resolved)


@pytest.mark.parametrize("there", ["NFC", "NFD"])
def test_names_that_look_alike_are_one_file(tmp_path: Path, there: Literal["NFC", "NFD"]) -> None:
    name = unicodedata.normalize(there, "Ångström/café.py")
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text("")
    roots = Roots([str(tmp_path)])
    for form in ("NFC", "NFD"):
        assert roots.resolve(unicodedata.normalize(form, name)) == str(tmp_path / name)
    other = unicodedata.normalize("NFC", "Ångström/naïf.py")
    assert roots.resolve(other) == str(tmp_path / unicodedata.normalize(there, "Ångström") / "naïf.py")


def test_two_names_that_look_alike_stay_two_files(tmp_path: Path) -> None:
    names = [unicodedata.normalize(form, "café.py") for form in ("NFC", "NFD")]
    for name in names:
        (tmp_path / name).write_text(name)
    assert [Roots([str(tmp_path)]).resolve(name) for name in names] == [str(tmp_path / name) for name in names]


def test_a_folder_opened_through_a_link_is_the_real_one(base: Path) -> None:
    roots = Roots([str(base / "ws_link")])
    assert roots.folders == (str(base / "ws"),)
    assert roots.resolve(str(base / "ws_link/f.txt")) == str(base / "ws/f.txt")
    assert roots.resolve(str(base / "ws/f.txt")) == str(base / "ws/f.txt")


def test_untitled_buffers_keep_their_uri(roots: Roots) -> None:
    assert roots.resolve("untitled:Untitled-1") == "untitled:Untitled-1"
    assert not roots.is_protected("untitled:Untitled-1")


def test_a_kernel_file_is_refused_even_when_the_whole_system_is_the_workspace() -> None:
    with pytest.raises(PathRefused):
        Roots(["/"]).resolve("/proc/self/mem")
    assert Roots(["/"]).resolve("/etc/hostname-none") == "/etc/hostname-none"


def test_a_path_longer_than_any_is_refused_at_once(roots: Roots) -> None:
    with pytest.raises(PathRefused) as refused:
        roots.resolve("a/" * 5000 + "b.py")
    assert "longer than a path" in str(refused.value) and len(str(refused.value)) < 200


def test_no_folder_refuses_everything() -> None:
    with pytest.raises(PathRefused):
        Roots([]).resolve("a.py")
    with pytest.raises(PathRefused):
        Roots([]).resolve("/a.py")


class TestSeveralFolders:
    @pytest.fixture
    def two(self, base: Path) -> Roots:
        (base / "ws_b/only_b.txt").write_text("b")
        return Roots([str(base / "ws"), str(base / "ws_b")])

    def test_relative_paths_go_to_the_folder_that_has_them(self, two: Roots, base: Path) -> None:
        assert two.resolve("only_b.txt") == str(base / "ws_b/only_b.txt")
        assert two.resolve("new.txt") == str(base / "ws/new.txt")

    def test_a_link_from_one_into_the_other_is_refused_and_says_where(self, two: Roots) -> None:
        with pytest.raises(PathRefused, match=r"ws_b/f"):
            two.resolve("to_b/f")

    def test_display_has_the_folder_in_front_and_is_understood_again(self, two: Roots, base: Path) -> None:
        shown = two.relative(str(base / "ws_b/only_b.txt"))
        assert shown == "ws_b/only_b.txt"
        assert two.resolve(shown) == str(base / "ws_b/only_b.txt")

    def test_nested_folders_belong_to_the_inner_one(self, base: Path) -> None:
        nested = Roots([str(base / "ws"), str(base / "ws/src")])
        assert nested.root_of(str(base / "ws/src/a.py")) == str(base / "ws/src")

    def test_same_names_are_told_apart(self, base: Path) -> None:
        (base / "other/ws").mkdir(parents=True)
        twins = Roots([str(base / "ws"), str(base / "other/ws")])
        assert twins.relative(str(base / "other/ws/f")) == str(base / "other/ws/f")


def test_display_with_one_folder_is_relative(roots: Roots, base: Path) -> None:
    assert roots.relative(str(base / "ws/src/a.py")) == "src/a.py"
    assert roots.relative(str(base / "ws")) == "."


class TestReading:
    def test_bytes(self, roots: Roots, base: Path) -> None:
        assert roots.read_bytes(roots.resolve("src/a.py"), LIMIT) == b"a = 1\n"

    @pytest.mark.parametrize(("name", "says"), [("fifo", "pipe"), ("sock", "socket"), ("src", "folder")])
    def test_what_is_no_file_is_refused_without_blocking(self, roots: Roots, base: Path, name: str, says: str) -> None:
        with pytest.raises(FileRefused, match=says):
            roots.read_bytes(roots.resolve(name), LIMIT)

    def test_a_device_is_refused(self) -> None:
        with pytest.raises(FileRefused, match="device"):
            Roots(["/dev"]).read_bytes("/dev/zero", LIMIT)

    def test_missing(self, roots: Roots, base: Path) -> None:
        with pytest.raises(FileRefused, match="does not exist"):
            roots.read_bytes(str(base / "ws/none/none.txt"), LIMIT)

    def test_a_sparse_giant_is_refused_by_its_size(self, roots: Roots, base: Path) -> None:
        with (base / "ws/sparse.bin").open("wb") as file:
            file.truncate(10 << 30)
        with pytest.raises(FileRefused, match=r"10,737,418,240 bytes.*1,048,576"):
            roots.read_bytes(str(base / "ws/sparse.bin"), LIMIT)

    def test_the_limit_itself_is_allowed(self, roots: Roots, base: Path) -> None:
        (base / "ws/four").write_bytes(b"1234")
        assert roots.read_bytes(str(base / "ws/four"), 4) == b"1234"
        with pytest.raises(FileRefused):
            roots.read_bytes(str(base / "ws/four"), 3)

    def test_a_link_in_place_of_the_resolved_file_is_not_followed(self, roots: Roots, base: Path) -> None:
        path = roots.resolve("src/a.py")
        Path(path).unlink()
        Path(path).symlink_to(base / "outside/secret.txt")
        with pytest.raises(FileRefused):
            roots.read_bytes(path, LIMIT)

    def test_a_link_in_place_of_a_folder_is_not_followed(self, roots: Roots, base: Path) -> None:
        path = roots.resolve("src/secret.txt")
        (base / "ws/src").rename(base / "ws/old")
        (base / "ws/src").symlink_to(base / "outside")
        with pytest.raises(FileRefused):
            roots.read_bytes(path, LIMIT)
        with pytest.raises(FileRefused):
            roots.scan(str(base / "ws/src"))
        assert roots.stat(path) is None

    def test_outside_is_refused_by_the_reader_too(self, roots: Roots, base: Path) -> None:
        with pytest.raises(PathRefused):
            roots.read_bytes(str(base / "outside/secret.txt"), LIMIT)

    def test_scan_tells_kinds(self, roots: Roots, base: Path) -> None:
        kinds = dict(roots.scan(str(base / "ws")))
        assert kinds["src"] == "folder" and kinds["link"] == "link" and kinds["hard.txt"] == "file"
        assert kinds["fifo"] == "other"

    def test_names_that_are_not_utf8(self, roots: Roots, base: Path) -> None:
        name = os.fsdecode(b"caf\xe9.txt")
        (base / "ws" / name).write_bytes(b"x")
        assert roots.read_bytes(roots.resolve(name), LIMIT) == b"x"

    def test_no_descriptor_is_left_open(self, roots: Roots, base: Path) -> None:
        before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
        for name in ("src/a.py", "src", "fifo", "none/none", "src/a.py/below"):
            try:
                roots.read_bytes(str(base / "ws" / name), 3)
            except FileRefused:
                pass
        assert before == 0 or len(list(Path("/proc/self/fd").iterdir())) == before


def _race(base: Path, attempts: int) -> tuple[int, int]:
    """Read while a folder is swapped for a link to the outside; how many reads worked, and how many escaped."""
    (base / "ws/swap").mkdir()
    (base / "ws/swap/secret.txt").write_text("fine")
    roots = Roots([str(base / "ws")])
    stop = threading.Event()

    def swap() -> None:
        folder, kept, link = base / "ws/swap", base / "ws/kept", base / "ws/trap"
        while not stop.is_set():
            link.symlink_to(base / "outside")
            folder.rename(kept)
            link.rename(folder)
            folder.unlink()
            kept.rename(folder)

    worker = threading.Thread(target=swap)
    worker.start()
    good = escaped = 0
    try:
        for number in range(100 * attempts):
            if number >= attempts and good:  # a busy machine may let none through for long
                break
            try:
                data = roots.read_bytes(roots.resolve("swap/secret.txt"), LIMIT)
            except (FileRefused, PathRefused):
                continue
            good += data == b"fine"
            escaped += data != b"fine"
    finally:
        stop.set()
        worker.join()
    return good, escaped


@pytest.mark.slow
def test_no_read_escapes_a_race(base: Path) -> None:
    good, escaped = _race(base, 2_000)
    assert escaped == 0
    assert good > 0  # else the race was none


@pytest.mark.slow
def test_no_read_escapes_a_long_race(base: Path) -> None:
    good, escaped = _race(base, volume(25_000))
    assert escaped == 0
    assert good > 0


_PART = st.sampled_from(
    ["..", ".", "", "src", "link", "inner", "loop", "a.py", "dangling", "to_b", "outside", "~", "%2e%2e"]
) | st.text(max_size=8)


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(parts=st.lists(_PART, max_size=7), start=st.sampled_from(["", "/", "{base}/ws/", "file://{base}/ws/"]))
def test_whatever_is_written_stays_inside(base: Path, parts: list[str], start: str) -> None:
    root = base / "ws"
    try:
        resolved = Roots([str(root)]).resolve(start.replace("{base}", str(base)) + "/".join(parts))
    except PathRefused:
        return
    if not resolved.startswith("untitled:"):
        assert Path(os.path.realpath(resolved)).parts[: len(root.parts)] == root.parts
        assert resolved == os.path.realpath(resolved)
