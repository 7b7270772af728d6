"""Completion in prompt documents: what is asked for at the cursor, and which names fit best."""

from __future__ import annotations

import pytest

from codeagent_lsp.server.prompt_documents import Asked, asked_at, best, without_head
from codeagent_lsp.texts import LANGUAGES, text


@pytest.mark.parametrize(
    ("before", "asked"),
    [
        ("@", Asked("file", "", 0)),
        ("see @src/c", Asked("file", "src/c", 4)),
        ("(@c", Asked("file", "c", 1)),
        ("看@src/c", Asked("file", "src/c", 1)),
        ("甲，@c", Asked("file", "c", 2)),
        ("“@c", Asked("file", "c", 1)),
        ('see @"my f', Asked("file", "my f", 4)),
        ("@a.py#", Asked("inside", "", 0, "a.py")),
        ("@a.py#Cart.to", Asked("inside", "Cart.to", 0, "a.py")),
        ('@"a b.py"#Ca', Asked("inside", "Ca", 0, "a b.py")),
        ("use #tot", Asked("symbol", "tot", 4)),
        ("#", Asked("symbol", "", 0)),
        ("/re", Asked("command", "re", 0)),
        ("  /", Asked("command", "", 2)),
        ("see /re", None),
        ("a/b", None),
        ("mail a@b", None),
        ("plain", None),
        ("", None),
        ("@a.py ", None),
    ],
)
def test_what_is_asked_for(before: str, asked: Asked | None) -> None:
    assert asked_at(before, first=True) == asked


def test_commands_stand_at_the_beginning_alone() -> None:
    assert asked_at("/re", first=False) is None


def test_which_files_fit_best() -> None:
    files = ["src/shop/cart.py", "cart/init.py", "src/my_cart.py", "src/cartoon/x.py", "c/a/r/t.txt", "other.py"]
    assert best(files, "cart") == [
        "src/shop/cart.py",
        "cart/init.py",
        "src/my_cart.py",
        "src/cartoon/x.py",
        "c/a/r/t.txt",
    ]
    assert best(files, "CART.PY")[0] == "src/shop/cart.py"
    assert best(files, "zzz") == []
    assert len(best([f"f{number}" for number in range(999)], "f")) == 50


def test_only_the_head_of_a_prompt_document_is_no_task() -> None:
    for language in LANGUAGES:
        head = f"<!-- {text('prompt.head', language)} -->"
        assert without_head(f"{head}\n\nDo it.").strip() == "Do it."
        assert without_head(head) == without_head(head.removesuffix(" -->")) == ""
        assert without_head(f"{head}\n<!-- mine -->").strip() == "<!-- mine -->"
    assert without_head("<!-- TODO: total --> what is this?") == "<!-- TODO: total --> what is this?"
