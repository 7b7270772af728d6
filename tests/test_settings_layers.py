"""Layers of settings: every one, every bound, and bad values that name themselves."""

from __future__ import annotations

import typing
from typing import Any

import pytest

from codeagent_lsp.config import Settings
from codeagent_lsp.settings_layers import (
    Setting,
    allowed_values,
    catalogue,
    environment_layer,
    is_table,
    load,
    without_restricted,
)

BY_KEY = {setting.key: setting for setting in catalogue()}
NUMBERS = [setting for setting in catalogue() if setting.metadata["minimum"] is not None]
FROM_ENVIRONMENT = [setting for setting in catalogue() if setting.metadata["env"]]


def value(settings: Settings, key: str) -> Any:
    """A value by its public key."""
    found: Any = settings
    for name in BY_KEY[key].path:
        found = getattr(found, name)
    return found


def nested(key: str, leaf: Any) -> dict[str, Any]:
    """The section with one value."""
    for name in reversed(key.split(".")):
        leaf = {name: leaf}
    assert isinstance(leaf, dict)
    return leaf


def good(setting: Setting) -> Any:
    """A value that is allowed and not the default."""
    low = setting.metadata["minimum"]
    for hint in typing.get_args(setting.type) or (setting.type,):
        if hint is bool:
            return not setting.default
        if hint is int and low is not None:
            return int(low) + 1
        if hint is float and low is not None:
            return low + 0.25
        if hint is str and typing.get_origin(setting.type) is None:
            return "something"
    choices = [choice for choice in typing.get_args(setting.type) if isinstance(choice, str)]
    if choices:
        return next(choice for choice in choices if choice != setting.default)
    if typing.get_origin(setting.type) is tuple:
        return ["one"]
    if setting.default == {}:
        return {"name": "text"} if is_table(setting.type) else {"name": {}}
    return "something"


def test_defaults_without_layers() -> None:
    assert load() == (Settings(), [])


@pytest.mark.parametrize("setting", catalogue(), ids=lambda setting: setting.key)
def test_every_setting_can_be_set_nested_and_flat(setting: Setting) -> None:
    wanted = good(setting)
    for layer in (nested(setting.key, wanted), {setting.key: wanted}):
        settings, problems = load(layer)
        assert problems == []
        got = value(settings, setting.key)
        assert (list(got) if isinstance(got, tuple) else got) == wanted
        assert got != setting.default


@pytest.mark.parametrize("setting", catalogue(), ids=lambda setting: setting.key)
def test_a_bad_value_names_itself_and_the_default_stands(setting: Setting) -> None:
    settings, (problem,) = load(nested(setting.key, 3 + 4j))
    assert value(settings, setting.key) == setting.default
    for language in ("en", "zh-cn"):
        words = problem.localized(language)
        assert f"codeagent.{setting.key}" in words
        assert allowed_values(setting) in words
        assert ("***" if setting.metadata["secret"] else "(3+4j)") in words


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda setting: setting.key)
def test_bounds_are_inclusive_and_hold(setting: Setting) -> None:
    low, high = setting.metadata["minimum"], setting.metadata["maximum"]
    assert load(nested(setting.key, low))[1] == []
    assert len(load(nested(setting.key, low - 1))[1]) == 1
    assert len(load(nested(setting.key, float("nan")))[1]) == 1
    if high is not None:
        assert load(nested(setting.key, high))[1] == []
        assert len(load(nested(setting.key, high + 1))[1]) == 1


def test_later_layers_win_one_key_at_a_time() -> None:
    settings, problems = load(
        {"model": {"name": "first", "temperature": 1}, "language": "en"},
        {"model.name": "second"},
        {"model": {"name": None, "maxTokens": 5}},
    )
    assert problems == []
    assert (settings.model.name, settings.model.temperature, settings.model.max_tokens) == ("second", 1.0, 5)
    assert settings.language == "en"


