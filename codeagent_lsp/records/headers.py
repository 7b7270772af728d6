"""Secrets in HTTP headers inside a text: `Authorization`, `Proxy-Authorization`, `Cookie`, `Set-Cookie`.

The scheme, cookie names and cookie attributes are kept. Not here: headers as mappings (`sanitizer.py`).
"""

from __future__ import annotations

import re

from codeagent_lsp.records.mark import MARK, Mark
from codeagent_lsp.records.search import places, replaced
from codeagent_lsp.records.values import is_placeholder, looks_random

_M = r"<secret:[0-9a-f]{6}>"
_AUTHORIZATION = re.compile(
    r"(?P<head>[Aa](?:uthorization|UTHORIZATION)(?:\\{0,7}[\"'`\]])?[ \t]{0,4}(?:=>|[:=,])[ \t]{0,4}(?:\\{0,7}[\"'`])?"
    r"(?P<scheme>(?:[Bb]asic|[Bb]earer|BASIC|BEARER|[Tt]oken|[Dd]igest|[Nn]egotiate|NTLM|[Aa]pi-?[Kk]ey|AWS4-HMAC-SHA256"
    r"|OAuth|Bot|Splunk|SharedKey|GoogleLogin|DPoP|Hawk|Key)(?:[ \t]{1,4}|%20|\+))?)"
    rf"(?P<value>(?:{_M}|[^\s\"'`<>\\]|(?<=[,;])[ \t](?=[\w-]{{1,40}}=)|\"(?=[^\s\"]{{0,300}}\"(?:,|\s|$)))++)"
)
_COOKIE = re.compile(
    r"(?P<head>[Cc][Oo][Oo][Kk][Ii][Ee]2?\\{0,7}[\"']?[ \t]{0,4}:[ \t]{0,4}(?:\\{0,7}[\"'])?)"
    rf"(?P<value>[!#$%&*+.^_|~0-9A-Za-z-]{{1,100}}=(?:{_M}|[^\r\n\"'<>\\]){{1,65536}}+)"
)
_CRUMB = re.compile(rf"(?P<name>[^=;\s]{{1,100}})=(?P<value>(?:{_M}|[^;\s,])+)")
_BASIC = re.compile(r"(?P<head>[Bb]asic[ \t]{1,4})(?P<value>[A-Za-z0-9+/]{12,65536}+={0,2})(?![A-Za-z0-9+/=])")
_ATTRIBUTES = frozenset(("path", "domain", "expires", "max-age", "samesite", "priority", "version", "comment"))


def mask_headers(text: str, mark: Mark) -> str:
    """Return `text` with the credentials in HTTP headers masked."""
    named = places(text, "uthorization", "UTHORIZATION")
    text = replaced(named, text, _AUTHORIZATION, lambda match: _authorization(match, mark))
    cookies = places(text, "ookie", "OOKIE")
    text = replaced(cookies, text, _COOKIE, lambda match: _cookie(match, mark))
    basic = places(text, "asic")
    return replaced(basic, text, _BASIC, lambda match: _basic(match, mark))


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


def _crumb(crumb: re.Match[str], mark: Mark) -> str:
    value = crumb["value"]
    if crumb["name"].lower() in _ATTRIBUTES or is_placeholder(value) or len(value) < 4:
        return crumb[0]
    return f"{crumb['name']}={mark(value)}"
