"""Where sensitive names stand in a text: `API_KEY`, `clientSecret`, `access token`, `密码`.

Their stems are looked for one by one, as plain text: that is many times faster than one pattern of all, and a text
without a stem costs nothing more. Not here: the meaning of a name (`names.py`), its value (`assignments.py`).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from codeagent_lsp.records.mark import MARK
from codeagent_lsp.records.names import NameKind, kind_of
from codeagent_lsp.records.search import lowered, places

LONGEST_NAME = 80

_STEMS = (
    "pass", "pw", "phrase", "kennw", "contrase", "senha", "wachtwoord", "parol", "haslo", "hasło", "lösenord",
    "losenord", "adgangskode", "salasana", "heslo", "jelsz",
    "şifre", "sifre", "khẩu", "sandi", "geheimnis",
    "schlüssel", "clé", "masterauth", "mdp", "_pat", "_sk",
    "secret", "token", "jeton", "jwt", "psk", "fernet", "key", "auth", "cred", "cookie", "bearer", "session", "call_id",
    "callid", "mnemonic", "seed",
    "clave", "chave", "chiave", "ключ", "токен", "キー", "키",
    "парол", "пасворд", "секрет", "κωδικ", "סיסמ", "كلمة المرور", "كلمة السر", "पासवर्ड", "รหัสผ่าน",
    "密码", "密碼", "口令", "密钥", "密鑰", "秘钥", "金鑰", "令牌", "暗号", "パスワード", "合言葉",
    "私钥", "私鑰", "權杖", "权杖", "通行证", "授权码", "授權碼", "激活码", "凭证", "憑證",
    "シークレット", "トークン", "秘密鍵", "暗証番号",
    "비번", "비밀번호", "암호", "비밀키", "토큰", "패스워드", "시크릿",
)  # fmt: skip
_SESSIONS = ("sid",)
_BEFORE = string.ascii_letters + string.digits + "_.$-"
_BEFORE_SET = frozenset(_BEFORE)
_UNSPACED = "\u0e00"  # from here on are the scripts that write words without spaces between them
_TAIL = re.compile(rf"(?:[^\W{_UNSPACED}-\uffff]|-)*+")
_DEFINED = re.compile(r"-D(?=[A-Z_]{2})")
_ALONE = re.compile(r"(?<![A-Za-z0-9_.-])PAT(?=[\"']?[ \t]?[=:])")  # a personal access token
_FIRST = frozenset((
    "api", "access", "secret", "private", "auth", "encryption", "signing", "master", "license", "security", "service",
    "deploy", "pragma", "wep", "wpa", "wifi", "pass", "seed", "recovery", "geheimer", "privater",
))  # fmt: skip
_SECOND = frozenset(("key", "keys", "token", "passe", "phrase", "schlüssel"))


class Name(NamedTuple):
    """A sensitive name: the words, their span in the text, and their kind."""

    text: str
    start: int
    end: int
    kind: NameKind


# JSON as many programs write it: names of other scripts by the numbers of their characters.
_ONE_ESCAPED = len("\\u0000")
_ESCAPED = re.compile(r"(?:\\u[0-9A-Fa-f]{4})++")
_PARENT = re.compile(r"[\w.-]{2,40}\Z")
_PARENTS = frozenset("\n \t\"'{")


def sensitive_names(text: str, *, sessions: bool) -> Iterator[Name]:
    """Yield the sensitive names in `text`, in order; with `sessions`, also those of sessions."""
    end = 0
    for at, length in _stems(text, (*_STEMS, *_SESSIONS) if sessions else _STEMS):
        # Within the name before, as `key` in `token_key`.
        if at < end:
            continue
        end = at + length
        # In a script without blanks the name ends with its stem.
        if text[end - 1] < _UNSPACED and (tail := _TAIL.match(text, end)):
            end = tail.end()
        if text[at - 1 : at] == "<" and MARK.match(text, at - 1):  # a mark contains the word `secret`
            continue
        start = name_start(text, at)
        if end - start <= LONGEST_NAME and (name := _name(text, start, end)):
            yield name


def name_start(text: str, stem: int) -> int:
    """Return where the name begins that has its stem, such as `token` in `access_token`, at this offset of a text."""
    if text[stem - 1 : stem] not in _BEFORE_SET:
        return stem
    before = text[max(0, stem - LONGEST_NAME) : stem]
    return stem - len(before) + len(before.rstrip(_BEFORE))


def _name(text: str, start: int, end: int) -> Name | None:
    words = text[start:end]
    kind = _kind(words)
    if kind is NameKind.SECRET:
        return Name(words, start, end, kind)
    if words in ("key", "Key") and text[start - 1 : start] in _PARENTS and _is_of_secret(text, start):
        return Name(words, start, end, NameKind.PERHAPS)
    if text[start - 1 : start] == " " and words.lower() in _SECOND:
        before = text[max(0, start - 16) : start - 1].lower()
        first = "mot de" if before.endswith("mot de") else (before.split() or [""])[-1].lstrip("*_`'\"([|")
        if first in _FIRST or first == "mot de":
            start -= len(first) + 1
            kind = kind_of(text[start:end].replace(" ", "_"))
    return None if kind in (NameKind.PLAIN, NameKind.IDENTITY) else Name(text[start:end], start, end, kind)


def _is_of_secret(text: str, key: int) -> bool:
    """Return whether what stands around a `key` at an offset makes it one of a secret: `api:` or `[api]` on the line
    above, `"api": {` before it.
    """
    before = text[max(0, key - 60) : key].rstrip("\"'").rstrip(" \t")
    if before.endswith("\n"):
        before = before.rstrip("\r\n")
    above = before.rstrip(" \t{").rstrip(" \t:=").rstrip("\"']")
    name = _PARENT.search(above, max(0, len(above) - 40))
    return above != before and name is not None and _kind(f"{name[0]}_key") is NameKind.SECRET


@lru_cache(maxsize=16_384)  # as many names as a large text has
def _kind(words: str) -> NameKind:
    if "\\u" in words:
        words = _read(words)
    # `-DAPI_KEY=…` defines a name for a compiler, or a property for Java.
    return kind_of((words[2:] if _DEFINED.match(words) else words).strip("-.$"))


@lru_cache(maxsize=4096)
def _has_stem(escaped: str) -> bool:
    read = _read(escaped).lower()
    return any(stem in read for stem in _STEMS)


def _read(escaped: str) -> str:
    return _ESCAPED.sub(lambda found: "".join(chr(int(code, 16)) for code in found[0].split("\\u")[1:]), escaped)


def _stems(text: str, stems: tuple[str, ...]) -> list[tuple[int, int]]:
    found = [(match.start(), 3) for match in _ALONE.finditer(text)] if "PAT" in text else []
    lower = lowered(text)
    ascii_only = lower.isascii()
    for stem in stems:
        if stem.isascii() or not ascii_only:
            found += [(at, len(stem)) for at in places(lower, stem)]
    for match in _ESCAPED.finditer(text) if "\\u" in text else ():
        if len(match[0]) > _ONE_ESCAPED and _has_stem(match[0]):
            found.append((match.start(), len(match[0])))
    found.sort()
    return found
