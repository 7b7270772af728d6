"""Who may do what: by rule, by mode, by what a call touches."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from codeagent_lsp.config import PermissionsSettings
from codeagent_lsp.errors import PatchRefused
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.permissions import shell_policy
from codeagent_lsp.tools.permissions.policy import Mode, Rule, decide, effects_of, subjects_of
from tests.tools.fakes import Bench

TRAITS = {cls.traits.name: cls.traits for cls in BUILTIN}
MODES: tuple[Mode, ...] = get_args(Mode)


def judge(bench: Bench, tool: str, arguments: dict[str, Any], **settings: Any) -> str:
    return decide(TRAITS[tool], arguments, PermissionsSettings(**settings), bench.view.roots).verdict


# --- rules


@pytest.mark.parametrize(
    ("text", "tool", "subjects", "covered"),
    [
        ("read_file", "read_file", ["a"], True),
        ("read_file(secrets/**)", "read_file", ["secrets/x/y"], True),
        ("read_file(secrets/**)", "read_file", ["secrets"], True),
        ("read_file(secrets/**)", "read_file", ["secretsfile"], False),
        ("read_file(secrets/**)", "edit_file", ["secrets/x"], False),
        ("*(secrets/**)", "edit_file", ["a", "secrets/x"], True),
        ("mcp.github.*", "mcp.github.create", [""], True),
        ("mcp.github.*", "mcp.gitlab.create", [""], False),
        ("run_cmd(pytest *)", "run_cmd", ["pytest tests/x -q"], True),
        ("run_cmd(pytest *)", "run_cmd", ["pytester"], False),
        ("read_file(*.pem)", "read_file", ["deep/down/x.pem"], True),
        ("read_file(src/a.py)", "read_file", ["./src/a.py"], True),
        (" read_file(a) ", "read_file", ["a"], True),
        ("read_file(a(b))", "read_file", ["a(b)"], True),
        ("edit_file(app/[id]/*)", "edit_file", ["app/[id]/page.tsx"], True),
        ("edit_file(app/[id]/*)", "edit_file", ["app/x/page.tsx"], False),
        ("read_file(caf\u00e9/*)", "read_file", ["cafe\u0301/a.py"], True),
    ],
)
def test_what_a_rule_covers(text: str, tool: str, subjects: list[str], covered: bool) -> None:
    rule = Rule.parse(text)
    assert rule is not None
    assert rule.covers(tool, subjects) is covered


def test_an_allow_rule_has_to_cover_everything_a_call_touches() -> None:
    rule = Rule.parse("batch_edit(src/**)")
    assert rule is not None
    assert rule.covers_all("batch_edit", ["src/a", "src/b"])
    assert not rule.covers_all("batch_edit", ["src/a", "other"])


@pytest.mark.parametrize("text", ["", "(", "a b", "read_file(x", "read_file)x("])
def test_what_is_no_rule(text: str) -> None:
    assert Rule.parse(text) is None


def test_deny_wins_then_ask_then_allow(bench: Bench) -> None:
    call = ("read_file", {"path": "a.py"})
    rule = ("read_file(a.py)",)
    assert judge(bench, *call, deny=rule, ask=rule, allow=rule) == "deny"
    assert judge(bench, *call, ask=rule, allow=rule) == "ask"
    assert judge(bench, *call, allow=rule) == "allow"
    assert judge(bench, *call, deny=("read_file(b.py)",), ask=("edit_file",)) == "allow"


@pytest.mark.parametrize("mode", MODES)
def test_deny_and_ask_rules_hold_in_every_mode(bench: Bench, mode: Mode) -> None:
    call = ("read_file", {"path": "a.py"})
    assert judge(bench, *call, mode=mode, deny=("read_file",)) == "deny"
    assert judge(bench, *call, mode=mode, ask=("read_file",)) == "ask"


def test_a_rule_that_cannot_be_read_closes_and_never_opens(bench: Bench) -> None:
    broken = ("read_file(a.py",)
    assert judge(bench, "read_file", {"path": "b.py"}, deny=broken) == "deny"
    assert judge(bench, "read_file", {"path": "b.py"}, ask=broken) == "ask"
    assert judge(bench, "edit_file", {"path": "b.py"}, deny=broken) == "allow"
    assert judge(bench, "read_file", {"path": ".env"}, allow=("read_file(.env",)) == "ask"


def test_a_rule_judges_the_real_path(bench: Bench) -> None:
    bench.write("secrets/key", "x")
    (bench.root / "link").symlink_to(bench.root / "secrets")
    for name in ("secrets/key", "./secrets/key", "src/../secrets/key", "link/key", bench.path("secrets/key")):
        assert judge(bench, "read_file", {"path": name}, deny=("read_file(secrets/**)",)) == "deny"


# --- modes


@pytest.mark.parametrize("mode", MODES)
def test_what_a_mode_offers_and_allows(bench: Bench, mode: Mode) -> None:
    writes = [name for name, traits in TRAITS.items() if traits.effect == "write"]
    offered = {spec["name"] for spec in bench.registry.specs(effects_of(mode), ("core", "files"))}
    expected = "deny" if mode == "readOnly" else "allow"
    assert (set(writes) & offered == set()) is (mode == "readOnly")
    assert {"read_file", "grep", "AskUser", "todowrite"} <= offered
    assert judge(bench, "edit_file", {"path": "a.py"}, mode=mode) == expected
    assert judge(bench, "read_file", {"path": "a.py"}, mode=mode) == "allow"


async def test_read_only_denies_a_write_that_is_called_anyway(bench: Bench) -> None:
    bench.mode = "readOnly"
    bench.rules(allow=("*",))
    result = await bench.call("write_file", path="a", content="x")
    assert (result.status, result.error and result.error.code) == ("denied", "PERMISSION_DENIED")
    assert not bench.changeset and bench.asker.asked == []


async def test_the_mode_is_asked_at_every_call(bench: Bench) -> None:
    assert (await bench.call("write_file", path="a", content="x")).ok
    bench.mode = "readOnly"
    assert (await bench.call("write_file", path="b", content="x")).status == "denied"


# --- protected files

EDIT = {"old_str": "a", "new_str": "b"}
MOVING = "*** Begin Patch\n*** Update File: a.py\n*** Move to: .envrc\n@@\n-a\n+b\n*** End Patch"
PROTECTED: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": ".git/hooks/pre-commit", "content": "x"}),
    ("write_file", {"path": "src/../.vscode/tasks.json", "content": "x"}),
    ("edit_file", {"path": ".codeagent/permissions.toml", "old_str": "a", "new_str": "b"}),
    ("delete_file", {"path": ".github/workflows/ci.yml"}),
    ("move_file", {"path": "a.py", "new_path": "sitecustomize.py"}),
    ("batch_edit", {"edits": [{"path": "a.py", **EDIT}, {"path": "x.pth", **EDIT}]}),
    ("apply_patch", {"patch": "--- /dev/null\n+++ b/.bashrc\n@@ -0,0 +1 @@\n+x\n"}),
    ("apply_patch", {"patch": MOVING}),
]


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "bypass"])
@pytest.mark.parametrize(("tool", "arguments"), PROTECTED)
def test_files_that_run_later_are_asked_about_whatever_is_allowed(
    bench: Bench, tool: str, arguments: dict[str, Any], mode: Mode
) -> None:
    settings = PermissionsSettings(mode=mode, allow=("*", f"{tool}(**)"))
    decision = decide(TRAITS[tool], arguments, settings, bench.view.roots)
    assert (decision.verdict, decision.remember) == ("ask", False)


def test_files_that_builds_run_are_asked_about_unless_the_user_said_otherwise(bench: Bench) -> None:
    def verdict(path: str, mode: Mode = "ask", allow: tuple[str, ...] = ()) -> tuple[str, bool]:
        settings = PermissionsSettings(mode=mode, allow=allow)
        found = decide(TRAITS["write_file"], {"path": path, "content": "x"}, settings, bench.view.roots)
        return found.verdict, found.remember

    assert verdict("Makefile") == verdict("pkg/package.json") == verdict("setup.py") == ("ask", True)
    assert verdict("Makefile", "acceptEdits")[0] == verdict("Makefile", "bypass")[0] == "allow"
    assert verdict("Makefile", allow=("write_file(Makefile)",))[0] == "allow"
    assert verdict(".vscode/Makefile", "bypass") == ("ask", False)


@pytest.mark.parametrize("path", ["gh/hosts.yml", "keys.txt", ".env~", ".git/config", "my-secrets.yml"])
def test_what_commands_may_not_read_unasked_no_tool_may(bench: Bench, path: str) -> None:
    assert judge(bench, "read_file", {"path": path}) == "ask"
    assert shell_policy.judge(f"cat {path}").decision == "ask"


async def test_a_protected_file_is_asked_about_every_time(bench: Bench) -> None:
    bench.mode = "bypass"
    bench.asker.answers = ["Allow once", "Allow exactly this for the session", None]
    statuses = [(await bench.call("write_file", path=".envrc", content=str(n))).status for n in range(3)]
    assert statuses == ["ok", "denied", "denied"]
    assert [question.choices for question in bench.asker.asked] == [("Deny", "Allow once")] * 3


async def test_a_path_cannot_hide_in_a_text_that_holds_json(bench: Bench) -> None:
    bench.write(".vscode/tasks.json", "a\n")
    edits = '[{"path": ".vscode/tasks.json", "old_str": "a", "new_str": "evil"}]'
    assert (await bench.call("batch_edit", edits=edits)).status == "denied"
    (question,) = bench.asker.asked
    assert ".vscode/tasks.json" in question.title
    assert not bench.changeset


# --- secrets


@pytest.mark.parametrize("tool", ["read_file", "grep", "preview_edit", "edit_file", "move_file", "delete_file"])
def test_secrets_are_asked_about(bench: Bench, tool: str) -> None:
    arguments = {"path": "deploy/.env", "new_path": "notes.txt"}
    assert judge(bench, tool, arguments) == "ask"
    assert judge(bench, tool, arguments, allow=(f"{tool}(deploy/**)",)) == ("ask" if tool == "move_file" else "allow")
    assert judge(bench, tool, arguments, deny=(f"{tool}(**/.env)",)) == "deny"


async def test_a_secret_is_read_after_a_yes_and_the_yes_can_be_kept(bench: Bench) -> None:
    bench.write(".env", "KEY=1\n")
    assert (await bench.call("read_file", path=".env")).status == "denied"
    bench.asker.answers = ["Allow exactly this for the session"]
    assert "KEY=1" in (await bench.call("read_file", path=".env")).text
    assert (await bench.call("read_file", path=".env")).ok
    assert (await bench.call("read_file", path=".env", end_line=1)).status == "denied"
    assert len(bench.asker.asked) == 3


# --- subjects


def test_the_paths_of_a_call() -> None:
    edits = [{"path": "a"}, {"path": "b"}, "no mapping"]
    assert subjects_of(TRAITS["batch_edit"], {"edits": edits}) == ("a", "b")
    assert subjects_of(TRAITS["move_file"], {"path": "a", "new_path": "b"}) == ("a", "b")
    assert subjects_of(TRAITS["grep"], {"path": None}) == ("",)
    assert subjects_of(TRAITS["todoread"], {}) == ("",)
    with pytest.raises(PatchRefused):
        subjects_of(TRAITS["apply_patch"], {"patch": "no patch"})


async def test_a_path_outside_is_refused_by_the_tool(bench: Bench) -> None:
    result = await bench.call("read_file", path="../outside")
    assert (result.status, result.error and result.error.code) == ("failed", "PERMISSION_DENIED")
    assert bench.asker.asked == []
