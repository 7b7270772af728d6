"""The check of an endpoint says why it cannot be used, where the mere list of its models is empty."""

from __future__ import annotations

import pytest

from tests.llm.providers.fake_chat import FakeChat
from tests.llm.providers.fake_server import serving_aside
from tests.server.conftest import StartEditor

pytestmark = pytest.mark.slow  # whole servers at work

GONE = "http://127.0.0.1:9"  # the port of `discard`, on which nothing listens


def test_an_endpoint_is_checked(start: StartEditor) -> None:
    with serving_aside(FakeChat(style="plain")) as url:
        editor = start(settings={"model": {"provider": "auto", "baseUrl": f"{url}/v1"}})
        assert editor.command("codeagent.model.list", check=True) == ["m"]
    editor = start(settings={"model": {"provider": "auto", "baseUrl": GONE}})
    assert editor.command("codeagent.model.list") == []
    assert GONE in editor.refusal("codeagent.model.list", {"check": True})


def test_a_model_without_a_server_has_no_list_of_one(start: StartEditor) -> None:
    """An address that is left over in the settings is not asked in the way of a kind that there is not."""
    editor = start({"text": "Hello."}, settings={"model": {"baseUrl": GONE}})
    assert isinstance(editor.command("codeagent.model.list"), list)
