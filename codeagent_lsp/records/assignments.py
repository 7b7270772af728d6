"""Secrets assigned to a sensitive name: `name = value`, `"name": "value"`, `--name value`, `<name>value</name>`.

One pass over the text finds the stems of sensitive names; the text around a stem is then parsed as a name, an operator
and a value. Every step is bounded, so the time is linear in the length of the text. Not here: the meaning of names
(`names.py`) and the judgement of values (`values.py`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from codeagent_lsp.records.mark import MARK, Mark
from codeagent_lsp.records.names import NameKind, kind_of, name_start
from codeagent_lsp.records.values import bare_reveals, looks_generated, looks_random, quoted_reveals, repeats

LONGEST_QUOTED = 4096
LONGEST_BARE = 256
DIGITS = 6  # of a token that is a number

# Prefixes that tools put before the lines of a file: `12|`, `src/a.py:12:`, the `+` of a diff.
_MARGIN = r"(?:[0-9]{1,7}\||[^\s:|]{1,160}[:-][0-9]{1,7}[:-]|\+)"
_ASCII_LOWER = {code: code + 32 for code in range(65, 91)}
_STEM = re.compile(
    r"(?:pass|pwd|kennw|mot[ _-]de[ _-]passe|contrase|senha|wachtwoord|parola|haslo|hasło|пароль|パスワード|비밀번호"
    r"|\bmdp|(?:db|root|user|admin|my|smtp|ftp|ldap|bind|ssh|_)pw\b"
    r"|secret|token|psk|fernet|api|key|auth|cred|cookie|bearer|session(?:_?id|_?key)?|call_?id|sid|mnemonic|seed|密码|口令|密钥|令牌"
    r"|_id|userid|email)[\w-]*+"
    r"(?P<sign>\\{0,7}[\"'`]?\]?[ \t]{0,4}(?:=>|:=|[!=]={1,2}|[=:：]|(?<=[a-z0-9_])>"
    r"|(?<=[\"']),(?=[ \t]{0,4}\\{0,7}[\"']))[ \t]{0,8}"
    r"(?:\r?\n(?:[0-9]{1,7}\||\+)?[ \t]{0,40}(?=\\{0,7}[\"']))?"
    r"|[ \t]{1,4}(?:is|ist|lautet|est|es)[ \t]{1,4}|[是为][ \t]?)?+"
)
_SPACED = re.compile(
    r"(?:(?P<option>--)|#define[ \t]{1,8}|ENV[ \t]{1,8}|setenv[ \t]{1,8}"
    r"|(?:^|(?<=[\s;'\"|:+-]))set[ \t]{1,4}(?:-[a-zA-Z]{1,4}[ \t]{1,4}|--(?:global|export|universal)[ \t]{1,4}){1,3})"
    r"(?P<name>[A-Za-z_][\w-]{1,60}+)[ \t]{1,8}(?=[^\s-])"
)
_Q = r"\\{0,3}[\"']?"
_NAMED = re.compile(  # `- name: X` and `value: …` on the next line, `key="X" value="…"`
    rf"(?:name|key|Name|Key)(?P<option>){_Q}[ \t]{{0,4}}[:=][ \t]{{0,4}}{_Q}(?P<name>[\w.-]{{2,60}}+){_Q}"
    rf"(?:[\s,]{{1,60}}+|[ \t,]{{0,20}}+\r?\n{_MARGIN}[ \t]{{0,40}}+)"
    rf"{_Q}(?:value|Value){_Q}[ \t]{{0,4}}[:=][ \t]{{0,4}}"
)
_ANNOTATION = re.compile(r"&?(?:'\w{1,20} )?[A-Za-z_][\w.\[\], |]{0,60}?[ \t]{0,4}=[ \t]{0,4}(?=[rbfu]?[\"'`])")
_OPENING = re.compile(r"[rbfuRBFU@$]{0,2}(?P<quote>\\{0,7}[\"'`]|\\u0022|&quot;)")
_TRIPLE = re.compile(r"(?:\"\"|'')")
_M = r"<secret:[0-9a-f]{6}>"
_SIGNS = r"\s\"'`,;&<>(){}\[\]|\\"
_BARE = re.compile(rf"[^{_SIGNS}]{{0,{LONGEST_BARE}}}+(?:{_M}[^{_SIGNS}]{{0,64}}+){{0,8}}+")
_REFERENCE = re.compile(
    r"\$?\{[^{}\s]{0,100}\}|\$\([^()\s]{0,100}\)?|<[^<>\s]{1,60}>|\[[^\[\]\s]{1,60}\]|%\([a-z_]{1,40}\)s"
)
_REST = re.compile(rf"[^{_SIGNS}]*+")
_LINE = re.compile(rf"(?:{_M}|[^\r\n]){{1,{LONGEST_BARE}}}")
_HEADER = re.compile(r"(?i:(?:set-|proxy-)?(?:cookie2?|authorization))")  # read by `headers.py`
_LINE_MARGIN = re.compile(_MARGIN)
_CONSTANT = re.compile(r"\(|(?:0x[0-9A-Fa-f]{1,8}|[0-9]{1,5})[uUlL]{0,3}(?![\w.])|[A-Za-z_]\w*\(")
_VERBS = frozenset(("is", "ist", "lautet", "est", "es", "是", "为"))
_NUMBER_TOKEN = re.compile(r"(?:.*[^A-Za-z])?(?i:token)")
_FARTHEST = 200  # characters from a name back to the start of its line
_ENV_LINE = re.compile(r"(?:export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+|-[ \t]+|\+[ \t]?|-)?\Z")


class _Place(NamedTuple):
    """A sensitive name found in a text: its start, the operator behind it and the offset of its value."""

    name: str
    start: int
    sign: str
    value: int
    sure: bool
    generated: bool = False  # only a value that is surely generated is a secret


def mask_assignments(text: str, mark: Mark, *, sessions: bool = False) -> str:
    """Return `text` with the values of sensitive names masked; with `sessions`, also those of session and call ids."""
    if any(sign in text for sign in ("--", "#define", "ENV", "set -", "setenv")):
        text = _mask_apart(_SPACED, text, mark)
    if "alue" in text:
        text = _mask_apart(_NAMED, text, mark)
    lower = text.lower()
    if len(lower) != len(text):
        lower = text.translate(_ASCII_LOWER)
    parts, position = [], 0
    for match in _STEM.finditer(lower):
        if match["sign"] is None or match.start() < position:
            continue
        place = _place(text, match, sessions=sessions)
        span = _secret(text, place) if place else None
        if place and span and _counts(place, text[slice(*span)]):
            parts += [text[position : span[0]], mark(text[slice(*span)])]
            position = span[1]
    return "".join((*parts, text[position:])) if parts else text


def _place(text: str, match: re.Match[str], *, sessions: bool) -> _Place | None:
    if MARK.match(text, match.start() - 1):  # a mark contains the word `secret`
        return None
    end = match.start("sign")
    start = name_start(text, match.start())
    name = text[start:end]
    if _HEADER.fullmatch(name):
        return None
    kind = kind_of(name.strip("-."))
    if kind is NameKind.SESSION and sessions:
        return _Place(name, start, match["sign"], match.end(), sure=False)
    if kind not in (NameKind.SECRET, NameKind.PERHAPS, NameKind.LOOKS):
        return None
    return _Place(
        name,
        start,
        match["sign"],
        match.end(),
        sure=kind is NameKind.SECRET and match["sign"].strip("\"'` \t\\]") != ",",
        generated=kind is NameKind.LOOKS,
    )


def _counts(place: _Place, value: str) -> bool:
    if MARK.fullmatch(value) or repeats(place.name, value):
        return False
    return looks_generated(value) if place.generated else True


def _mask_apart(pattern: re.Pattern[str], text: str, mark: Mark) -> str:
    """Mask values that follow their name without an operator: of options, macros, Dockerfile lines, variables."""
    parts, position = [], 0
    for match in pattern.finditer(text):
        kind = kind_of(match["name"])
        if match.start() < position or kind not in (NameKind.SECRET, NameKind.PERHAPS):
            continue
        sure = kind is NameKind.SECRET or (bool(match["option"]) and "token" in match["name"].lower())
        place = _Place(match["option"] or "", match.start(), "=", match.end(), sure=sure)
        span = _secret(text, place)
        if match[0].startswith("#define") and _CONSTANT.match(text, match.end()):
            continue
        if span and _counts(place._replace(name=match["name"]), text[slice(*span)]):
            parts += [text[position : span[0]], mark(text[slice(*span)])]
            position = span[1]
    return "".join((*parts, text[position:])) if parts else text


def _secret(text: str, place: _Place) -> tuple[int, int] | None:
    """Return the span of the secret behind a name; None when there is none."""
    start = place.value
    if ":" in place.sign and (annotation := _ANNOTATION.match(text, start)):
        start = annotation.end()
    if place.sign.endswith(">") and "=" not in place.sign:
        return _element(text, place)
    opening = _OPENING.match(text, start)
    if opening:
        return None if _closes(text, place, opening["quote"]) else _quoted(text, place, opening)
    if place.sign.strip() in _VERBS:
        bare = _BARE.match(text, start)
        return _shortened(text, bare.span()) if bare and looks_random(bare[0].rstrip(".。！!:"), least=6) else None
    return _unquoted(text, place, start)


def _closes(text: str, place: _Place, quote: str) -> bool:
    """Return whether the quote after an operator closes the string around the name, as in `prompt="Password: "`."""
    if quote in place.sign or len(quote) != 1:
        return False
    line = text[max(0, place.start - 200) : place.start].rpartition("\n")[2]
    return line.endswith(quote) or (quote == '"' and line.count('"') % 2 == 1)


def _quoted(text: str, place: _Place, opening: re.Match[str]) -> tuple[int, int] | None:
    start, quote = opening.end(), opening["quote"]
    if triple := _TRIPLE.match(text, start):
        start = triple.end()
    end = _closing(text, start, quote)
    value = text[start:end]
    if "," in place.sign and not any(map(str.isdigit, value)):
        return None
    return (start, end) if quoted_reveals(value, sure=place.sure) else None


def _closing(text: str, start: int, quote: str) -> int:
    """Return the offset where a quoted value ends: its quote, or, when that is missing, the end of the line."""
    limit = start + LONGEST_QUOTED
    line = text.find("\n", start, limit)
    while line > start and text[line - 1] == "\\" and _escaped(text, start, line):  # the string goes on
        line = text.find("\n", line + 1, limit)
    limit = min(len(text), limit) if line < 0 else line
    end = text.find(quote, start, limit)
    while end > start and text[end - 1] == "\\" and _escaped(text, start, end):
        end = text.find(quote, end + 1, limit)
    return limit if end < 0 else end


def _escaped(text: str, start: int, end: int) -> bool:
    backslashes = 0
    while end - backslashes > start and text[end - 1 - backslashes] == "\\" and backslashes < 64:
        backslashes += 1
    return backslashes % 2 == 1


def _element(text: str, place: _Place) -> tuple[int, int] | None:
    """Return the span of the content of an XML element."""
    if text[max(0, place.start - 1) : place.start] != "<":
        return None
    end = text.find("</", place.value, place.value + LONGEST_BARE)
    if end < 0 or not quoted_reveals(text[place.value : end], sure=place.sure):
        return None
    return place.value, end


def _unquoted(text: str, place: _Place, start: int) -> tuple[int, int] | None:
    if _REFERENCE.match(text, start):
        return None
    alone = _stands_alone(text, place.start)
    shouting = alone and place.sign == "=" and place.name.upper() == place.name and place.sure
    bare = _BARE.match(text, start)
    if shouting:
        return _of_env_line(text, start)
    if bare is None or bare.end() == start:
        return None
    stop = bare.end()
    span = _shortened(text, bare.span())
    after = text[stop : stop + 1]
    whole = alone and "." not in place.name and after in ("", "\n", "\r")
    tight = place.sign == "=" or place.name.startswith("--")
    value = text[slice(*span)]
    reveals = bare_reveals(value, after, sure=place.sure, tight=tight, whole_line=whole) or _is_number_token(
        place, value
    )
    if reveals and stop - start > LONGEST_BARE:
        span = (start, _REST.match(text, stop).end())  # type: ignore[union-attr] # matches the empty text
    return span if reveals else None


def _is_number_token(place: _Place, value: str) -> bool:
    """Return whether a value of digits alone is long enough for a token rather than a count."""
    return value.isdecimal() and len(value) >= DIGITS and bool(_NUMBER_TOKEN.fullmatch(place.name))


def _stands_alone(text: str, start: int) -> bool:
    """Return whether a name is the first on its line, apart from words such as `export`."""
    begin = max(0, start - _FARTHEST)
    newline = text.rfind("\n", begin, start)
    if newline < 0 < begin:
        return False
    before = text[max(begin, newline + 1) : start]
    margin = _LINE_MARGIN.match(before)
    return bool(_ENV_LINE.fullmatch(before[margin.end() if margin else 0 :].lstrip(" \t")))


def _of_env_line(text: str, start: int) -> tuple[int, int] | None:
    """Return the span of the value of `NAME=value` on a line of its own: everything up to a space."""
    line = _LINE.match(text, start)
    value = line[0].split(" ")[0].split("\t")[0].rstrip("\\") if line else ""
    value = value.split("\\n")[0]
    if not value or value.startswith(("(", "[", "{")) or value.endswith(("(", "()")):
        return None
    return (start, start + len(value)) if bare_reveals(value, "", sure=True, tight=True, whole_line=True) else None


def _shortened(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Return a span without the punctuation of the sentence around it."""
    start, stop = span
    while stop - start > 1 and text[stop - 1] in ".。!?:*":
        stop -= 1
    return start, stop
