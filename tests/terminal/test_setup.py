"""`codeagent-lsp setup`: from no model to one that has answered, and where its key goes."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from codeagent_lsp.config import Settings
from codeagent_lsp.errors import SettingError
from codeagent_lsp.llm.factory import Surroundings, endpoint_of
from codeagent_lsp.settings_files import FILE, KEYS, PolicyFile, keep_model, read_user_settings
from codeagent_lsp.settings_layers import load
from codeagent_lsp.terminal.setup import Dialogue, setup_command
from codeagent_lsp.texts import text
from tests.faults.model_server import Asked
from tests.llm.providers.fake_chat import FakeChat
from tests.llm.providers.fake_server import Answer, Refused, Said, serving

KEY = "key-of-" + "a-test"
NOWHERE = {"llamacpp": 1}  # no server listens there
OTHER = "7"


class Typed:
    """Lines that are entered one after the other, and the end of input behind them."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)

    async def line(self) -> str | None:
        return self._lines.pop(0) if self._lines else None

    async def secret_line(self) -> str | None:
        return await self.line()


class FakeKeyed(FakeChat):
    """A server that wants a key, also for its list of models."""

    def answer(self, asked: Asked) -> Answer:
        if asked.headers.get("authorization") != f"Bearer {KEY}":
            raise Refused("Incorrect API key provided.", 401)
        return super().answer(asked)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEAGENT_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("CODEAGENT_CONFIG_DIR", raising=False)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


async def held(*lines: str, language: str = "en", width: int = 100) -> tuple[int, str]:
    """The exit code of a dialogue, and what it showed."""
    shown = io.StringIO()
    out = Console(file=shown, width=width, highlight=False, markup=False)
    code = await Dialogue(out, Typed(*lines), language, ports=NOWHERE).hold()
    return code, shown.getvalue()


async def test_a_wrong_key_is_told_and_the_right_one_is_kept_apart(state: Path) -> None:
    async with serving(FakeKeyed(Said("Rust"))) as url:
        code, shown = await held("99", OTHER, url, "wrong-key", KEY, "")
        assert code == 0, shown
        assert "from 1 to" in shown and "Incorrect API key provided." in shown and "→  Rust" in shown
        assert KEY not in shown and "wrong-key" not in shown
        told = (state / FILE).read_text()
        assert json.loads(told) == {"model.baseUrl": url, "model.name": "m"} and KEY not in told
        assert json.loads((state / KEYS).read_text()) == {url: KEY}
        assert stat.S_IMODE((state / KEYS).stat().st_mode) == 0o600
        settings = load(user=read_user_settings())[0].model
        assert (settings.base_url, settings.name, settings.api_key) == (url, "m", KEY)


async def test_without_a_right_key_another_model_can_be_chosen() -> None:
    async with serving(FakeKeyed(Said("Rust"))) as url:
        code, shown = await held(OTHER, url, "wrong-key", "", OTHER, url, KEY, "")
        assert code == 0, shown
        assert shown.count("1  Anthropic") == 2


async def test_lines_break_between_words() -> None:
    async with serving(FakeChat(Said("Rust"))) as url:
        _, shown = await held(OTHER, url, KEY, "", width=40)
        kept = shown[shown.index("The key is apart") :].splitlines()
        assert max(map(len, kept)) <= 40
        assert "readable by you alone" in " ".join(" ".join(kept).split())


async def test_what_the_environment_says_otherwise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(FakeKeyed(Said("Rust"))) as url:
        monkeypatch.setenv("CODEAGENT_MODEL", "m")
        _, agreeing = await held(OTHER, url, KEY, "")
        assert "go before" not in agreeing
        monkeypatch.setenv("CODEAGENT_BASE_URL", "http://127.0.0.1:1")
        monkeypatch.setenv("CODEAGENT_API_KEY", "not-this-one")
        code, shown = await held(OTHER, url, KEY, "")
        assert code == 0, shown
        (line,) = [line for line in shown.splitlines() if "go before" in line]
        assert "CODEAGENT_BASE_URL" in line and "CODEAGENT_API_KEY" in line and "CODEAGENT_MODEL" not in line
        assert "not-this-one" not in shown


async def test_an_empty_address_and_a_model_that_is_not_listed_are_asked_again(state: Path) -> None:
    async with serving(FakeKeyed(Said("Rust"))) as url:
        code, shown = await held(OTHER, "", url, KEY, "7", "m")
    assert code == 0, shown
    assert text("setup.address_none") in shown and "does not list 7" in shown
    assert json.loads((state / FILE).read_text())["model.name"] == "m"


@pytest.mark.parametrize("lines", [(), ("q",), (OTHER,), (OTHER, "http://127.0.0.1:1"), ("1", None)])
async def test_what_ends_early_keeps_nothing(lines: Sequence[str], state: Path) -> None:
    code, shown = await held(*lines)
    assert code == 1 and text("setup.nothing_kept", "en") in shown
    assert not (state / FILE).exists() and not (state / KEYS).exists()


