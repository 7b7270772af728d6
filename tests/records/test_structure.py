"""Mappings and sequences keep their form; what the name of a key says is done."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.records.mark import MARK, mask_id
from codeagent_lsp.records.names import NameKind, kind_of
from codeagent_lsp.records.sanitizer import CYCLE, TOO_DEEP, Sanitizer
from tests.examples import examples
from tests.records.formats import ALNUM, TOKENS, chars

sanitizer = Sanitizer(homes=())

SECRET_NAMES = (
    "api_key", "apiKey", "API_KEY", "x-api-key", "token", "password", "passwd", "secret", "client_secret",
    "session_id", "sessionId", "tool_call_id", "authorization", "Authorization", "Cookie", "Set-Cookie",
    "access_token", "refreshToken", "private_key", "aws_secret_access_key", "DB_PASSWORD", "PGPASSWORD",
    "auth_token", "credentials", "passphrase",
)  # fmt: skip
PLAIN_NAMES = (
    "time_ms", "step", "event", "ts", "prompt_tokens", "cached_tokens", "completion_tokens", "max_tokens",
    "token_count", "tokens", "tokenizer", "type", "name", "path", "key", "keys", "primary_key", "author", "seq",
    "run_id", "content", "password_length", "token_type", "secret_name", "monkey", "pass", "call_id", "id",
    "step_id", "has_password",
)  # fmt: skip


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_telling_name_has_its_value_replaced(name: str) -> None:
    clean = sanitizer.sanitize({name: "ordinary words", "n": 1})
    assert MARK.fullmatch(clean[name]) and clean["n"] == 1
    assert sanitizer.sanitize(clean) == clean


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_other_names_do_not(name: str) -> None:
    for value in ("ordinary words", 12, 1.5, None, True, ["a"]):
        assert sanitizer.sanitize({name: value}) == {name: value}


@pytest.mark.parametrize("name", ["session", "call_id", "callId"])
def test_a_name_that_says_little_has_a_generated_value_replaced(name: str) -> None:
    secret = chars(random.Random(name), ALNUM, 20) + "123"
    assert MARK.fullmatch(sanitizer.sanitize({name: secret})[name])
    for value in ("main", "2025-01-01", 7, None):
        assert sanitizer.sanitize({name: value}) == {name: value}
    of_call = {name: "call_" + secret}
    assert MARK.fullmatch(sanitizer.sanitize(of_call)[name]) and sanitizer.for_model().sanitize(of_call) == of_call


def test_ids_of_calls_are_replaced_in_records_and_nothing_that_looks_like_one() -> None:
    found = "call_" + chars(random.Random(1), ALNUM, 20) + "123"
    clean = sanitizer.sanitize(f"the result of {found}, again")
    assert found not in clean and MARK.search(clean) and sanitizer.sanitize(clean) == clean
    assert sanitizer.for_model().sanitize(f"see {found}") == f"see {found}"
    for text in ("call_12345678", "call_0000000001", "call_the_other_function", "recall_" + found[5:], "call_back2b"):
        assert sanitizer.sanitize(text) == text


def test_a_number_under_token_is_one_when_it_is_long() -> None:
    assert MARK.fullmatch(sanitizer.sanitize({"token": 839201123})["token"])
    for value in ({"token": 1200}, {"token": True}, {"max_tokens": 4096000}):
        assert sanitizer.sanitize(value) == value


@pytest.mark.parametrize("name", ["user_id", "account_id", "project_id", "userId", "PROJECT_ID"])
def test_identities_keep_their_ends(name: str) -> None:
    clean = sanitizer.sanitize({name: "abcd-0123456789-wxyz"})
    assert clean == {name: "abcd***wxyz"} == sanitizer.sanitize(clean)
    assert sanitizer.sanitize({name: 123456789012}) == {name: "1234***9012"}
    assert sanitizer.sanitize({name: "short"}) == {name: "***"}
    assert sanitizer.for_model().sanitize({name: "abcd-0123456789-wxyz"}) == {name: "abcd-0123456789-wxyz"}


def test_the_argument_is_never_changed() -> None:
    value = {"password": "x y", "list": [{"token": "abc"}], "tuple": ("a", b"b")}
    copy = {"password": "x y", "list": [{"token": "abc"}], "tuple": ("a", b"b")}
    sanitizer.sanitize(value)
    assert value == copy


def test_forms_stay() -> None:
    secret = TOKENS["npm"](random.Random(1))
    clean = sanitizer.sanitize({"b": [secret, 1], "a": (secret, None), 3: secret.encode(), None: True, secret: 1.5})
    mark = sanitizer.sanitize(secret)
    assert clean == {"b": [mark, 1], "a": (mark, None), 3: mark.encode(), None: True, mark: 1.5}
    assert list(clean) == ["b", "a", 3, None, mark]


def test_everything_below_a_telling_name_is_replaced() -> None:
    clean = sanitizer.sanitize({"credentials": {"login": "bob", "more": ["x", 5, True, None, ""]}, "secret": 1234})
    assert MARK.fullmatch(clean["credentials"]["login"])
    assert clean["credentials"]["more"][2:] == [True, None, ""]
    assert all(MARK.fullmatch(item) for item in (*clean["credentials"]["more"][:2], clean["secret"]))


def test_a_schema_that_names_a_secret_is_kept() -> None:
    schema = {"properties": {"password": {"type": "string", "description": "The password to use."}}}
    assert sanitizer.sanitize(schema) == schema


def test_lists_of_arguments_and_pairs() -> None:
    clean = sanitizer.sanitize(["tool", "--password", "simple", "--verbose", "--token-file", "x"])
    assert MARK.fullmatch(clean[2]) and clean[3:] == ["--verbose", "--token-file", "x"]
    assert MARK.fullmatch(sanitizer.sanitize([["Authorization", "simple"]])[0][1])
    assert MARK.fullmatch(sanitizer.sanitize({"name": "API_KEY", "value": "simple"})["value"])
    assert sanitizer.sanitize({"name": "COLOUR", "value": "simple"}) == {"name": "COLOUR", "value": "simple"}
    assert sanitizer.sanitize(["token", "password"]) == ["token", "password"]


def test_cycles_and_depth_are_bounded() -> None:
    loop: dict[str, Any] = {"a": 1}
    loop["self"] = loop
    assert sanitizer.sanitize(loop) == {"a": 1, "self": CYCLE}
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    clean = sanitizer.sanitize(deep)
    while isinstance(clean, list):
        clean = clean[0]
    assert clean == TOO_DEEP
    nested: Any = "x"
    for _ in range(5000):
        nested = {"password": nested}
    assert TOO_DEEP in str(sanitizer.sanitize(nested))


def test_the_same_value_twice_is_no_cycle() -> None:
    shared = {"a": 1}
    assert sanitizer.sanitize([shared, shared]) == [shared, shared]


def test_odd_values_have_a_name_or_a_text() -> None:
    secret = TOKENS["npm"](random.Random(1))
    mark = sanitizer.sanitize(secret)
    assert sanitizer.sanitize(object()) == "<object>"
    assert sanitizer.sanitize(ValueError(f"bad {secret}")) == f"ValueError: bad {mark}"
    assert sanitizer.sanitize(PurePosixPath("/home/somebody/x")) == "~/x"
    assert sanitizer.sanitize(frozenset({secret})) == [mark]
    assert sanitizer.sanitize(bytearray(b"\xff\xfe")) == b"\xff\xfe"


def test_names_are_read_by_words() -> None:
    assert kind_of("spring.datasource.password") is NameKind.SECRET
    assert kind_of("password2") is NameKind.SECRET
    assert kind_of("a sentence " * 10) is NameKind.PLAIN
    assert mask_id("12345678") == "***"


NAMES = st.sampled_from([*SECRET_NAMES, *PLAIN_NAMES])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=examples(100), deadline=None)
@given(JSON)
def test_any_json_keeps_its_form_and_is_cleaned_only_once(value: Any) -> None:
    once = sanitizer.sanitize(value)
    assert form(once) == form(value)
    assert sanitizer.sanitize(once) == once


def form(value: Any) -> Any:
    """The skeleton of a value."""
    if isinstance(value, Mapping):
        return {key: form(item) for key, item in value.items()}
    return [form(item) for item in value] if isinstance(value, list) else None


def test_names_of_errors_schemas_and_references_hold_no_secret() -> None:
    kept = {
        "BAD_PASSWORD": 40101,
        "INVALID_TOKEN": "1001",
        "existingSecret": "release-10-db",
        "Authorization": {"additionalProperties": {"type": "string"}, "description": "The header"},
        "password": {"$ref": "#/definitions/text"},
        "token": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    assert sanitizer.sanitize(kept) == kept
    secret = "Zx81kQp0" + "Lm4vT7yB"
    held = {
        "BAD_PASSWORD": secret,
        "existingSecret": secret,
        "password": {"additionalProperties": secret, "$ref": secret, "anyOf": secret},
        "PASSWORD": 40101,
    }
    assert secret not in str(sanitizer.sanitize(held)) and "40101" not in str(sanitizer.sanitize(held))


SHAPES: list[Any] = [
    {"args": ["curl", "-u", "bob:§"]},
    {"args": ["mysql", "-p§"]},
    {"env": [["DB_PASSWORD", "§"]]},
    {"form": [("password", "§")]},
    {"tokens": {"a": "§"}},
    {"tokens": ["§"]},
    {"Key": "db_password", "Value": "§"},
    {"kind": "Secret", "data": {"a": "§"}},
    {"kind": "Secret", "stringData": {"conf": "a: §"}},
    {"lines": ["password:", "  §"]},
    {"lines": ["kind: Secret", "data:", "  a: §"]},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_stands_beside_a_value_tells_of_it(shape: Any) -> None:
    secret = "qT7f" + "Lm29xPz4" + "KcWb8sRn3"
    value = json.loads(json.dumps(shape, ensure_ascii=False).replace("§", secret))
    assert secret not in json.dumps(sanitizer.sanitize(value))


@pytest.mark.parametrize(
    "value",
    [
        {"args": ["curl", "-u", "bob", "localhost"]},
        {"lines": ["password:", "  please enter it"]},
        {"tokens": {"max": 4096, "used": "12 of 100"}, "words": ["token", "word2024"]},
        {"kind": "ConfigMap", "data": {"mode": "production2024"}},
        ["password", "Passwort"],
    ],
    ids=str,
)
def test_lists_of_words_stay(value: Any) -> None:
    assert sanitizer.sanitize(value) == value