def test_a_bad_value_leaves_what_an_earlier_layer_said() -> None:
    settings, problems = load({"agent.maxIterations": 7}, {"agent.maxIterations": "many"})
    assert settings.agent.max_iterations == 7
    assert len(problems) == 1


@pytest.mark.parametrize("key", ["nothing", "model.nmae", "model", "model.name.more"])
def test_unknown_keys_are_named(key: str) -> None:
    settings, (problem,) = load({key: 1})
    assert settings == Settings()
    assert f"codeagent.{key}" in str(problem)


def test_truth_is_no_number_and_a_number_no_truth() -> None:
    assert len(load({"agent.maxIterations": True})[1]) == 1
    assert len(load({"trace.enabled": 1})[1]) == 1
    assert len(load({"tools.disabled": ["a", 1]})[1]) == 1


@pytest.mark.parametrize("setting", FROM_ENVIRONMENT, ids=lambda setting: setting.metadata["env"])
def test_the_environment_is_a_layer(setting: Setting) -> None:
    wanted = good(setting)
    text = str(wanted).lower() if isinstance(wanted, bool) else str(wanted)
    settings, problems = load(environment_layer({setting.metadata["env"]: text}))
    assert problems == []
    assert value(settings, setting.key) == wanted


def test_bad_text_in_the_environment_is_a_bad_value() -> None:
    settings, (problem,) = load(environment_layer({"CIRCUIT_FAILURE_THRESHOLD": "often"}))
    assert settings.circuit_breaker.failure_threshold == 3
    assert "'often'" in str(problem)


def test_an_empty_variable_says_nothing() -> None:
    assert environment_layer({"CODEAGENT_MODEL": ""}) == {}


def test_secrets_are_never_shown() -> None:
    secret = "-".join(["not", "for", "eyes"])
    settings, _ = load({"model.apiKey": secret})
    assert settings.model.api_key == secret
    assert secret not in str(load({"model.apiKey": [secret]})[1])


@pytest.mark.parametrize(
    ("layer", "key", "expected"),
    [
        ({"base_url": "http://127.0.0.1:8080/v1"}, "model.baseUrl", "http://127.0.0.1:8080/v1"),
        ({"model": "small"}, "model.name", "small"),
        ({"temperature": 0.5}, "model.temperature", 0.5),
        ({"max_tokens": 512}, "model.maxTokens", 512),
        ({"timeout_s": 30}, "model.timeoutSeconds", 30),
        ({"api_mode": "openai_compat"}, "model.apiMode", "chat"),
        ({"model": {"apiMode": "openai_compat"}}, "model.apiMode", "chat"),
        ({"api_mode": "completion"}, "model.apiMode", "completion"),
        ({"enable_planning": False}, "agent.planning", "never"),
        ({"enable_planning": True}, "agent.planning", "auto"),
        ({"confirm_write": True}, "edits.apply", "review"),
        ({"confirm_write": False}, "edits.apply", "auto"),
        ({"confirm_exec": True}, "shell.confirm", "always"),
        ({"confirm_exec": False}, "shell.confirm", "never"),
        ({"allow_network": True}, "shell.allowNetwork", True),
        ({"enable_planning": False, "agent": {"planning": "always"}}, "agent.planning", "always"),
    ],
)
def test_other_spellings(layer: dict[str, Any], key: str, expected: Any) -> None:
    settings, problems = load(layer)
    assert (value(settings, key), problems) == (expected, [])


def test_a_bad_value_in_another_spelling_is_named() -> None:
    _, [problem] = load({"confirm_write": "perhaps"})
    assert "codeagent.edits.apply" in str(problem)


def test_an_untrusted_layer_cannot_use_them_for_what_is_restricted() -> None:
    layer = {"base_url": "http://evil.example", "model": "x", "confirm_exec": False, "temperature": 0.5}
    assert without_restricted(layer) == {"temperature": 0.5}
    assert without_restricted({"model": {"name": "x"}}) == {"model": {"name": "x"}}
