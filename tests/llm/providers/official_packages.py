"""The official `anthropic` and `openai` packages in an environment of their own: types and parsers are the judge.

Run as a program it is the judge: a JSON object on stdin, one on stdout. Fetched once into the user's cache folder;
where that is impossible, `Unavailable` says so, and the test is skipped for everybody to see.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

CACHE = Path.home() / ".cache" / "codeagent-lsp-tests" / "official-packages"
WANTED = ("anthropic>=2", "openai>=2.50")
FETCH_SECONDS = 240


class Unavailable(Exception):
    """The packages cannot be had here; the reason is its text."""


def judged(case: dict[str, Any]) -> dict[str, Any]:
    """Return the judgement of a package. Raises Unavailable."""
    if not (CACHE / "openai").is_dir():
        _fetch()
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(case),
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(CACHE)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def _fetch() -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-input", "--target", str(CACHE), *WANTED]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable("the packages cannot be fetched in time") from None
    if done.returncode != 0:
        raise Unavailable(f"the packages cannot be installed: {done.stderr.strip()[-200:]}")


def check(value: Any, hint: Any, at: str) -> None:
    """Hold a value against a type of request parameters. Names that the type does not have are refused.

    Not by pydantic, which reads an `Iterable` only when it is asked for its items, and lets unknown names pass.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (object, Any) or origin in (typing.Required, typing.NotRequired, typing.Annotated):
        return check(value, arguments[0], at) if arguments else None
    if hasattr(hint, "__required_keys__"):  # of `typing` and of `typing_extensions`
        return _check_names(value, hint, at)
    if origin is typing.Literal:
        assert value in arguments, f"{at}: {value!r} is none of {arguments}"
    elif origin is typing.Union or str(origin) == "<class 'types.UnionType'>":
        _check_union(value, arguments, at)
    elif origin in (list, Iterable, Sequence):
        assert isinstance(value, list), f"{at}: no list"
        for number, item in enumerate(value):
            check(item, arguments[0], f"{at}[{number}]")
    elif origin in (dict, Mapping):
        assert isinstance(value, dict), f"{at}: no object"
    else:
        kinds = (int, float) if hint is float else (hint,)
        assert type(value) in kinds, f"{at}: {str(value)[:200]} is no {hint}"
    return None


def _check_names(value: Any, hint: Any, at: str) -> None:
    assert isinstance(value, dict), f"{at}: no object"
    known = typing.get_type_hints(hint)
    assert not value.keys() - known.keys(), f"{at}: {hint.__name__} has no {sorted(value.keys() - known.keys())}"
    assert not hint.__required_keys__ - value.keys(), f"{at}: {hint.__name__} without {sorted(hint.__required_keys__)}"
    for name, item in value.items():
        check(item, known[name], f"{at}.{name}")


def _check_union(value: Any, hints: Iterable[Any], at: str) -> None:
    reasons = []
    for hint in hints:
        try:
            return check(value, hint, at)
        except AssertionError as reason:
            reasons.append(str(reason))
    raise AssertionError(max(reasons, key=len))


def _anthropic(case: dict[str, Any]) -> dict[str, Any]:
    from importlib import import_module

    anthropic, types = import_module("anthropic"), import_module("anthropic.types")
    params = import_module("anthropic.types.message_create_params")
    adapter = import_module("pydantic").TypeAdapter(types.RawMessageStreamEvent)
    for body in case["bodies"]:
        check(body, params.MessageCreateParamsStreaming, "body")
    client = anthropic.Anthropic(api_key=case["key"], base_url=case["url"], max_retries=0)
    hello = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    with client.messages.stream(model=case["model"], max_tokens=100, messages=hello) as stream:
        reply = stream.get_final_message()
    for event in client.messages.create(model=case["model"], max_tokens=100, messages=hello, stream=True):
        adapter.validate_python(event.to_dict(mode="json"))
    told: list[str] = []
    try:
        client.messages.create(model=case["model"], max_tokens=100, messages=[{"role": "user", "content": []}])
    except anthropic.APIStatusError as error:
        told.append(f"{type(error).__name__} {error.type}")
    known = next(iter(client.models.list()))
    return {
        "bodies": len(case["bodies"]),
        "kinds": [block.type for block in reply.content],
        "text": "".join(block.text for block in reply.content if block.type == "text"),
        "thoughts": "".join(block.thinking for block in reply.content if block.type == "thinking"),
        "calls": [[block.name, block.input] for block in reply.content if block.type == "tool_use"],
        "stop": reply.stop_reason,
        "output_tokens": reply.usage.output_tokens,
        "thinking_tokens": reply.usage.output_tokens_details.thinking_tokens,
        "window": known.max_input_tokens,
        "errors": told,
    }


def _responses(case: dict[str, Any]) -> dict[str, Any]:
    from importlib import import_module

    openai, types = import_module("openai"), import_module("openai.types.responses")
    params = import_module("openai.types.responses.response_create_params")
    adapter = import_module("pydantic").TypeAdapter(types.ResponseStreamEvent)
    for body in case["bodies"]:
        check(body, params.ResponseCreateParamsStreaming, "body")
    client = openai.OpenAI(api_key=case["key"], base_url=f"{case['url']}/v1", max_retries=0)
    hello = [{"type": "message", "role": "user", "content": "Hi"}]
    last: Any = None
    shown = ""
    for event in client.responses.create(model=case["model"], input=hello, store=False, stream=True):
        last = adapter.validate_python(event.to_dict(mode="json"))
        shown += event.delta if event.type == "response.output_text.delta" else ""
    output = last.response.output
    told: list[str] = []
    try:
        client.responses.create(model=case["model"], input=hello, store=False, temperature=0.0)
    except openai.APIStatusError as error:
        told.append(f"{type(error).__name__} {error.param}")
    return {
        "bodies": len(case["bodies"]),
        "kinds": [item.type for item in output],
        "text": last.response.output_text,
        "shown": shown,
        "thoughts": "".join(part.text for item in output if item.type == "reasoning" for part in item.summary),
        "sealed": sum(1 for item in output if item.type == "reasoning" and item.encrypted_content),
        "calls": [[item.name, json.loads(item.arguments)] for item in output if item.type == "function_call"],
        "status": last.response.status,
        "thinking_tokens": last.response.usage.output_tokens_details.reasoning_tokens,
        "errors": told,
        "model": next(iter(client.models.list())).id,
    }


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps({"anthropic": _anthropic, "responses": _responses}[asked["api"]](asked)))
