"""A rename in all files, and uses of names that are gone."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.agent.context.gather import MOST_FILES
from codeagent_lsp.direct.material import Material
from codeagent_lsp.session.solving.solver_workspace import NameChanges
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from tests.direct.shop import over, shop


def test_a_rename_reaches_every_file_or_is_left_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def first_tax():\n    return 1\n")
    for number in range(450):
        (tmp_path / f"use{number:03}.py").write_text("from a import first_tax\n")
    words = "Rename first_tax to tax_of everywhere."
    texts, material, left = NameChanges(over(tmp_path)).renamed(words)
    assert left == ()
    assert len(texts) == 451
    assert {file.name for file in material.files} == set(texts)
    assert set(texts.values()) == {"def tax_of():\n    return 1\n", "from a import tax_of\n"}
    for number in range(MOST_FILES):
        (tmp_path / f"more{number}.txt").write_text("")
    assert NameChanges(over(tmp_path)).renamed(words) == ({}, Material(), ())


def test_uses_of_a_name_that_is_gone(tmp_path: Path) -> None:
    files = shop(tmp_path)
    before = "RATE = 19\n\n\ndef tax(items):\n    return 1\n"
    taxes = FileChange(str(tmp_path / "shop/taxes.py"), before, "RATE = 19\n")
    left = NameChanges(files).left_behind("Remove the function tax everywhere", Changeset((taxes,)))
    assert set(left) >= {"tax: shop/cart.py", "tax: tests/test_taxes.py"}
    assert NameChanges(files).left_behind("Remove the mail", Changeset((taxes,))) == ()
