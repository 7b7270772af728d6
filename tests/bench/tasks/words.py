"""The words that users type, varied by a seed, in English and some in Chinese. They never name the fault itself."""

from __future__ import annotations

import random

CHINESE_SHARE = 0.15

FUNCTION = (
    "The function {function} in {file} has a bug, so that {test} fails. Fix it.",
    "Fix {function} in {file}: {test} does not pass.",
    "{test} fails since somebody changed {function} ({file}). Please repair the function, do not touch the tests.",
    "There is a mistake in `{function}` in `{file}`. Find it and correct it so that the tests pass.",
)
FILE = (
    "There is a bug in {file}; {test} fails. Fix it.",
    "Something in {file} is wrong, the tests fail. Please repair it and leave the tests alone.",
    "Please fix the bug in {file}.",
)
TEST = (
    "{test} fails. Find out why and fix the code.",
    "python -m unittest shows failures in {test}. Fix the code, the test is right.",
    "Make {test} pass again without changing it.",
)
NOTHING = (
    "The tests fail (python -m unittest). Repair the code, not the tests.",
    "Some of the unit tests fail. Find the bug in the code and fix it.",
    "My tests are red. Run python -m unittest and fix what is broken.",
)
CHINESE = (
    "{file} 里的函数 {function} 有一个错误，导致 {test} 失败。请修复。",
    "{file} 有问题，{test} 不能通过。请修改代码，不要改测试。",
    "测试失败了（python -m unittest）。请修复代码，不要修改测试。",
)
RENAME = (
    "Rename the {sort} {old} in {file} to {new}, everywhere it is used.",
    "{old} should be called {new}. Please rename this {sort} in the whole project; the tests use the new name already.",
    "Please rename {old} to {new} in {file} and in all files that use it. Nothing may be left of the old name.",
)
RENAME_CHINESE = ("请把 {file} 中的 {old} 改名为 {new}，所有用到它的文件也要一起改。",)


def fault_words(chance: random.Random, *, function: str, file: str, test: str) -> str:
    """A request to repair; how much it names is drawn."""
    forms = CHINESE if chance.random() < CHINESE_SHARE else chance.choice((FUNCTION, FUNCTION, FILE, TEST, NOTHING))
    return chance.choice(forms).format(function=function, file=file, test=test)


def rename_words(chance: random.Random, *, sort: str, old: str, new: str, file: str) -> str:
    """A request to rename something everywhere."""
    forms = RENAME_CHINESE if chance.random() < CHINESE_SHARE else RENAME
    return chance.choice(forms).format(sort=sort, old=old, new=new, file=file)


def addition_words(chance: random.Random, *, english: str, chinese: str, test: str) -> str:
    """A request to add something, with or without a pointer to its tests."""
    if chance.random() < CHINESE_SHARE:
        return chinese
    ends = ("", f" {test} shows what is wanted.", f" The tests for it are in {test} and fail so far.")
    return english + chance.choice(ends)
