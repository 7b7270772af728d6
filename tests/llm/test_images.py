"""Pictures on their way to models that see: in each provider's form, and out of the way of all others."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from codeagent_lsp.llm.calls import text_calls
from codeagent_lsp.llm.calls.text_calls import render
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.model import ModelInfo, ModelRequest
from codeagent_lsp.llm.survey import KINDS
from codeagent_lsp.llm.wire import PICTURES
from codeagent_lsp.messages import Image, Message, ToolCall
from codeagent_lsp.session.replay import message_from_dict, message_to_dict

DATA = b64encode(b"\x89PNG not really").decode()
IMAGE = Image("image/png", DATA)
CALLS = (ToolCall("read_file", {"path": "a.png"}, "c1"), ToolCall("read_file", {"path": "b.py"}, "c2"))
SAID = (
    Message("system", "s"),
    Message("user", "What do these show?"),
    Message("assistant", "", CALLS),
    Message("tool", "a.png: image/png", (), "c1", "read_file", images=(IMAGE,)),
    Message("tool", "1|x = 1", (), "c2", "read_file"),
)
FORMS: dict[str, Any] = {
    "openai": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
    "llamacpp": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
    "responses": {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}", "detail": "auto"},
    "gemini": {"inlineData": {"mimeType": "image/png", "data": DATA}},
    "ollama": [DATA],
}


def body(kind: str, messages: tuple[Message, ...]) -> dict[str, Any]:
    model = KINDS[kind].load()(endpoint("http://127.0.0.1:9"), ModelInfo("m", kind))
    return model._body(ModelRequest(messages))


def parts(value: Any) -> list[Any]:
    """All values inside of a value, without marks for caches."""
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if name != "cache_control"}
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(part for item in inside for part in parts(item))]


@pytest.mark.parametrize("kind", FORMS)
def test_a_tools_picture_follows_the_results_in_the_providers_form(kind: str) -> None:
    made = body(kind, SAID)
    assert parts(made).count(FORMS[kind]) == 1
    written = json.dumps(made)
    assert written.index("1|x = 1") < written.index(PICTURES) < written.index(DATA)
    assert json.dumps(body(kind, SAID)) == written


@pytest.mark.parametrize("kind", FORMS)
def test_a_users_picture_stands_with_its_words(kind: str) -> None:
    made = body(kind, (Message("user", "What is this?", images=(IMAGE,)),))
    assert parts(made).count(FORMS[kind]) == 1 and PICTURES not in json.dumps(made)


@pytest.mark.parametrize("kind", FORMS)
def test_requests_without_pictures_are_as_ever(kind: str) -> None:
    plain = tuple(message_from_dict({**message_to_dict(message), "images": []}) for message in SAID)
    assert "image" not in json.dumps(body(kind, plain)).replace("image/png", "").replace("a.png", "")


@pytest.mark.parametrize("together", [False, True])
def test_calls_written_as_text_keep_the_pictures_of_their_results(together: bool) -> None:
    written = text_calls.as_text(SAID, "", render, together=together)
    assert [message.images for message in written if message.images] == [(IMAGE,)]


def test_a_stored_message_has_its_pictures_again() -> None:
    for message in SAID:
        assert message_from_dict(json.loads(json.dumps(message_to_dict(message)))) == message
