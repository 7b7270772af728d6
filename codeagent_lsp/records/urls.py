"""Secrets in URLs: passwords before the host, signatures in queries, webhooks whose path is the secret.

Not here: queries by ordinary names (`token=`), found with all other assignments (`assignments.py`).
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from codeagent_lsp.records.mark import MARK, Mark
from codeagent_lsp.records.search import places, replaced
from codeagent_lsp.records.values import is_placeholder, looks_random

_M = r"<secret:[0-9a-f]{6}>"
# A password may have an `@` of its own: the last one before the host ends it.
_USERINFO = re.compile(
    rf"(?P<head>:(?:\\?/){{2}})(?P<user>[^\s/@:\"'<>\\`?#]{{0,4096}}+)(?P<password>:(?:{_M}|[^\s/\"'`<>\\@]|@(?=[^\s/\"'`<>\\@]{{0,200}}@)){{1,65536}}+)?@"
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
    r"|events\.pagerduty\.com/integration/"
    r"|hooks\.[a-z0-9-]{1,60}\.chat/hooks/|mattermost\.[a-z0-9.-]{1,60}/hooks/"
    rf")(?P<value>(?:{_M}|[A-Za-z0-9_.~%=&@/-]){{8,65536}}+)"
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
    "/hooks/",
)


def mask_urls(text: str, mark: Mark) -> str:
    """Return `text` with the secrets in its URLs masked; hosts, paths and harmless queries are kept."""
    if "//" in text or "\\/\\/" in text:
        text = _USERINFO.sub(lambda match: _userinfo(match, mark), text)
        hooks = places(text, *_STARTS)
        text = replaced(hooks, text, _HOOKS, lambda match: match["head"] + mark(match["value"]))
    if "=" in text and ("?" in text or "&" in text or "%" in text):
        text = _QUERY.sub(lambda match: _query(match, mark), text)
    return text


def _userinfo(match: re.Match[str], mark: Mark) -> str:
    user, password = match["user"], (match["password"] or "")[1:]
    if password:
        if is_placeholder(password):
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
