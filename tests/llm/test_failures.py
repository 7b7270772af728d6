"""From what happened on the wire to the one error: tables, and secrets in none of them."""

from __future__ import annotations

import json
import socket
import ssl
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits, endpoint
from codeagent_lsp.llm.failures import LONGEST_REASON, from_event, from_exception, from_response, server_message
from codeagent_lsp.network import is_loopback, redact_url
from tests.examples import examples

KEY = "test-" + "s" * 24
WHERE = endpoint("http://127.0.0.1:8080", KEY)
LIMITS = TimeLimits()


def caused(error: Exception, by: Exception) -> Exception:
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    ("error", "started", "kind", "key"),
    [
        (httpx.ConnectTimeout(""), False, ModelTimeout, "model.timeout_connect"),
        (httpx.PoolTimeout(""), False, ModelTimeout, "model.timeout_connect"),
        (httpx.ConnectError("refused"), False, ModelUnreachable, "model.unreachable"),
        (httpx.ProxyError("407"), False, ModelUnreachable, "model.unreachable"),
        (
            caused(httpx.ConnectError("x"), ssl.SSLCertVerificationError("expired")),
            False,
            ModelUnreachable,
            "network.certificate.other",
        ),
        (caused(httpx.ConnectError("x"), ssl.SSLError("bad record")), False, ModelUnreachable, "model.tls"),
        (caused(httpx.ConnectError("x"), socket.gaierror(-2, "unknown")), False, ModelUnreachable, "model.dns"),
        (httpx.ReadError("reset"), False, ModelUnreachable, "model.reset"),
        (httpx.ReadError("reset"), True, ModelStreamBroken, "model.stream_cut"),
        (httpx.WriteError("broken pipe"), False, ModelUnreachable, "model.reset"),
        (httpx.RemoteProtocolError("Server disconnected"), False, ModelUnreachable, "model.reset"),
        (httpx.RemoteProtocolError("illegal header"), False, ModelStreamBroken, "model.stream_garbled"),
        (httpx.RemoteProtocolError("peer closed"), True, ModelStreamBroken, "model.stream_cut"),
        (httpx.DecodingError("bad gzip"), True, ModelStreamBroken, "model.stream_garbled"),
        (httpx.LocalProtocolError("x"), False, ModelStreamBroken, "model.stream_garbled"),
        (httpx.UnsupportedProtocol("x"), False, ModelStreamBroken, "model.stream_garbled"),
        (httpx.ConnectError(f"sent {KEY} to it"), False, ModelUnreachable, "model.unreachable"),
        (httpx.ReadError(""), False, ModelUnreachable, "model.reset"),
    ],
)
def test_exceptions(error: Exception, started: bool, kind: type[ModelError], key: str) -> None:
    made = from_exception(error, WHERE, LIMITS, started=started)
    assert (type(made), made.key) == (kind, key)
    assert KEY not in str(made)
    assert WHERE.root in str(made)


@pytest.mark.parametrize(
    ("status", "message", "kind", "key"),
    [
        (400, "bad", ModelRejected, "model.rejected"),
        (
            429,
            "Request too large for m on tokens per min (TPM): Limit 30,000, Requested 43434.",
            ContextOverflow,
            "model.overflow",
        ),
        (
            429,
            "Rate limit reached on tokens: Limit 30000, Used 29000, Requested 4000.",
            ModelBusy,
            "model.busy",
        ),
        (400, "This model's maximum context length is 8192 tokens", ContextOverflow, "model.overflow"),
        (422, "input is too long: context window exceeded", ContextOverflow, "model.overflow"),
        (500, "the request exceeds the available context size", ContextOverflow, "model.overflow"),
        (413, "", ContextOverflow, "model.overflow"),
        (401, "", ModelUnauthorized, "model.unauthorized"),
        (403, "", ModelUnauthorized, "model.unauthorized"),
        (402, "", ModelRejected, "model.quota"),
        (429, "insufficient_quota", ModelRejected, "model.quota"),
        (429, "", ModelBusy, "model.busy"),
        (404, "model 'x' not found", ModelNotFound, "model.unknown"),
        (404, "", ModelNotFound, "model.no_endpoint"),
        (405, "", ModelRejected, "model.rejected"),
        (408, "", ModelBusy, "model.busy"),
        (409, "", ModelBusy, "model.busy"),
        (425, "", ModelBusy, "model.busy"),
        (500, "", ModelBusy, "model.busy"),
        (500, "Failed to parse tool call", ModelReplyInvalid, "model.server_parse"),
        (501, "", ModelRejected, "model.rejected"),
        (503, "", ModelBusy, "model.busy"),
        (529, "", ModelBusy, "model.busy"),
        (599, "", ModelBusy, "model.busy"),
        (301, "", ModelRejected, "model.redirected"),
        (204, "", ModelRejected, "model.rejected"),
        (418, "", ModelRejected, "model.rejected"),
    ],
)
def test_statuses(status: int, message: str, kind: type[ModelError], key: str) -> None:
    body = json.dumps({"error": {"message": f"{message} {KEY}"}}).encode()
    made = from_response(status, {"content-type": "application/json"}, body, WHERE)
    assert (type(made), made.key) == (kind, key)
    for language in ("en", "zh-cn"):
        assert KEY not in made.localized(language)
        assert "{" not in made.localized(language), "a place in the sentence stayed empty"


