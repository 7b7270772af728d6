"""Events: a closed union that survives being written and read."""

from __future__ import annotations

import json
import typing
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp import events
from tests.examples import examples, volume

DOCUMENTED = (
    "response_start",
    "response_end",
    "intent_classified",
    "steer_delivered",
    "session_rewound",
    "session_restored",
    "plan_created",
    "plan_completed",
    "plan_approved",
    "plan_rejected",
    "plan_modified",
    "awaiting_approval",
    "execution_started",
    "execution_completed",
    "execution_failed",
    "execution_cancelled",
    "step_started",
    "step_completed",
    "step_output",
    "step_error",
    "tool_calls",
    "tool_result",
    "started",
    "stdout",
    "stderr",
    "exit",
    "status",
    "error",
    "token",
    "file_change",
    "anomaly_detected",
    "replan_warning",
    "approval_requested",
    "approval_resolved",
    "question_asked",
    "question_answered",
    "changes_proposed",
    "changes_applied",
    "changes_discarded",
    "context_compacted",
    "tool_disabled",
    "tool_enabled",
    "thought",
    "usage",
    "run_completed",
)
TYPES = sorted(events.EVENT_TYPES)

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def _strategy(hint: Any) -> st.SearchStrategy[Any]:
    options = [option for option in typing.get_args(hint) if option is not type(None)]
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return st.sampled_from(options)
    if origin is tuple:
        return st.lists(_strategy(options[0]), max_size=2).map(tuple)
    if origin is not None and issubclass(origin if isinstance(origin, type) else object, typing.Mapping):
        return st.dictionaries(st.text(max_size=3), _json, max_size=2)
    if options:
        return st.none() | _strategy(options[0])
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: st.text(max_size=8),
        int: st.integers(),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
    }
    return plain[hint]


def anything(cls: type[events.Event]) -> st.SearchStrategy[events.Event]:
    """Every value an event of this type may have."""
    hints = typing.get_type_hints(cls)
    return st.builds(cls, **{item.name: _strategy(hints[item.name]) for item in fields(cls)})


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=examples(volume(100)))
@given(data=st.data())
def test_what_is_written_can_be_read_again(name: str, data: st.DataObject) -> None:
    event = data.draw(anything(events.EVENT_TYPES[name]))
    written = events.to_dict(event)
    sent = json.loads(json.dumps(written))
    assert next(iter(written)) == "type"
    assert None not in written.values()
    assert events.to_dict(events.from_dict(sent)) == sent


@pytest.mark.parametrize("name", TYPES)
def test_every_event_has_defaults_common_fields_and_a_docstring(name: str) -> None:
    event = events.EVENT_TYPES[name]()
    assert events.from_dict(events.to_dict(event)) == event
    assert {"session_id", "run_id", "seq", "ts"} <= set(events.to_dict(event))
    assert (events.EVENT_TYPES[name].__doc__ or "").strip().endswith((".", "`"))


def test_every_documented_event_exists() -> None:
    assert set(DOCUMENTED) <= set(TYPES)
    internal = {name for name in TYPES if events.EVENT_TYPES[name].internal}
    assert set(TYPES) - set(DOCUMENTED) == internal


def test_names_are_unique() -> None:
    assert len({cls.type for cls in events.Event.__subclasses__()}) == len(events.Event.__subclasses__())


def test_events_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        events.Token(content="a").content = "b"  # type: ignore[misc]


def test_the_same_thing_has_the_same_name_everywhere() -> None:
    names = {item.name for cls in events.EVENT_TYPES.values() for item in fields(cls)}
    assert names.isdisjoint({"message_text", "err", "error_message", "files", "changed_files", "id"})


def test_unknown_fields_are_left_out_and_unknown_types_refused() -> None:
    assert events.from_dict({"type": "token", "content": "x", "later": 1}) == events.Token(content="x")
    with pytest.raises(KeyError):
        events.from_dict({"type": "surprise"})
