"""The small commands: `model list|probe|pull` and how `doctor` looks."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from codeagent_lsp.config import ModelSettings, Settings
from codeagent_lsp.direct import ANSWER_FORMS
from codeagent_lsp.doctor import Check
from codeagent_lsp.errors import ModelNotFound
from codeagent_lsp.llm import weights
from codeagent_lsp.terminal.model import get_engine, list_models, model_command, probe_model, pull_model
from codeagent_lsp.terminal.reports import show_checks
from tests.faults.model_server import delta, free_port, model_server, models, stream

Report = Callable[[int, int], None]


def screen(*, terminal: bool = False, width: int = 100) -> tuple[Console, io.StringIO]:
    """A console and what it has shown."""
    out = io.StringIO()
    return Console(file=out, width=width, force_terminal=terminal, highlight=False, markup=False), out


def test_pull_shows_how_far_it_is() -> None:
    out, shown = screen(terminal=True)

    def pull(report: Report, cancelled: Callable[[], bool]) -> Path:
        report(512 * 2**20, 2**30)
        assert not cancelled()
        report(2**30, 2**30)
        return Path("/models/file.gguf")

    assert pull_model(out, "en", pull) == 0
    assert weights.CODER.name in shown.getvalue()
    assert "1.0/1.0 GiB" in shown.getvalue()
    assert "/models/file.gguf" in shown.getvalue()


def test_pull_into_a_pipe_says_only_where_it_is() -> None:
    out, shown = screen()
    assert pull_model(out, "en", lambda **_: Path("/models/file.gguf")) == 0
    assert shown.getvalue() == "✓ The model is in /models/file.gguf\n"


def test_pull_into_a_pipe_says_each_new_percent_on_a_line() -> None:
    out, shown = screen()

    def pull(report: Report, cancelled: Callable[[], bool]) -> Path:
        for done in (0, 5_000_000, 120_000_000, 124_000_000, 1_000_000_000):
            report(done, 1_000_000_000)
        assert not cancelled()
        return Path("/models/file.gguf")

    assert pull_model(out, "en", pull) == 0
    lines = shown.getvalue().splitlines()
    assert lines[:3] == ["0 %: 0 of 1000 MB", "12 %: 120 of 1000 MB", "100 %: 1000 of 1000 MB"]


def test_a_missing_engine_is_installed_beside_the_program_or_it_is_said_how() -> None:
    out, shown = screen(width=400)
    here: list[list[str]] = []
    assert get_engine(out, "en", installed=lambda: bool(here), run=here.append)
    assert here[0][0] == sys.executable and here[0][-1].startswith("xllamacpp")
    assert "Installing the engine" in shown.getvalue()
    assert not get_engine(out, "en", installed=lambda: False, run=here.append)
    assert f"{sys.executable} -m pip install xllamacpp" in shown.getvalue()


def test_ctrl_c_keeps_what_has_arrived() -> None:
    out, shown = screen()
    before = signal.getsignal(signal.SIGINT)

    def pull(report: Report, cancelled: Callable[[], bool]) -> Path:
        signal.raise_signal(signal.SIGINT)
        assert cancelled()
        raise weights.Cancelled

    assert pull_model(out, "en", pull) == 130
    assert "continues from there" in shown.getvalue()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_pull_that_fails_puts_the_signal_back() -> None:
    before = signal.getsignal(signal.SIGINT)

    def pull(report: Report, cancelled: Callable[[], bool]) -> Path:
        raise ModelNotFound("model.pull_busy", path="/x")

    with pytest.raises(ModelNotFound):
        pull_model(screen()[0], "en", pull)
    assert signal.getsignal(signal.SIGINT) is before


def test_list_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEAGENT_MODELS_DIR", str(tmp_path))
    for language, words in (("en", "model pull"), ("zh-cn", "尚未下载")):
        out, shown = screen()
        list_models(out, language)
        assert words in shown.getvalue()
        assert weights.CODER.name in shown.getvalue()


def test_serve_without_weights_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CODEAGENT_MODELS_DIR", str(tmp_path))
    assert model_command("serve", 0) == 1
    output = capsys.readouterr()
    assert "codeagent-lsp" in output.err
    assert output.out == ""


CHECKS = [
    Check("version", "ok", "codeagent-lsp 1", "not shown"),
    Check("git", "warning", "git is not installed", "Install git."),
    Check("model", "failed", "Cannot reach\x1b[2J it", "Start it."),
]


def test_the_doctor_gives_advice_where_it_is_needed() -> None:
    out, shown = screen()
    show_checks(CHECKS, out)
    lines = [line.rstrip() for line in shown.getvalue().splitlines()]
    assert lines == [
        "✓ version codeagent-lsp 1",
        "! git     git is not installed",
        "          → Install git.",
        "✗ model   Cannot reach<U+001B>[2J it",
        "          → Start it.",
    ]


@pytest.mark.parametrize("width", [1, 12, 40])
def test_the_doctor_fits_any_width(width: int) -> None:
    out, shown = screen(width=width, terminal=True)
    show_checks(CHECKS, out)
    assert shown.getvalue()


async def test_a_probe_says_how_the_model_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a server that says the same to everything: no form is proved, and nobody pretends otherwise."""
    monkeypatch.setenv("CODEAGENT_STATE_DIR", str(tmp_path))
    chat = stream(delta("✓ Done."), delta(finish="stop"))
    async with model_server(*[chat] * 60, get=models(["my-model"])) as server:
        model = ModelSettings(provider="openai", base_url=server.url, tool_calling="text")
        settings = Settings(model=model)
        out, shown = screen()
        assert await probe_model(out, "en", settings) == 0
        lines = shown.getvalue().splitlines()
        assert lines[0].startswith("Testing in which form my-model writes edits best")
        assert [line.split()[1:3] for line in lines[1:-1]] == [[form, "0/3"] for form in ANSWER_FORMS]
        asked = len(server.asked)
        out, shown = screen()
        list_models(out, "en")
        assert "my-model: successful test edits: tools 0/3" in shown.getvalue()
        assert len(server.asked) == asked


def test_a_probe_without_a_model_is_a_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    assert model_command("probe", 0, ["model.provider=openai", f"model.baseUrl={url}", "model.name=x"]) == 1
    assert url.removesuffix("/v1") in capsys.readouterr().err


def test_a_bad_setting_of_a_probe_names_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert model_command("probe", 0, ["model.provider=nobody"]) == 1
    assert "model.provider" in capsys.readouterr().err
