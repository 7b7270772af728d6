"""The official `google-genai` package in an environment of its own: its types and its parser are the judge.

Run as a program it is the judge: a JSON object on stdin, one on stdout. Fetched once into the user's cache folder;
where that is impossible, `Unavailable` says so, and the test is skipped for everybody to see.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CACHE = Path.home() / ".cache" / "codeagent-lsp-tests" / "google-genai"
WANTED = "google-genai>=2"
FETCH_SECONDS = 240


class Unavailable(Exception):
    """The package cannot be had here; the reason is its text."""


def judged(case: dict[str, Any]) -> dict[str, Any]:
    """Return the judgement of the package. Raises Unavailable."""
    if not (CACHE / "google" / "genai").is_dir():
        _fetch()
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(case),
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(CACHE)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def _fetch() -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-input", "--target", str(CACHE), WANTED]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable("google-genai cannot be fetched in time") from None
    if done.returncode != 0:
        raise Unavailable(f"google-genai cannot be installed: {done.stderr.strip()[-200:]}")


def _judge(case: dict[str, Any]) -> dict[str, Any]:
    """Validate requests by the types, which forbid unknown names, and let the client talk to the server at `url`."""
    from importlib import import_module

    genai = import_module("google.genai")
    types = import_module("google.genai.types")
    for body in case["bodies"]:
        for content in [*body["contents"], *([body["systemInstruction"]] if "systemInstruction" in body else [])]:
            types.Content.model_validate(content)
        for tool in body.get("tools", []):
            types.Tool.model_validate(tool)
        types.GenerationConfig.model_validate(body["generationConfig"])
        assert not body.keys() - {"contents", "systemInstruction", "tools", "generationConfig"}
    client = genai.Client(api_key=case["key"], http_options={"base_url": case["url"], "api_version": "v1beta"})
    thoughts = types.ThinkingConfig(include_thoughts=True)
    config = types.GenerateContentConfig(thinking_config=thoughts)
    chunks = list(client.models.generate_content_stream(model=case["model"], contents="Hi", config=config))
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    known = client.models.get(model=case["model"])
    return {
        "bodies": len(case["bodies"]),
        "text": "".join(part.text or "" for part in parts if not part.thought),
        "thoughts": "".join(part.text or "" for part in parts if part.thought),
        "calls": [part.function_call.name for part in parts if part.function_call],
        "signatures": sum(1 for part in parts if part.thought_signature),
        "finish": chunks[-1].candidates[0].finish_reason.value,
        "thinking_tokens": chunks[-1].usage_metadata.thoughts_token_count,
        "window": known.input_token_limit,
    }


if __name__ == "__main__":
    print(json.dumps(_judge(json.load(sys.stdin))))
