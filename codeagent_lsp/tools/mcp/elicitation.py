"""Answers the questions that a server asks in the middle of a call. Not here: asking the user (`asking.py`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mcp.client.session import ClientRequestContext
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult, ErrorData

from codeagent_lsp.background_tasks import until_first
from codeagent_lsp.tools.asking import Asker, Question, own_title
from codeagent_lsp.tools.mcp.host import Calling, Clock
from codeagent_lsp.workspace.text.visible import one_line

MAX_FORMS = 5
"""Most elicitations of a server in one call."""
MAX_FIELDS = 20
MAX_CHOICES = 30
TITLE = 300

_SECRET = re.compile(
    r"(?i)pass(?:word|wd|phrase|code)|secret|token|api.?key|access.?key|private.?key|credential|^pin$|\botp\b|cvv|"
    r"card.?number|\bssn\b|密码|口令|密钥|令牌"
)


class Elicitation:
    """The questions of one server, each asked on behalf of its latest running call. `clock` pauses meanwhile."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._calls: list[Calling] = []

    @contextmanager
    def during(self, calling: Calling) -> Generator[None, None, None]:
        """Let the server ask on behalf of this call while the body runs; open questions are withdrawn at its end. Of
        several such calls, the latest counts.
        """
        self._calls.append(calling)
        try:
            yield
        finally:
            self._calls.remove(calling)
            calling.over.set()

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Ask the user on behalf of the last call and return the answer (MCP `elicitation/create`); decline without a
        running call, for an invalid form or one that wants a secret, and after 5 forms in one call. The question is
        withdrawn when the call ends.
        """
        # A server does not say in which of its calls it asks.
        calling = self._calls[-1] if self._calls else None
        schema = params.requested_schema if isinstance(params, ElicitRequestFormParams) else None
        form = read_form(params.message, schema)
        if calling is None or form is None or calling.forms >= MAX_FORMS:
            return ElicitResult(action="decline")
        calling.forms += 1
        asked = calling.context
        # MCP forbids servers to ask for secrets by a form, so the user is not even asked.
        if form.wants_secret:
            asked.note(asked.words("mcp.secret", server=self._server))
            return ElicitResult(action="decline")
        answers: dict[str, Any] | None = None

        async def ask() -> None:
            nonlocal answers
            answers = await ask_form(form, self._server, asked.asker, asked.words)

        # Who has got its result, or was cancelled, has nothing more to ask.
        async with self._clock.paused():
            await until_first(ask(), calling.over.wait())
        if answers is not None:
            return ElicitResult(action="accept", content=answers)
        return ElicitResult(action="cancel" if calling.over.is_set() else "decline")


# MCP elicitation: a server's question to the user in the middle of a call, as a small form.


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of an elicitation by name, each a flat JSON Schema; `required` are the names that need an answer."""

    message: str
    fields: Mapping[str, Mapping[str, Any]]
    required: frozenset[str]

    @property
    def usual(self) -> dict[str, Any] | None:
        """The values that the server suggests, by field; None if a required one has no default, or none of them. {} for
        a form without fields, which only wants a yes.
        """
        values = {name: field["default"] for name, field in self.fields.items() if field.get("default") is not None}
        return values if self.required <= values.keys() and (values or not self.fields) else None

    @property
    def wants_secret(self) -> bool:
        """Whether any of its texts or formats indicates a secret, such as a password."""
        told = [(name, field.get("title"), field.get("description")) for name, field in self.fields.items()]
        words = [self.message, *(str(part) for parts in told for part in parts if part)]
        return any(field.get("format") == "password" for field in self.fields.values()) or any(
            map(_SECRET.search, words)
        )


def read_form(message: str, schema: Any) -> Form | None:
    """Return the form of an elicitation request (MCP), `schema` being its `requestedSchema`; None if it cannot be
    asked: more than 20 fields, nested, or malformed.
    """
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(fields, Mapping) or len(fields) > MAX_FIELDS:
        return None
    if not all(isinstance(field, Mapping) and field.get("type") != "object" for field in fields.values()):
        return None
    required = schema.get("required")
    names = frozenset(name for name in required if name in fields) if isinstance(required, list) else frozenset()
    return Form(message, fields, names)


async def ask_form(form: Form, server: str, asker: Asker, words: Callable[..., str]) -> dict[str, Any] | None:
    """Ask the user whether to answer, take what the server suggests, or decline, then field by field, and return the
    answers by field; None if the user declines, does not answer, or leaves a required field open.
    """
    decline, usual, answer = words("mcp.decline"), words("mcp.usual"), words("mcp.answer")
    title = words("mcp.asks", server=server, message=one_line(form.message, TITLE))
    suggested = form.usual
    choices = [decline, *([usual] if suggested is not None else []), *([answer] if form.fields else [])]
    detail = json.dumps(suggested, ensure_ascii=True, indent=1) if suggested else ""
    chosen = await asker.ask(Question("question", title, tuple(choices), detail=detail))
    if chosen == (usual,):
        return suggested
    if chosen != (answer,):
        return None
    answers: dict[str, Any] = {}
    for name, field in form.fields.items():
        value = await _ask_field(name, field, server, asker, words)
        # Without an answer to this field, what the server suggests for it: the user has chosen to answer the form.
        value = field.get("default") if value is None else value
        if value is not None:
            answers[name] = value
        elif name in form.required:
            return None
    return answers


async def _ask_field(name: str, field: Mapping[str, Any], server: str, asker: Asker, words: Callable[..., str]) -> Any:
    """Ask for the value of one field and return it; None without a valid answer."""
    label = one_line(str(field.get("description") or field.get("title") or name), TITLE)
    options = _options(field, words)
    multiple = field.get("type") == "array"
    title = words("mcp.field", server=server, field=label)
    answer = await asker.ask(Question("question", title, tuple(options), multiple=multiple))
    if not answer:
        return None
    if options:
        values = [options[title] for title in answer if title in options]
        return values if multiple else (values[0] if values else None)
    return _as_type(answer[0], field.get("type"))


def _options(field: Mapping[str, Any], words: Callable[..., str]) -> dict[str, Any]:
    """Return the values to choose from by short titles; empty for free text."""
    if field.get("type") == "boolean":
        return {words("mcp.no"): False, words("mcp.yes"): True}
    source = field.get("items") if field.get("type") == "array" else field
    if not isinstance(source, Mapping):
        return {}
    rows = source.get("oneOf") or source.get("anyOf")
    if isinstance(rows, list):
        pairs = [(row.get("title"), row.get("const")) for row in rows if isinstance(row, Mapping)]
    else:
        values, named = _list(source.get("enum")), _list(source.get("enumNames"))
        pairs = [(named[at] if at < len(named) else value, value) for at, value in enumerate(values)]
    return {
        own_title(one_line(str(title or value), 60), words): value
        for title, value in pairs[:MAX_CHOICES]
        if value is not None
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_type(text: str, kind: Any) -> Any:
    try:
        return int(text) if kind == "integer" else float(text) if kind == "number" else text
    except ValueError:
        return None
