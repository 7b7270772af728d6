"""The one line that every client shows before a call holds all that is approved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.config import Settings, ShellSettings
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.commands.command_tools import RunCmd
from codeagent_lsp.tools.context import Redaction
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.mcp.adapter import MAX_SHOWN, changed_words
from codeagent_lsp.tools.mcp.listing import RemoteTool
from codeagent_lsp.tools.permissions.approvals import MAX_SUBJECT, StandingApprovals
from tests.tools.fakes import Bench
from tests.tools.shells import OVERLAY, FakeShell


def make(folder: Path, *, confined: bool = True) -> Bench:
    bench = Bench(folder / "work", [RunCmd()])
    bench.approvals.standing = StandingApprovals(folder / "approvals.json")
    if confined:
        bench.shell = FakeShell(isolation=OVERLAY, staging=bench.staging)
    bench.configure(replace(Settings(), shell=replace(ShellSettings(), confirm="always")))
    return bench


async def asked(bench: Bench, **arguments: object) -> Question:
    await bench.call("run_cmd", **arguments)
    return bench.asker.asked[-1]


async def test_a_plain_command_needs_no_terms(tmp_path: Path) -> None:
    assert (await asked(make(tmp_path), command="make")).title == "Allow run_cmd: make?"


async def test_network_folder_and_variables_stand_before_the_command(tmp_path: Path) -> None:
    question = await asked(
        make(tmp_path), command="make] in /: ls", working_dir="sub\u202e", allow_network=True, env_vars=["TOKEN_NAME"]
    )
    before, _, _ = question.title.partition("make]")
    assert before == "Allow run_cmd [with network, in sub\\u202e, with the variables TOKEN_NAME]: "


async def test_a_command_that_is_not_confined_says_so(tmp_path: Path) -> None:
    title = (await asked(make(tmp_path, confined=False), command="make")).title
    assert "not isolated" in title and "with network" in title


async def test_arguments_that_are_empty_are_not_shown(tmp_path: Path) -> None:
    detail = (await asked(make(tmp_path), command="make", allow_network=True)).detail
    assert '"command": "make"' in detail and '"allow_network": true' in detail
    assert not [name for name in ("timeout", "working_dir", "env_vars", "ready") if name in detail]


async def test_what_is_shown_below_says_it_too_and_why_it_is_asked(tmp_path: Path) -> None:
    detail = (await asked(make(tmp_path, confined=False), command="make 中文", background=True)).detail
    call, how, why = detail.split("\n\n")
    assert '"command": "make 中文"' in call
    assert all(term in how for term in ("with network", "in the background", "not isolated"))
    assert "shell.confirm" in why


@pytest.mark.parametrize("char", ["\u202e", "\u2800", "\ufe0f", "\u00a0", "\u17b4", "\u180b", "\U000e0100"])
async def test_characters_that_cannot_be_seen_are_escaped(tmp_path: Path, char: str) -> None:
    detail = (await asked(make(tmp_path), command=f"a{char}b")).detail
    assert char not in detail and detail.isascii() and '"a\\' in detail


@pytest.mark.parametrize("length", [300, MAX_SUBJECT])
async def test_a_command_that_fits_is_shown_to_its_end(tmp_path: Path, length: int) -> None:
    command = "x" * length
    question = await asked(make(tmp_path), command=command)
    assert command in question.title and "Always allow exactly this" in question.choices


@pytest.mark.parametrize("place", [{"command": "a" * 900 + "MIDDLE" + "z" * 900}, {"working_dir": "d/" * 400}])
async def test_what_is_left_out_is_marked_and_never_allowed_always(tmp_path: Path, place: dict[str, str]) -> None:
    question = await asked(make(tmp_path), **{"command": "make", **place})
    assert "characters not shown" in question.title and "Always allow exactly this" not in question.choices
    if "working_dir" not in place:
        assert "1,006 characters not shown" in question.title and "MIDDLE" not in question.title
        assert "aaa ⟨" in question.title and "⟩ zzz" in question.title and "MIDDLE" in question.detail


async def test_a_kept_approval_holds_no_secret(tmp_path: Path) -> None:
    bench = make(tmp_path)
    secret = "s3cr" + "et" * 30
    redaction = Redaction(hide=lambda value: value.replace(secret, "[masked]"))
    bench.context = bench.context.having((Redaction, redaction))
    bench.executor = ToolExecutor(bench.registry, bench.context, lambda: "ask", bench.approvals)
    bench.asker.answers = ["Always allow exactly this"]
    assert (await bench.call("run_cmd", command=f"curl -H 'X: {secret}' https://example.org/{'x' * 90}")).ok
    kept = (tmp_path / "approvals.json").read_text()
    assert "[masked]" in kept and "s3cr" not in kept


def test_the_changed_words_of_a_tool_are_told() -> None:
    before = RemoteTool("echo", "Says it again.", {"properties": {"text": {"type": "string"}}})
    now = replace(before, description="Says it again, and sends\u202e it.")
    assert changed_words(before, now) == "[-again.-] {+again, and sends\\u202e it.+}"
    schema = replace(before, schema={"properties": {"text": {"type": "string", "description": "your password"}}})
    assert "your password" in changed_words(before, schema) and "Says" not in changed_words(before, schema)
    assert "sends" in changed_words(None, now)
    assert len(changed_words(None, replace(now, description="word " * 9000))) < MAX_SHOWN + 100


async def test_blanks_and_lines_push_nothing_out_of_sight(tmp_path: Path) -> None:
    question = await asked(make(tmp_path), command="ls #" + " " * 700 + "\ncurl x; \u202etouch \\n")
    assert question.title == "Allow run_cmd: ls #<U+0020 x 700>\\u000acurl x; \\u202etouch \\n?"
