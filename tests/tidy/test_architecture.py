"""The map for people who change something: every path that it names is there."""

from __future__ import annotations

import re

import pytest

from tests.tidy.source import PACKAGE, ROOT, modules

TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
SECTION = TEXT.partition("## Where to go\n")[2].partition("\n## ")[0]
ROWS = [line for line in SECTION.splitlines() if line.startswith("| ") and "I want to" not in line]
PACKAGES = "codeagent_lsp|agent|session|server|tools|workspace|index|llm|terminal"
PACKAGE_PATH = re.compile(rf"`((?:{PACKAGES})/[\w./]+(?:\.py|/))`")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_each_change_names_files_that_exist(row: str) -> None:
    paths = re.findall(r"`((?:codeagent_lsp|editors)/[^`*]+)`", row)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_table_is_read() -> None:
    assert len(ROWS) >= 12


def test_every_other_path_of_the_page_exists() -> None:
    named = PACKAGE_PATH.findall(TEXT)
    missing = [path for path in named if not (ROOT / path).exists() and not (ROOT / "codeagent_lsp" / path).exists()]
    assert len(named) > 20
    assert missing == []


def test_each_name_of_the_page_stands_in_its_file() -> None:
    """As in "`Name` in `path`", and "`path` (`name`; …)"."""
    pairs = [(name, path) for name, path in re.findall(r"`(\w+)` in `([\w./]+\.py)`", TEXT)]
    alone = re.sub(r"`\w+` in `[\w./]+\.py`", "", TEXT)
    for path, names in re.findall(r"`([\w./]+\.py)` \(([^()]*)\)", alone):
        pairs.extend((name, path) for name in re.findall(r"`(\w+)`", names))
    missing = [f"{name}: {path}" for name, path in pairs if not re.search(rf"\b{name}\b", _text_of(path))]
    assert len(pairs) > 10
    assert missing == []


def _text_of(path: str) -> str:
    return next(each.read_text("utf-8") for each in (ROOT / path, PACKAGE / path) if each.exists())


def test_the_parts_are_listed_from_the_lowest_up() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", TEXT.partition("## The parts")[2].partition("\n## ")[0], re.MULTILINE)
    layers = re.search(r"^layers =\n((?: .*\n)+)", (ROOT / ".importlinter").read_text("utf-8"), re.MULTILINE)
    assert layers is not None
    height = {part: -at for at, line in enumerate(layers[1].splitlines()) for part in re.findall(r"\w+", line)}
    assert sorted(listed) == sorted(height)
    assert listed == sorted(listed, key=lambda part: height[part])


def test_docstrings_name_files_that_exist() -> None:
    """A path in a docstring is one from the package or from the folder of its module, or only a name in it."""
    invented = {"a/b.py", "test_a.py", "copy.py"}
    missing = []
    for module in modules():
        near = (PACKAGE, ROOT, module.path.parent, module.path.parent.parent)
        for name in re.findall(r"`([\w./]+\.py)`", module.text):
            if name not in invented and not any((folder / name).exists() for folder in near):
                missing.append(f"{module.name}: {name}")
    assert missing == []
