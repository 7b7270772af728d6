"""Laying texts over a copy leads to the same files as preparing it anew, and both say what changed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from codeagent_lsp.shadow.mirror import Mirror
from codeagent_lsp.workspace.files.ignore import IgnoreRules
from tests.examples import examples

NAMES = ("a.py", "b.py", "d/a.py", "d/e/c.py", "d", "x.bin", "new/deep/f.py")


def mirror(root: Path, place: Path) -> Mirror:
    return Mirror(str(root), str(place), IgnoreRules(str(root)).at_root)


def files(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(200)))
def test_laying_is_preparing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    root, place = tmp_path / "disk", tmp_path / "copy"
    (root / "d" / "e").mkdir(parents=True)
    for name in ("a.py", "d/a.py", "d/e/c.py", "x.bin"):
        (root / name).write_bytes(name.encode() + b"\0" * (name == "x.bin"))
    copy = mirror(root, place)
    copy.prepare({})
    wanted: dict[str, bytes | None] = {}
    for number in range(12):
        before = files(place)
        path = str(root / chance.choice(NAMES))
        match chance.choice(("text", "text", "delete", "back", "clear")):
            case "text":
                wanted[path] = f"{number}\n".encode()
            case "delete":
                wanted[path] = None
            case "back":
                wanted.pop(path, None)
            case _:
                wanted.clear()
        given = without_clashes(wanted, root)
        copy.lay(given)
        after = files(place)
        fresh = tmp_path / f"fresh{number}"
        mirror(root, fresh).prepare(given)
        assert after == files(fresh), (number, given)
        told = {name for name, kind in copy.copy.changed.items() if kind != "deleted" or name in before}
        assert told >= {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def without_clashes(wanted: dict[str, bytes | None], root: Path) -> dict[str, bytes | None]:
    """Return texts of which none is a folder of another, as a run's staging has them."""
    top = str(root / "d")
    return {path: data for path, data in wanted.items() if path != top}


def test_a_file_that_changed_on_the_disk_comes_with_the_next_look(tmp_path: Path) -> None:
    root, place = tmp_path / "disk", tmp_path / "copy"
    root.mkdir()
    (root / "a.py").write_text("old\n")
    copy = mirror(root, place)
    copy.prepare({})
    (root / "a.py").write_text("saved\n")
    copy.lay({str(root / "b.py"): b"staged\n"})
    assert files(place) == {"a.py": b"old\n", "b.py": b"staged\n"}
    copy.prepare({str(root / "b.py"): b"staged\n"})
    assert files(place) == {"a.py": b"saved\n", "b.py": b"staged\n"}
    assert copy.copy.changed == {"a.py": "changed"}


def test_what_is_staged_no_more_comes_from_the_disk_as_it_is(tmp_path: Path) -> None:
    root, place = tmp_path / "disk", tmp_path / "copy"
    root.mkdir()
    (root / "a.py").write_text("old\n")
    copy = mirror(root, place)
    copy.prepare({})
    copy.lay({str(root / "a.py"): b"staged\n"})
    (root / "a.py").write_text("saved\n")
    copy.lay({})
    assert files(place) == {"a.py": b"saved\n"}
    (root / "a.py").unlink()
    copy.lay({str(root / "a.py"): b"staged\n"})
    copy.lay({})
    assert files(place) == {}
