"""What a model is shown of the files that a task is about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.direct.gathering import Gatherer
from codeagent_lsp.messages import estimate_tokens
from tests.direct.shop import FAILING, LONG, over, shop, subject
from tests.workspace.file_fakes import FakeBuffers

FEES = """def fee_of(order, rate):
    if rate < 0:
        raise ValueError("a rate is never negative")
    return round(order.total * rate / 100, 2)
"""


@pytest.fixture
def gatherer(tmp_path: Path) -> Gatherer:
    return Gatherer(shop(tmp_path))


def test_what_a_tool_made_and_what_may_not_be_read_is_left_out(gatherer: Gatherer) -> None:
    words = subject("Fix dist/made.py and .env")
    material = gatherer.material(words, None, room=2000, small=True)
    assert not {"dist/made.py", ".env"} & {file.name for file in material.files}


def test_tests_that_judge_stay_as_they_are(gatherer: Gatherer) -> None:
    material = gatherer.material(subject("test_taxes.py fails. Fix it."), FAILING, room=2000, small=True)
    assert [file.name for file in material.files] == ["shop/taxes.py"]
    assert material.fixed == ("tests/test_taxes.py",)
    assert "assert tax([1]) == 0.19" in material.context[0].text


@pytest.mark.parametrize("room", [300, 1000, 3000])
def test_of_a_long_file_the_function_is_shown(gatherer: Gatherer, room: int) -> None:
    words = subject("The function wanted in long.py is wrong. Fix it.")
    material = gatherer.material(words, None, room=room, small=True)
    (file,) = material.files
    assert not file.whole
    assert [piece.name for piece in file.pieces] == ["wanted"]
    assert material.tokens <= room


def test_of_a_long_file_that_is_not_named_the_piece_that_was_found(gatherer: Gatherer) -> None:
    line = LONG.count("\n") + 4
    words = replace(
        subject("One is missing at the end", mapped=("shop/long.py",)),
        pieces=(("shop/long.py", range(line, line + 2)),),
    )
    (file,) = gatherer.material(words, None, room=2000, small=True).files

    assert file.name == "shop/long.py"
    assert [piece.name for piece in file.pieces] == ["wanted"]


def test_what_is_shown_never_goes_beyond_the_room(gatherer: Gatherer) -> None:
    words = subject("Fix cart.py, taxes.py, mail.py and long.py; test_cart.py fails, so does test_taxes.py")
    for room in (50, 200, 500, 2000):
        material = gatherer.material(words, FAILING, room=room, small=True)
        shown = material.tokens + sum(estimate_tokens(piece.text) for piece in material.context)
        assert shown <= room + 40


def test_unsaved_text_is_what_is_shown(gatherer: Gatherer, tmp_path: Path) -> None:
    buffers = FakeBuffers()
    buffers.open(str(tmp_path / "shop/mail.py"), "def send(customer):\n    return 'unsaved'\n", 4)
    material = Gatherer(over(tmp_path, buffers)).material(subject("Fix mail.py"), None, room=1000, small=True)
    assert "unsaved" in material.files[0].read.text
    assert material.files[0].read.version == 4


def test_the_names_of_files_where_a_new_one_is_wanted(gatherer: Gatherer) -> None:
    creating = subject("Create a new file shop/a.py")
    assert "shop/cart.py" in gatherer.material(creating, None, room=900, small=True).listing
    assert gatherer.material(subject("Fix mail.py"), None, room=900, small=True).listing == ""


def example(gatherer: Gatherer, words: str, room: int = 3000) -> str:
    found = gatherer.material(subject(words), None, room=room, small=True).example
    return found.name if found is not None else ""


def test_something_new_comes_with_an_example_of_the_project_s_style(tmp_path: Path) -> None:
    shop(tmp_path)
    (tmp_path / "shop/fees.py").write_text(FEES)
    (tmp_path / "shop/fees.js").write_text("export function feeOf(order, rate) {\n  return order.total * rate\n}\n")
    gatherer = Gatherer(over(tmp_path))
    adds = "Add a function discount_of(order, rate) to mail.py"
    assert example(gatherer, adds) == "fee_of"
    assert example(gatherer, adds, room=20) == ""
    assert example(gatherer, "discount_of(order, rate) in mail.py is wrong, fix it") == ""
    assert example(gatherer, "Add a function discount_of(order, rate) to fees.py") != "fee_of"
    assert example(gatherer, "Add the parameter rate to fee_of(order) everywhere") == ""
