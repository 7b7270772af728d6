"""What of a stored event is masked, and what has to stay exact so that a session can go on after a restart."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.session.redaction.redactor import Redactor

SECRET, MARK = "the secret", "<masked>"


def masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: masked(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return value.replace(SECRET, MARK) if isinstance(value, str) else value


async def redactor() -> Redactor:
    masking = SimpleNamespace(clean=masked, own=SimpleNamespace(learn=lambda keys: None))
    made = Redactor(lambda: SimpleNamespace(masking=masking, recording=None))  # type: ignore[arg-type,return-value]
    await made.ready()
    return made


async def test_words_are_masked_and_texts_of_files_are_exact() -> None:
    made = await redactor()
    change = [{"path": "/a.py", "base": None, "text": SECRET}]
    rewound = events.to_dict(events.SessionRewound(run_id="r", staged={"r": change}))
    assert made.clean(rewound) == rewound
    place = {"path": "/a.py", "start": 0, "end": 10, "selected": SECRET}
    queued = made.clean({"type": "task_queued", "task": SECRET, "place": place})
    assert queued == {"type": "task_queued", "task": MARK, "place": place}
    assert made.clean({"type": "task_queued", "task": SECRET, "place": None})["task"] == MARK


async def test_what_a_model_wants_back_is_exact_in_one_message_and_in_many() -> None:
    made = await redactor()
    message = {"role": "assistant", "content": SECRET, "carried": {"signature": SECRET}, "images": [SECRET]}
    kept = {**message, "content": MARK}
    assert made.clean({"type": "message", "message": message})["message"] == kept
    several = made.clean({"type": "session_forked", "messages": (message, {"role": "user", "content": SECRET})})
    assert several["messages"] == [kept, {"role": "user", "content": MARK}]
