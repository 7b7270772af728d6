"""A run whose tools and whose model come across secrets of every format: none is in any file of ours afterwards.

Files that a run changes are the exception, told of in `docs/security.md`.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bench.sanitizer import measure
from tests.living import contents
from tests.records.formats import PLACED, TOKENS
from tests.records.lookalikes import everything
from tests.records.test_sanitizer import survives
from tests.server.conftest import StartEditor
from tests.server.replies import call, say
from tests.server.stock_editor import STOCK, StockEditor

pytestmark = pytest.mark.slow  # whole servers at work

EVENTS = {**STOCK, "experimental": {"codeagent": {"event": True}}}
LEAST_FORMATS = 30
SCRIPT = "script.json"  # what the test itself put there


def secrets() -> dict[str, tuple[str, str]]:
    """A secret of each format, and the text it stands in, by the format's name."""
    rng = random.Random(11)
    found = {
        name: (secret := make(rng), f"value_{number} = '{secret}'")
        for number, (name, make) in enumerate(TOKENS.items())
    }
    for name, (frame, make) in PLACED.items():
        secret = make(rng)
        found[name] = (secret, frame.format(secret))
    return found


def ours(state: Path) -> dict[str, str]:
    """Everything below the state folder, by name, with escapes of JSON taken away as well."""
    texts = {}
    for path, held in contents(state).items():
        if path.name != SCRIPT:
            text = held.decode("utf-8", "replace")
            texts[str(path.relative_to(state))] = text + "\n" + text.replace("\\n", "\n").replace('\\"', '"')
    return texts


