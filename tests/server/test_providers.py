"""A small task through the whole server with each kind of model server: read, edit, proposal, the user's buffer."""

from __future__ import annotations

import os
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.llm.providers import fake_messages, fake_responses
from tests.llm.providers.fake_chat import FakeChat
from tests.llm.providers.fake_gemini import KEY, FakeGemini
from tests.llm.providers.fake_messages import FakeMessages
from tests.llm.providers.fake_ollama import FakeOllama
from tests.llm.providers.fake_responses import FakeResponses
from tests.llm.providers.fake_server import FakeServer, Said, serving_aside
from tests.server.conftest import StartEditor

pytestmark = pytest.mark.slow  # whole servers at work

READ = (("read_file", {"path": "calc.py"}), ("read_file", {"path": "test_calc.py"}))
EDIT = (("edit_file", {"path": "calc.py", "old_str": "a - b", "new_str": "a + b"}),)
TASK = (Said("I look. ", "What is wrong?", READ), Said("", "A minus.", EDIT), Said("It adds now.", "Done."))
MORE = (Said("It was a minus."),)

SERVERS: dict[str, tuple[type[FakeServer], dict[str, Any]]] = {
    "anthropic": (FakeMessages, {"provider": "anthropic", "apiKey": fake_messages.KEY, "effort": "high"}),
    "responses": (FakeResponses, {"provider": "responses", "apiKey": fake_responses.KEY, "effort": "low"}),
    "gemini": (FakeGemini, {"provider": "gemini", "name": "gemini-3.1-pro", "apiKey": KEY, "effort": "low"}),
    "ollama": (FakeOllama, {"effort": "high"}),
    "lmstudio": (FakeChat, {"provider": "openai", "effort": "low"}),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_task_and_a_question_after_a_restart(name: str, start: StartEditor, workspace: Path) -> None:
    kind, settings = SERVERS[name]
    fake = kind(*TASK, *MORE)
    (workspace / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (workspace / "test_calc.py").write_text("from calc import add\n\nassert add(1, 2) == 3\n")
    with serving_aside(fake) as url:
        options = {"settings": {"model": {"baseUrl": url, **settings}, "agent": {"answerForm": "tools"}}}
        editor = start(**options)
        calc = workspace / "calc.py"
        editor.open(calc)
        end = editor.run("codeagent.run", task="make add in calc.py add")
        assert "return a + b" in editor.text(calc), (
            end,
            fake.refusals,
            [(str(b)[-300:], sorted(b)) for b in fake.bodies],
        )
        session = editor.command("codeagent.session.list")[0]["sessionId"]
        editor.client.kill()
        again = start(**options)
        again.run("codeagent.run", task="what was wrong?", sessionId=session)
    assert [told for told in fake.refusals if "temperature" not in told] == []
    carried = str(fake.bodies[-1])
    assert ("A minus." in carried) is (name != "lmstudio")
    assert ("thoughtSignature" in carried) is (name == "gemini")
    assert ("'signature': '" in carried) is (name == "anthropic")
    assert ("'encrypted_content': '" in carried) is (name == "responses")
    assert ("'ttl': '1h'" in carried) is (name == "anthropic")


def test_the_client_of_one_task_has_its_prompt_kept_for_minutes(workspace: Path, tmp_path: Path) -> None:
    """Nobody pauses there and goes on: an hour in the cache would cost more and be of no use."""
    fake = FakeMessages(Said("Hello."))
    with serving_aside(fake) as url:
        known = {"provider": "anthropic", "baseUrl": url, "apiKey": fake_messages.KEY}
        settings = [word for name, value in known.items() for word in ("--set", f"model.{name}={value}")]
        words = [
            sys.executable,
            "-m",
            "codeagent_lsp.cli",
            "run",
            "--yes",
            "--workspace",
            str(workspace),
            *settings,
            "hi",
        ]
        environment = {**os.environ, "CODEAGENT_STATE_DIR": str(tmp_path / "state")}
        subprocess.run(words, env=environment, check=False, timeout=120, capture_output=True)
    assert "cache_control" in str(fake.bodies[0])
    assert "ttl" not in str(fake.bodies[0])


@pytest.mark.parametrize("name", ["anthropic", "responses", "gemini"])
def test_a_picture_and_a_file_that_are_attached(name: str, start: StartEditor, workspace: Path) -> None:
    """They reach a model that sees, with the task; one whose content is no picture is refused before a call."""
    kind, settings = SERVERS[name]
    fake = kind(Said("A dot.", "I see."), Said("It is the same.", "Yes."))
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
    (workspace / "shot.jpg").write_bytes(picture)
    (workspace / "not.png").write_text("<html>")
    (workspace / "notes.txt").write_text("the dot is red\n")
    with serving_aside(fake) as url:
        editor = start(settings={"model": {"baseUrl": url, **settings}})
        attachments = [{"uri": (workspace / each).as_uri()} for each in ("shot.jpg", "notes.txt")]
        editor.run("codeagent.ask", question="What is in it?", attachments=attachments)
        told = str(fake.bodies[-1])
        assert b64encode(picture).decode() in told and "image/png" in told, "its kind by its content"
        assert "the dot is red" in told
        pasted = b64encode(picture + b"pasted").decode()
        editor.run("codeagent.run", task="And here?", attachments=[{"data": pasted, "name": "pasted"}])
        assert pasted in str(fake.bodies[-1])
        count = len(fake.bodies)
        editor.run("codeagent.ask", question="And in @not.png?")
        assert "is not a PNG, JPEG or WebP picture" in str(list(editor.notifications("window/showMessage")))
        assert len(fake.bodies) == count
