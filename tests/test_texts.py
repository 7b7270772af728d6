"""The catalogue: complete in both languages, and every key that the code uses is in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

import codeagent_lsp
from codeagent_lsp.texts import choose_language, keys, pair, text
from tests.tidy.source import modules

PACKAGE = Path(codeagent_lsp.__file__).parent
KEY = re.compile(r"[a-z_]+(\.[a-z_]+)+")


@pytest.fixture(scope="module", autouse=True)
def _source() -> None:
    """Reading the whole package is not what a test is timed by."""
    modules()


def placeholders(template: str) -> set[str]:
    """Names of the placeholders of a sentence."""
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def literals(tree: ast.AST) -> Iterator[str]:
    """Texts that stand where a key is expected: the first argument of `text(...)` and of our errors."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = str(getattr(node.func, "id", "") or getattr(node.func, "attr", ""))
        first = node.args[0]
        if name in ("text", "pair") or re.fullmatch(r"(Usage|Setting|Session|Editor|User|Model\w*)Error", name):
            options = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
            for option in options:
                if isinstance(option, ast.Constant) and isinstance(option.value, str):
                    yield option.value


def used() -> dict[str, str]:
    """Every key the code uses literally, with the file it stands in."""
    found: dict[str, str] = {}
    for module in modules():
        found.update((key, module.path.name) for key in literals(module.tree) if KEY.fullmatch(key))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("key", keys())
def test_both_languages_have_the_same_placeholders(key: str) -> None:
    english, chinese = pair(key)
    assert english.strip() and chinese.strip()
    assert placeholders(english) == placeholders(chinese)
    assert KEY.fullmatch(key)


@pytest.mark.slow
def test_every_key_that_is_used_exists() -> None:
    found = used()
    assert len(found) > 40, "the scan finds nothing any more"
    assert {key: where for key, where in found.items() if key not in keys()} == {}


def test_every_sentence_is_used() -> None:
    sources = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py") if path.name != "texts.py")
    families = {match[1] for match in re.finditer(r"f['\"]([a-z_]+(?:\.[a-z_]+)*)\.\{", sources)}
    said = {match[2] for match in re.finditer(r"(['\"])([a-z_.]+)\1", sources)}
    unused = [key for key in keys() if key not in said and key.rpartition(".")[0] not in families]
    assert not unused


@pytest.mark.parametrize("key", keys())
def test_one_word_for_one_thing_in_chinese(key: str) -> None:
    english, chinese = pair(key)
    assert "代理" not in chinese or "proxy" in english.lower(), "代理 is a proxy; the agent is 智能体"


def test_counts_are_in_the_singular_or_plural() -> None:
    assert text("outcome.full", count=1) == "Applied 1 file."
    assert text("lens.next_edit", change="f(s)", count="1") == "f(s): 1 more place ·"
    assert text("lens.next_edit", change="f(s)", count=12) == "f(s): 12 more places ·"


@pytest.mark.parametrize(
    ("reason", "told"),
    [("Bad key.", "Bad key. Run"), ("Bad key", "Bad key. Run"), ("密钥错误。", "密钥错误. Run"), ("..", "... Run")],
)
def test_a_sentence_in_a_sentence_has_one_full_stop(reason: str, told: str) -> None:
    assert told in text("model.unauthorized", url="u", status=401, reason=reason)


def test_sentences_are_filled() -> None:
    assert text("outcome.full", "en", count=2) == "Applied 2 files."
    assert text("outcome.full", "zh-cn", count=2) == "已应用 2 个文件。"
    with pytest.raises(KeyError):
        text("no.such.key")
    with pytest.raises(KeyError):
        text("outcome.full", "en", number=2)


@pytest.mark.parametrize(
    ("setting", "locale", "language"),
    [
        ("auto", None, "en"),
        ("auto", "zh_CN.UTF-8", "zh-cn"),
        ("auto", "zh-Hans", "zh-cn"),
        ("auto", "de", "en"),
        ("en", "zh-cn", "en"),
        ("zh-cn", "en", "zh-cn"),
    ],
)
def test_the_language(setting: str, locale: str | None, language: str) -> None:
    assert choose_language(setting, locale) == language
