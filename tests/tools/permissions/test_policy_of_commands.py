"""Where a command would run decides: isolation lets it, names do not, and some things never run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import PermissionsSettings, ShellSettings
from codeagent_lsp.shadow.shell import Isolation
from codeagent_lsp.tools.commands.command_tools import RunCmd
from codeagent_lsp.tools.permissions import policy
from codeagent_lsp.tools.permissions.policy import NOWHERE, CommandEnvironment, Decision, asking, decide
from codeagent_lsp.tools.testing.testing_tools import RunTests
from tests.tools.fakes import Bench
from tests.tools.shells import DIRECT, OPEN_COPY, OVERLAY

LEVELS = [OVERLAY, OPEN_COPY, DIRECT]


def decided(
    bench: Bench,
    command: str,
    isolation: Isolation = OVERLAY,
    *,
    shell: ShellSettings | None = None,
    network: bool = False,
    **rules: Any,
) -> Decision:
    """The decision about one `run_cmd`."""
    arguments = {"command": command, "timeout": None, "working_dir": None, "allow_network": network}
    place = CommandEnvironment(shell or ShellSettings(), isolation)
    return decide(RunCmd.traits, arguments, PermissionsSettings(**rules), bench.view.roots, place)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "work")


@pytest.mark.parametrize(
    ("isolation", "command", "verdict"),
    [
        (OVERLAY, "make test", "allow"),
        (OVERLAY, "rm -rf build && ./configure > log 2>&1 &", "allow"),
        (OVERLAY, "ls -la", "allow"),
        (OPEN_COPY, "make test", "ask"),
        (OPEN_COPY, "ls -la", "allow"),
        (OPEN_COPY, "ls -la > list.txt", "ask"),
        (DIRECT, "make test", "ask"),
        (DIRECT, "ls -la", "ask"),
    ],
)
def test_isolation_answers_what_names_cannot(bench: Bench, isolation: Isolation, command: str, verdict: str) -> None:
    assert decided(bench, command, isolation).verdict == verdict


@pytest.mark.parametrize("missing", ["confined", "offline", "hidden"])
def test_isolation_counts_only_when_it_is_complete(bench: Bench, missing: str) -> None:
    weaker = replace(OVERLAY, **{missing: False})  # type: ignore[arg-type]
    assert decided(bench, "make test", weaker).verdict == "ask"


@pytest.mark.parametrize("isolation", LEVELS)
@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "bypass"])
def test_some_things_are_never_run(bench: Bench, isolation: Isolation, mode: str) -> None:
    for command in ("rm -rf /", "sudo rm -rf /", ":(){ :|:& };:", "mkfs.ext4 /dev/sda1"):
        decision = decided(bench, command, isolation, mode=mode, allow=("run_cmd",))
        assert (decision.verdict, bool(decision.reason)) == ("deny", True), command


@pytest.mark.parametrize(
    ("command", "network", "shell", "verdict"),
    [
        ("pip download x", False, ShellSettings(), "allow"),
        ("pip download x", True, ShellSettings(), "ask"),
        ("pip download x", True, ShellSettings(allow_network=True), "ask"),
        ("pip download x", False, ShellSettings(allow_network=True), "ask"),
        ("ls", False, ShellSettings(allow_network=True), "allow"),
        ("make", False, ShellSettings(confirm="always"), "ask"),
        ("ls", False, ShellSettings(confirm="always"), "ask"),
        ("make", False, ShellSettings(confirm="never"), "allow"),
        ("make", True, ShellSettings(confirm="never"), "ask"),
    ],
)
def test_the_settings(bench: Bench, command: str, network: bool, shell: ShellSettings, verdict: str) -> None:
    assert decided(bench, command, shell=shell, network=network).verdict == verdict


def test_confirm_never_asks_nothing_but_in_the_real_folder(bench: Bench) -> None:
    never = ShellSettings(confirm="never")
    assert decided(bench, "make", OPEN_COPY, shell=never).verdict == "allow"
    assert decided(bench, "make", DIRECT, shell=never).verdict == "ask"


@pytest.mark.parametrize("rules", [{}, {"mode": "bypass"}, {"allow": ("run_cmd(make *)", "run_cmd(make)")}])
def test_the_real_folder_always_asks_and_remembers_nothing(bench: Bench, rules: dict[str, Any]) -> None:
    decision = decided(bench, "make", DIRECT, **rules)
    assert (decision.verdict, decision.remember) == ("ask", False)


def test_rules_of_the_user(bench: Bench) -> None:
    always = ShellSettings(confirm="always")
    assert decided(bench, "make test", OPEN_COPY, allow=("run_cmd(make *)",)).verdict == "allow"
    assert decided(bench, "make test", shell=always, allow=("run_cmd(make *)",)).verdict == "allow"
    assert decided(bench, "make test", ask=("run_cmd(make *)",)).verdict == "ask"
    assert decided(bench, "env A=1 make test", ask=("run_cmd(make *)",)).verdict == "ask"
    assert decided(bench, "make test", deny=("run_cmd(make *)",)).verdict == "deny"
    assert decided(bench, "bash -c 'make test'", deny=("run_cmd(make *)",)).verdict == "deny"
    assert decided(bench, "make test", deny=("run_cmd",)).verdict == "deny"
    assert decided(bench, "make test", ask=("run_*",)).verdict == "ask"
    assert decided(bench, "make a; make b", allow=("run_cmd(make a)",), shell=always).verdict == "ask"


def test_a_rule_that_allows_a_command_does_not_allow_it_the_network(bench: Bench) -> None:
    rules, open_to_all = ("run_cmd(make *)", "run_cmd"), ShellSettings(allow_network=True)
    assert decided(bench, "make x", allow=rules).verdict == "allow"
    assert decided(bench, "make x", network=True, allow=rules) == asking("asked.network")
    assert decided(bench, "make x", network=True, shell=open_to_all, allow=rules).verdict == "allow"
    assert decided(bench, "make x", network=True, mode="bypass").verdict == "allow"
    assert decided(bench, "make x", network=True, deny=("run_cmd(make *)",), mode="bypass").verdict == "deny"


def test_deny_wins_over_ask_and_ask_over_allow(bench: Bench) -> None:
    every = ("run_cmd(make *)",)
    assert decided(bench, "make x", allow=every, ask=every, deny=every).verdict == "deny"
    assert decided(bench, "make x", allow=every, ask=every).verdict == "ask"


def test_a_rule_that_cannot_be_read_is_the_strictest(bench: Bench) -> None:
    assert decided(bench, "ls", deny=("run_cmd(make",)).verdict == "deny"
    assert decided(bench, "ls", ask=("run_cmd(make",)).verdict == "ask"
    assert decided(bench, "make", OPEN_COPY, allow=("run_cmd(make",)).verdict == "ask"


@pytest.mark.parametrize("command", ["cat .env", "grep KEY= .env.local", "base64 < id_rsa", "source ./.env"])
def test_a_file_that_holds_secrets_asks_in_every_isolation(bench: Bench, command: str) -> None:
    assert decided(bench, command).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    ["cat .e*", "cat .en?", "tail -n+1 .e[n]v", "sort .env*", "cat */id_*", "git show HEAD:.env", "cd k; cat id_r*"],
)
def test_a_pattern_or_a_revision_that_leads_to_a_secret_asks_as_its_name_does(bench: Bench, command: str) -> None:
    bench.write(".env", "KEY=x\n")
    bench.write("k/id_rsa", "x\n")
    assert decided(bench, command).verdict == "ask"
    for harmless in ("cat *.py", "ls", "git show HEAD:a.py", "cat src/*", "echo a:b"):
        assert decided(bench, harmless).verdict == "allow"


def test_a_link_that_leads_out_is_no_harmless_name(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("x")
    (bench.root / "link.txt").symlink_to(tmp_path / "outside.txt")
    assert decided(bench, "cat link.txt", OPEN_COPY).verdict == "ask"
    assert decided(bench, "cat other.txt", OPEN_COPY).verdict == "allow"
    assert decided(bench, "cat link.txt", OVERLAY).verdict == "allow"


@pytest.mark.parametrize("name", ["rust-toolchain.toml", "rust-toolchain", ".tool-versions", "sub/rust-toolchain.toml"])
def test_a_version_is_asked_of_the_program_that_the_workspace_chooses(bench: Bench, tmp_path: Path, name: str) -> None:
    (tmp_path / "rust-toolchain.toml").write_text("x")  # above the workspace: the user's own
    (bench.root / "sub" / "deep").mkdir(parents=True)
    command = "cd sub/deep && cargo --version"
    assert decided(bench, command, OPEN_COPY).verdict == "allow"
    (bench.root / name).symlink_to(tmp_path / "outside.toml")
    assert decided(bench, command, OPEN_COPY).verdict == "ask"
    assert decided(bench, "ls", OPEN_COPY).verdict == "allow"
    expected = "allow" if "/" in name else "ask"
    assert decided(bench, "ls && rustc -V", OPEN_COPY).verdict == expected


def test_bypass_runs_without_a_question_in_a_shadow(bench: Bench) -> None:
    assert decided(bench, "make", OPEN_COPY, mode="bypass").verdict == "allow"


def test_read_only_runs_nothing(bench: Bench) -> None:
    assert decided(bench, "ls", mode="readOnly", allow=("run_cmd",)).verdict == "deny"


def test_where_nothing_can_run_the_reason_is_told(bench: Bench) -> None:
    decision = decide(RunCmd.traits, {"command": "ls"}, PermissionsSettings(), bench.view.roots, NOWHERE)
    assert decision == Decision("deny", NOWHERE.reason)


@pytest.mark.parametrize(("isolation", "verdict"), [(OVERLAY, "allow"), (OPEN_COPY, "ask"), (DIRECT, "ask")])
def test_tests_are_commands(bench: Bench, isolation: Isolation, verdict: str) -> None:
    place = CommandEnvironment(ShellSettings(), isolation)
    arguments = {"path": None, "pattern": None}
    assert decide(RunTests.traits, arguments, PermissionsSettings(), bench.view.roots, place).verdict == verdict
    allowed = PermissionsSettings(allow=("run_tests",))
    expected = "ask" if isolation == DIRECT else "allow"
    assert decide(RunTests.traits, arguments, allowed, bench.view.roots, place).verdict == expected


# --- links, and what patterns and folders make of them


@pytest.fixture
def linked(bench: Bench, tmp_path: Path) -> Bench:
    """A workspace with links that lead out, to a secret, and nowhere special."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key").write_text("x")
    work = tmp_path / "work"
    for name in ("src", "sub/deep", "clean", "odd", "tree/in", "hidden"):
        (work / name).mkdir(parents=True)
    for name in ("src/a.py", "clean/a.py", "clean/b.py", "notes.txt", ".env", "odd/-n.py"):
        (work / name).write_text("x\n")
    (work / "src/evil.py").symlink_to(tmp_path / "outside" / "key")
    (work / "sub/link").symlink_to(tmp_path / "outside" / "key")
    (work / "tree/in/link").symlink_to(tmp_path / "outside")
    (work / "hidden/plain.py").symlink_to(work / ".env")
    (work / "clean/same.py").symlink_to(work / "clean/a.py")
    return bench


