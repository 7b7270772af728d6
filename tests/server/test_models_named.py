"""A model that stands in for the main one has a window and a longest reply of its own."""

from __future__ import annotations

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.server.models import settings_for_model

MAIN = ModelSettings(
    name="large", base_url="https://example.test/v1", context_window=200_000, max_tokens=32_000, effort="high"
)


def test_on_the_same_server_its_window_and_longest_reply_are_its_own() -> None:
    small = settings_for_model(MAIN, "small")
    assert (small.name, small.base_url, small.effort) == ("small", MAIN.base_url, "high")
    assert (small.context_window, small.max_tokens) == ("auto", "auto")


def test_elsewhere_it_has_nothing_of_the_main_one() -> None:
    other = settings_for_model(MAIN, "coder@http://127.0.0.1:8000/v1")
    assert (other.name, other.base_url, other.api_key) == ("coder", "http://127.0.0.1:8000/v1", None)
    assert (other.context_window, other.max_tokens, other.effort) == ("auto", "auto", "auto")
    assert settings_for_model(MAIN, "embedded").context_window == "auto"


def test_the_main_one_by_its_name_stays_as_it_is_set() -> None:
    assert settings_for_model(MAIN, "large") == MAIN
