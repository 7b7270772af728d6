"""Those who read what the terminal commands print: a program behind `--json`, options as typed, the doctor's reader."""

from __future__ import annotations

import io
import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from codeagent_lsp import doctor, events
from codeagent_lsp.config import Settings
from codeagent_lsp.doctor import Check
from codeagent_lsp.errors import UserError
from codeagent_lsp.terminal.display import one_line, visible
from codeagent_lsp.terminal.options import RunOptions, from_namespace
from codeagent_lsp.terminal.reports import print_doctor, show_checks
from codeagent_lsp.terminal.run import JsonLines


class Consumer:
    """A program that reads one JSON event a line and keeps what it needs."""

    def __init__(self) -> None:
        self.answer, self.tools, self.status = "", list[str](), ""

    def read(self, output: str) -> None:
        assert output.endswith("\n") or not output
        for line in output.splitlines():
            event = json.loads(line)
            match event["type"]:
                case "token":
                    self.answer += event["content"]
                case "tool_result":
                    self.tools.append(event["tool"])
                case "run_completed":
                    self.status = event["status"]


ODD = "a\nb\r\n\u2028\u2029\x85\x0c\0\x1b[2J \ud83d 字 😀 \u202e"


def test_a_consumer_gets_every_event_on_a_line_of_its_own() -> None:
    out = io.StringIO()
    face = JsonLines("en", out=out)
    face.open("title", "place")
    for event in (events.Token(content=ODD), events.ToolFinished(tool=ODD), events.RunCompleted(status="stopped")):
        face.event(events.to_dict(event))
    face.close()
    consumer = Consumer()
    consumer.read(out.getvalue())
    assert (consumer.answer, consumer.tools, consumer.status) == (ODD, [ODD], "stopped")
    assert out.getvalue().isascii()
    assert face.summary.exit_code == 1


@pytest.mark.parametrize("name", sorted(events.EVENT_TYPES))
def test_every_event_comes_back_from_its_line(name: str) -> None:
    out = io.StringIO()
    event = events.EVENT_TYPES[name](session_id="s", run_id="r", seq=3, ts=1.5)
    JsonLines("en", out=out).event(events.to_dict(event))
    assert events.from_dict(json.loads(out.getvalue())) == event


@pytest.mark.parametrize("language", ["en", "zh-cn"])
async def test_words_and_questions_do_not_reach_the_consumer(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    face = JsonLines(language, out=out)
    face.message("careful\x1b[2J")
    assert await face.choose("Go?", ("No", "Yes")) is None
    assert await face.ask("Name?", "", secret=True) is None
    face.close("It ended")
    assert out.getvalue() == ""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "careful<U+001B>[2J" in captured.err and "It ended" in captured.err
    assert face.summary.declined == 2


async def test_yes_answers_choices_but_never_free_text() -> None:
    face = JsonLines("en", accept_all=True, out=io.StringIO())
    assert await face.choose("Go?", ("Deny", "Allow once")) == "Allow once"
    assert await face.choose("Go?", ()) is None
    assert await face.ask("Key?", "", secret=True) is None


# --- options


def namespace(folder: Path, **given: Any) -> Namespace:
    plain = {"task": "x", "workspace": str(folder), "mode": "auto", "attempts": 1, "apply": "review", "set": []}
    return Namespace(**{**plain, "yes": False, "json": False, "width": None, "session": "", **given})


OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {"task": "x", "mode": "auto", "accept_all": False, "as_json": False, "width": None}),
    "all": (
        {"task": " do it ", "mode": "plan", "yes": True, "json": True, "width": 60},
        {"task": " do it ", "mode": "plan", "accept_all": True, "as_json": True, "width": 60},
    ),
    "apply": ({"apply": "auto"}, {"settings": (("edits.apply", "auto"),)}),
    "set": ({"set": ["language=en"]}, {"settings": (("language", "en"), ("edits.apply", "review"))}),
    "the last set wins": ({"set": ["language=en", "language=zh-cn"]}, {"settings": (("language", "zh-cn"),
                                                                                  ("edits.apply", "review"))}),
    "a number": ({"set": ["model.timeoutSeconds=7"]}, {"settings": (("model.timeoutSeconds", 7),
                                                                    ("edits.apply", "review"))}),
}  # fmt: skip


