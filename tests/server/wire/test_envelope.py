"""From a body to a checked message: what is an error, with which code and which id."""

from __future__ import annotations

from typing import Any

import pytest

from codeagent_lsp.server.wire.framing import Malformed, Notification, Request, Response, read

CALL = '"jsonrpc":"2.0","method":"m"'


def _read(body: str | bytes) -> Any:
    return read(body.encode() if isinstance(body, str) else body)[0]


@pytest.mark.parametrize(
    "body",
    [
        '{"jsonrpc":"2.0","id":1,"method":',
        b'{"\xff"',
        b'{"a":"\xed\xa0\x80"}',
        "",
        "   ",
        "\ufeff{}",
        '{"a":NaN}',
        '{"a":[Infinity]}',
        '{"a":-Infinity}',
        '{"a":1}}',
        "{'a':1}",
        "[" * 100_000,
        '{"a":' * 50_000,
        '{"a":"line\nbreak"}',
        "1" * 5000,
    ],
)
def test_what_is_no_json_is_a_parse_error_without_id(body: str | bytes) -> None:
    message = _read(body)
    assert isinstance(message, Malformed)
    assert (message.id, message.code) == (None, -32700)


@pytest.mark.parametrize(
    ("body", "identity"),
    [
        ("[]", None),
        ('[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]', None),
        ("42", None),
        ("null", None),
        ("true", None),
        ('"text"', None),
        ("{}", None),
        ('{"id":1,"method":"shutdown"}', 1),
        ('{"jsonrpc":"1.0","id":"a","method":"x"}', "a"),
        ('{"jsonrpc":2.0,"id":1,"method":"x"}', 1),
        ('{"jsonrpc":"2.0","id":1}', 1),
        ('{"jsonrpc":"2.0"}', None),
        ('{"jsonrpc":"2.0","id":1,"method":5}', 1),
        ('{"jsonrpc":"2.0","method":null}', None),
        ("{" + CALL + ',"id":null}', None),
        ("{" + CALL + ',"id":true}', None),
        ("{" + CALL + ',"id":{}}', None),
        ("{" + CALL + ',"id":[1]}', None),
        ("{" + CALL + ',"id":1e999}', None),
    ],
)
def test_what_is_no_message_is_an_invalid_request(body: str, identity: Any) -> None:
    message = _read(body)
    assert isinstance(message, Malformed)
    assert (message.id, message.code) == (identity, -32600)


@pytest.mark.parametrize(("text", "identity"), [("1", 1), ('"1"', "1"), ("1.5", 1.5), ("-3", -3), ('""', ""), ("0", 0)])
def test_ids_stay_what_they_are(text: str, identity: Any) -> None:
    message = _read("{" + CALL + f',"id":{text}}}')
    assert isinstance(message, Request)
    assert message.id == identity
    assert type(message.id) is type(identity)


def test_notifications_and_responses() -> None:
    assert isinstance(_read("{" + CALL + "}"), Notification)
    assert isinstance(_read('{"jsonrpc":"2.0","id":"s","result":null}'), Response)
    assert isinstance(_read('{"jsonrpc":"2.0","id":null,"error":{}}'), Response)


def test_the_last_of_two_equal_keys_counts() -> None:
    message = _read('{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}')
    assert isinstance(message, Request)
    assert message.method == "b"


def test_half_a_surrogate_pair_is_a_string() -> None:
    message = _read("{" + CALL + ',"params":{"a":"\\ud800"}}')
    assert message.raw["params"] == {"a": "\ud800"}


def test_the_cut_off_start_of_a_header_is_given_back() -> None:
    message, tail = read(b'{"jsonrpc":"2.0","id":1,"method":"m"} Conte')
    assert isinstance(message, Request)
    assert tail == b"Conte"


def test_swallowed_messages_are_given_back() -> None:
    message, tail = read(b'{"jsonrpc":"2.0",Content-Length: 2\r\n\r\n{}')
    assert isinstance(message, Malformed)
    assert tail == b"Content-Length: 2\r\n\r\n{}"
