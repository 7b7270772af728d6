"""The policy table: what follows from a client's capabilities and its name."""

from __future__ import annotations

from typing import Any

import pytest
from lsprotocol.converters import get_converter
from lsprotocol.types import InitializeParams

from codeagent_lsp.server.clients import ClientPolicy, policy_of, real_encoding
from tests.clients.profiles import PROFILES, Profile


def policy(capabilities: dict[str, Any], name: str | None = None) -> ClientPolicy:
    return policy_of(params(capabilities, name))


def params(capabilities: dict[str, Any], name: str | None = None) -> InitializeParams:
    raw: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": capabilities}
    if name is not None:
        raw["clientInfo"] = {"name": name}
    structured: InitializeParams = get_converter().structure(raw, InitializeParams)
    return structured


def test_a_client_that_says_nothing_is_asked_for_nothing_but_edits() -> None:
    assert policy({}) == ClientPolicy(applies_edits=True)


@pytest.mark.parametrize(
    ("workspace", "expected"),
    [({}, True), ({"applyEdit": True}, True), ({"applyEdit": None}, True), ({"applyEdit": False}, False)],
)
def test_only_a_client_that_says_so_is_not_asked_to_edit(workspace: dict[str, Any], *, expected: bool) -> None:
    assert policy({"workspace": workspace}).applies_edits is expected


@pytest.mark.parametrize(
    ("name", "offered", "expected"),
    [
        ("emacs", None, "utf-32"),  # lsp-mode 8
        ("emacs", ["utf-16"], "utf-16"),
        ("Emacs", None, "utf-16"),  # eglot counts as it should
        (None, None, "utf-16"),
    ],
)
def test_lsp_mode_counts_characters(name: str | None, offered: list[str] | None, expected: str) -> None:
    general = {"general": {"positionEncodings": offered}} if offered else {}
    assert real_encoding(params(general, name), "utf-16") == expected


def test_neovim_takes_versions_though_it_does_not_say_so() -> None:
    operations = {"workspace": {"applyEdit": True, "workspaceEdit": {"resourceOperations": ["create", "delete"]}}}
    neovim = policy(operations, "Neovim")
    assert (neovim.versioned_edits, neovim.creates, neovim.deletes, neovim.renames) == (True, True, True, False)
    assert neovim.ended_lines
    assert neovim.drops_stale
    other = policy(operations, "Someone")
    assert (other.versioned_edits, other.ended_lines) == (False, False)


def test_operations_need_the_shape_that_holds_them() -> None:
    found = policy({"workspace": {"workspaceEdit": {"resourceOperations": ["create", "rename", "delete"]}}}, "x")
    assert (found.creates, found.deletes, found.renames) == (False, False, False)


@pytest.mark.parametrize(
    ("handling", "together"),
    [("transactional", True), ("textOnlyTransactional", True), ("undo", True), ("abort", False), (None, False)],
)
def test_files_share_a_request_where_it_is_all_or_nothing(handling: str | None, *, together: bool) -> None:
    edits = {"documentChanges": True, **({"failureHandling": handling} if handling else {})}
    assert policy({"workspace": {"workspaceEdit": edits}}).transactional is together


@pytest.mark.parametrize(
    ("experimental", "events", "text_input"),
    [
        ({"codeagent": {"event": True, "input": True}}, True, True),
        ({"codeagent": {"event": True}}, True, False),
        ({"codeagent": {"event": False}}, False, False),
        ({"codeagent": True}, False, False),
        ({"codeagent": None}, False, False),
        ({"other": {"event": True}}, False, False),
        ([], False, False),
        ("codeagent", False, False),
        (None, False, False),
    ],
)
def test_custom_messages_only_where_announced(experimental: Any, *, events: bool, text_input: bool) -> None:
    found = policy({"experimental": experimental})
    assert (found.events, found.input) == (events, text_input)


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_the_clients_we_know(profile: Profile) -> None:
    found = policy(profile.capabilities, profile.client.get("name"))
    assert found.applies_edits
    assert found.versioned_edits is (profile.shape == "documentChanges")
    assert found.creates is profile.creates
    assert found.action_literals is profile.literals
    assert found.action_tags is profile.tags
    assert found.progress is profile.progress
    assert not found.events
