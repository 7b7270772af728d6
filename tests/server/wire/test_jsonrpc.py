"""The messages that the server sends: members that are there though empty, and bytes that any client can read."""

from __future__ import annotations

import pytest

from codeagent_lsp.server.wire.protocol_guard import encode, error, message, result


def test_an_answer_has_its_result_though_it_is_null() -> None:
    assert result(0, None) == {"jsonrpc": "2.0", "id": 0, "result": None}


def test_a_refusal_has_its_id_though_it_is_unknown() -> None:
    assert error(None, -32700, "no JSON") == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32700, "message": "no JSON"},
    }


def test_other_members_are_left_out_where_they_are_none() -> None:
    assert message(method="a", params=None) == {"jsonrpc": "2.0", "method": "a"}
    assert message(id=0, method="a", params=[]) == {"jsonrpc": "2.0", "id": 0, "method": "a", "params": []}


def test_what_is_no_json_is_refused() -> None:
    for value, kind in ((float("nan"), ValueError), (object(), TypeError)):
        with pytest.raises(kind):
            encode(result(1, value))


def test_encoding_is_ascii_and_knows_models_with_aliases() -> None:
    class Model:
        def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, str]:
            return {"runId": f"{mode} {by_alias}"}

    assert encode({"a": "\ud800é"}) == b'{"a":"\\ud800\\u00e9"}'
    assert encode(Model()) == b'{"runId":"json True"}'