@pytest.mark.parametrize(
    ("status", "kind", "key", "next_step"),
    [
        (401, ModelUnauthorized, "model.unauthorized", "model.apiKey"),
        (403, ModelRejected, "model.blocked", "model.baseUrl"),
        (413, ContextOverflow, "model.too_large", "413"),
        (502, ModelBusy, "model.busy", "Bad"),
    ],
)
@pytest.mark.parametrize("kind_of_content", ["text/html; charset=utf-8", "text/plain", ""])
def test_a_page_is_of_something_before_the_model(
    status: int, kind: type[ModelError], key: str, next_step: str, kind_of_content: str
) -> None:
    page = b"\n<!DOCTYPE html><html><head><title>Bad</title></head><body>blocked</body></html>"
    made = from_response(status, {"content-type": kind_of_content}, page, WHERE)
    assert (type(made), made.key) == (kind, key)
    for language in ("en", "zh-cn"):
        told = made.localized(language)
        assert "HTML (Bad)" in told and next_step in told and "{" not in told and "page (" not in told


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        ("boom", ModelStreamBroken, "boom"),
        ({"message": "boom"}, ModelStreamBroken, "boom"),
        ({"message": {"detail": "deep"}}, ModelStreamBroken, "deep"),
        ({"message": ["first", "second"]}, ModelStreamBroken, "first"),
        ({"message": "slow", "code": 429}, ModelBusy, "slow"),
        ({"message": "slow", "code": "429"}, ModelBusy, "slow"),
        ({"message": "slow", "status": 503}, ModelBusy, "slow"),
        ({"message": "x", "code": "rate_limit"}, ModelStreamBroken, "x"),
        ({"message": "x", "code": 99999}, ModelStreamBroken, "x"),
        ({"message": "x", "code": -1}, ModelStreamBroken, "x"),
        ({"code": 401, "message": "no"}, ModelUnauthorized, "no"),
        ({}, ModelStreamBroken, "no reason"),
        (True, ModelStreamBroken, "true"),
        (["a"], ModelStreamBroken, "a"),
        ({"message": "exceeds the available context size"}, ContextOverflow, "context size"),
    ],
)
def test_errors_inside_a_stream(error: Any, kind: type[ModelError], says: str) -> None:
    made = from_event(error, WHERE)
    assert type(made) is kind
    assert says in str(made)


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.just(KEY),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "detail", "msg", "code", "status", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(NESTED, st.sampled_from([301, 400, 401, 402, 404, 413, 429, 500, 503]))
def test_no_body_breaks_it_or_shows_the_key(value: Any, status: int) -> None:
    for made in (from_event(value, WHERE), from_response(status, {}, json.dumps(value).encode(), WHERE)):
        assert isinstance(made, ModelError)
        assert KEY not in made.localized("en") + made.localized("zh-cn") + repr(made)
        assert "\n" not in str(made)


@settings(max_examples=examples(100), deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["", "text/html", "application/json"]))
def test_any_bytes_give_one_short_line(body: bytes, kind: str) -> None:
    made = from_response(400, {"content-type": kind}, body, WHERE)
    assert len(str(made)) < LONGEST_REASON + 200
    assert "".join(c for c in str(made) if c.isprintable()) == str(made)
    assert isinstance(server_message(body, kind), str)


def test_a_long_reason_is_cut() -> None:
    made = from_response(400, {}, b"x" * 10_000, WHERE)
    assert "…" in str(made) and len(str(made)) < LONGEST_REASON + 200


@pytest.mark.parametrize(
    "text",
    [
        KEY,
        f"key={KEY}",
        f"Authorization: Bearer {KEY}",
        f"authorization: BEARER {KEY}x",
        f"'{KEY}'",
        f"{KEY}{KEY}",
        "Basic dXNlcjpwYXNz",
    ],
)
def test_redaction(text: str) -> None:
    clean = WHERE.redact(text)
    assert KEY not in clean and "dXNlcjpwYXNz" not in clean and "***" in clean


def test_nothing_to_redact() -> None:
    assert endpoint("http://h").redact("a plain sentence, with basics") == "a plain sentence, with basics"
    assert WHERE.redact("no key here") == "no key here"


def test_headers_carry_the_key_only_where_there_is_one() -> None:
    assert WHERE.headers()["Authorization"] == f"Bearer {KEY}"
    assert "Authorization" not in endpoint("http://h").headers()
    assert endpoint("http://h", f"  {KEY}\n").key == KEY
    assert KEY not in repr(WHERE)


@pytest.mark.parametrize("key", ["a\nb", "clé", "a\x00b", "\ud800"])
def test_a_key_that_no_header_carries_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ModelRejected) as caught:
        endpoint("http://h", key)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("a.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("example.com", False),
        ("", False),
    ],
)
def test_what_is_this_machine(host: str, local: bool) -> None:
    assert is_loopback(host) == local
    if host:
        bracketed = f"[{host}]" if ":" in host else host
        assert Endpoint(f"http://{bracketed}:1", "").loopback == local


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://h/v1", "http://h/v1"),
        ("http://u:p@h/v1", "http://***@h/v1"),
        ("http://u@h", "http://***@h"),
        ("http://h/v1?key=1", "http://h/v1"),
        ("http://h/v1#t", "http://h/v1"),
        ("http://u:p@q@h/v1", "http://***@h/v1"),
        ("http://u:p/q@h", "http://***@h"),
        ("http://u:p?q@h", "http://***@h"),
        ("nonsense", "nonsense"),
        ("", ""),
    ],
)
def test_addresses_are_shown_without_secrets(url: str, wanted: str) -> None:
    assert redact_url(url) == wanted
