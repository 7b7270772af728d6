"""Forms of servers: the user sees who asks, can always decline, and is never asked for a secret."""

from __future__ import annotations

from typing import Any

import pytest

from codeagent_lsp.texts import text
from codeagent_lsp.tools.mcp.elicitation import MAX_FIELDS, ask_form, read_form
from tests.tools.fakes import FakeAsker


def words(key: str, **values: object) -> str:
    return text(key, "en", **values)


def schema(*required: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required)}


async def asked(form: dict[str, Any], *answers: Any, message: str = "Which?") -> tuple[Any, FakeAsker]:
    asker = FakeAsker(list(answers))
    read = read_form(message, form)
    assert read is not None
    return await ask_form(read, "s", asker, words), asker


@pytest.mark.parametrize("answers", [(), (None,), ("Decline",), ("nonsense",), ("Answer", None), ("Answer", "")])
async def test_no_clear_answer_is_no(answers: tuple[Any, ...]) -> None:
    form = schema("city", city={"type": "integer"})
    given, asker = await asked(form, *answers)
    assert given is None
    assert asker.asked[0].choices[0] == "Decline" and asker.asked[0].title == "The MCP server s asks: Which?"


@pytest.mark.parametrize(
    ("form", "suggests"),
    [
        (schema(sure={"type": "boolean"}), False),
        (schema("city", city={"type": "string"}), False),
        (schema("city", city={"type": "string", "default": "Kyoto"}), True),
        (schema(), True),
    ],
)
async def test_what_is_not_suggested_cannot_be_sent(form: dict[str, Any], suggests: bool) -> None:
    _, asker = await asked(form, "Decline")
    assert ("Send what it suggests" in asker.asked[0].choices) is suggests


async def test_answers_of_every_type() -> None:
    form = schema(
        "name",
        name={"type": "string", "description": "Your\u202e name"},
        age={"type": "integer"},
        share={"type": "number"},
        sure={"type": "boolean"},
        kind={"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]},
        place={"type": "string", "oneOf": [{"const": "k", "title": "Kyoto"}, {"const": "o", "title": "Osaka"}]},
        many={"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}},
    )
    given, asker = await asked(form, "Answer", "Ada", "36", "0.5", "Yes", "Second", "Osaka", ("x", "z"))
    assert given == {
        "name": "Ada",
        "age": 36,
        "share": 0.5,
        "sure": True,
        "kind": "b",
        "place": "o",
        "many": ["x", "z"],
    }
    assert asker.asked[1].title == "For the MCP server s: Your\\u202e name"
    assert asker.asked[4].choices == ("No", "Yes") and asker.asked[7].multiple


async def test_what_is_suggested_stands_in_for_what_is_left_out() -> None:
    form = schema("name", name={"type": "string", "default": "Ada"}, age={"type": "integer", "default": 36}, x={})
    assert (await asked(form, "Send what it suggests"))[0] == {"name": "Ada", "age": 36}
    assert (await asked(form, "Answer", None, "37", None))[0] == {"name": "Ada", "age": 37}
    _, asker = await asked(form)
    assert "Ada" in asker.asked[0].detail
    open_form = schema("name", name={"type": "string"})
    assert "Send what it suggests" not in (await asked(open_form))[1].asked[0].choices


async def test_a_form_without_fields_is_a_question_of_yes_or_no() -> None:
    assert (await asked(schema(), "Send what it suggests"))[0] == {}
    assert (await asked(schema(), "Decline"))[0] is None


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("Type your password", {"a": {}}),
        ("Log in", {"password": {"type": "string"}}),
        ("Log in", {"a": {"title": "API key"}}),
        ("Log in", {"a": {"description": "the access token of your account"}}),
        ("Log in", {"a": {"type": "string", "format": "password"}}),
        ("Bezahlen", {"cardNumber": {}}),
        ("登录", {"a": {"title": "密码"}}),
        ("Log in", {"pin": {}}),
    ],
)
def test_secrets_are_seen(message: str, fields: dict[str, Any]) -> None:
    form = read_form(message, schema(**fields))
    assert form is not None and form.wants_secret


def test_plain_forms_are_no_secrets() -> None:
    form = read_form("Where to spin up?", schema(city={"description": "no pin, please"}, keyboard={}))
    assert form is not None and not form.wants_secret


@pytest.mark.parametrize(
    "form",
    [
        None,
        [],
        {},
        {"properties": []},
        {"properties": {"a": "text"}},
        {"properties": {"a": {"type": "object"}}},
        schema(**{f"f{at}": {} for at in range(MAX_FIELDS + 1)}),
    ],
)
def test_what_is_no_form(form: Any) -> None:
    assert read_form("x", form) is None
