"""The first run, in a real VS Code: the server is installed from the wheel that the extension carries, a provider is
tested, both with true errors.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode.support import EXTENSION, Editor, Window, install, package, window
from tests.clients.vscode.test_runs import until
from tests.clients.vscode.wheels import own_wheel, wheels_of_dependencies
from tests.llm.providers.fake_chat import FakeChat
from tests.llm.providers.fake_server import Said, serving_aside

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

BUILT = {"extension.js", "chat.js", "codicon.css", "codicon.ttf"}
NOTHING_THERE = "http://127.0.0.1:9"  # the port of `discard`, on which nothing listens


@pytest.fixture
def carrying(tmp_path: Path) -> Path:
    """The packaged extension with the server's wheel in it, built where an older build has left something."""
    source = tmp_path / "source"
    shutil.copytree(EXTENSION, source, ignore=shutil.ignore_patterns("node_modules", "dist", "dist-test", "*.vsix"))
    (source / "node_modules").symlink_to(EXTENSION / "node_modules")
    (source / "dist").mkdir()
    (source / "dist" / "transcript.js").write_text("// of an older version\n")
    own_wheel(source / "server")
    return package(tmp_path, source)


def program_of(opened: Window) -> str:
    """The command line of the server that is at work, '' without one."""
    mark = f"CODEAGENT_STATE_DIR={opened.state}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if "bin/codeagent-lsp" in line and mark in (entry / "environ").read_bytes():
                return line
        except OSError:
            continue  # it has ended meanwhile
    return ""


def test_the_server_is_installed_from_the_package(
    tmp_path: Path, editor: Editor, carrying: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(carrying) as packed:
        names = packed.namelist()
    assert any(name.startswith("extension/server/codeagent_lsp-") and name.endswith(".whl") for name in names)
    assert {name.rpartition("/")[2] for name in names if name.startswith("extension/dist/")} == BUILT
    monkeypatch.setattr(editor, "extensions", install(carrying, tmp_path / "extensions"))
    links, programs = tmp_path / "links", tmp_path / "programs"
    links.mkdir()
    programs.mkdir()
    (programs / "python3").symlink_to(str(getattr(sys, "_base_executable", sys.executable)))
    plain = [folder for folder in os.environ["PATH"].split(":") if not (Path(folder) / "codeagent-lsp").exists()]
    environment = {
        "PATH": ":".join([str(programs), *plain]),
        "PYTHONPATH": "",  # what is installed is what runs
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(links),
        "PIP_NO_CACHE_DIR": "1",
    }
    settings: dict[str, Any] = {"codeagent.server.command": []}
    script = [{"text": "Hello from it."}]
    with window(
        tmp_path, editor, files={"a.py": "x = 1\n"}, script=script, settings=settings, environment=environment
    ) as opened:
        opened.command("CodeAgent: Open the Chat")
        server = opened.transcript().locator(".server")
        server.filter(has_text="was not found on this machine").wait_for()
        server.locator("button").filter(has_text="Install it").click()
        server.filter(has_text="No matching distribution found").wait_for()
        opened.page.screenshot(path=tmp_path / "failed_install.png")
        wheels_of_dependencies(links)
        server.locator("button").filter(has_text="Install it").click()
        server.filter(has_text="Installing the agent's server…").wait_for()
        server.locator(".printed").filter(has_text="Processing").wait_for()
        opened.page.screenshot(path=tmp_path / "installing.png")
        server.wait_for(state="hidden")
        until(lambda: "globalStorage" in program_of(opened), f"another one runs: {program_of(opened)}")
        opened.page.keyboard.press("Escape")
        area = opened.transcript().locator("#composer textarea")
        area.fill("Say hello")
        area.press("Enter")
        opened.transcript().locator(".markdown").filter(has_text="Hello from it.").wait_for()


def test_a_provider_is_tested_and_then_used(tmp_path: Path, editor: Editor) -> None:
    fake = FakeChat(Said("Hello from the fake."), style="plain")
    script = [{"text": "The scripted one."}]
    with (
        serving_aside(fake) as url,
        window(tmp_path, editor, files={"a.py": "x = 1\n"}, script=script, own=True) as opened,
    ):
        opened.command("CodeAgent: Set Up the Model…")
        frame = opened.transcript()
        frame.locator(".card").filter(has_text="Another server").click()
        outcome, test = frame.locator(".outcome"), frame.locator("button").filter(has_text="Save and test")
        frame.locator("#setup-url").fill(NOTHING_THERE)
        test.click()
        frame.locator(".outcome.problem").filter(has_text=NOTHING_THERE).wait_for()
        opened.page.screenshot(path=tmp_path / "untested.png")
        frame.locator("#setup-url").fill(f"{url}/v1")
        test.click()
        frame.locator(".outcome.ok").filter(has_text="It works: 1 model.").wait_for()
        assert "m" in [each.get_attribute("value") for each in frame.locator("datalist option").all()], (
            outcome.inner_text()
        )
        opened.page.screenshot(path=tmp_path / "tested.png")
        frame.locator("button").filter(has_text="Begin").click()
        area = frame.locator("#composer textarea")
        area.fill("Why is it so?")
        area.press("Enter")
        until(lambda: len(fake.bodies) > 0, "not asked")
        frame.locator(".markdown").filter(has_text="Hello from the fake.").wait_for()


@pytest.mark.volume
def test_the_download_of_the_built_in_model_is_shown_and_stopped(tmp_path: Path, editor: Editor) -> None:
    """A stand-in takes the place of a download of a gigabyte; it brings nothing, and the test of the model says so."""
    program = tmp_path / "codeagent-lsp"
    lines = 'for done in 7 21 42 63 84 100; do echo "$done %: $done of 100 MB"; sleep 0.7; done; exit 0'
    pull = f"if [ \"$1 $2\" = 'model pull' ]; then trap 'exit 130' INT; {lines}; fi"
    program.write_text(f'#!/bin/sh\n{pull}\nexec "{sys.executable}" -m codeagent_lsp.cli serve\n')
    program.chmod(0o755)
    settings = {"codeagent.server.command": [str(program)]}
    models = {"CODEAGENT_MODELS_DIR": str(tmp_path / "models")}
    with window(
        tmp_path, editor, files={"a.py": "x = 1\n"}, script=[], settings=settings, environment=models
    ) as opened:
        opened.command("CodeAgent: Set Up the Model…")
        frame = opened.transcript()
        frame.locator(".card").filter(has_text="Built in").click()
        test, outcome = frame.locator("button").filter(has_text="Save and test"), frame.locator(".outcome")
        test.click()
        outcome.filter(has_text="42 of 100 MB").wait_for()
        assert float(outcome.locator("progress").get_attribute("value") or 0) >= 42
        opened.page.screenshot(path=tmp_path / "download.png")
        outcome.locator("button").filter(has_text="Cancel").click()
        frame.locator(".outcome.problem").filter(has_text="What has come is kept").wait_for()
        test.click()
        outcome.filter(has_text="100 of 100 MB").wait_for()
        frame.locator(".outcome.problem").filter(has_text="codeagent-lsp").wait_for()
        opened.page.screenshot(path=tmp_path / "after.png")