@pytest.mark.parametrize(("given", "wanted"), OPTIONS.values(), ids=OPTIONS.keys())
def test_options(tmp_path: Path, given: dict[str, Any], wanted: Mapping[str, Any]) -> None:
    options = from_namespace(namespace(tmp_path, **given))
    assert isinstance(options, RunOptions)
    assert options.workspace == tmp_path.resolve()
    assert {name: getattr(options, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"task": ""}, "task"),
        ({"task": " \n\t"}, "task"),
        ({"workspace": "/no/such/folder"}, "/no/such/folder"),
        ({"set": ["=1"]}, "=1"),
        ({"set": ["language"]}, "language"),
        ({"set": ["language=klingon"]}, "klingon"),
        ({"set": ["no.such.setting=1"]}, "no.such.setting"),
        ({"set": ["language=en", "model.temperature=hot"]}, "model.temperature"),
    ],
)
def test_bad_options_name_themselves(tmp_path: Path, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        from_namespace(namespace(tmp_path, **given))
    for language in ("en", "zh-cn"):
        assert says in caught.value.localized(language) or says == "task"


def test_a_relative_workspace_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    assert from_namespace(namespace(Path("inner"))).workspace == (tmp_path / "inner").resolve()
    with pytest.raises(UserError):
        from_namespace(namespace(Path("outer")))


# --- the doctor


def diagnosis(*checks: Check) -> Any:
    """Stands in for `diagnose`: takes what it takes, gives these checks."""

    async def diagnose(settings: Settings, state: Path, language: str, folders: Sequence[str]) -> list[Check]:
        assert language in ("en", "zh-cn") and folders
        return list(checks)

    return diagnose


FINE = Check("git", "ok", "/usr/bin/git", "never shown")
ODD_CHECK = Check("model", "warning", "slow \x1b[2J字", "Wait.")
BAD = Check("state", "failed", "not writable", "Make room.")


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("checks", "code"), [((FINE,), 0), ((FINE, ODD_CHECK), 0), ((FINE, BAD), 1), ((), 0)])
def test_the_doctor_says_and_exits(
    checks: tuple[Check, ...],
    code: int,
    as_json: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CODEAGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(doctor, "diagnose", diagnosis(*checks))
    assert print_doctor(str(tmp_path), as_json=as_json) == code
    out = capsys.readouterr().out
    if as_json:
        assert json.loads(out) == [check.to_dict() for check in checks]
    else:
        assert all(check.name in out for check in checks)
        assert "\x1b" not in out and "never shown" not in out


def test_the_doctor_needs_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_doctor(str(tmp_path / "none"), as_json=True) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "none" in captured.err


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "where",
    ["http://{user}:{word}@127.0.0.1:9/v1", "https://{user}:{word}@models.invalid/v1", "http://{word}@127.0.0.1:9"],
)
def test_the_doctor_never_shows_a_password(
    where: str,
    as_json: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CODEAGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("CODEAGENT_BASE_URL", where.format(user="someone", word="opensesame"))
    assert print_doctor(str(tmp_path), as_json=as_json) == 1
    captured = capsys.readouterr()
    assert "opensesame" not in captured.out + captured.err
    assert "model" in captured.out


@pytest.mark.parametrize("width", [20, 40, 80, 120])
@pytest.mark.parametrize("colours", [False, True])
def test_the_doctor_at_every_width(width: int, colours: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colours, color_system="standard" if colours else None)
    show_checks([FINE, ODD_CHECK, BAD], console)
    shown = "".join(out.getvalue().split())
    for words in ("slow", "Wait.", "Make", "writable", "<U+001B>[2J字"):
        assert "".join(words.split()) in shown or width == 20
    assert ("\x1b[" in out.getvalue()) == colours


# --- safe text


@pytest.mark.parametrize(
    "text", ["👩\u200d👩\u200d👧", "❤\ufe0f\u200d🔥", "1\ufe0f\u20e3", "می\u200cخواهم", "e\u0301", "שלום"]
)
def test_emoji_and_scripts_stay_as_they_are(text: str) -> None:
    assert visible(f"a {text}. b") == f"a {text}. b"
    assert one_line(text) == text


@pytest.mark.parametrize(
    "char",
    [*"\x00\x07\x08\x1b\x7f\x9b\xad\u034f\u061c\u115f\u180e\u200b\u200c\u200d\u200e\u202e\u2028\u2060\u2066\u3164",
     *"\ufe0f\ufeff\uffa0\ufff9\ud83d\U000e0001\U000e0041\U000e0100"],
)  # fmt: skip
def test_what_cannot_be_seen_is_named(char: str) -> None:
    assert visible(f"a{char}b") == f"a<U+{ord(char):04X}>b"
    assert visible(f"a{char}{char}b") == f"a<U+{ord(char):04X}><U+{ord(char):04X}>b"
    assert char not in one_line(f"say {char} it", 500)
