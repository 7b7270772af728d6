"""Secrets that are not right behind their name: parallel assignment, lists, arguments, and values before names.

Which value belongs to a name is a matter of counting: the second of `user, password = "bob", "…"`, the items of
`passwords = […]`, the `value:` above `name: DB_PASSWORD`, the third argument of a function whose third parameter is a
password. Or the value comes before its name: it is compared with a name, explained by a comment behind the code, or
given as the default in an annotation above a field. Not here: values right behind their name (`assignments.py`),
programs' options (`command_lines.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from codeagent_lsp.records.literals import MARGIN, arguments, is_key
from codeagent_lsp.records.mark import MARK, Mark, mark_spans, places
from codeagent_lsp.records.names import Name, NameKind, kind_of
from codeagent_lsp.records.values import bare_reveals, looks_generated, looks_random, looks_scrambled, quoted_reveals

MOST_ITEMS = 200
MOST_FUNCTIONS = 50
_FARTHEST_SIGN = 4_000  # characters from a name to the `=` behind the names beside it
_FARTHEST = 4_400  # characters from a name back to the value before it
_Span = tuple[int, int]

_Q = r"(?:\\{0,7}[\"'`])"
_TARGET = r"[$@%*&]?(?:\w+(?:\.|->|::))*[$@]?\w+(?:[ \t]*:[ \t]*\w+)?"
_TARGETS = re.compile(
    rf"(?:(?:const|let|var|val|local|my|our|list|final|auto|set)\b[ \t]*)?[(\[{{]?[ \t]*"
    rf"(?P<names>{_TARGET}(?:[ \t]*,[ \t]*{_TARGET}){{1,12}}+)[ \t]*,?[ \t]*[)\]}}]?[ \t]*(?::=|=(?![=>]))[ \t]*"
    r"(?:\w+(?=\())?[(\[{]?\s{0,80}"
)
# What may stand between one of these names and the `=` behind all of them.
_UP_TO_SIGN = re.compile(r"[^=();'\"?+!|/<{}\[\]\\\r\n]{0,4000}+[)\]}]?[ \t]*:?=(?![=>])")
_LINE_START = re.compile(rf"(?:{MARGIN})?[ \t]*")
_OPENING = re.compile(
    r"[ \t]*(?:\[\])?(?::[ \t]*[\w<>\[\], &;']{1,60}?)?[\"']?\]?[ \t]*(?:=>|:=|=|:)[ \t]*"
    r"(?:new[ \t]+\w+[ \t]*(?:\[\])?[ \t]*|(?:(?:\w+\.)?(?:of|asList|listOf|setOf|arrayOf|tuple|list|set|frozenset)"
    r"|vec!)(?=[(\[])|\[\]\w+)?[(\[{]\s{0,80}"
)
_BULLETS = re.compile(rf"[\"']?:[ \t]*\r?\n(?=(?:{MARGIN})?[ \t]*-[ \t])")
_BULLET = re.compile(
    rf"(?:{MARGIN})?[ \t]*-[ \t]+(?P<q>[\"']?)(?P<item>[^\s\"'#:{{}}\[\]]{{1,4096}})(?P=q)[ \t]*(?:\r?\n|\Z)"
)
_JOINING = re.compile(r"join|concat|implode|strings")
_JOINED = re.compile(r"\s{0,80},?\s{0,80}[\])}]{1,2}\s{0,20}\.?(?:join|concat|,\s*[\"']{2}\))")
_WORD = re.compile(r"[^\s\"'`,;&<>(){}\[\]|\\$]{1,4096}")
_VALUE_BEFORE = re.compile(
    rf"{_Q}?[Vv]alue{_Q}?[ \t]{{0,4}}[:=][ \t]{{0,4}}"
    rf"(?:(?P<q>[\"'`])(?P<quoted>(?:\\.|(?!(?P=q))[^\\\n]){{1,4096}})(?P=q)|(?P<bare>[^\s\"'`,;{{}}<>\[\]]{{1,4096}}))"
    rf"[ \t]{{0,4}}(?:,|(?:WHERE|where)\b)?(?:\r?\n(?:{MARGIN})?)?[ \t]{{0,80}}"
    rf"(?:{_Q}?\w{{1,30}}{_Q}?[ \t]{{0,4}}[:=][ \t]{{0,4}}{_Q}?[^\s\"'`,;{{}}<>\[\]]{{0,80}}{_Q}?"
    rf",?(?:\r?\n(?:{MARGIN})?)?[ \t]{{0,80}}){{0,2}}"
    rf"{_Q}?(?:[Nn]ame|[Kk]ey){_Q}?[ \t]{{0,4}}[:=][ \t]{{0,4}}{_Q}?"
)
_DEFINITION = re.compile(
    r"(?:def|function|func|fn|fun|sub)[ \t]+(?:\([^()\n]{0,80}\)[ \t]*)?(?P<name>\w{2,60})[ \t]*"
    r"\((?P<parameters>[^()]{1,400})\)"
)
_DEFINES = ("def ", "function ", "func ", "fn ", "fun ", "sub ")
_PARAMETER = re.compile(r"[$@&*.]*(\w+)")
_CALLED: Mapping[str, tuple[tuple[str, int], ...]] = {
    "login": (("login", 1),),
    "uth": (
        *((name, 1) for name in ("authenticate", "HTTPBasicAuth", "HTTPDigestAuth", "basic_auth", "basicAuth")),
        *((name, 1) for name in ("auth", "BasicAuth", "withBasicAuth", "SetBasicAuth", "setBasicAuth")),
        *((name, 1) for name in ("PasswordAuthentication", "UsernamePasswordAuthenticationToken")),
        *((name, 2) for name in ("PlainAuth", "PlainAuth.new")),
    ),
    "Cred": tuple((name, 1) for name in ("UsernamePasswordCredentials", "BasicAWSCredentials", "NetworkCredential")),
    "jwt.": tuple((name, 1) for name in ("jwt.encode", "jwt.sign", "jwt.verify", "jwt.decode")),
    "create": (
        *((name, 1) for name in ("createUser", "createHmac", "createCipheriv", "createDecipheriv")),
        *((name, 2) for name in ("create_user", "create_superuser")),
    ),
    "onnect": (
        *((name, 2) for name in ("getConnection", "mysqli_connect", "DBI->connect")),
        ("mysql_real_connect", 3),
    ),
    "serPassword(": (("UserPassword", 1),),
    "PDO": (("PDO", 2),),
    "WiFi": (("WiFi.begin", 1), ("WiFi.softAP", 1)),
    "crypt": tuple((name, 1) for name in ("pgp_sym_encrypt", "pgp_sym_decrypt", "aes_encrypt")),
    "AES": (("AES_ENCRYPT", 1), ("AES.new", 0)),
    "mac": (("hmac.new", 0), ("hmac.New", 1), ("CryptoJS.HmacSHA256", 0)),
    "setCredentials": (("setCredentials", 1),),
    "_pw_set": (("username_pw_set", 1),),
    "ookieParser": (("cookieParser", 0),),
    "tripe(": (("Stripe", 0),),
    "Wallet(": (("Wallet", 0),),
    "wilio(": (("twilio", 1), ("Twilio", 1)),
    "ecurityKey(": (("SymmetricSecurityKey", 0),),
    "HMAC": (*((f"HMAC{bits}", 0) for bits in (256, 384, 512)), ("HMAC.hexdigest", 1), ("HMAC.digest", 1)),
    "hash_hmac": (("hash_hmac", 2),),
    "key_set_with_value": (("key_set_with_value", 2),),
    "uote": (("quote_plus", 0), ("quote", 0), ("rawurlencode", 0)),
    "encodeURIComponent": (("encodeURIComponent", 0),),
    "QueryEscape": (("QueryEscape", 0),),
    "hmacSha": (("hmacShaKeyFor", 0),),
    "signWith": (("signWith", 0), ("signWith", 1)),
    "KeySpec": (("PBEKeySpec", 0), ("SecretKeySpec", 0)),
}
"""Functions of widely used libraries, and which of their arguments is a password or a key; by what their names share,
so that most of them are not looked for in most texts.
"""
_BUILT = re.compile(r"(?:Proxy|Connection|Client|Session|Login|Credentials?)[ \t]+\w{1,40}\(")
_CONNECTING = ("connect", "Connect", "Connection", "FTP", "FTP_TLS", "createConnection", "open_connection")
_SETTERS = tuple(f"{word}(" for word in "assword asswd assphrase pwd Pwd ecret api_key ApiKey APIKey oken".split())  # noqa: SIM905
_SETS = re.compile(
    r"(?<![^\W_])(?:set|change|update|reset|store|save|with|add|use|check|verify|validate|compare)(?:_|(?=[A-Z]))\w{0,30}\Z"
)
# `assertEquals("…", user.getPassword())`
_COMPARISONS = ("ssertEquals(", "ssertEqual(", "assert_equal(", "assert_eq!(", "AreEqual(", "assertSame(", "strcmp(")
_OTHER = re.compile(r",\s{1,40}[\w.>$-]{0,80}?(?P<name>\w{1,60})(?:\(\))?\s{0,40}[,)]")
_CREDENTIALS = re.compile(r"\bauth[ \t]*=[ \t]*\((?=[^()\n]{1,4400}\))")
_BEFORE_ITEMS = frozenset("= :[\"'\t")
_OPENS = re.compile(r"[(\[{]\s*[\w\"'`]|:[ \t]*\r?\n[^\n]{0,40}-[ \t]")
_SELF = frozenset(("self", "cls", "this"))


def elsewhere(text: str, name: Name) -> Iterator[_Span]:
    """Yield the spans (character offsets) of the secrets that belong to a name and are not right behind it, such as in
    lists and parallel assignments.
    """
    if name.kind is NameKind.SESSION:
        return
    before, after = text[max(0, name.start - 8) : name.start], text[name.end : name.end + 60]
    # Cheap, before a pattern runs: `name` or `key` has to stand right before.
    if name.kind is NameKind.SECRET and ("ame" in before or "ey" in before):
        yield from _value_before(text, name)
    if after[:1] in _BEFORE_ITEMS and name.kind is not NameKind.PERHAPS and _OPENS.search(after):
        yield from _items(text, name)
    elif is_one_of_several(text, name):
        yield from _counted_values(text, name)


def is_one_of_several(text: str, name: Name) -> bool:
    """Return whether a name is one of several that are assigned together, so that the value behind `=` is not its
    own.
    """
    if name.kind is NameKind.LOOKS:
        return False
    after = text[name.end : name.end + 2]
    if after[:1] != "," and "," not in text[max(0, name.start - 3) : name.start] and after != " ,":
        return False
    return _targets(text, name) is not None


def _targets(text: str, name: Name) -> re.Match[str] | None:
    ahead = _UP_TO_SIGN.match(text, name.end, name.end + _FARTHEST_SIGN)
    if ahead is None:
        return None
    start = text.rfind("\n", max(0, name.start - 200), name.start) + 1 or max(0, name.start - 200)
    line = _LINE_START.match(text, start)
    found = _TARGETS.match(text, line.end()) if line else None
    inside = found is not None and found.start("names") <= name.start and name.end <= found.end("names")
    return found if inside else None


def _counted_values(text: str, name: Name) -> Iterator[_Span]:
    """Yield the value of a parallel assignment that has the place of the name."""
    found = _targets(text, name)
    if found is None:
        return
    place = text.count(",", found.start("names"), name.start)
    value = next((item for number, item in enumerate(arguments(text, found.end())) if number == place), None)
    if value is not None and quoted_reveals(value.value, sure=name.kind is NameKind.SECRET):
        yield value.start, value.end


def _items(text: str, name: Name) -> Iterator[_Span]:
    """Yield the items of a list of secrets, if they look like such: a list of names of secrets is more common."""
    judge = looks_generated if name.kind is NameKind.LOOKS else _is_token
    if bullets := _BULLETS.match(text, name.end):
        place = bullets.end()
        for _ in range(MOST_ITEMS):
            bullet = _BULLET.match(text, place)
            if bullet is None:
                return
            if judge(bullet["item"]):
                yield bullet.span("item")
            place = bullet.end()
    elif opening := _OPENING.match(text, name.end):
        if text[opening.end() : opening.end() + 1] in "\"'`":
            found = [item for item in arguments(text, opening.end()) if item is not None]
            # Pieces of one secret, which `assignments.py` finds as a whole.
            if found and (_JOINING.search(opening[0]) or _JOINED.match(text, found[-1].after)):
                return
            yield from (
                (item.start, item.end)
                for item in found
                if judge(item.value) and (not is_key(text, item) or looks_scrambled(item.value))
            )
        elif opening[0].endswith("=("):
            place, end = opening.end(), text.find(")", opening.end(), opening.end() + 4096)
            words = _WORD.finditer(text, place, end) if end > 0 else ()
            yield from (word.span() for word in words if judge(word[0]))


def _value_before(text: str, name: Name) -> Iterator[_Span]:
    """Yield the value of an object whose `name` or `key` stands behind it."""
    at = text.rfind("alue", max(0, name.start - _FARTHEST), name.start)
    if at < 0:
        return
    # From the quote before `value`, or from its first letter.
    for start in (at - 2, at - 1):
        found = _VALUE_BEFORE.match(text, max(0, start), name.start)
        if found is None or found.end() != name.start:
            continue
        value = found["quoted"] or found["bare"]
        sure = quoted_reveals(value, sure=True) if found["quoted"] else bare_reveals(
            value, "", sure=True, tight=False, whole_line=True
        )  # fmt: skip
        if sure and not MARK.fullmatch(value):
            yield found.span("quoted" if found["quoted"] else "bare")
        return


# Calls: the arguments of functions that are known, or defined in the same text.


def mask_calls(text: str, mark: Mark) -> str:
    """Return `text` with arguments masked by `mark` that a known function takes as a password or a key, by the place of
    the argument.
    """
    if "(" not in text:
        return text
    return mark_spans(text, sorted(set(_of_calls(text))), mark)


def _of_calls(text: str) -> Iterator[_Span]:
    for name, place in (known for shared, called in _CALLED.items() if shared in text for known in called):
        for start in _calls(text, name):
            yield from _argument(text, start, place)
    for start in _calls(text, "login"):
        values = [item for item in arguments(text, start) if item is not None]
        if len(values) == 1 and looks_scrambled(values[0].value):  # of a bot, which has a token and no name
            yield values[0].start, values[0].end
    made = (match.end() for match in _BUILT.finditer(text))
    for start in (*made, *(each for name in _CONNECTING for each in _calls(text, name))):
        # Host, perhaps a port, user, and behind them what nothing names.
        for item in [*arguments(text, start)][2:]:
            if item is not None and looks_scrambled(item.value):
                yield item.start, item.end
    for at in places(text, "auth"):
        if credentials := _CREDENTIALS.match(text, at):
            yield from _argument(text, credentials.end(), 1)
    for at in places(text, *_SETTERS):
        if sets := _SETS.search(text, max(0, at - 40), at + 1):
            values = [item for item in arguments(text, text.index("(", at) + 1) if item is not None]
            # `change_password(old, new)` has two of them; elsewhere the password is the last argument.
            changed = values if sets[0].startswith("change") else values[-1:]
            yield from ((item.start, item.end) for item in changed if _is_token(item.value))
    for at in places(text, *_COMPARISONS):
        start = text.index("(", at) + 1
        if compared := next(arguments(text, start), None):
            other = _OTHER.match(text, compared.after)
            if other and kind_of(other["name"]) is NameKind.SECRET and _is_token(compared.value):
                yield compared.start, compared.end
    yield from _of_definitions(text)


def _of_definitions(text: str) -> Iterator[_Span]:
    secret: dict[str, int] = {}
    for at in places(text, *_DEFINES):
        definition = _DEFINITION.match(text, at)
        if definition is None or len(secret) >= MOST_FUNCTIONS:
            continue
        parts = definition["parameters"].split(",")
        parameters = [word[1] for part in parts if (word := _PARAMETER.match(part.strip()))]
        kinds = [kind_of(parameter) for parameter in parameters if parameter not in _SELF]
        if NameKind.SECRET in kinds:
            secret[definition["name"]] = kinds.index(NameKind.SECRET)
    for name, place in secret.items():
        for start in _calls(text, name):
            yield from _argument(text, start, place)


def _calls(text: str, name: str) -> Iterator[int]:
    """Yield where the arguments of the calls of a function begin."""
    for at in places(text, f"{name}("):
        before = text[at - 1 : at]
        if not (before.isalnum() or before == "_"):
            yield at + len(name) + 1


def _argument(text: str, start: int, place: int) -> Iterator[_Span]:
    start += text.startswith("[", start)  # several of them, of which the first is in use
    for number, item in enumerate(arguments(text, start)):
        if number == place:
            if item is not None and _is_token(item.value):
                yield item.start, item.end
            return


def _is_token(value: str) -> bool:
    """Return whether a value is a secret rather than a name: letters and digits, and no words."""
    return looks_random(value, least=6) and quoted_reveals(value, sure=True)


_LONGEST = 4_400  # characters of a line before a name, in which a value may stand
_NEAR = 200  # characters before a name, in which its comment or comparison begins
_QUOTED = r"(?P<q>[\"'`])(?P<value>[^\"'`\s]{6,4096}+)(?P=q)"
# `"…" == password`, also with the object that has it.
_EQUALS = r"[ \t]{0,4}(?:[!=]==?|<>|eq|ne|\.equals\w{0,10}(?=\())[ \t]{0,4}\(?[\w.>$@-]{0,60}\Z"
_COMPARED = re.compile(_QUOTED + _EQUALS)
_COMPARES = ("=", "<>", " eq ", " ne ", ".equals")
_COMPARING = re.compile(r"[\"'`]" + _EQUALS)
_COMPARING_ANYWHERE = re.compile(r"[\"'`][ \t]{0,4}(?:[!=]=|<>|(?:eq|ne)[ \t(]|\.equals|,?[ \t]?for[A-Z])")
# `setValue("…", forHTTPHeaderField: "X-Api-Key")`, `set("…", forKey: "token")`.
_FOR_NAME = re.compile(rf"{_QUOTED}[ \t]{{0,4}},?[ \t]{{0,4}}for[A-Z]\w{{0,40}}[ \t]{{0,4}}:[ \t]{{0,4}}@?[\"']\Z")
_COMMENT = re.compile(r"[ \t;,)}`](?P<sign>#|//|--|/\*|;)[ \t]")
_VALUE = re.compile(rf"{_QUOTED}|(?<![^\s=:(])(?P<bare>[^\s\"'`,;()\[\]{{}}<>]{{12,4096}}+)")
_HASH = re.compile(r"[0-9a-f]{7,128}")
# `#[arg(default_value = "…")]`, `@Value(defaultValue = "…")` above a field.
_ANNOTATION = re.compile(r"[ \t]*(?:(?:#\[|@|\[)[^\n]*\bdefault|@Value\()", re.IGNORECASE)
_DEFAULT = re.compile("default|DEFAULT|@Value")
_ATTRIBUTE = re.compile(r"[ \t]*#\[[^\n\"]{0,80}\bdefault[^\n\"]{0,20}\"")  # of Rust, before a field on its line
_OWNED = re.compile(r"\)[ \t]+(?:[A-Za-z_][\w<>?.]*[ \t]+){1,4}\Z")
_ANNOTATED = re.compile(r"[ \t]*@Value\(")
_OWN_LINE = re.compile(r"[ \t]*(?:[A-Za-z_][\w<>?.]*[ \t]+){0,4}\Z")


class Behind:
    """The places of one text near which there is anything like a value before its name, found once, so that most names
    need no further search.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def may_have(self, start: int) -> bool:
        """Return whether a value may come before the name that begins at this offset. False is certain, True is not."""
        return _has(self._near, start - _NEAR - 1, start) or _has(self._defaults, start - 2 * _LONGEST, start)

    @cached_property
    def _near(self) -> list[int]:
        found = [match.start() for match in _COMPARING_ANYWHERE.finditer(self._text)]
        return sorted(found + [match.start() for match in _COMMENT.finditer(self._text)])

    @cached_property
    def _defaults(self) -> list[int]:
        return [match.start() for match in _DEFAULT.finditer(self._text)]


