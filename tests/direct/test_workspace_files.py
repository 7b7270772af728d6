"""The files of a workspace, and which of them a test, a path or a report means."""

from __future__ import annotations

from pathlib import Path

from tests.direct.shop import shop


def test_tests_beside_a_file(tmp_path: Path) -> None:
    assert shop(tmp_path).tests_beside(["shop/taxes.py", "shop/mail.py"]) == ("tests/test_taxes.py",)


def test_the_tests_that_words_name(tmp_path: Path) -> None:
    assert shop(tmp_path).test_files_in("test_taxes.py and taxes.py") == ("tests/test_taxes.py",)
    after_sources = "In cart.py, taxes.py, mail.py, long.py and made.py, so that test_taxes.py passes"
    assert shop(tmp_path).test_files_in(after_sources) == ("tests/test_taxes.py",)


def test_paths_that_begin_elsewhere(tmp_path: Path) -> None:
    assert shop(tmp_path).ending(["/build/shop/mail.py", "./shop/cart.py", "", "no.py"]) == [
        "shop/mail.py",
        "shop/cart.py",
    ]


def test_the_last_line_of_a_report_comes_first(tmp_path: Path) -> None:
    report = 'File "/x/shop/cart.py", line 5\n  shop/taxes.py:4: error\nFile "/x/shop/cart.py", line 5\nelsewhere.py:1'
    assert shop(tmp_path).traced(report) == [("shop/cart.py", 5), ("shop/taxes.py", 4)]


def test_what_may_not_be_read_has_no_text(tmp_path: Path) -> None:
    files = shop(tmp_path)
    assert files.read(".env") is None
    assert files.read("never there") is None
