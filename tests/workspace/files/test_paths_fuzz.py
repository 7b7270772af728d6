"""Random paths against an obvious reference: whatever is written, the answer lies inside or there is none."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from codeagent_lsp.errors import FileRefused, PathRefused
from codeagent_lsp.workspace.files.paths import Roots

PLAIN = (
    "src",
    "lib",
    "a.py",
    "none",
    "deep",
    "er",
    "..",
    "..",
    ".",
    "",
    "inner",
    "out",
    "up",
    "wide name",
    "日本",
    "ws",
)
ODD = ("~", "\0", "\\", "%2e%2e", "%2f", "...", ". ", "C:", "\u202e", "\ud800", "\n", "*", "-rf", "a" * 300, "CON", "/")
STARTS = (
    "",
    "",
    "",
    "/",
    "//",
    "./",
    "../",
    "{ws}/",
    "{ws}/../",
    "{base}/",
    "{base}/ws_evil/",
    "file://{ws}/",
    "file:///",
    "FILE:",
    "~/",
)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """`ws` with folders and links, beside it `ws_evil` and `outside`."""
    base = tmp_path.resolve()
    for folder in ("ws/src/deep/er", "ws/lib", "outside/src", "ws_evil/src"):
        (base / folder).mkdir(parents=True)
    for name in ("ws/a.py", "ws/src/a.py", "outside/a.py", "ws_evil/a.py"):
        (base / name).write_text(name)
    (base / "ws/inner").symlink_to("src/deep")
    (base / "ws/out").symlink_to("../outside")
    (base / "ws/src/up").symlink_to("..")
    (base / "ws/lib/out").symlink_to("/")
    return base


def written(chance: random.Random, base: Path, pieces: tuple[str, ...]) -> str:
    start = chance.choice(STARTS).replace("{ws}", str(base / "ws")).replace("{base}", str(base))
    return start + "/".join(chance.choice(pieces) for _ in range(chance.randrange(1, 7)))


def reference(base: Path, path: str) -> str | None:
    """Where a path without tricks leads, by the system's own answer; None for outside."""
    real = os.path.realpath(base / "ws" / path)
    return real if real == str(base / "ws") or real.startswith(f"{base}/ws/") else None


@pytest.mark.slow
def test_plain_paths_lead_where_the_system_says(base: Path) -> None:
    roots, chance = Roots([str(base / "ws")]), random.Random(40)
    inside = outside = 0
    for _ in range(4000):
        path = written(chance, base, PLAIN)
        if path.startswith(("file:", "FILE:", "~")) or not path:
            continue
        wanted = reference(base, path)
        try:
            assert roots.resolve(path) == wanted, path
            inside += 1
        except PathRefused as error:
            assert str(error)
            trap = path.rstrip("/").endswith("..") or wanted == str(base / "ws") or path.startswith("//")
            assert wanted is None or trap, path
            outside += 1
    assert inside > 800
    assert outside > 800


@pytest.mark.slow
def test_twenty_thousand_odd_paths_never_lead_outside(base: Path) -> None:
    roots, chance = Roots([str(base / "ws")]), random.Random(41)
    accepted = 0
    for _ in range(20_000):
        path = written(chance, base, PLAIN + ODD)
        try:
            resolved = roots.resolve(path)
        except PathRefused:
            continue
        accepted += 1
        assert Path(resolved).parts[: len(base.parts) + 1] == (base / "ws").parts, ascii(path)
        assert os.path.realpath(resolved) == resolved, ascii(path)
        assert roots.root_of(resolved) == str(base / "ws")
        shown = roots.relative(resolved)
        assert shown.startswith(("C:", "~")) or roots.resolve(shown) == resolved, ascii(path)
    assert accepted > 3000


@pytest.mark.slow
def test_whatever_is_read_stands_inside(base: Path) -> None:
    roots, chance = Roots([str(base / "ws")]), random.Random(42)
    texts = set()
    for _ in range(4000):
        try:
            texts.add(roots.read_bytes(roots.resolve(written(chance, base, PLAIN)), 1000))
        except (PathRefused, FileRefused):
            continue
    assert texts == {b"ws/a.py", b"ws/src/a.py"}


@pytest.mark.slow
def test_several_folders_never_mix(base: Path) -> None:
    roots = Roots([str(base / "ws"), str(base / "ws_evil")])
    chance = random.Random(43)
    seen = set()
    for _ in range(3000):
        try:
            resolved = roots.resolve(written(chance, base, PLAIN))
        except PathRefused:
            continue
        root = roots.root_of(resolved)
        seen.add(root)
        assert root is not None and Path(resolved).is_relative_to(root)
        assert not Path(resolved).exists() or roots.resolve(roots.relative(resolved)) == resolved
    assert seen == {str(base / "ws"), str(base / "ws_evil")}


def test_the_name_of_the_only_folder_is_no_part_of_a_path(base: Path) -> None:
    assert Roots([str(base / "ws")]).resolve("ws/a.py") == str(base / "ws/ws/a.py")


def test_the_name_of_one_of_several_folders_is_understood(base: Path) -> None:
    roots = Roots([str(base / "ws"), str(base / "ws_evil")])
    for name in ("ws/a.py", "ws_evil/a.py", "ws_evil/new/file.py", "ws/new.py"):
        assert roots.resolve(name) == str(base / name)
        assert roots.relative(str(base / name)) == name


@pytest.mark.parametrize(
    "written_", ["out", "out/", "out/a.py", "lib/out", "lib/out/etc/passwd", "src/up/out/a.py", "inner/../../../.."]
)
def test_links_out_are_refused_whatever_stands_before_them(base: Path, written_: str) -> None:
    roots = Roots([str(base / "ws")])
    for form in (
        written_,
        f"./{written_}",
        f"src/../{written_}",
        f"{base}/ws/{written_}",
        f"file://{base}/ws/{written_}",
    ):
        with pytest.raises(PathRefused):
            roots.resolve(form)
