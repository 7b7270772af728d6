"""Secrets whose name says nothing, but whose surroundings do: entries of `[tokens]`, `stringData: {…}`, `passwords:`;
the second of a user and a password, `login: bob / …`; what a shell prints in place of a value, `$(printf …)`; `-p…`.

Such places hold other things as well, so only what looks like a password or a token counts. Not here: secrets of a
sensitive name (`assignments.py`), options of programs that are known (`command_lines.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codeagent_lsp.records.mark import MARK, Mark, lower_in_place, mark_spans, places
from codeagent_lsp.records.values import (
    is_placeholder,
    looks_chosen,
    looks_random,
    looks_scrambled,
    quoted_reveals,
)

MOST_ENTRIES = 200
_Span = tuple[int, int]
_HOLDS = (
    "(?P<holds>stringData|secrets|github-oauth|passwords|passwd|credentials|creds|tokens"
    "|api[_-]?[kK]eys|auth[_-]?tokens)"
)
_TABLE = re.compile(
    rf"^[ \t]*\[{{1,2}}(?:[\w.-]{{1,60}}\.)?[\"']?{_HOLDS}[\"']?\]{{1,2}}[ \t]*(?:#[^\n]*)?\r?\n", re.MULTILINE
)
_TABLE_LINE = re.compile(
    r"[ \t]*(?:[\w.\"'-]{1,80}[ \t]*=[ \t]*(?:(?P<q>[\"'])(?P<value>[^\"'\n]{1,4096})(?P=q)"
    r"|(?P<bare>[^\s\"'\[{][^\s\"'\[{]{0,4096})(?=[ \t]*(?:[ \t][#;][^\n]*)?(?:\r?\n|\Z)))?|#|;|(?=\r?\n))"
    r"[^\n\[]*(?:\n|\Z)"
)
_BLOCK = re.compile(rf"^(?P<indent>[ \t]{{0,40}})(?:- )?[\"']?{_HOLDS}[\"']?:[ \t]*(?:#[^\n]*)?\r?\n", re.MULTILINE)
_BLOCK_LINE = re.compile(
    r"(?P<indent>[ \t]{1,60})(?:- )?[\w.\"'-]{1,80}:(?:[ \t]+(?:(?P<q>[\"'])(?P<value>[^\"'\n]{1,4096})(?P=q)"
    r"|(?P<bare>[^\s\"'#&*!|>{\[](?:[^\n#]|(?<=\S)#){0,4096}?)(?=[ \t]*(?:[ \t]#[^\n]*)?(?:\r?\n|\Z))))?[^\n]*(?:\n|\Z)"
    r"|[ \t]*(?:#[^\n]*)?\r?\n"
)
_FLOW = re.compile(rf"{_HOLDS}[\"']?[ \t]*(?::|=>?)[ \t]*\{{(?P<body>[^{{}}]{{1,4096}})\}}")
_ENTRY = re.compile(
    r"[\w.\"'-]{1,80}[ \t]*(?::|=>?)[ \t]*"
    r"(?:(?P<q>[\"'])(?P<value>[^\"'\n]{1,4096})(?P=q)|(?P<bare>[^\s,\"'{}]{1,4096}))"
)
_WIDE = frozenset(("stringData", "secrets", "passwords", "passwd", "credentials", "creds"))
"""What holds secrets and nothing else; the others count things, too: `tokens = {max: 4096}`."""
_USER_AND = re.compile(
    r"(?<![\w/.])(?P<head>(?:log[ -]?ins?|sign-?ins?|credentials?|creds|user(?:name)?[ ]?/[ ]?pass(?:word)?"
    r"|zugang(?:sdaten)?|anmelde?(?:ung|daten)|identifiants?|accesos?|credenciale?s|credenziali|inloggegevens|账号|帳號|帐号|アカウント|ログイン)"
    r"(?:[ \t]?[:：=][ \t]*|[ \t](?:is|are|ist|est|(?P<verb>with|as|mit|avec|con))[ \t]:?[ \t]?"
    r"|:?[ \t]*\n[ \t]*[-*][ \t]+)"
    r"[\"'`]?(?P<user>[\w.@+-]{2,64})[\"'`]?[ \t]*[/,|][ \t]*[\"'`]?)(?P<value>[^\s\"'`<>{}()\[\]]{8,4096})",
    re.IGNORECASE,
)
_PRINTED = re.compile(
    r"(?:[$<]\(|`)[ \t]*(?:printf|echo)[ \t]+(?:-\w+[ \t]+)?"
    r"(?:[\"']?%s(?:\\n)?[\"']?[ \t]+)?(?:(?P<q>[\"'])(?P<value>[^\"'\n$`\\]{4,4096})(?P=q)"
    r"|(?P<bare>[^\s\"'`$|;&<>()\\]{4,4096}))(?=[ \t]*[)`])"
)
_OF_SECRET = re.compile(r"(?i:pass(?:word|wd|phrase)?|pwd|secret|token|key|auth|cred\w*)\w{0,12}\W{1,5}\Z")
_OPTION = re.compile(
    r"[ \t]-p=?(?:(?P<q>[\"'])(?P<value>[^\"'\n]{8,4096})(?P=q)|(?P<bare>[^\s\"'`;|&<>=]{8,4096}))"
    r"|[ \t]-(?:p|-key)[ \t](?P<apart>[^\s\"'`;|&<>=]{12,4096})(?=\s|\Z)"
    r"|(?<![\w-])(?:pw|pwd|passwd)[ \t](?P<told>[^\s\"'`;|<>()=]{8,4096})"
)
# `bob@example.com:…`, and as two arguments.
_OF_ADDRESS = re.compile(
    r"@[\w.-]{1,80}\.\w{2,20}(?::(?P<value>[^\s:\"'`]{12,4096}+)(?=\s|\Z)"
    r"|(?P<q>[\"'`]),[ \t]{0,4}(?:\w{1,30}[:=][ \t]?)?(?P=q)(?P<beside>[^\s\"'`]{12,4096}+)(?P=q))"
)
_LOGINS = (
    *("login", "log-in", "log in", "sign-in", "signin", "cred", "user/", "user /", "username", "zugang", "anmeld"),
    *("identifiant", "acceso", "inloggeg"),
)
_FOREIGN_LOGINS = ("账号", "帳號", "帐号", "アカウント", "ログイン")
_HOLDERS = (
    *("stringData", "github-oauth", "secrets", "passw", "cred", "tokens"),
    *("api_k", "api-k", "apik", "apiK", "auth_t", "auth-t"),
)
# Elsewhere the hash of a file or a commit.
_HEXADECIMAL = re.compile(r"(?=[0-9]*[A-Fa-f])(?=[A-Fa-f]*[0-9])[0-9A-Fa-f]{16,4096}")
_LONGEST_LITERAL = 4_100
_LONGEST_LEAD = 100  # characters before such a word on its line
_WORD_BEFORE = re.compile(r"[\w.]\Z")
_PATH_OR_FILE = re.compile(r"[/\\]|\.\w{2,4}\Z")
_PUNCTUATION = ".,;:?)"


def mask_held(text: str, mark: Mark) -> str:
    """Return `text` with values masked by `mark` that only their surroundings show to be secrets, such as entries of
    `[tokens]` or `stringData: {…}`.
    """
    return mark_spans(text, sorted(span for span in _spans(text) if not MARK.search(text, *span)), mark)


def _spans(text: str) -> Iterator[_Span]:
    # Words are looked for as plain text, and a form only where one of them stands.
    for at in places(text, *_HOLDERS):
        start = text.rfind("\n", 0, at) + 1
        if at - start <= _LONGEST_LEAD:
            yield from _of_lines(text, _TABLE.match(text, start), _TABLE_LINE)
            yield from _of_lines(text, _BLOCK.match(text, start), _BLOCK_LINE)
        if (held := _FLOW.match(text, at)) and not _WORD_BEFORE.search(text[max(0, at - 2) : at]):
            yield from _of_flow(text, held)
    for at in places(lower_in_place(text), *_LOGINS, *(() if text.isascii() else _FOREIGN_LOGINS)):
        if found := _USER_AND.match(text, at):
            value = found["value"].rstrip(_PUNCTUATION)
            either = looks_chosen(value) or looks_random(value, least=12) or bool(_HEXADECIMAL.fullmatch(value))
            # `log in with GitHub / GitLab2024` names two places.
            if looks_scrambled(value) if found["verb"] else either:
                # Base64 has slashes: then it is one value, not a user and a password.
                first = found.start("user" if looks_scrambled(found["user"]) else "value")
                yield first, found.start("value") + len(value)
    for at in places(text, "$(printf", "$(echo", "`printf", "`echo", "$( printf", "$( echo", "<(printf", "<(echo"):
        if found := _PRINTED.match(text, at):
            part, before = "value" if found["value"] is not None else "bare", text[max(0, at - 60) : at]
            told = _OF_SECRET.search(before) or (before.endswith(":") and looks_random(found[part]))
            if looks_scrambled(found[part]) or (told and quoted_reveals(found[part], sure=True)):
                yield found.span(part)
    for end in places(text, '".toCharArray()'):  # a password, to Java
        start = text.rfind('"', max(0, end - _LONGEST_LITERAL), end) + 1
        if looks_scrambled(text[start:end]):
            yield start, end
    for at in places(text, "@"):
        if owned := _OF_ADDRESS.match(text, at):
            part = "value" if owned["value"] is not None else "beside"
            if looks_scrambled(owned[part]):
                yield owned.span(part)
    for at in places(text, " -p", "\t-p", " --key ", "pw ", "pwd ", "passwd "):
        if found := _OPTION.match(text, at):
            part = next(name for name in ("value", "bare", "apart", "told") if found[name] is not None)
            if looks_scrambled(found[part]) if part == "apart" else looks_chosen(found[part].rstrip(_PUNCTUATION)):
                yield found.span(part)


def _of_lines(text: str, head: re.Match[str] | None, line: re.Pattern[str]) -> Iterator[_Span]:
    """Yield the values in the lines below a heading that hold secrets, as far as they belong to it."""
    if head is None:
        return
    block = line is _BLOCK_LINE
    place = head.end()
    for _ in range(MOST_ENTRIES):
        found = line.match(text, place)
        if found is None or (block and found["indent"] and len(found["indent"]) <= len(head["indent"])):
            break
        part = "bare" if found["value"] is None else "value"
        if found[part] and _is_held(found[part], head["holds"]):
            yield found.span(part)
        place = found.end()


def _of_flow(text: str, held: re.Match[str]) -> Iterator[_Span]:
    for found in _ENTRY.finditer(text, *held.span("body")):
        part = "value" if found["value"] is not None else "bare"
        if _is_held(found[part], held["holds"]):
            yield found.span(part)


def _is_held(value: str, holds: str) -> bool:
    if " " in value or is_placeholder(value):
        return False
    if looks_chosen(value) or looks_scrambled(value) or _HEXADECIMAL.fullmatch(value):
        return True
    return holds in _WIDE and _is_word_of_secret(value)


def _is_word_of_secret(value: str) -> bool:
    """Return whether a value where only secrets are expected is one: not a name, a path or a file."""
    has_digit = any(map(str.isdigit, value[:400]))
    return has_digit and quoted_reveals(value, sure=False) and not _PATH_OR_FILE.search(value)
