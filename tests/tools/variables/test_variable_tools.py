"""Variables for commands: asked for, kept, used by name, masked; never shown."""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
import sys
import threading
import types
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.messages import ToolResult
from codeagent_lsp.shadow.shell import Finished, Stream
from codeagent_lsp.texts import text
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.variables.variables import (
    KeyringVault,
    MaskedStream,
    Variable,
    Variables,
    Vault,
    in_thread,
    is_name,
    open_keyring,
)
from tests.tools.fakes import Bench
from tests.tools.shells import OVERLAY, FakeShell

SESSION, KEYRING = text("env.session"), text("env.keyring")
DENY, ALLOW = text("choice.deny"), text("choice.session")
VALUE = secrets.token_urlsafe(24)


class FakeVault:
    """The `Vault` port in memory; `problem` is raised by everything."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values = dict(values or {})
        self.problem: Exception | None = None

    def get(self, name: str) -> str | None:
        if self.problem is not None:
            raise self.problem
        return self.values.get(name)

    def set(self, name: str, value: str) -> None:
        if self.problem is not None:
            raise self.problem
        self.values[name] = value


class Place:
    """A bench with variables, a shell and an output that is noted."""

    def __init__(
        self, folder: Path, vault: Vault | None = None, environ: Mapping[str, str] | None = None, *finished: Finished
    ) -> None:
        self.bench = Bench(folder / "w")
        self.variables = Variables(lambda: vault, environ or {})
        self.shell = FakeShell(*finished, isolation=OVERLAY)
        self.printed: list[tuple[Stream, str]] = []
        self.notes: list[str] = []
        self.bench.context = replace(
            self.bench.context,
            shell=self.shell,
            output=lambda stream, piece: self.printed.append((stream, piece)),
            note=self.notes.append,
        ).having((Variables, self.variables), (OutputStore, OutputStore(folder / "outputs")))
        self.bench.executor = ToolExecutor(self.bench.registry, self.bench.context, lambda: "ask", self.bench.approvals)

    async def call(self, tool: str, /, *answers: str | None, **arguments: Any) -> ToolResult:
        self.bench.asker.answers = list(answers)
        return await self.bench.call(tool, **arguments)

    async def run(self, *names: str, answers: tuple[str | None, ...] = (), **more: Any) -> ToolResult:
        return await self.call("run_cmd", *answers, command="make", env_vars=list(names), **more)

    @property
    def asked(self) -> list[str]:
        return [question.title for question in self.bench.asker.asked]


# --- asking for a value


async def test_a_value_is_asked_for_and_never_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    place = Place(tmp_path)
    result = await place.call("request_env_var", VALUE, name="API_KEY", reason="to upload")
    assert (
        result.text
        == "API_KEY is set for this session. Commands get it by run_cmd with env_vars; you never see the value."
    )
    assert result.data == {"name": "API_KEY", "set": True, "length": len(VALUE)}
    (question,) = place.bench.asker.asked
    assert (question.secret, question.choices, question.kind) == (True, (), "question")
    assert "API_KEY" in question.title and "to upload" in question.title
    assert VALUE not in repr(result) + caplog.text + str(place.notes)
    assert await place.variables.find("API_KEY") == Variable("API_KEY", "session", VALUE)


async def test_it_is_kept_where_the_user_wants(tmp_path: Path) -> None:
    vault = FakeVault()
    place = Place(tmp_path, vault)
    await place.call("request_env_var", VALUE, SESSION, name="ONE")
    await place.call("request_env_var", VALUE, None, name="TWO")
    assert vault.values == {}
    result = await place.call("request_env_var", VALUE, KEYRING, name="THREE")
    assert vault.values == {"THREE": VALUE}
    assert "kept in the system's keyring" in result.text
    assert place.bench.asker.asked[1].choices == (SESSION, KEYRING)


async def test_a_keyring_that_fails_takes_nothing_away(tmp_path: Path) -> None:
    vault = FakeVault()
    place = Place(tmp_path, vault)
    await place.variables.has_vault()
    asking = place.call("request_env_var", VALUE, KEYRING, name="KEY")
    vault.set = lambda name, value: (_ for _ in ()).throw(ToolFailed("It is locked."))  # type: ignore[method-assign]
    result = await asking
    assert result.text.startswith("KEY is set for this session (It is locked.)")
    assert (await place.variables.find("KEY")) is not None


@pytest.mark.parametrize("answer", [None, ""])
async def test_no_value_is_no(tmp_path: Path, answer: str | None) -> None:
    result = await Place(tmp_path).call("request_env_var", answer, name="KEY")
    assert result.status == "denied"
    assert "gave no value for KEY" in result.text


@pytest.mark.parametrize("name", ["A-B", "1A", "", "A" * 101, "A B", "CODEAGENT_API_KEY"])
@pytest.mark.parametrize("tool", ["request_env_var", "get_env_var"])
async def test_names_that_are_none(tmp_path: Path, tool: str, name: str) -> None:
    place = Place(tmp_path, None, {name: VALUE})
    result = await place.call(tool, name=name)
    assert (result.status, place.asked) == ("retry", [])
    assert not is_name(name)


async def test_a_value_that_can_be_none_is_refused(tmp_path: Path) -> None:
    assert "cannot be the value" in (await Place(tmp_path).call("request_env_var", "a\0b", name="KEY")).text


# --- looking


async def test_presence_and_length_are_all_that_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path, FakeVault({"KEPT": VALUE}), {"OURS": VALUE + "x", "EMPTY": ""})
    kept, ours = await place.call("get_env_var", name="KEPT"), await place.call("get_env_var", name="OURS")
    assert f"KEPT is set (keyring, {len(VALUE)} characters)" in kept.text
    assert f"OURS is set (environment, {len(VALUE) + 1} characters)" in ours.text
    assert "EMPTY is not set" in (await place.call("get_env_var", name="EMPTY")).text
    result = await place.call("check_env_vars", names=["KEPT", "OURS", "EMPTY", "KEPT"])
    assert result.text == "KEPT: set (keyring)\nOURS: set (environment)\nEMPTY: missing"
    assert result.data == {"KEPT": True, "OURS": True, "EMPTY": False}
    assert VALUE not in repr((kept, ours, result))
    assert place.asked == []


def test_a_variable_does_not_show_its_value() -> None:
    assert VALUE not in repr(Variable("A", "session", VALUE))


# --- using


async def test_a_command_gets_it_by_name_after_one_question(tmp_path: Path) -> None:
    place = Place(tmp_path, None, {"TOKEN": VALUE, "OTHER": "other value"})
    assert (await place.run("TOKEN", answers=(ALLOW,))).ok
    assert place.shell.commands[-1].environment == {"TOKEN": VALUE}
    assert (await place.run("TOKEN", "TOKEN")).ok
    assert place.asked == ["Let commands use TOKEN?"]
    assert place.bench.asker.asked[0].choices == (DENY, ALLOW)
    assert (await place.run()).ok
    assert place.shell.commands[-1].environment == {}


async def test_the_network_is_a_question_of_its_own(tmp_path: Path) -> None:
    place = Place(tmp_path, None, {"TOKEN": VALUE})
    await place.run("TOKEN", answers=(ALLOW,))
    once = text("choice.once")
    assert (await place.run("TOKEN", answers=(once, DENY), allow_network=True)).status == "denied"
    assert (await place.run("TOKEN", answers=(once, ALLOW), allow_network=True)).ok
    assert place.asked[-1] == "Let commands with network access use TOKEN?"
    assert place.shell.commands[-1].network


async def test_what_the_user_just_gave_needs_no_second_question(tmp_path: Path) -> None:
    place = Place(tmp_path)
    await place.call("request_env_var", VALUE, name="KEY")
    assert (await place.run("KEY")).ok
    assert len(place.asked) == 1


@pytest.mark.parametrize("answer", [DENY, None])
async def test_a_no_runs_nothing(tmp_path: Path, answer: str | None) -> None:
    place = Place(tmp_path, None, {"TOKEN": VALUE})
    assert (await place.run("TOKEN", answers=(answer,))).status == "denied"
    assert place.shell.commands == []


async def test_what_has_no_value_is_explained(tmp_path: Path) -> None:
    place = Place(tmp_path, None, {"CODEAGENT_API_KEY": VALUE})
    assert "request_env_var" in (await place.run("TOKEN")).text
    assert (await place.run("CODEAGENT_API_KEY")).status == "retry"
    assert place.shell.commands == []


async def test_what_a_command_prints_is_masked_everywhere(tmp_path: Path) -> None:
    encoded = base64.b64encode(f"user:{VALUE}".encode()).decode()
    whole = tmp_path / "whole"
    output = f"key={VALUE}\nauth {encoded}\nhex {VALUE.encode().hex()}\n"
    whole.write_text(output * 3)
    place = Place(tmp_path, None, {"TOKEN": VALUE}, Finished(0, output, size=9, whole=str(whole)))
    result = await place.run("TOKEN", answers=(ALLOW,))
    streamed = "".join(piece for _, piece in place.printed)
    assert "key=[$TOKEN]" in result.text
    assert streamed.startswith("key=[$TOKEN]\n")
    kept = (tmp_path / "outputs").rglob("*")
    everything = repr(result) + streamed + "".join(path.read_text() for path in kept if path.is_file())
    assert everything.count("key=[$TOKEN]") >= 3
    for form in (VALUE, VALUE.encode().hex(), base64.b64encode(VALUE.encode()).decode()[:24], encoded):
        assert form not in everything
    assert output not in whole.read_text() if whole.exists() else True


async def test_other_tools_do_not_tell_it_either(tmp_path: Path) -> None:
    place = Place(tmp_path)
    await place.call("request_env_var", VALUE, name="KEY")
    place.bench.write("leaked.txt", f"it is {VALUE}\n")
    result = await place.call("read_file", path="leaked.txt")
    assert "it is [$KEY]" in result.text
    failed = await place.call("read_file", path=f"{VALUE}.txt")
    assert VALUE not in failed.text + str(failed.error)


async def test_nothing_is_masked_before_anybody_may_use_it(tmp_path: Path) -> None:
    place = Place(tmp_path, None, {"LANGUAGE_NAME": "english"})
    place.bench.write("a.txt", "english\n")
    assert "english" in (await place.call("read_file", path="a.txt")).text


# --- masking


def variables(**values: str) -> Variables:
    made = Variables()
    for name, value in values.items():
        made.keep(name, value)
    return made


def test_short_values_are_no_secrets() -> None:
    made = variables(DEBUG="1", PIN="1234", KEY=VALUE)
    assert made.masked(f"1 234 1234 {VALUE}") == "1 234 [$PIN] [$KEY]"


def test_a_value_inside_another_is_found_whole() -> None:
    inner = secrets.token_hex(8)
    made = variables(SHORT=inner, LONG=f"{inner}-and-more")
    assert made.masked(f"{inner}-and-more {inner}") == "[$LONG] [$SHORT]"


def test_the_lines_of_a_long_value_are_masked_one_by_one() -> None:
    lines = [secrets.token_hex(16) for _ in range(3)]
    made = variables(CERT="\n".join(lines))
    assert made.masked(f"  {lines[1]}\n") == "  [$CERT]\n"


@pytest.mark.parametrize("size", [1, 2, 7, 30, 500])
def test_a_stream_finds_what_is_split(size: int) -> None:
    made = variables(KEY=VALUE)
    whole = f"before {VALUE} between\n{VALUE}{VALUE} after " * 3
    stream = MaskedStream(made)
    pieces = [stream.feed(whole[at : at + size]) for at in range(0, len(whole), size)]
    assert "".join([*pieces, stream.close()]) == whole.replace(VALUE, "[$KEY]")
    assert all(VALUE not in piece for piece in pieces)


def test_a_stream_without_secrets_holds_nothing_back() -> None:
    assert MaskedStream(variables()).feed("at once") == "at once"


# --- the keyring


async def test_a_vault_that_hangs_is_given_up() -> None:
    released = threading.Event()
    with pytest.raises(ToolFailed, match=r"did not answer within 0.05 s"):
        await in_thread(lambda: released.wait(10), 0.05)
    released.set()
    await asyncio.sleep(0.05)


async def test_the_vault_is_opened_once_and_only_when_needed() -> None:
    opened: list[int] = []

    def open_it() -> Vault | None:
        opened.append(1)
        return None

    made = Variables(open_it)
    made.keep("A", VALUE)
    await made.find("A")
    assert opened == []
    await made.find("B")
    await made.find("C")
    assert opened == [1]
    with pytest.raises(ToolFailed, match="no keyring"):
        await made.store("A", VALUE)


def fake_library(monkeypatch: pytest.MonkeyPatch, priority: float, problem: bool = False) -> dict[tuple[str, str], str]:
    """The library as a module of its own: what is installed here must not matter, nor be written to."""
    kept: dict[tuple[str, str], str] = {}
    errors, library = types.ModuleType("keyring.errors"), types.ModuleType("keyring")

    class KeyringError(Exception):
        pass

    def get(service: str, name: str) -> str | None:
        if problem:
            raise KeyringError(f"cannot read {VALUE}")
        return kept.get((service, name))

    def put(service: str, name: str, value: str) -> None:
        if problem:
            raise KeyringError(f"cannot write {value}")
        kept[service, name] = value

    for name, value in {
        "get_keyring": lambda: types.SimpleNamespace(priority=priority),
        "get_password": get,
        "set_password": put,
        "errors": errors,
    }.items():
        setattr(library, name, value)
    errors.KeyringError = KeyringError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", library)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    return kept


def test_values_of_one_workspace_are_not_those_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = fake_library(monkeypatch, 5)
    one, other = open_keyring("/home/one"), open_keyring("/home/other")
    assert one is not None and other is not None
    one.set("KEY", VALUE)
    assert (one.get("KEY"), other.get("KEY")) == (VALUE, None)
    assert list(kept) == [("codeagent-lsp:/home/one", "KEY")]


@pytest.mark.parametrize("priority", [0, -1, 0.5])
def test_a_keyring_that_keeps_nothing_or_plain_text_is_none(monkeypatch: pytest.MonkeyPatch, priority: float) -> None:
    fake_library(monkeypatch, priority)
    assert open_keyring("/w") is None


def test_without_the_library_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert open_keyring("/w") is None


def test_a_failure_does_not_quote_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_library(monkeypatch, 5, problem=True)
    vault = KeyringVault("/w")
    with pytest.raises(ToolFailed) as reading:
        vault.get("KEY")
    with pytest.raises(ToolFailed) as writing:
        vault.set("KEY", VALUE)
    for failed in (reading, writing):
        assert VALUE not in str(failed.value)
        assert failed.value.__cause__ is None