@pytest.mark.parametrize(
    "command",
    [
        *("tail -n 2 src/*.py | rev", "cat src/*.py", "cd sub && cat link", "cd sub; cd deep; cat link"),
        *("wc -l src/*.py",),
        *("diff -r tree clean", "diff -rq clean tree", "cd tree && diff -r in ../clean", "cat hidden/*.py"),
        *("cd odd && head *.py", "cd src && awk '{print}' evil.py", "sed -n 1p src/evil.py"),
    ],
)  # fmt: skip
def test_links_that_lead_out_are_asked_about(linked: Bench, command: str) -> None:
    assert decided(linked, command, OPEN_COPY).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("cat clean/*.py", "cd clean && cat *.py | wc -l", "diff -r clean sub/deep", "du -sh *"),
        *("awk '/x/ {n++} END {print n}' clean/a.py", "sed '/^x/d' clean/a.py", "cat nothing/*.py", "ls clean"),
    ],
)  # fmt: skip
def test_links_that_stay_inside_are_not_asked_about(linked: Bench, command: str) -> None:
    assert decided(linked, command, OPEN_COPY).verdict == "allow"


def test_the_folder_that_a_command_starts_in_counts(linked: Bench) -> None:
    arguments = {"command": "cat link", "timeout": None, "working_dir": "sub", "allow_network": False}
    place = CommandEnvironment(ShellSettings(), OPEN_COPY)
    settings = PermissionsSettings()
    assert decide(RunCmd.traits, arguments, settings, linked.view.roots, place).verdict == "ask"
    fine = {**arguments, "command": "cat a.py", "working_dir": "clean"}
    assert decide(RunCmd.traits, fine, settings, linked.view.roots, place).verdict == "allow"


def test_too_much_to_look_at_is_asked_about(linked: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "MAX_MATCHES", 1)
    assert decided(linked, "cat clean/*.py", OPEN_COPY).verdict == "ask"
    monkeypatch.setattr(policy, "MAX_ENTRIES", 1)
    assert decided(linked, "diff -r clean sub", OPEN_COPY).verdict == "ask"
