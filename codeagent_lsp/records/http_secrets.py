"""Secrets of HTTP within a text: in headers (`Authorization`, `Cookie`, …), and in URLs, as a password before the host,
a signature in the query, or the path of a webhook that is the secret itself.

The scheme, the names of cookies and their attributes are kept. Not here: headers as mappings (`sanitizer.py`), queries
by ordinary names (`token=`), found with all other assignments (`assignments.py`).
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from codeagent_lsp.records.mark import MARK, Mark, places, replace_matches
from codeagent_lsp.records.names import NameKind, kind_of
from codeagent_lsp.records.values import is_placeholder, looks_random, looks_scrambled

_M = MARK.pattern
_AUTHORIZATION = re.compile(
    r"(?P<head>[Aa](?:uthorization|UTHORIZATION)(?:\\{0,7}[\"'`])?\]?[ \t]{0,4}(?:=>|[:=,])[ \t]{0,4}(?:\\{0,7}[\"'`])?"
    r"(?P<scheme>(?:[Bb]asic|[Bb]earer|BASIC|BEARER|[Tt]oken|[Dd]igest|[Nn]egotiate|NTLM|[Aa]pi-?[Kk]ey|AWS4-HMAC-SHA256"
    r"|OAuth|Bot|Splunk|SharedKey|GoogleLogin|DPoP|Hawk|Key)(?:[ \t]{1,4}(?:[\"'][ \t]?[+.][ \t]?[\"'])?|%20|\+))?)"
    rf"(?P<value>(?:{_M}|[^\s\"'`<>\\]|(?<=[,;])[ \t](?=[\w-]{{1,40}}=)|\"(?=[^\s\"]{{0,65536}}\"(?:,|\s|$)))++)"
)
_COOKIE = re.compile(
    r"(?P<head>[Cc][Oo][Oo][Kk][Ii][Ee]2?\\{0,7}[\"']?[ \t]{0,4}:[ \t]{0,4}(?:\\{0,7}[\"'])?)"
    rf"(?P<value>[!#$%&*+.^_|~0-9A-Za-z-]{{1,100}}=(?:{_M}|[^\r\n\"'<>\\]){{1,65536}}+)"
)
_COOKIE_ENTRY = re.compile(  # of a list of headers, as browsers save them
    r"(?P<head>\"(?i:set-)?(?i:cookie)\"[ \t]{0,4},\s{0,40}\"value\"[ \t]{0,4}:[ \t]{0,4}\")"
    rf"(?P<value>[!#$%&*+.^_|~0-9A-Za-z-]{{1,100}}=(?:{_M}|[^\r\n\"\\]){{1,65536}}+)"
)
_CRUMB = re.compile(rf"(?P<name>[^=;\s]{{1,100}})=(?P<value>(?:{_M}|[^;\s,])+)")
_BASIC = re.compile(r"(?P<head>[Bb]asic[ \t]{1,4})(?P<value>[A-Za-z0-9+/]{12,65536}+={0,2})(?![A-Za-z0-9+/=])")
# `"Basic " + btoa("bob:…")`
_MADE_BASIC = re.compile(
    r"(?P<head>[Bb]asic[ \t](?:[\"'`][ \t]?[+.,][ \t]?|\$\{)(?:[\w.]{1,40}\(){1,2}b?[\"'`][\w.@-]{1,64}:)"
    rf"(?P<value>(?:{_M}|[^\s\"'`$]){{4,65536}}+)(?P<tail>[\"'`])"
)
_PART = re.compile(  # of a form that is sent in several parts
    r"(?P<head>form-data; *name=\"(?P<name>[\w.-]{1,80})\"(?:\r?\n[\w-]{1,40}:[^\r\n]{0,200}){0,3}(?:\r?\n){2})"
    rf"(?P<value>(?:{_M}|[^\r\n]){{4,65536}}+)"
)
_ATTRIBUTES = frozenset(("path", "domain", "expires", "max-age", "samesite", "priority", "version", "comment"))


def mask_headers(text: str, mark: Mark) -> str:
    """Return `text` with the credentials in HTTP headers and in the parts of a multipart form masked by `mark`; schemes
    such as `Bearer` and the names of cookies are kept.
    """
    crumbs = places(text, '"Cookie"', '"cookie"', '"Set-Cookie"', '"set-cookie"')
    text = replace_matches(crumbs, text, _COOKIE_ENTRY, lambda match: _cookie(match, mark))
    if "form-data" in text:
        text = _PART.sub(lambda match: _part(match, mark), text)
    named = places(text, "uthorization", "UTHORIZATION")
    text = replace_matches(named, text, _AUTHORIZATION, lambda match: _authorization(match, mark))
    cookies = places(text, "ookie", "OOKIE")
    text = replace_matches(cookies, text, _COOKIE, lambda match: _cookie(match, mark))
    basic = places(text, "asic")
    text = replace_matches(basic, text, _BASIC, lambda match: _basic(match, mark))
    made = places(text, "asic ")
    return replace_matches(made, text, _MADE_BASIC, lambda match: _between(match, mark))


# A password may have an `@` of its own: the last one before the host ends it.
_USERINFO = re.compile(
    r"(?P<head>:(?:\\?/){2})(?P<user>(?:[^\s/@:\"'<>\\`?#,]{0,4096}+|\\\([\w.]{1,40}\)|#\{[\w.]{1,40}\}))"
    rf"(?P<password>:(?:{_M}|[^\s/\"'`<>\\@]|@(?=[^\s/\"'`<>\\@]{{0,200}}@)){{1,65536}}+"
    # Base64 has slashes; what has digits alone before the first of them is a port.
    r"|:(?![0-9]{0,5}/)[A-Za-z0-9+/_-]{8,65536}+={0,2})?@"
)
# The source of Go's driver for MySQL, and what a code for a wireless network holds.
_SOURCE = re.compile(
    rf"(?P<head>[\w.%-]{{1,64}}:)(?P<value>(?:{_M}|[^\s\"'`(]){{1,4096}})(?P<tail>@(?:tcp6?|udp|unix|cloudsql-\w{{1,20}})?\()"
)
_WIRELESS = re.compile(
    r"(?P<head>WIFI:(?:[A-OQ-Z]:[^;\n]{0,64};){0,4}P:)(?P<value>(?:\\.|[^;\\\n]){4,4096})(?P<tail>;)"
)
_QUERY = re.compile(
    r"(?P<head>(?:[?&;]|\\u0026|%26|%3F)(?:sig|signature|key|auth|code|hash|hmac|st|pass|pw|x-(?:amz|goog)-"
    r"(?:signature|credential|security-token)|access_key|apikey|api-key|wskey|jwt|sign|subscription-key|ticket|state|id_token)=)"
    rf"(?P<value>(?:{_M}|[^\s&\"'<>#;,)\]}}`\\]){{4,65536}}+)",
    re.IGNORECASE,
)
_TOKEN = re.compile(rf"(?:{_M}|[A-Za-z0-9._~+/=:|@!*$-])+")
_SEGMENT = r"[A-Za-z0-9_.~%=-]"
_HOOKS = re.compile(
    "(?P<head>"
    r"hooks\.slack\.com/(?:services|workflows|triggers)/"
    r"|discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{5,25}/"
    r"|webhook\.office\.com/webhookb2/|outlook\.office(?:365)?\.com/webhook/"
    r"|hooks\.zapier\.com/hooks/catch/|maker\.ifttt\.com/trigger/[^/\s]{1,100}/(?:json/)?with/key/"
    r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/"
    r"|hook\.(?:[a-z0-9]{2,4}\.)?(?:make|integromat)\.com/|chat\.googleapis\.com/v1/spaces/[^/\s]{1,60}/messages\?"
    r"|events\.pagerduty\.com/integration/|api\.telegram\.org/(?:file/)?bot[0-9]{5,12}:"
    r"|hooks\.[a-z0-9-]{1,60}\.chat/hooks/|mattermost\.[a-z0-9.-]{1,60}/hooks/"
    rf")(?P<value>(?:{_M}|[A-Za-z0-9_.~%=&@/+-]){{8,65536}}+)"
)
_STARTS = (
    ".slack.",
    "discord",
    ".office",
    "zapier",
    "ifttt",
    "open-apis",
    "hook.",
    "googleapis",
    "pagerduty",
    ".telegram.",
    "/hooks/",
)


def mask_urls(text: str, mark: Mark) -> str:
    """Return `text` with the secrets in its URLs masked by `mark`: passwords before the host, signatures and keys in
    the query, paths of webhooks; hosts, other paths and harmless queries are kept.
    """
    if "//" in text or "\\/\\/" in text:
        text = _USERINFO.sub(lambda match: _userinfo(match, mark), text)
        hooks = places(text, *_STARTS)
        text = replace_matches(hooks, text, _HOOKS, lambda match: match["head"] + mark(match["value"]))
    for pattern, words in ((_SOURCE, ("@tcp", "@udp", "@unix", "@cloudsql", "@(")), (_WIRELESS, ("WIFI:",))):
        text = replace_matches(places(text, *words), text, pattern, lambda match: _between(match, mark))
    if "=" in text and ("?" in text or "&" in text or "%" in text):
        text = _QUERY.sub(lambda match: _query(match, mark), text)
    return text


def _authorization(match: re.Match[str], mark: Mark) -> str:
    value = match["value"]
    bare = value.rstrip(",;)}]")
    # A template or a call, as in `Bearer {token}` and `Basic encode(`.
    if not bare or is_placeholder(bare) or MARK.fullmatch(bare) or "{" in bare or bare.endswith("("):
        return match[0]
    if not match["scheme"] and not (looks_random(bare) and any(map(str.isdigit, bare))):
        return match[0]
    if match["scheme"] and not _credential(match["scheme"], bare):
        return match[0]
    return match["head"] + mark(bare) + value[len(bare) :]


def _credential(scheme: str, value: str) -> bool:
    """Return whether the word after a scheme is a credential rather than a word of a sentence."""
    basic = scheme.lower().startswith("basic") and value.lower() != value and len(value) >= 8
    return basic or "=" in value or len(value) >= 20 or looks_random(value, least=6)


def _basic(match: re.Match[str], mark: Mark) -> str:
    return match["head"] + mark(match["value"]) if looks_random(match["value"], least=12) else match[0]


def _cookie(match: re.Match[str], mark: Mark) -> str:
    return match["head"] + _CRUMB.sub(lambda crumb: _crumb(crumb, mark), match["value"])


def _part(part: re.Match[str], mark: Mark) -> str:
    value, kind = part["value"], kind_of(part["name"])
    reveals = kind is NameKind.SECRET or (kind is NameKind.PERHAPS and looks_random(value))
    return part["head"] + mark(value) if reveals and not is_placeholder(value) else part[0]


def _crumb(crumb: re.Match[str], mark: Mark) -> str:
    value = crumb["value"]
    if crumb["name"].lower() in _ATTRIBUTES or is_placeholder(value) or len(value) < 4:
        return crumb[0]
    return f"{crumb['name']}={mark(value)}"


def _between(match: re.Match[str], mark: Mark) -> str:
    value = match["value"]
    return match[0] if is_placeholder(value) else f"{match['head']}{mark(value)}{match['tail']}"


def _userinfo(match: re.Match[str], mark: Mark) -> str:
    user, password = match["user"], (match["password"] or "")[1:]
    if password:
        if is_placeholder(password) or ("/" in password and not looks_scrambled(password)):
            return match[0]
        # A token may also stand for the user, as in `https://TOKEN:x-oauth-basic@`.
        user = mark(user) if looks_random(user, least=20) else user
        return f"{match['head']}{user}:{mark(password)}@"
    if looks_random(user, least=16):
        return f"{match['head']}{mark(user)}@"
    return match[0]


def _query(match: re.Match[str], mark: Mark) -> str:
    value = match["value"]
    sure = re.match(r"\W*(?:sig|signature|x-)", match["head"], re.IGNORECASE)
    if MARK.fullmatch(value) or not looks_random(value, least=8 if sure else 12):
        return match[0]
    if not sure and not _TOKEN.fullmatch(unquote(value)):  # a program or a sentence, written for a URL
        return match[0]
    return match["head"] + mark(value)
