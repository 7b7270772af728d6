"""Which files a task is about, and what of them is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.agent.context.gather import MOST_FILES
from codeagent_lsp.agent.context.tokens import estimate_tokens
from codeagent_lsp.agent.solving.brief import brief_of
from codeagent_lsp.agent.solving.material import Material
from codeagent_lsp.agent.solving.verdict import FailedTest, Verdict
from codeagent_lsp.session.solving.gathering import Gatherer, Subject
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import Roots
from tests.workspace.file_fakes import FakeBuffers, FakeStaged

LONG = "".join(f"def filler_{n}(value):\n    total = value + {n}\n    return total\n\n\n" for n in range(380))
FILES = {
    "shop/cart.py": "from shop.taxes import tax\n\n\ndef checkout(items):\n    return tax(items)\n",
    "shop/taxes.py": "RATE = 19\n\n\ndef tax(items):\n    return RATE\n",
    "shop/mail.py": "def send(customer):\n    return customer\n",
    "shop/long.py": f'"""Long."""\n\n\n{LONG}def wanted(a):\n    return a - 1\n',
    "tests/test_taxes.py": "from shop.taxes import tax\n\n\ndef test_tax():\n    assert tax([1]) == 0.19\n",
    "tests/test_cart.py": "from shop.cart import checkout\n\n\ndef test_checkout():\n    assert checkout([])\n",
    ".env": "SECRET=1\n",
    "dist/made.py": "X = 1\n",
    "README.md": "# Shop\n",
}


@pytest.fixture
def gatherer(tmp_path: Path) -> Gatherer:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return over(tmp_path, FakeBuffers())


def over(folder: Path, buffers: FakeBuffers) -> Gatherer:
    view = FileView(Roots([str(folder)]), buffers, FakeStaged())
    return Gatherer(view, lambda path: not path.endswith(".env"))


def subject(words: str, target: str = "", mapped: tuple[str, ...] = (), earlier: tuple[str, ...] = ()) -> Subject:
    return Subject(brief_of(words), target, range(0), earlier, mapped)


FAILING = Verdict(0, (FailedTest("tests.test_taxes.test_tax", "tests/test_taxes.py", 5),), "test_tax: 19 != 0.19")


def test_the_file_that_is_named(gatherer: Gatherer) -> None:
    assert gatherer.about(subject("Fix shop/mail.py"), None) == ("shop/mail.py",)
    assert gatherer.about(subject("Fix mail.py"), None) == ("shop/mail.py",)


def test_the_file_that_is_pointed_at_comes_first(gatherer: Gatherer) -> None:
    assert gatherer.about(subject("Use tax of taxes.py here", target="shop/mail.py"), None)[0] == "shop/mail.py"


def test_what_the_named_test_imports(gatherer: Gatherer) -> None:
    assert gatherer.about(subject("test_taxes.py fails. Fix it."), None) == ("shop/taxes.py",)


def test_what_the_failing_test_imports(gatherer: Gatherer) -> None:
    assert gatherer.about(subject("Some tests fail. Repair the code."), FAILING) == ("shop/taxes.py",)


def test_the_files_of_a_traceback(gatherer: Gatherer) -> None:
    traced = Verdict(0, (FailedTest("x"),), '  File "/elsewhere/shop/mail.py", line 2, in send\nTypeError')
    assert "shop/mail.py" in gatherer.about(subject("The tests fail."), traced)


def test_all_uses_of_a_name(gatherer: Gatherer) -> None:
    found = gatherer.about(subject("Rename the constant RATE in taxes.py to VAT everywhere"), None)
    assert found[0] == "shop/taxes.py"
    assert "shop/mail.py" not in found
    assert "shop/cart.py" in gatherer.about(subject("Rename tax in taxes.py to value_added_tax everywhere"), None)


def test_the_best_of_the_map_where_nothing_is_named(gatherer: Gatherer) -> None:
    words = subject("The checkout adds the wrong tax", mapped=("shop/cart.py", "tests/test_cart.py", "shop/taxes.py"))
    assert gatherer.about(words, None) == ("shop/cart.py", "shop/taxes.py")


def test_files_of_earlier_runs_where_nothing_is_named(gatherer: Gatherer) -> None:
    assert gatherer.about(subject("Now undo half of it again", earlier=("shop/mail.py",)), None) == ("shop/mail.py",)


def test_what_a_tool_made_and_what_may_not_be_read_is_left_out(gatherer: Gatherer) -> None:
    words = subject("Fix dist/made.py and .env")
    material = gatherer.material(words, None, room=2000, small=True)
    assert not {"dist/made.py", ".env"} & {file.name for file in material.files}


def test_tests_that_judge_stay_as_they_are(gatherer: Gatherer) -> None:
    material = gatherer.material(subject("test_taxes.py fails. Fix it."), FAILING, room=2000, small=True)
    assert [file.name for file in material.files] == ["shop/taxes.py"]
    assert material.fixed == ("tests/test_taxes.py",)
    assert "assert tax([1]) == 0.19" in material.context[0].text


def test_tests_may_change_where_that_is_asked_for(gatherer: Gatherer) -> None:
    found = gatherer.about(subject("Add a test for tax to test_taxes.py"), None)
    assert "tests/test_taxes.py" in found


def test_tests_beside_a_file(gatherer: Gatherer) -> None:
    assert gatherer.tests_beside(["shop/taxes.py", "shop/mail.py"]) == ("tests/test_taxes.py",)


@pytest.mark.parametrize("room", [300, 1000, 3000])
def test_of_a_long_file_the_function_is_shown(gatherer: Gatherer, room: int) -> None:
    words = subject("The function wanted in long.py is wrong. Fix it.")
    material = gatherer.material(words, None, room=room, small=True)
    (file,) = material.files
    assert not file.whole
    assert [piece.name for piece in file.pieces] == ["wanted"]
    assert material.tokens <= room


def test_what_is_shown_never_goes_beyond_the_room(gatherer: Gatherer) -> None:
    words = subject("Fix cart.py, taxes.py, mail.py and long.py; test_cart.py fails, so does test_taxes.py")
    for room in (50, 200, 500, 2000):
        material = gatherer.material(words, FAILING, room=room, small=True)
        shown = material.tokens + sum(estimate_tokens(piece.text) for piece in material.context)
        assert shown <= room + 40


def test_unsaved_text_is_what_is_shown(gatherer: Gatherer, tmp_path: Path) -> None:
    buffers = FakeBuffers()
    buffers.open(str(tmp_path / "shop/mail.py"), "def send(customer):\n    return 'unsaved'\n", 4)
    material = over(tmp_path, buffers).material(subject("Fix mail.py"), None, room=1000, small=True)
    assert "unsaved" in material.files[0].read.text
    assert material.files[0].read.version == 4


def test_the_names_of_files_where_a_new_one_is_wanted(gatherer: Gatherer) -> None:
    creating = subject("Create a new file shop/a.py")
    assert "shop/cart.py" in gatherer.material(creating, None, room=900, small=True).listing
    assert gatherer.material(subject("Fix mail.py"), None, room=900, small=True).listing == ""


def test_a_file_the_model_asked_for(gatherer: Gatherer) -> None:
    wanted = Subject(brief_of("Fix mail.py"), wanted=("cart.py",))
    assert set(gatherer.about(wanted, None)) == {"shop/mail.py", "shop/cart.py"}


def test_a_rename_reaches_every_file_or_is_left_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def first_tax():\n    return 1\n")
    for number in range(450):
        (tmp_path / f"use{number:03}.py").write_text("from a import first_tax\n")
    words = "Rename first_tax to tax_of everywhere."
    texts, material = over(tmp_path, FakeBuffers()).renamed(words)
    assert len(texts) == 451
    assert {file.name for file in material.files} == set(texts)
    assert set(texts.values()) == {"def tax_of():\n    return 1\n", "from a import tax_of\n"}
    for number in range(MOST_FILES):
        (tmp_path / f"more{number}.txt").write_text("")
    assert over(tmp_path, FakeBuffers()).renamed(words) == ({}, Material())
