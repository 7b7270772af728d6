"""The endpoint that is played by hand or by a function: what clients get, and what the person who plays sees."""

from __future__ import annotations

import io
import json
import socket
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.direct.form_probe import probe
from codeagent_lsp.llm.factory import open_model
from codeagent_lsp.llm.model import ModelRequest
from codeagent_lsp.messages import Message
from tests.bench import by_hand
from tests.bench.by_hand import Answer, Calls, Exchanges, answer_of, passing_trials, playing
from tests.bench.chat_requests import Asked, shared, told_stats
from tests.llm.support import READ, TODO, collect

SECONDS = 10.0
SYSTEM = {"role": "system", "content": "You write code."}
HELLO = {"role": "user", "content": "Hello"}
TOOL = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}
NO_WAIT = ("--wait", "0")


def body(*messages: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "strong", "messages": list(messages), **more}


def post(url: str, sent: Mapping[str, Any]) -> dict[str, Any]:
    reply = httpx.post(f"{url}/chat/completions", json=sent, timeout=SECONDS).json()
    assert isinstance(reply, dict)
    return reply


def wait_for(exchanges: Exchanges, *numbers: int) -> None:
    until = time.monotonic() + SECONDS
    while exchanges.open_numbers() != [*numbers]:
        assert time.monotonic() < until, exchanges.open_numbers()
        time.sleep(0.01)


@pytest.fixture
def clients() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def said(text: str, *number: str) -> int:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return by_hand.main(["say", str(tmp_path), *number])

    return said


async def test_a_model_of_ours_gets_all_that_a_policy_says(tmp_path: Path) -> None:
    seen: list[Asked] = []

    def policy(asked: Asked) -> Answer:
        seen.append(asked)
        calls: Calls = [("read_file", {"path": "Größe.py"}), ("todo", {"items": []})]
        return Answer("I look.", calls, "Where is it?", usage={"prompt_tokens": 7, "completion_tokens": 3})

    with playing(policy, tmp_path / "kept") as url:
        settings = ModelSettings(provider="openai", base_url=url, tool_calling="native")
        model = await open_model(settings, tmp_path)
        asked = ModelRequest((Message("system", "s"), Message("user", "u")), tools=(READ, TODO))
        shown, reply = await collect(model, asked)
        await model.close()
    assert (shown, reply.reasoning, reply.finish_reason) == ("I look.", "Where is it?", "tool_calls")
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("read_file", {"path": "Größe.py"}),
        ("todo", {"items": []}),
    ]
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (7, 3)
    assert (model.info.name, model.info.context_window) == ("strong", 200_000)
    assert [*seen[0].tools] == ["read_file", "todo"]
    assert Exchanges(tmp_path / "kept").requests() == seen


async def test_a_cut_reply_says_so(tmp_path: Path) -> None:
    with playing(lambda asked: Answer("Half a sen", finish="length"), window=9000) as url:
        model = await open_model(ModelSettings(provider="openai", base_url=url, tool_calling="native"), tmp_path)
        reply = (await collect(model, ModelRequest((Message("user", "u"),))))[1]
        await model.close()
    assert (reply.text, reply.finish_reason, model.info.context_window) == ("Half a sen", "length", 9000)


@pytest.mark.slow
async def test_a_policy_can_pass_the_trials_of_a_new_model(tmp_path: Path) -> None:
    def never(asked: Asked) -> Answer:
        raise AssertionError("a trial is no task")

    with playing(passing_trials(never)) as url:
        model = await open_model(ModelSettings(provider="openai", base_url=url), tmp_path)
        found = await probe(model)
        await model.close()
    assert model.info.tool_calling == "native"
    assert found.calls_tools


def test_a_reply_that_is_not_streamed() -> None:
    with playing(lambda asked: Answer("", [("read_file", {})], "Hm.")) as url:
        reply = post(url, body(HELLO))
    (choice,) = reply["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["reasoning_content"] == "Hm."
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "read_file", "arguments": "{}"}
    assert reply["usage"]["prompt_tokens"] > 0


@pytest.mark.slow
def test_other_addresses_are_refused() -> None:
    with playing(lambda asked: Answer("Hi.")) as url:
        assert httpx.get(f"{url}/props").status_code == 404
        assert httpx.post(f"{url}/responses", json={}).status_code == 404


def test_what_a_policy_raises_is_not_lost() -> None:
    def policy(asked: Asked) -> Answer:
        raise LookupError("no reply left")

    def ask() -> None:
        with playing(policy) as url:
            assert "no reply left" in post(url, body(HELLO))["error"]["message"]

    with pytest.raises(LookupError, match="no reply left"):
        ask()


