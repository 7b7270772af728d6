"""Declarations of settings: each is described, and what others must not set or see is marked."""

from __future__ import annotations

import pytest

from codeagent_lsp.config import Settings
from codeagent_lsp.settings_layers import Setting, catalogue


def test_the_documented_environment_variables() -> None:
    assert {setting.metadata["env"] for setting in catalogue()} - {""} == {
        "CODEAGENT_BASE_URL",
        "CODEAGENT_MODEL",
        "CODEAGENT_CONTAINER_IMAGE",
        "CODEAGENT_API_KEY",
        "CIRCUIT_FAILURE_THRESHOLD",
        "CIRCUIT_RECOVERY_TIMEOUT",
        "TAVILY_API_KEY",
        "TRACE_SANITIZE",
    }


def test_what_an_untrusted_workspace_must_not_set_is_marked() -> None:
    restricted = {setting.key for setting in catalogue() if setting.metadata["restricted"]}
    assert {"model.baseUrl", "model.apiKey", "permissions.mode", "permissions.allow", "mcp.servers"} <= restricted
    assert {setting.key for setting in catalogue() if setting.key.startswith(("permissions.", "mcp."))} <= restricted


def test_settings_do_not_share_their_defaults() -> None:
    assert Settings().mcp.servers is not Settings().mcp.servers


@pytest.mark.parametrize("setting", catalogue(), ids=lambda setting: setting.key)
def test_every_setting_is_described(setting: Setting) -> None:
    assert setting.metadata["description"].endswith(".")