def found_in(texts: dict[str, str], known: dict[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """The formats that survived, and the files they are in."""
    return [(name, file) for file, text in texts.items() for name, (secret, _) in known.items() if _left(secret, text)]


def _left(secret: str, text: str) -> bool:
    """Whole lines of it, so that what is in every key (`-----`) does not count."""
    return any(part in text for part in secret.replace("\\n", "\n").splitlines() if "-----" not in part)


def choose(params: dict[str, Any]) -> str | None:
    titles = [item["title"] for item in params["actions"]]
    return next((title for title in ("Allow once", "Approve", "red") if title in titles), None)


def remembered(text: str) -> dict[str, str]:
    return {"kind": "decision", "text": text, "reason": "the user said so"}


def at_work(start: StartEditor, known: dict[str, tuple[str, str]], lines: str) -> StockEditor:
    """An editor with a run that has met every secret wherever a run can meet one."""
    placed = [text for _, text in known.values()]
    half = len(placed) // 2
    heard = "\n".join(placed[:half])
    script = [
        call("read_file", path="settings.txt"),
        call("grep", pattern="."),
        call("run_cmd", command="cat settings.txt; seq 1 60000; cat settings.txt; seq 1 60000; cat settings.txt"),
        call("run_cmd", command=f"echo '{known['gitlab'][0]}' --password {known['npm'][0]}"),
        call("read_file", path="@output/1.txt", start_line=60_000, end_line=60_400),
        call(
            "todowrite",
            action="replace",
            todos=[{"id": "1", "content": f"use {known['openai'][1]}", "status": "pending"}],
        ),
        call("AskUser", questions=[{"text": f"Is it {known['anthropic'][0]}?", "options": ["red", "blue"]}]),
        call("plan_enter", title="A plan"),
        call("plan_update", action="append", content=heard),
        {"text": f"I think {heard}", "chunks": 400, "reasoning": "\n".join(placed[half:]), "error": "broken"},
        say("\n".join(placed), chunks=900),
        say(json.dumps([remembered("The user wants tabs."), remembered(f"The key is {known['stripe live'][0]}.")])),
    ]
    editor = start(*script, capabilities=EVENTS, choose=choose, settings={"tools": {"maxOutputBytes": 200_000}})
    run_id = editor.command("codeagent.run", task=f"look into it; {placed[-1]} {placed[1]}")["runId"]
    editor.ended(run_id, 60)
    editor.ended(editor.command("codeagent.run", task="and now?")["runId"], 60)
    editor.command("codeagent.plan.show", runId=run_id)
    context = json.dumps(editor.command("codeagent.session.export", context=True)["context"], ensure_ascii=False)
    assert found_in({"context": context + context.replace("\\n", "\n").replace('\\"', '"')}, known) == []
    editor.command("codeagent.session.new")  # what is to be remembered is written down now
    editor.wait_until(lambda: editor.command("codeagent.memory.show")["entries"] != [], 20)
    return editor


def test_no_secret_is_in_any_file_of_ours(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    known = secrets()
    assert len(known) >= LEAST_FORMATS
    alike = "\n".join(everything())
    lines = "".join(f"{text}\n\n" for _, text in known.values())
    (workspace / "settings.txt").write_text(lines)
    (workspace / "alike.txt").write_text(alike)
    state = tmp_path / "state"
    began = time.perf_counter()
    editor = at_work(start, known, lines)
    assert editor.close() == 0
    seconds = time.perf_counter() - began
    texts = ours(state)
    assert found_in(texts, known) == []
    names = {Path(name).name for name in texts} | {Path(name).suffix for name in texts}
    assert {"trace.jsonl", "audit.jsonl", "memory.json", "1.txt", ".jsonl", ".md"} <= names
    assert all("<secret:" in text for name, text in texts.items() if name.endswith(("trace.jsonl", "1.txt")))
    size = sum(map(len, texts.values())) / 2
    print(f"{len(known)} formats, {len(texts)} files, {size / 1e6:.1f} MB of ours, in {seconds:.1f} s")
    kept = next(text for name, text in texts.items() if name.endswith("1.txt"))
    print(f"sanitizer: {measure(kept):.3f} s/MB of output, {measure(lines * 20):.3f} s/MB of nothing but secrets")


def test_what_only_looks_like_a_secret_is_kept(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    alike = everything()
    (workspace / "alike.txt").write_text("\n".join(alike))
    editor = start(
        call("run_cmd", command="cat alike.txt"),
        say("\n".join(alike), chunks=200),
        capabilities=EVENTS,
        choose=choose,
    )
    editor.run("codeagent.run", task="look")
    assert editor.close() == 0
    (session,) = (tmp_path / "state").rglob("sessions/*.jsonl")
    records = [json.loads(line) for line in session.read_text().splitlines()]
    (output,) = [record["output"] for record in records if record["type"] == "tool_result"]
    (answer,) = [
        record["message"]["content"]
        for record in records
        if record["type"] == "message"
        and record["message"]["role"] == "assistant"
        and not record["message"].get("tool_calls")
    ]
    assert [line for line in "\n".join(alike).splitlines() if line.strip() and line.rstrip() not in output] == []
    assert answer == "\n".join(alike)


def test_the_check_sees_a_secret(tmp_path: Path) -> None:
    """Each secret would be found in a file, plain or in JSON."""
    known = secrets()
    for number, (secret, text) in enumerate(known.values()):
        (tmp_path / f"{number}.txt").write_text(text if number % 2 else json.dumps({"a": text}))
        assert survives(secret, secret)
    assert {name for name, _ in found_in(ours(tmp_path), known)} == set(known)


def test_a_key_that_was_set_after_the_first_run_is_found_as_well(start: StartEditor, tmp_path: Path) -> None:
    key = "-".join(("only", "words", "as", "nobody", "makes", "keys"))
    editor = start(say("Hello."), say(f"You wrote {key}."), capabilities=EVENTS)
    editor.run("codeagent.run", task="begin")
    editor.client.notify(
        "workspace/didChangeConfiguration", {"settings": {"codeagent": {"web": {"searchApiKey": key}}}}
    )
    editor.run("codeagent.run", task=f"what is {key}?")
    editor.client.shutdown()
    kept = ours(tmp_path / "state")
    assert [name for name, text in kept.items() if key in text] == []
    assert any("<secret:" in text for text in kept.values())
