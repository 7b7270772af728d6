"""Names of secrets, values and signs of all scripts in any order: masking ends, is the same when done twice, and can be
taken back.
"""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import random
import unicodedata

import pytest

from codeagent_lsp.records.masking import Masking, StreamSanitizer

NAMES = """
    password passwort 密码 密钥 секретный ключ пароль token api_key secret mot de passe contraseña APIキー 비밀번호
    Authorization: Bearer client_secret AWS_SECRET_ACCESS_KEY --password -p curl -u mysql set ENV export const let is
    ist est name value key
""".split()
VALUES = (
    f"VXwxbSTT{'UFZO3T4i'}",
    f"dead{'beef'}0123456789abcdef",
    f"https://a:Pq7rT9{'zzX2mK'}@h/p",
    "correct horse battery staple",
    *"hunter22 1234567890123456 日本語テキスト été слово x foo.bar() $TOKEN ${A}".split(),
)
_MANY = (*map(chr, range(0x20, 0x7F)), *map(chr, range(0xA0, 0x2100)), "「", "」", "：", "＝")
SIGNS = (
    *(sign for sign in _MANY if unicodedata.category(sign)[0] in "PSZ"),
    *("\n", "\r\n", "\t", " ", "=", ": ", '"', "'", "`", "\\", "{", "}", "(", ")", ",", "«", "»", "“", "”", "‘", "’")
    * 8,
)


def text_of(seed: int) -> str:
    chance = random.Random(seed)
    return "".join(chance.choice(chance.choice((NAMES, SIGNS, SIGNS, VALUES))) for _ in range(chance.randint(3, 40)))


def check(seeds: range) -> None:
    for seed in seeds:
        text, masking = text_of(seed), Masking()
        masked = masking.hide(text)
        assert masking.hide(masked) == masked, seed
        assert masking.reveal(masked) == text, seed
        stream = StreamSanitizer(Masking().hide)
        assert "".join((*map(stream.feed, text), stream.close())) is not None, seed


@pytest.mark.timeout(60)
def test_any_order() -> None:
    check(range(60))


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_many_orders() -> None:
    check(range(60, 3_000))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("quotes", ["«»", "‹›", "‘’", "“”", "„“", "『』", "「」", "〈〉", "‚‘", "ʻʼ"])
def test_quotes_of_other_languages(quotes: str) -> None:
    """A word that began with a quote had no end, and was found again and again."""
    for words in ("секретный ключ {}", "clé secrète {}", "der geheime Schlüssel: {}", "l’clé {} é", "密钥 {}"):
        text = words.format(f"{quotes[0]}{VALUES[0]}{quotes[1]}")
        assert VALUES[0] not in Masking().hide(text), text