def _has(places: list[int], first: int, last: int) -> bool:
    at = bisect_left(places, first)
    return at < len(places) and places[at] < last


def before(text: str, name: Name) -> Iterator[_Span]:
    """Yield the spans (character offsets) of the secrets that come before their name, on its line or in an annotation
    above it.
    """
    if name.kind not in (NameKind.SECRET, NameKind.PERHAPS):
        return
    near = max(0, name.start - _NEAR)
    line = text[text.rfind("\n", near, name.start) + 1 or near : name.start]
    if any(sign in line[-70:] for sign in _COMPARES) and _COMPARING.search(line):
        start = _line_start(text, name)
        found = _COMPARED.search(text, start, name.start)
        judge = looks_scrambled if name.kind is NameKind.PERHAPS else _is_compared
        if found and judge(found["value"]):
            yield found.span("value")
    elif "for" in line and (given := _FOR_NAME.search(text, _line_start(text, name), name.start)):
        if _is_compared(given["value"]):
            yield given.span("value")
    elif comment := _COMMENT.search(line):
        yield from _values(text, _line_start(text, name), name.start - len(line) + comment.start(), looks_scrambled)
    elif _ATTRIBUTE.match(text, start := _line_start(text, name), name.start):
        yield from _values(text, start, name.start, looks_scrambled)
    elif _OWNED.search(line[-_NEAR // 2 :]) and _ANNOTATED.match(text, start := _line_start(text, name), name.start):
        yield from _values(text, start, name.start, _is_token)
    elif len(line) < _NEAR and _OWN_LINE.match(line):
        yield from _annotated_defaults(text, name.start - len(line))


def _line_start(text: str, name: Name) -> int:
    far = max(0, name.start - _LONGEST)
    return text.rfind("\n", far, name.start) + 1 or far


def _annotated_defaults(text: str, start: int) -> Iterator[_Span]:
    """Yield the defaults in the annotation on the line before the one that begins at an offset."""
    if text[start - 2 : start - 1] not in ("]", ")", "\r"):
        return
    above = text.rfind("\n", max(0, start - _LONGEST), start - 1) + 1
    if _ANNOTATION.match(text, above, start - 1):
        sure = text.startswith("@Value(", above + len(text[above:start]) - len(text[above:start].lstrip(" \t")))
        yield from _values(text, above, start - 1, _is_token if sure else looks_scrambled)


def _values(text: str, start: int, end: int, judge: Callable[[str], bool]) -> Iterator[_Span]:
    for found in _VALUE.finditer(text, start, end):
        part = "value" if found["value"] is not None else "bare"
        # A number that git or a list of checksums has, and a remark behind it.
        if judge(found[part][:400]) and (part == "value" or not _HASH.fullmatch(found[part])):
            yield found.span(part)


def _is_compared(value: str) -> bool:
    return _is_token(value) and not MARK.search(value)