async def test_it_speaks_chinese() -> None:
    code, shown = await held("q", language="zh-cn")
    assert code == 1 and "智能体使用哪个模型" in shown


@pytest.mark.parametrize(
    ("layer", "counts"),
    [
        ({}, True),
        ({"model": {"baseUrl": "", "provider": "auto", "name": "", "apiKey": ""}}, True),  # as an editor shows nothing
        ({"model.baseUrl": "http://127.0.0.1:9/v1"}, False),
        ({"model": {"provider": "gemini"}}, False),
        ({"base_url": "http://127.0.0.1:9/v1"}, False),  # as others spell it
        ({"model.temperature": 0.5}, True),
    ],
)
def test_a_key_is_for_its_address_alone(layer: dict[str, object], counts: bool) -> None:
    keep_model({"model.baseUrl": "https://models.example.com/v1", "model.name": "m"}, KEY)
    model = load(layer, user=read_user_settings())[0].model
    assert (model.api_key == KEY) is counts and (model.name == "m") is counts


@pytest.mark.parametrize("fixed", [{"model.baseUrl": "https://models.company.example/v1"}, {"model.baseUrl": None}])
def test_a_key_is_not_for_the_server_of_the_policy(fixed: dict[str, object]) -> None:
    keep_model({"model.baseUrl": "https://models.example.com/v1", "model.name": "m"}, KEY)
    settings = load(policy=PolicyFile(Path("policy.json"), fixed), user=read_user_settings())[0]
    assert settings.model.api_key is None


def test_other_settings_stay_and_other_keys_too(state: Path) -> None:
    (state / FILE).write_text('{"codeagent": {"language": "zh-cn", "model": {"name": "old", "headers": {"a": "b"}}}}')
    keep_model({"model.baseUrl": "https://one.example.com"}, "one")
    keep_model({"model.baseUrl": "https://two.example.com", "model.name": "new"}, "two")
    assert json.loads((state / FILE).read_text()) == {
        "language": "zh-cn", "model.baseUrl": "https://two.example.com", "model.name": "new",
    }  # fmt: skip
    assert json.loads((state / KEYS).read_text()) == {
        "https://one.example.com": "one",
        "https://two.example.com": "two",
    }
    assert load(user=read_user_settings())[0].language == "zh-cn"


def test_a_damaged_file_of_keys_is_told_and_stays(state: Path) -> None:
    keep_model({"model.baseUrl": "https://one.example.com", "model.name": "m"}, "one")
    (state / KEYS).write_text((state / KEYS).read_text()[:-3])
    damaged, settings = (state / KEYS).read_text(), (state / FILE).read_text()
    with pytest.raises(SettingError, match=KEYS):
        keep_model({"model.baseUrl": "https://two.example.com", "model.name": "m"}, "two")
    assert ((state / KEYS).read_text(), (state / FILE).read_text()) == (damaged, settings)


@pytest.mark.parametrize("content", ["{", "[]", '"text"', "\udcff"])
async def test_a_file_that_is_no_object_is_told_and_stays(content: str, state: Path) -> None:
    written = content.encode("utf-8", "surrogateescape")
    (state / FILE).write_bytes(written)
    settings, problems = load(user=read_user_settings())
    assert settings == Settings() and [problem.key for problem in problems] == ["user_settings.unreadable"]
    with pytest.raises(type(problems[0])):
        keep_model({"model.name": "m"}, KEY)
    assert (state / FILE).read_bytes() == written and not (state / KEYS).exists()


def test_a_key_of_the_environment_is_found_by_its_service(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for variable, url in (
        ("OPENAI_API_KEY", "https://api.openai.com/v1"),
        ("ANTHROPIC_API_KEY", "https://api.anthropic.com"),
        ("GOOGLE_API_KEY", "https://generativelanguage.googleapis.com"),
        ("OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
        ("DEEPSEEK_API_KEY", "https://api.deepseek.com"),
        ("AZURE_OPENAI_API_KEY", "https://mine.openai.azure.com/openai/v1"),
        ("OPENAI_API_KEY", "https://api.openai.com.evil.example"),
        ("OPENROUTER_API_KEY", "https://notopenrouter.ai/v1"),
    ):
        with monkeypatch.context() as only:
            only.setenv(variable, KEY)
            found[url] = endpoint_of(Settings().model, url, Surroundings()).key == KEY
    assert [url for url, has in found.items() if not has] == [
        "https://api.openai.com.evil.example", "https://notopenrouter.ai/v1",
    ]  # fmt: skip


def test_without_a_terminal_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, write = os.pipe()
    monkeypatch.setattr("sys.stdin", os.fdopen(read))
    os.close(write)
    monkeypatch.setattr("codeagent_lsp.terminal.questions.is_terminal", lambda _descriptor: False)
    assert setup_command() == 2
    assert "CODEAGENT_BASE_URL" in capsys.readouterr().err
