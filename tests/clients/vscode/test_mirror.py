"""What is generated for the extension: complete, without secrets, and keeping what people wrote by hand."""

from __future__ import annotations

import json
from typing import Any

from codeagent_lsp import events, protocol
from codeagent_lsp.settings_layers import catalogue
from scripts.generate import vscode_mirror

MANIFEST = json.dumps(
    {
        "name": "kept",
        "contributes": {"commands": ["kept"], "configuration": []},
        "capabilities": {"untrustedWorkspaces": {"supported": "limited", "restrictedConfigurations": []}},
    }
)


def _properties() -> dict[str, Any]:
    data = json.loads(vscode_mirror.manifest(MANIFEST))
    return {key: value for page in data["contributes"]["configuration"] for key, value in page["properties"].items()}


def test_every_setting_but_secrets_is_declared() -> None:
    properties = _properties()
    for setting in catalogue():
        assert (f"codeagent.{setting.key}" in properties) is setting.metadata["in_editor"], setting.key


def test_what_a_workspace_must_not_set_is_restricted() -> None:
    data = json.loads(vscode_mirror.manifest(MANIFEST))
    restricted = data["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    for setting in catalogue():
        expected = setting.metadata["restricted"] and setting.metadata["in_editor"]
        assert (f"codeagent.{setting.key}" in restricted) is expected, setting.key
    assert {"codeagent.server.command", "codeagent.network.proxy", "codeagent.model.headers"} <= set(restricted)
    assert not {"codeagent.model.apiKey", "codeagent.web.searchApiKey"} & set(restricted)


def test_types_bounds_and_scopes() -> None:
    properties = _properties()
    assert properties["codeagent.agent.planning"]["enum"] == ["auto", "always", "never"]
    assert (
        properties["codeagent.shell.timeoutSeconds"] | {"maximum": 600, "type": "integer"}
        == (properties["codeagent.shell.timeoutSeconds"])
    )
    assert properties["codeagent.model.maxTokens"]["type"] == ["integer", "string"]
    assert [properties["codeagent.model.baseUrl"][name] for name in ("type", "default")] == ["string", ""]
    assert properties["codeagent.index.semantic"]["enum"] == [True, False, "auto"]
    assert properties["codeagent.mcp.servers"]["type"] == "object"
    assert properties["codeagent.permissions.mode"]["scope"] == "machine-overridable"
    assert properties["codeagent.agent.planning"]["scope"] == "window"


def test_the_rest_of_the_manifest_is_kept() -> None:
    data = json.loads(vscode_mirror.manifest(MANIFEST))
    assert (data["name"], data["contributes"]["commands"]) == ("kept", ["kept"])


def test_words_are_kept_in_chinese_and_renewed_in_english() -> None:
    present = json.dumps({"command.run": "mine", "setting.language": "语言", "setting.gone": "x"})
    chinese = json.loads(vscode_mirror.chinese(present))
    english = json.loads(vscode_mirror.words(present))
    assert (chinese["command.run"], chinese["setting.language"]) == ("mine", "语言")
    assert english["setting.language"].startswith("Language of messages")
    assert "setting.gone" not in chinese | english
    assert chinese.keys() == english.keys()


def test_every_command_and_event_is_in_the_types() -> None:
    text = vscode_mirror.typescript()
    for command in protocol.COMMANDS:
        assert f'"{command.name}"' in text
    for name, cls in events.EVENT_TYPES.items():
        assert (f'readonly type: "{name}";' in text) is not cls.internal, name
    assert 'readonly status: "completed" | "failed" | "cancelled" | "stopped" | "rejected" | "waiting";' in text
    assert "readonly cost?: number;" in text
