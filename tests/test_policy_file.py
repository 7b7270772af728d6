"""The policy: above every layer, and never half followed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import settings_files
from codeagent_lsp.config import Settings
from codeagent_lsp.doctor import Check, _policy
from codeagent_lsp.errors import SettingError, UsageError
from codeagent_lsp.server.front import SettingsLink
from codeagent_lsp.settings_files import PolicyFile, changeable, read_policy
from codeagent_lsp.settings_layers import environment_layer, load, refusal
from codeagent_lsp.terminal.options import settings_of

NOWHERE = Path("/nonexistent/policy.json")


def policy(tmp_path: Path, values: Any) -> PolicyFile:
    """The policy of a file with this text, or these values as JSON."""
    path = tmp_path / "policy.json"
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return read_policy({"CODEAGENT_POLICY": str(path)}, NOWHERE)


def linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: Any, **environ: str
) -> tuple[SettingsLink, list[str]]:
    """The settings of a server below a policy, and what its user is told."""
    found = policy(tmp_path, values)
    monkeypatch.setattr(settings_files, "SYSTEM_POLICY", NOWHERE)
    told: list[str] = []
    link = SettingsLink(lambda problem: told.append(str(problem)), {**environ, "CODEAGENT_POLICY": str(found.path)})
    return link, told


def test_without_a_file_there_is_no_policy() -> None:
    assert read_policy({}, NOWHERE) == PolicyFile()
    assert refusal(PolicyFile()) is None


@pytest.mark.parametrize(
    "values",
    [
        {"edits.apply": "live"},
        {"edits": {"apply": "live"}},
        {"codeagent.edits.apply": "live"},
        {"codeagent": {"edits": {"apply": "live"}}},
    ],
)
def test_keys_may_be_written_in_each_usual_way(tmp_path: Path, values: dict[str, Any]) -> None:
    assert load(policy=policy(tmp_path, values))[0].edits.apply == "live"


def test_nothing_beside_the_section_is_dropped(tmp_path: Path) -> None:
    _, [problem] = load(policy=policy(tmp_path, {"codeagent": {"language": "en"}, "edits.apply": "live"}))
    assert problem.key == "policy.unknown"


@pytest.mark.parametrize("layer", range(3))
def test_no_layer_overrides_it(tmp_path: Path, layer: int) -> None:
    found = policy(
        tmp_path, {"model": {"baseUrl": "https://company"}, "permissions.mode": "ask", "tools.disabled": ["x"]}
    )
    theirs = {"model.baseUrl": "https://own", "permissions": {"mode": "bypass"}, "tools.disabled": ["y"]}
    layers: list[dict[str, Any]] = [{}, {}, {}]
    layers[layer] = theirs
    settings, problems = load(*layers, policy=found)
    assert (settings.model.base_url, settings.permissions.mode) == ("https://company", "ask")
    assert settings.tools.disabled == ("x",)
    assert {problem.values["key"] for problem in problems} == {
        "codeagent.model.baseUrl",
        "codeagent.permissions.mode",
        "codeagent.tools.disabled",
    }
    assert all(str(found.path) in problem.localized("zh-cn") for problem in problems)


def test_other_spellings_are_no_way_around_it(tmp_path: Path) -> None:
    settings, _ = load({"confirm_write": False, "base_url": "x"}, policy=policy(tmp_path, {"edits.apply": "review"}))
    assert settings.edits.apply == "review"
    settings, _ = load({"edits.apply": "auto"}, policy=policy(tmp_path, {"confirm_write": True}))
    assert settings.edits.apply == "review"


def test_the_environment_does_not_override_it(tmp_path: Path) -> None:
    layer = environment_layer({"CODEAGENT_BASE_URL": "https://own"})
    settings, [problem] = load(layer, policy=policy(tmp_path, {"model.baseUrl": "https://company"}))
    assert settings.model.base_url == "https://company" and problem.key == "policy.fixed"


def test_null_fixes_the_default(tmp_path: Path) -> None:
    settings, [problem] = load({"mcp.servers": {"a": {}}}, policy=policy(tmp_path, {"mcp.servers": None}))
    assert settings == Settings() and problem.key == "policy.fixed"


def test_what_is_left_open_can_be_set(tmp_path: Path) -> None:
    settings, problems = load(
        {"model.name": "mine"}, policy=policy(tmp_path, {"model": {"baseUrl": "https://company"}})
    )
    assert (settings.model.name, problems) == ("mine", [])


def test_repeating_it_or_the_default_is_no_attempt(tmp_path: Path) -> None:
    found = policy(tmp_path, {"edits.apply": "live", "tools.disabled": ["x"]})
    assert load({"edits.apply": "review", "tools.disabled": ["x"]}, policy=found)[1] == []


@pytest.mark.parametrize("values", ["", "{", "[]", "null", '"text"', "\x00", "{" * 100_000, '{"a": NaN'])
def test_a_malformed_policy_closes(tmp_path: Path, values: str) -> None:
    found = policy(tmp_path, values)
    refused = refusal(found)
    assert refused is not None and str(found.path) in str(refused)
    settings, problems = load({"model.baseUrl": "https://own", "mcp.servers": {"a": {}}}, policy=found)
    assert settings == Settings() and problems == [refused]


def test_a_policy_that_cannot_be_read_closes(tmp_path: Path) -> None:
    assert refusal(read_policy({"CODEAGENT_POLICY": str(tmp_path)}, NOWHERE)) is not None
    assert refusal(read_policy({"CODEAGENT_POLICY": str(tmp_path / "missing")}, NOWHERE)) is not None
    assert refusal(read_policy({}, tmp_path)) is not None


@pytest.mark.parametrize("values", [{"permissions.mode": "asq"}, {"shell": {"allowNetwork": "no"}}, {"model": 3}])
def test_a_value_that_is_not_allowed_closes(tmp_path: Path, values: dict[str, Any]) -> None:
    refused = refusal(policy(tmp_path, values))
    assert refused is not None and refused.key == "policy.bad"
    assert load({"model.baseUrl": "https://own"}, policy=policy(tmp_path, values))[0] == Settings()


def test_a_secret_in_a_bad_value_is_not_shown(tmp_path: Path) -> None:
    secret = "-".join(["not", "for", "eyes"])
    assert secret not in str(refusal(policy(tmp_path, {"model.headers": {"x": [secret]}})))


def test_the_file_of_the_system_cannot_be_replaced_by_a_variable(tmp_path: Path) -> None:
    system, own = tmp_path / "system.json", tmp_path / "own.json"
    system.write_text('{"language": "en"}')
    own.write_text('{"language": "zh-cn"}')
    assert dict(read_policy({"CODEAGENT_POLICY": str(own)}, system).values) == {"language": "en"}
    system.write_text("{")
    assert refusal(read_policy({"CODEAGENT_POLICY": str(own)}, system)) is not None


# --- servers and the command line


def test_a_command_cannot_choose_what_it_fixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link, told = linked(tmp_path, monkeypatch, {"model.name": "company", "permissions.mode": "ask"})
    for key, value in (("model.name", "mine"), ("permissions.mode", "bypass")):
        with pytest.raises(SettingError, match="fixed by the policy"):
            link.choose(key, value)
    link.choose("model.name", "company")
    assert link.settings.model.name == "company" and told == []


def test_no_message_of_the_client_overrides_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link, told = linked(tmp_path, monkeypatch, {"model.baseUrl": "https://company"}, CODEAGENT_BASE_URL="https://own")
    link.initialize({"model": {"baseUrl": "https://first"}})
    link.push({"codeagent": {"model": {"baseUrl": "https://second"}}})
    assert link.settings.model.base_url == "https://company"
    assert len(told) == 1 and "codeagent.model.baseUrl" in told[0]


def test_it_is_read_again_when_settings_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link, _ = linked(tmp_path, monkeypatch, {"model.name": "company"})
    assert link.refusal is None and link.fixed("model.name") is not None
    policy(tmp_path, "{")
    link.push({"codeagent": {}})
    assert link.refusal is not None


def test_an_option_of_the_command_line_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = policy(tmp_path, {"edits.apply": "review", "no.such": 1})
    monkeypatch.setattr(settings_files, "SYSTEM_POLICY", NOWHERE)
    monkeypatch.setenv("CODEAGENT_POLICY", str(found.path))
    assert dict(settings_of(["model.name=x"])) == {"model.name": "x"}
    with pytest.raises(UsageError, match="fixed by the policy"):
        list(settings_of(["edits.apply=auto"]))


# --- the doctor


def checks(found: PolicyFile) -> list[Check]:
    return [check for check in _policy(found, "en") if check.name == "policy"]


def test_the_doctor_says_what_is_fixed(tmp_path: Path) -> None:
    found = policy(tmp_path, {"model.baseUrl": "https://company", "edits": {"apply": "review"}})
    tmp_path.chmod(0o755)
    (tmp_path / "policy.json").chmod(0o644)
    [check] = checks(found)
    assert all(part in check.detail for part in (str(found.path), "edits.apply", "model.baseUrl"))
    assert checks(PolicyFile())[0].verdict == "ok"


def test_the_doctor_names_what_is_wrong(tmp_path: Path) -> None:
    found = policy(tmp_path, {"modle.name": "x", "edits.apply": "never"})
    verdicts = [(check.verdict, check.detail) for check in checks(found)[1:]]
    assert [verdict for verdict, _ in verdicts] == ["failed", "failed"]
    assert "modle.name" in verdicts[0][1] and "edits.apply" in verdicts[1][1]
    assert [check.verdict for check in checks(policy(tmp_path, "{"))] == ["failed"]


@pytest.mark.parametrize(
    ("mode", "folder", "loose"), [(0o644, 0o755, False), (0o666, 0o755, True), (0o644, 0o777, True)]
)
def test_who_can_change_it(
    tmp_path: Path, mode: int, folder: int, loose: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = policy(tmp_path, {"language": "en"})
    (tmp_path / "policy.json").chmod(mode)
    tmp_path.chmod(folder)
    monkeypatch.setattr("os.geteuid", lambda: 0)  # as the superuser sees it
    assert found.path is not None and changeable(found.path) == loose
    assert (checks(found)[0].verdict == "warning") == loose


def test_its_own_user_can_change_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = policy(tmp_path, {})
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert found.path is not None and changeable(found.path)
