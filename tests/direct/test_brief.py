"""What the words of a task say: tests that have to pass, a command, tests to be written, whether it is a task."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.checks import brief_of, may_want_edit, wants_edit

ABOUT_TESTS = [
    "The function mean in stats.py has a bug, so that the test fails. Fix it.",
    "test_stats.py fails. Fix stats.py.",
    "Some of the unit tests fail. Find the bug and fix it.",
    "My tests are red. Run python -m unittest and fix what is broken.",
    "Make the tests pass.",
    "Fix bisect so that all tests are green",
    "CI is broken by the last commit, repair it",
    "`pytest` shows three errors, fix them",
    "测试失败了，请修复 stats.py。",
    "请修好代码，让测试通过。",
]


@pytest.mark.parametrize("words", ABOUT_TESTS)
def test_tests_have_to_pass(words: str) -> None:
    assert brief_of(words).about_tests


@pytest.mark.parametrize(
    "words", ["Rename Obj to Good in stock.py.", "Add a parameter to f.", "Write tests for f.", "给 f 添加参数。"]
)
def test_nobody_speaks_of_failing_tests(words: str) -> None:
    assert not brief_of(words).about_tests


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("`python check.py --all` exits with 1. Fix it.", "python check.py --all"),
        ("`./build.sh x` does not work", "./build.sh x"),
        ("`make` fails", "make"),
        ("make test is red, fix it", "make test"),
        ("Fix `mean` in `stats.py`.", ""),
        ("`pytest` fails, fix it", ""),
        ("python -m unittest fails, fix it", ""),
        ("`npm test` is broken", ""),
        ("`go test ./...` fails", ""),
        ("python3 -m pytest tests/测试.py失败了", "python3 -m pytest tests/测试.py"),
        ("python -m pytest -x tests/a.py is red", "python -m pytest -x tests/a.py"),
        ("pytest-cov fails", ""),
        ("`rm -rf x` fails", ""),
        ("Replace `python setup.py install` in the documentation by `python -m pip install .`", ""),
        ("Mention `make test` in the README", ""),
    ],
)
def test_a_command_that_decides(words: str, command: str) -> None:
    assert brief_of(words).command == command


@pytest.mark.parametrize(
    ("words", "writes"),
    [
        ("Write unit tests for f.", True),
        ("Add a test for the empty list.", True),
        ("Update the tests of stock.py.", True),
        ("给 f 编写测试。", True),
        ("Fix the code, not the tests.", False),
        ("Repair it; do not change the tests.", False),
        ("Add a function double; test_double.py tests it.", False),
        ("The tests fail. Fix them? No: never update the tests.", False),
        ("修复代码，不要修改测试。", False),
        ("Change the parser so that tests pass", False),
        ("Update the code until all tests pass", False),
        ("Change it to make the tests pass", False),
        ("Update all tests", True),
        ("Add tests that pass an empty list", True),
        ("修改 calc.py 让测试通过", False),
        ("修改代码使所有测试通过", False),
        ("修改代码直到测试都通过", False),
        ("更新购物车的测试", True),
    ],
)
def test_whether_tests_may_change(words: str, *, writes: bool) -> None:
    assert brief_of(words).writes_tests is writes


@pytest.mark.parametrize(
    ("words", "repairs"),
    [
        ("Something in support.py is wrong, the tests fail. Please repair it.", True),
        ("workshop/support.py 有问题，test_support.py 不能通过。请修改代码，不要改测试。", True),
        ("Fix `add_new` in `lib/create.py`: test_create.py fails", True),
        ("add_item crashes for an empty cart", True),
        ("Add support for dates; the tests fail until it is there", False),
        ("The tests fail, since a new parameter is missing.", False),
        ("error_log needs a limit", False),
        ("Sort wrong_names.txt", False),
    ],
)
def test_something_is_wrong_and_nothing_new_is_asked_for(words: str, *, repairs: bool) -> None:
    assert brief_of(words).repairs is repairs


@pytest.mark.parametrize(
    "words",
    [
        "Fix the bug in stats.py.",
        "Add a parameter to f",
        "Rename the constant MAX to LIMIT everywhere",
        "The checkout adds the wrong tax",
        "run the tests and fix what is broken",
        "修复 stats.py 中的错误。",
    ],
)
def test_surely_a_change_is_asked_for(words: str) -> None:
    assert wants_edit(words)
    assert may_want_edit(words)


@pytest.mark.parametrize(
    "words",
    [
        "Run the tests.",
        "commit this",
        "install the dependencies",
        "What does f do?",
        "Explain this function",
        "hello",
        "What can you do?",
        "运行测试",
        "list all files",
    ],
)
def test_no_change_is_asked_for(words: str) -> None:
    assert not wants_edit(words)


def test_words_that_do_not_tell_may_ask_for_a_change() -> None:
    assert may_want_edit("do it")
    assert not wants_edit("do it")
    assert not may_want_edit("What does f do?")


def test_long_tasks_are_read_in_part_and_quickly() -> None:
    assert not brief_of("x " * 200_000 + "the tests fail").about_tests
