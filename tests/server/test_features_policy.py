"""A company's policy as the user of a server meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import ModelSettings, NetworkSettings
from codeagent_lsp.errors import ModelRejected, SettingError
from codeagent_lsp.network import secrets_of
from codeagent_lsp.server.front import SettingsLink
from codeagent_lsp.server.models import Models
from codeagent_lsp.server.secret_sources import added_secrets
from tests.server.conftest import StartEditor
from tests.server.replies import say

pytestmark = pytest.mark.slow  # whole servers at work


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "policy.json"
    monkeypatch.setenv("CODEAGENT_POLICY", str(path))
    return path


def test_what_it_fixes_stays_and_the_user_is_told(start: StartEditor, policy: Path) -> None:
    policy.write_text(json.dumps({"permissions.mode": "readOnly", "model.effort": "low"}))
    editor = start(say("Fine."), settings={"permissions": {"mode": "bypass"}})
    assert "codeagent.permissions.mode" in editor.told("policy")
    for command, given in (
        ("codeagent.mode.set", {"mode": "bypass"}),
        ("codeagent.mode.set", {"mode": "acceptEdits"}),
    ):
        assert "fixed by the policy" in failed(editor, command, given)
    assert editor.run("codeagent.run", task="hello")["message"] == "Done."
    rows = {row["name"]: row for row in editor.command("codeagent.doctor")}
    assert "permissions.mode" in rows["policy"]["detail"] and str(policy) in rows["policy"]["detail"]
    assert rows["network"]["verdict"] == "ok"


@pytest.mark.parametrize("broken", ["{", json.dumps({"permissions.mode": "nothing"})])
def test_a_broken_one_starts_and_refuses_to_run(start: StartEditor, policy: Path, broken: str) -> None:
    policy.write_text(broken)
    editor = start(say("Fine."))
    assert str(policy) in editor.told("policy")
    for command, given in (("codeagent.run", {"task": "hello"}), ("codeagent.model.list", {})):
        assert str(policy) in failed(editor, command, given)
    rows = {row["name"]: row for row in editor.command("codeagent.doctor")}
    assert rows["policy"]["verdict"] == rows["model"]["verdict"] == "failed"


def failed(editor: Any, command: str, given: dict[str, Any]) -> str:
    """The words in which a command fails."""
    with pytest.raises(Exception) as caught:
        editor.command(command, **given)
    return str(caught.value)


def opened(policy: Path, values: str, state: Path) -> Models:
    """The models of a server below a policy."""
    policy.write_text(values)
    return Models(SettingsLink(lambda problem: None), state)


async def test_no_agent_gets_another_model(tmp_path: Path, policy: Path) -> None:
    models = opened(policy, json.dumps({"model.name": "company", "model.baseUrl": "http://127.0.0.1:1"}), tmp_path)
    with pytest.raises(ModelRejected, match="fixed by the policy"):
        await models.open_named("mine")
    with pytest.raises(SettingError, match="fixed by the policy"):
        await models.select("mine")


async def test_no_model_is_opened_below_a_broken_policy(tmp_path: Path, policy: Path) -> None:
    models = opened(policy, "{", tmp_path)
    for opening in (models.open(), models.open_named("mine"), models.names()):
        with pytest.raises(ModelRejected, match="cannot be followed"):
            await opening


def test_added_values_are_masked_in_records() -> None:
    header, parameter = "-".join(["header", "s3cret"]), "-".join(["key", "s3cret"])
    model = ModelSettings(
        headers={"Authorization": f"Bearer {header}", "X-Team": "a"},
        query={"api-version": "2024-10-21", "api_key": parameter},
    )
    assert set(added_secrets(model)) == {f"Bearer {header}", header, parameter}
    password = "-".join(["p", "s3cret@x"])
    assert password in secrets_of(NetworkSettings(proxy=f"http://ann:{password.replace('@', '%40')}@proxy.test:3128"))
    assert secrets_of(NetworkSettings(proxy="http://proxy.test")) == ()
