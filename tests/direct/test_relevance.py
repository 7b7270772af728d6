"""Which files a task is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.direct.checks import FailedTest, Verdict, brief_of
from codeagent_lsp.direct.gathering import Relevance, Subject
from tests.direct.shop import FAILING, shop, subject


@pytest.fixture
def relevance(tmp_path: Path) -> Relevance:
    return Relevance(shop(tmp_path))


def test_the_file_that_is_named(relevance: Relevance) -> None:
    assert relevance.about(subject("Fix shop/mail.py"), None) == ("shop/mail.py",)
    assert relevance.about(subject("Fix mail.py"), None) == ("shop/mail.py",)


def test_the_file_that_is_pointed_at_comes_first(relevance: Relevance) -> None:
    assert relevance.about(subject("Use tax of taxes.py here", target="shop/mail.py"), None)[0] == "shop/mail.py"


def test_what_the_named_test_imports(relevance: Relevance) -> None:
    assert relevance.about(subject("test_taxes.py fails. Fix it."), None) == ("shop/taxes.py",)


def test_what_the_failing_test_imports(relevance: Relevance) -> None:
    assert relevance.about(subject("Some tests fail. Repair the code."), FAILING) == ("shop/taxes.py",)


def test_the_files_of_a_traceback(relevance: Relevance) -> None:
    traced = Verdict(0, (FailedTest("x"),), '  File "/elsewhere/shop/mail.py", line 2, in send\nTypeError')
    assert "shop/mail.py" in relevance.about(subject("The tests fail."), traced)


def test_all_uses_of_a_name(relevance: Relevance) -> None:
    found = relevance.about(subject("Rename the constant RATE in taxes.py to VAT everywhere"), None)
    assert found[0] == "shop/taxes.py"
    assert "shop/mail.py" not in found
    assert "shop/cart.py" in relevance.about(subject("Rename tax in taxes.py to value_added_tax everywhere"), None)


def test_the_best_of_the_map_where_nothing_is_named(relevance: Relevance) -> None:
    words = subject("The checkout adds the wrong tax", mapped=("shop/cart.py", "tests/test_cart.py", "shop/taxes.py"))
    assert relevance.about(words, None) == ("shop/cart.py", "shop/taxes.py")


def test_files_of_earlier_runs_where_nothing_is_named(relevance: Relevance) -> None:
    assert relevance.about(subject("Now undo half of it again", earlier=("shop/mail.py",)), None) == ("shop/mail.py",)


def test_tests_may_change_where_that_is_asked_for(relevance: Relevance) -> None:
    found = relevance.about(subject("Add a test for tax to test_taxes.py"), None)
    assert "tests/test_taxes.py" in found


def test_a_file_the_model_asked_for(relevance: Relevance) -> None:
    wanted = Subject(brief_of("Fix mail.py"), wanted=("cart.py",))
    assert set(relevance.about(wanted, None)) == {"shop/mail.py", "shop/cart.py"}
