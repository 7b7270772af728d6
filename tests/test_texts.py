"""The catalogue: its sentences are used, filled and chosen. That each is there in both languages: `tests/tidy`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import codeagent_lsp
from codeagent_lsp.texts import choose_language, keys, pair, text

PACKAGE = Path(codeagent_lsp.__file__).parent


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
