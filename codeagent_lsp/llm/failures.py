"""Mapping of transport failures to the typed error that tells the user what to do.

Pure functions over httpx exceptions, HTTP responses and error objects inside a stream. Not here: the decision
to retry (`providers/http_model.py`).
"""

from __future__ import annotations

import json
import math
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from codeagent_lsp.errors import (
    ContextOverflow,
    ModelBusy,
    ModelError,
    ModelNotFound,
    ModelRejected,
    ModelReplyInvalid,
    ModelStreamBroken,
    ModelTimeout,
    ModelUnauthorized,
    ModelUnreachable,
)
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.learned_facts import window_in
from codeagent_lsp.network import PROXY_LOGIN, client_refused, proxy_refused, redact_url, refusal
from codeagent_lsp.workspace.text.numbers import whole_number
from codeagent_lsp.workspace.text.visible import printable_line

LONGEST_REASON = 300
BODY_LIMIT = 64 * 1024
PAGE = "HTML"
"""What stands for a page instead of its text, in all languages."""
MOST_NAMES = 20

_OVERFLOW = re.compile(
    r"context[ _-]?(length|size|window)|maximum context|exceed_context|exceeds? the available context"
    r"|too many (input )?tokens|prompt is too long|input is too long|token limit|larger than the .*context"
    r"|reduce the length of the (messages|prompt)|longer than the maximum model length|input length should be"
    r"|`inputs` tokens|maximum number of tokens allowed|exceed context limit",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile(r"Limit:? ([\d,]+), Requested:? ([\d,]+)")
"""OpenAI's 429 on tokens a minute; waiting does not help a request that is larger than a whole minute has."""
_QUOTA = re.compile(r"insufficient[_ ](quota|credit|balance|funds)|billing|out of credits?", re.IGNORECASE)
_NO_CREDIT = re.compile(r"credit balance is too low")  # Anthropic's 400
_GOOGLE_DELAY = re.compile(rb'"retryDelay":\s*"(\d+(?:\.\d+)?)s"')
_GOOGLE_BAD_KEY = re.compile(rb"API_KEY_INVALID")
_NO_MODEL = re.compile(r"\bmodel\b|\bmodels/\S+ is not found", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"\b(?:tools?|tool[ _](?:use|choice|calling)|functions?|function calling)\b[^.]{0,40}(?:not supported|unsupported)"
    r"|(?:not|n't) support (?:\w+ ){0,2}(?:tools?|functions?|tool[ _-]\w+|function[ _-]\w+)\b|requires? --jinja"
    r"|enable-auto-tool-choice|support tool use",
    re.IGNORECASE,
)
"""The wordings of Ollama, OpenAI's likes, llama.cpp, vLLM and OpenRouter for a model that takes no tools."""
_SERVER_PARSE = re.compile(r"failed to parse", re.IGNORECASE)
# `1h2m3s`, `6m0s`, `850ms`: durations of Go, as OpenAI sends them; `m` before `s` is of milliseconds.
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?")
_OF_GATEWAYS: Mapping[int, tuple[str, type[ModelRejected | ContextOverflow]]] = {
    403: ("model.blocked", ModelRejected),
    413: ("model.too_large", ContextOverflow),
}
_UNITS = (3600.0, 60.0, 1.0, 0.001)


def from_exception(error: Exception, where: Endpoint, limits: TimeLimits, *, started: bool = False) -> ModelError:
    """Return, without raising it, the typed error for an exception of httpx, with keys masked: ModelTimeout if
    connecting took too long, ModelStreamBroken for bytes that are no HTTP and once the response had `started`, else
    ModelUnreachable.
    """
    url, reason = where.root, printable_line(where.redact(str(error)), LONGEST_REASON) or type(error).__name__
    chain = list(_chain(error))
    if (known := refusal(error, url, where.network)) is not None:
        return ModelUnreachable(known.key, **known.values)
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return ModelTimeout("model.timeout_connect", url=url, seconds=f"{limits.connect:g}")
    if any(isinstance(link, ssl.SSLError) for link in chain):
        return ModelUnreachable("model.tls", url=url, reason=reason)
    if any(isinstance(link, socket.gaierror) for link in chain):
        return ModelUnreachable("model.dns", url=url, reason=reason)
    if isinstance(error, httpx.ConnectError | httpx.ProxyError):
        return ModelUnreachable("model.unreachable", url=url, reason=reason)
    if isinstance(error, httpx.DecodingError | httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        return ModelStreamBroken("model.stream_garbled", url=url, reason=reason)
    if started:
        return ModelStreamBroken("model.stream_cut", url=url)
    # httpx uses one class for a connection that was dropped, which may pass, and for bytes that are no HTTP.
    if isinstance(error, httpx.RemoteProtocolError) and "disconnected" not in str(error):
        return ModelStreamBroken("model.stream_garbled", url=url, reason=reason)
    return ModelUnreachable("model.reset", url=url, reason=reason)


def from_response(status: int, headers: Mapping[str, str], body: bytes, where: Endpoint) -> ModelError:
    """Return, without raising it, the typed error for an HTTP response that is not a success, by its status and the
    server's own words; `body` may be cut short. ContextOverflow for a prompt that is too long, with the window if the
    server states it; ModelBusy for what may pass.
    """
    url, reason = where.root, where.redact(server_message(body, headers.get("content-type", "")))
    reason = printable_line(reason, LONGEST_REASON) or f"HTTP {status}"
    if status == 400 and _NO_CREDIT.search(reason):
        status = 402
    # Not followed: the key would go along, to another server.
    if 300 <= status < 400:
        target = printable_line(redact_url(headers.get("location") or "?"), LONGEST_REASON)
        return ModelRejected("model.redirected", url=url, target=target)
    delay = _GOOGLE_DELAY.search(body)
    if status == 402 or (status == 429 and _out_of_quota(reason, body, told=delay is not None)):
        return ModelRejected("model.quota", url=url, reason=reason)
    # This request alone is more than a minute's tokens: to wait would not help.
    if status == 429 and _is_larger_than_limit(reason):
        return ContextOverflow("model.overflow", reason=reason)
    # A page is of something before the model, which knows neither windows nor keys.
    if _is_page(body, headers.get("content-type", "")) and status in _OF_GATEWAYS:
        key, kind = _OF_GATEWAYS[status]
        return kind(key, url=url, status=status, reason=reason)
    # 500 too: llama.cpp and others report it so.
    if status == 413 or (status in (400, 422, 500) and _OVERFLOW.search(reason)):
        return ContextOverflow("model.overflow", stated=window_in(body.decode("utf-8", "replace")), reason=reason)
    # By its words, not its status: servers use 400, 404, 422 and 500 for it.
    if status >= 400 and _NO_TOOLS.search(reason):
        return ModelRejected("model.no_tools", url=url, reason=reason)
    if status >= 500 and _SERVER_PARSE.search(reason):
        return ModelReplyInvalid("model.server_parse", url=url, reason=reason)
    known = proxy_refused(url, where.network) if status == PROXY_LOGIN else client_refused(url, status, reason)
    if known is not None:
        return ModelUnreachable(known.key, **known.values)
    if status in (401, 403) or (status == 400 and _GOOGLE_BAD_KEY.search(body)):
        return ModelUnauthorized("model.unauthorized", url=url, status=status, reason=reason)
    if status == 404:
        return _missing(url, reason)
    # Those that may pass; 501 is a server that will never do it.
    if status in (408, 409, 425, 429) or (status >= 500 and status != 501):
        told = reason if str(status) in reason else f"{status} {reason}"
        wait = retry_after(headers)
        wait = float(delay[1]) if wait is None and delay else wait
        return ModelBusy("model.busy", url=url, reason=told, retry_after=wait)
    return ModelRejected("model.rejected", url=url, status=status, reason=reason, param=_param(body))


def from_event(error: Any, where: Endpoint) -> ModelError:
    """Return, without raising it, the typed error for an error object inside a stream, by its words, then its HTTP
    status; ModelStreamBroken if it has none that is known.
    """
    reason = printable_line(where.redact(_message_of({"error": error})), LONGEST_REASON) or "no reason given"
    code = error.get("code", error.get("status")) if isinstance(error, dict) else None
    if _OVERFLOW.search(reason):
        return ContextOverflow("model.overflow", stated=window_in(json.dumps(error)), reason=reason)
    if _SERVER_PARSE.search(reason):
        return ModelReplyInvalid("model.server_parse", url=where.root, reason=reason)
    if _QUOTA.search(reason):
        return ModelRejected("model.quota", url=where.root, reason=reason)
    # The error inside of a stream is treated as the response that it would have been.
    status = whole_number(str(code))
    if status is not None and 400 <= status < 600:
        return from_response(status, {}, json.dumps({"error": error}).encode(), where)
    return ModelStreamBroken("model.stream_error", url=where.root, reason=reason)


def told_in(value: Mapping[str, Any], where: Endpoint) -> ModelError | None:
    """Return the typed error for a JSON object that has one of the usual shapes of an error, although its response was
    a success; None for all others.
    """
    words = [value.get(key) for key in ("message", "msg", "detail", "error_message") if isinstance(value.get(key), str)]
    return from_event(dict(value), where) if any(words) or value.get("errors") or value.get("detail") else None


def server_message(body: bytes, content_type: str) -> str:
    """Return the server's own error message: from JSON its message, of an HTML page `HTML (title)`, of other texts all,
    stripped.
    """
    source = body.decode("utf-8", "replace").strip()
    try:
        return _message_of(json.loads(source))
    except (ValueError, RecursionError):
        pass
    if _is_page(body, content_type):
        title = re.search(r"<title[^>]*>([^<]{1,100})", source, re.IGNORECASE)
        return f"{PAGE} ({title[1].strip()})" if title else PAGE
    return source


def _is_page(body: bytes, content_type: str) -> bool:
    return "html" in content_type or body.lstrip()[:20].lower().startswith((b"<!doctype", b"<html"))


def _is_larger_than_limit(reason: str) -> bool:
    found = _TOO_LARGE.search(reason)
    limit, requested = (int(number.replace(",", "")) for number in found.groups()) if found else (0, 0)
    return requested > limit


def _out_of_quota(reason: str, body: bytes, *, told: bool) -> bool:
    """Return whether waiting does not help. Google and OpenAI name billing for every limit; with Google it helps unless
    a day is over.
    """
    told = told or b"rate_limit_exceeded" in body
    return b"PerDay" in body or (not told and _QUOTA.search(reason) is not None)


def _missing(url: str, reason: str) -> ModelError:
    if _NO_MODEL.search(reason) and "html" not in reason.lower():
        return ModelNotFound("model.unknown", url=url, name=f"({reason})", available="?", reason=reason)
    return ModelNotFound("model.no_endpoint", url=url)


def unknown_model(error: ModelError, name: str, names: Sequence[str]) -> ModelNotFound:
    """Return, without raising it, the error for a refused model's name, with the `names` of the models that the server
    lists; with the server's own reason in `error` where it lists none, or this model too, as for a key without access.
    """
    url, reason = error.values.get("url"), error.values.get("reason")
    if reason and (name in names or not names):
        return ModelNotFound("model.withheld", url=url, name=name, reason=reason)
    return ModelNotFound("model.unknown", url=url, name=name, available=", ".join(names[:MOST_NAMES]) or "?")


def _param(body: bytes) -> str:
    """Return the name of the refused parameter, where the server tells it beside its message."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    error = value.get("error") if isinstance(value, dict) else None
    param = error.get("param") if isinstance(error, dict) else None
    return param if isinstance(param, str) else ""


def _message_of(value: Any) -> str:
    """Return the message inside one of the usual shapes of an error object."""
    # As deep as errors are nested: `{"error": {"message": …}}`, `[{"error": …}]`.
    for _ in range(4):
        if isinstance(value, dict):
            keys = ("error", "errors", "message", "detail", "msg", "error_message", "title", "type", "code")
            value = next((value[key] for key in keys if value.get(key)), "")
        elif isinstance(value, list):
            value = value[0] if value else ""
    return value if isinstance(value, str) else json.dumps(value)


def _chain(error: BaseException | None) -> Any:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


# How long a server wants its client to wait, by the headers of its response.


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds a server asks to wait, None if it does not.

    Reads `retry-after-ms`, `Retry-After` in seconds or as a date (RFC 9110), or when the limits are renewed that are
    used up (`anthropic-ratelimit-tokens-reset`, `x-ratelimit-reset-tokens` and the like).
    """
    now = now or datetime.now(UTC)
    if (wait := _number(headers.get("retry-after-ms", ""))) is not None:
        return wait / 1000
    value = headers.get("retry-after", "")
    if (wait := _number(value)) is not None:
        return wait
    try:
        return _until(parsedate_to_datetime(value), now)
    except (ValueError, TypeError):
        return _until_renewed(headers, now)


def _until_renewed(headers: Mapping[str, str], now: datetime) -> float | None:
    # Only limits that are at 0: the others are renewed as well, but nobody has to wait for them.
    used_up = [name for name, left in headers.items() if "ratelimit" in name.lower() and left.strip() == "0"]
    resets = [headers.get(name.lower().replace("remaining", "reset"), "") for name in used_up if "remaining" in name]
    return max((wait for value in resets if (wait := _renewal(value, now)) is not None), default=None)


def _renewal(value: str, now: datetime) -> float | None:
    """Return the seconds of a duration such as `6m0s`, or until a moment (RFC 3339)."""
    if value and (match := _DURATION.fullmatch(value)):
        parts = [_number(part or "0") for part in match.groups()]
        return sum(unit * (part or 0.0) for unit, part in zip(_UNITS, parts, strict=True))
    try:
        return _until(datetime.fromisoformat(value), now)
    except (ValueError, OverflowError):
        return None


def _until(moment: datetime, now: datetime) -> float:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if number >= 0 and math.isfinite(number) else None