@pytest.mark.slow
def test_a_person_answers_two_conversations_in_their_own_order(
    tmp_path: Path, clients: ThreadPoolExecutor, say: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    exchanges = Exchanges(tmp_path)
    with playing(None, tmp_path) as url:
        first = clients.submit(post, url, body(SYSTEM, HELLO))
        wait_for(exchanges, 1)
        second = clients.submit(post, url, body(SYSTEM, {"role": "user", "content": "Another"}))
        wait_for(exchanges, 1, 2)
        assert by_hand.main(["next", str(tmp_path)]) == 0
        assert "=== wait too: 2" in capsys.readouterr().out
        assert say("To the second.", "2") == 0
        assert said_in(second) == "To the second."
        assert say("text: To the first.") == 0
        assert said_in(first) == "To the first."
    assert say("Too late.") == 1
    assert say("Twice.", "1") == 1


@pytest.mark.slow
def test_only_what_is_new_is_shown(
    tmp_path: Path, clients: ThreadPoolExecutor, say: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    exchanges, called = Exchanges(tmp_path), {"role": "assistant", "content": "I look."}
    with playing(None, tmp_path) as url:
        clients.submit(post, url, body(SYSTEM, HELLO, tools=[TOOL]))
        wait_for(exchanges, 1)
        by_hand.main(["next", str(tmp_path)])
        shown = capsys.readouterr().out
        assert "request 1: 2 messages" in shown
        assert "=== tools: read_file\n--- system\nYou write code.\n--- user\nHello\n" in shown
        say("I look.")
        clients.submit(post, url, body(SYSTEM, HELLO, called, {"role": "user", "content": "Go on"}, tools=[]))
        wait_for(exchanges, 2)
        by_hand.main(["next", str(tmp_path)])
        shown = capsys.readouterr().out
        assert "continues request 1 after 2 messages" in shown
        assert shown.endswith("=== tools: gone: read_file\n--- assistant\nI look.\n--- user\nGo on\n")
        say("Done.")
    by_hand.main(["full", str(tmp_path), "1"])
    shown = capsys.readouterr().out
    assert "--- system\nYou write code." in shown
    assert '"read_file"' in shown


def test_without_a_request_there_is_nothing_to_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert by_hand.main(["next", str(tmp_path), *NO_WAIT]) == 1
    assert capsys.readouterr().out == "No request waits for a reply.\n"
    with pytest.raises(SystemExit, match="no request 4"):
        by_hand.main(["full", str(tmp_path), "4"])


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [True, False])
def test_a_client_that_leaves_waits_no_more(tmp_path: Path, *, streamed: bool) -> None:
    exchanges, sent = Exchanges(tmp_path), json.dumps(body(HELLO, stream=streamed)).encode()
    with playing(None, tmp_path) as url:
        address = ("127.0.0.1", httpx.URL(url).port or 0)
        with socket.create_connection(address) as client:
            head = f"POST /v1/chat/completions HTTP/1.0\r\ncontent-length: {len(sent)}\r\n\r\n"
            client.sendall(head.encode() + sent)
            wait_for(exchanges, 1)
        wait_for(exchanges)


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("Just words.", Answer("Just words.")),
        ("", Answer()),
        ('{"text": "\\ud83d\\ude00", "calls": [["tree", {}]]}', Answer("😀", (("tree", {}),))),
        ("calls:\n  - tree:\n  - [grep, {pattern: x}]\n", Answer(calls=(("tree", {}), ("grep", {"pattern": "x"})))),
        ("reasoning: Hm.\nfinish: length\nusage: {a: 9}\n", Answer("", (), "Hm.", "length", {"a": 9})),
    ],
)
def test_a_reply_is_written_in_several_ways(written: str, answer: Answer) -> None:
    assert answer_of(by_hand.value_of(written)) == answer


@pytest.mark.parametrize("written", ["texts: Hm.", "[1, 2]", "calls: [grep]", "calls:\n - {a: {}, b: {}}", "a: b: c"])
def test_a_reply_that_means_nothing_is_not_sent(
    tmp_path: Path, clients: ThreadPoolExecutor, say: Any, written: str
) -> None:
    exchanges = Exchanges(tmp_path)
    with playing(None, tmp_path) as url:
        clients.submit(post, url, body(HELLO))
        wait_for(exchanges, 1)
        with pytest.raises(SystemExit):
            say(written)
        wait_for(exchanges, 1)
        say("Done.")


def test_the_table_tells_what_each_request_repeats() -> None:
    one = Asked(1, body(SYSTEM, HELLO, tools=[TOOL]))
    other = Asked(2, body(SYSTEM, {"role": "user", "content": "Another"}, tools=[TOOL]))
    longer = Asked(3, body(SYSTEM, HELLO, {"role": "assistant", "content": "Hi."}, tools=[TOOL]))
    broken = Asked(4, body(*longer.messages, HELLO, tools=[TOOL, TOOL]))
    every = [one, other, longer, broken]
    assert (shared(longer, every[:2]).before, shared(longer, every[:2]).percent) == (one, 100.0)
    assert not shared(other, every[:1]).continues
    assert shared(broken, every[:3]).percent < 50
    lines = told_stats(every).splitlines()
    assert lines[1].split() == ["1", str(one.characters), str(one.characters), "2", "1"]
    assert lines[3].split()[:5] == ["3", str(longer.characters), str(longer.characters - one.characters), "3", "1"]
    assert lines[3].endswith("100.0 % of 1")


def said_in(reply: Future[dict[str, Any]]) -> str:
    return str(reply.result(SECONDS)["choices"][0]["message"]["content"])
