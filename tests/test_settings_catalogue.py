"""The list of all settings: keys as users write them, and words for the values they accept."""

from __future__ import annotations

import pytest

from codeagent_lsp.settings_layers import Setting, allowed_values, catalogue

BY_KEY = {setting.key: setting for setting in catalogue()}


def test_a_key_is_written_in_camel_case() -> None:
    setting = BY_KEY["circuitBreaker.failureThreshold"]
    assert (setting.path, setting.type, setting.default) == (("circuit_breaker", "failure_threshold"), int, 3)


def test_every_key_is_there_once() -> None:
    assert len(BY_KEY) == len(catalogue())


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("trace.enabled", "true | false"),
        ("index.uri", "text"),
        ("index.semantic", "true | false | auto"),
        ("shell.timeoutSeconds", "whole number (1 … 600)"),
        ("tools.disabled", "list of texts"),
        ("mcp.servers", "object"),
        ("tools.timeoutSeconds", "whole number (≥ 1)"),
    ],
)
def test_what_a_setting_accepts_in_words(key: str, words: str) -> None:
    assert allowed_values(BY_KEY[key]) == words


@pytest.mark.parametrize("setting", catalogue(), ids=lambda setting: setting.key)
def test_every_setting_accepts_something(setting: Setting) -> None:
    assert allowed_values(setting)
