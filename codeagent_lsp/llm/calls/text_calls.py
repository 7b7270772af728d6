"""Tool calling for models without native tools: as text (instructions, history, and calls in a dialect), or by a
grammar that forces each reply to be one JSON object, `{"tool": NAME, "args": {…}}`, plain answers included.

The instructions in the system message hold the call format and the list of tools. A conversation is rewritten so that
calls and results are text and roles alternate. Not here: reading calls from an answer (`toolcalls.py`).
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from codeagent_lsp.llm import wire
from codeagent_lsp.llm.calls import schema
from codeagent_lsp.messages import Message, ToolCall, ToolSpec

ANSWER = "final_answer"

# keywords that llama.cpp's grammar compiler and others understand; the rest only describe
_KEPT = ("type", "enum", "const", "required", "anyOf", "oneOf", "minItems", "maxItems", "additionalProperties")
# The keys in this order, as the schema has them: grammars made from a schema keep its order.
_ANSWER_START = re.compile(rf'\s*\{{\s*"tool"\s*:\s*"{ANSWER}"\s*,\s*"args"\s*:\s*\{{\s*"text"\s*:\s*"')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[^u])")
_PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CONSTRAINED = f"""\
# How to reply
Every reply is exactly one JSON object: {{"tool": NAME, "args": {{...}}}}. Nothing stands before or after it.
Call one tool at a time; its result comes back in the next message. When the work is done, or no tool is
needed, reply {{"tool": "{ANSWER}", "args": {{"instructions": "your answer to the user"}}}}.

# Tools
"""

_TEXT = """\
# How to call tools
To call a tool, end your reply with one block like this, and write nothing after it:
<tool_call>
{"name": "NAME", "arguments": {"KEY": VALUE}}
</tool_call>
Its result comes back in the next message. When the work is done, answer the user without any such block.

# Tools
"""

WriteCall = Callable[[ToolCall], str]
WriteAnswer = Callable[[str], str]
Pairs = list[tuple[ToolCall, Message | None]]


def reply_schema(tools: tuple[ToolSpec, ...]) -> dict[str, Any]:
    """Return a JSON Schema for a reply, `{"tool": NAME, "args": {…}}`, with one alternative per tool and one for the
    plain answer, `final_answer` with a `text`.
    """
    answer = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    options = [_option(tool["name"], tool["parameters"]) for tool in tools]
    return {"oneOf": [*options, _option(ANSWER, answer)]}


def write_call(call: ToolCall) -> str:
    """Return a call in the JSON form that a model under a grammar has to use, `{"tool": NAME, "args": {…}}`."""
    return json.dumps({"tool": call.name, "args": dict(call.arguments)}, ensure_ascii=False)


def write_answer(text: str) -> str:
    """Return a plain answer in the same form, as a call of `final_answer` with the argument `text`."""
    return write_call(ToolCall(ANSWER, {"text": text}))


class AnswerReader:
    """Reads a plain answer's text out of the JSON of one reply while it streams; one object for each reply."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "before"

    def feed(self, piece: str) -> str:
        """Add the next piece of the JSON and return the part of the answer's text that it completes; '' for calls, and
        after the text's end.
        """
        if self._state == "done":
            return ""
        self._held += piece
        if self._state == "before":
            if not (match := _ANSWER_START.match(self._held)):
                return ""
            self._state, self._held = "inside", self._held[match.end() :]
        return self._inside()

    def _inside(self) -> str:
        # Whole escapes only: what is cut in the middle of one waits for the next piece.
        match = re.match(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*', self._held)
        whole = match.end() if match else 0
        ended = self._held[whole : whole + 1] == '"'
        if not ended:  # a first half of a surrogate pair waits for its second
            half = re.search(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z", self._held[:whole])
            whole = half.start() if half else whole
        decoded = _unescape(self._held[:whole])
        self._held = self._held[whole:]
        self._state = "done" if ended else "inside"
        return decoded


def _unescape(source: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _SIMPLE.get(code, code)

    text = _ESCAPE.sub(one, source)
    # `\ud83d\ude00` is two escapes in JSON, and one character.
    text = _PAIR.sub(lambda match: match[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    # A lone half cannot be stored or sent.
    return text.encode("utf-8", "replace").decode("utf-8")


def _option(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, "args": _plain(parameters)},
        "required": ["tool", "args"],
        "additionalProperties": False,
    }


def _plain(source: Any, depth: int = 0) -> dict[str, Any]:
    """Reduce a schema to what every grammar compiler understands; objects allow no unknown keys."""
    # `{}` allows anything: a schema too deep for a grammar is checked after the reply instead.
    if not isinstance(source, Mapping) or depth > 8:
        return {}
    plain = {key: source[key] for key in _KEPT if key in source}
    types = schema.types_of(source)
    if isinstance(source.get("type"), str) and types:
        # In JSON's own words: servers and users write `dict`, `float` or `str, optional`.
        plain["type"] = types[0]
    for key in ("anyOf", "oneOf"):
        if key in plain:
            plain[key] = [_plain(option, depth + 1) for option in source[key]]
    if isinstance(source.get("items"), Mapping):
        plain["items"] = _plain(source["items"], depth + 1)
    if isinstance(source.get("properties"), Mapping):
        plain["properties"] = {key: _plain(value, depth + 1) for key, value in source["properties"].items()}
        plain["additionalProperties"] = False
    # A tool without parameters: without this any object would fit, and small models invent arguments.
    elif depth == 0:
        plain |= {"type": "object", "properties": {}, "additionalProperties": False}
    return plain


def constrained_instructions(tools: tuple[ToolSpec, ...]) -> str:
    """Return the instructions, with the tools, for replies that a grammar forces to be one JSON object each, as
    `reply_schema` describes them.
    """
    answer = f"- {ANSWER}(text: string): answer the user; ends the task"
    return _CONSTRAINED + "\n".join([*map(_line, tools), answer])


def instructions(tools: tuple[ToolSpec, ...]) -> str:
    """Return the instructions, with the tools, for replies in free text: a line for each tool, in their order."""
    return _TEXT + "\n".join(map(_line, tools))


def _line(tool: ToolSpec) -> str:
    parameters = tool["parameters"]
    required = parameters.get("required") or ()
    shown = [
        f"{name}{'' if name in required else '?'}: {_type(inner)}"
        for name, inner in (parameters.get("properties") or {}).items()
    ]
    described = " ".join(tool["description"].split())
    details = "".join(
        f"\n    {name}: {' '.join(inner['description'].split())}"
        for name, inner in (parameters.get("properties") or {}).items()
        if isinstance(inner, Mapping) and inner.get("description")
    )
    return f"- {tool['name']}({', '.join(shown)}): {described}{details}"


def _type(inner: Any, depth: int = 0) -> str:
    if not isinstance(inner, Mapping):
        return "any"
    if isinstance(inner.get("enum"), list):
        return " | ".join(json.dumps(option, ensure_ascii=False) for option in inner["enum"])
    types = [name for name in schema.types_of(inner) if name != "null"]
    if types == ["array"]:
        return f"[{_type(inner.get('items'), depth + 1)}]"
    # Deeper levels cost more tokens than they help, and a schema that refers to itself must end.
    if types == ["object"] and inner.get("properties") and depth < 3:
        fields = ", ".join(
            f"{name}{'' if name in (inner.get('required') or ()) else '?'}: {_type(value, depth + 1)}"
            for name, value in inner["properties"].items()
        )
        return f"{{{fields}}}"
    return " | ".join(types) or "any"


def as_text(
    messages: Iterable[Message],
    instructions: str,
    write_call: WriteCall,
    write_answer: WriteAnswer = str,
    *,
    together: bool = False,
) -> tuple[Message, ...]:
    """Return the messages as text of alternating roles, with `instructions` added to the system message. `write_call`
    and `write_answer` return the text of a call and of a plain answer.

    Each call of a message becomes a message of its own, followed by its result as the user's, and text beside the calls
    is left out; with `together` all calls stay in one message, after its text.
    """
    source = _with_instructions(list(messages), instructions)
    written: list[Message] = []
    position = 0
    while position < len(source):
        message = source[position]
        position += 1
        if message.role == "tool":  # its call is no longer in the history
            written.append(Message("user", _result(message, message.name), images=message.images))
        elif message.tool_calls:
            results = list(itertools.takewhile(lambda item: item.role == "tool", source[position:]))
            position += len(results)
            pairs = [(call, _of(call, results)) for call in message.tool_calls]
            write = _in_one if together else _one_by_one
            written += write(message.content, pairs, write_call)
        elif message.role == "assistant":
            written.append(Message("assistant", write_answer(message.content)))
        else:
            written.append(message)
    return tuple(_alternating(wire.tidy(written)))


def _with_instructions(messages: list[Message], instructions: str) -> list[Message]:
    if not instructions:
        return messages
    if messages and messages[0].role == "system":
        first = replace(messages[0], content=f"{messages[0].content}\n\n{instructions}")
        return [first, *messages[1:]]
    return [Message("system", instructions), *messages]


def _of(call: ToolCall, results: list[Message]) -> Message | None:
    return next((result for result in results if result.tool_call_id == call.id), None)


def _one_by_one(said: str, pairs: Pairs, write_call: WriteCall) -> list[Message]:
    written = []
    for call, result in pairs:
        # Without `said`: under a grammar a reply is one JSON object, and a history that shows text beside it teaches
        # otherwise.
        written.append(Message("assistant", write_call(call)))
        written.append(Message("user", _result(result, call.name), images=result.images if result else ()))
    return written


def _in_one(said: str, pairs: Pairs, write_call: WriteCall) -> list[Message]:
    calls = [write_call(call) for call, _ in pairs]
    answers = [_result(result, call.name) for call, result in pairs]
    images = tuple(image for _, result in pairs if result for image in result.images)
    return [
        Message("assistant", "\n".join([said, *calls] if said else calls)),
        Message("user", "\n\n".join(answers), images=images),
    ]


def _result(message: Message | None, name: str) -> str:
    if message is None:
        return f"Result of {name or 'the tool'}: none, the call did not run."
    return f"Result of {name or message.name or 'the tool'}:\n{message.content}"


def _alternating(messages: list[Message]) -> list[Message]:
    """Join neighbours of the same role, and put a user message before an assistant that would speak first."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role == message.role:
            images = joined[-1].images + message.images
            joined[-1] = replace(joined[-1], content=f"{joined[-1].content}\n\n{message.content}", images=images)
        # Several chat templates raise an error for an assistant that comes first.
        elif message.role == "assistant" and (not joined or joined[-1].role == "system"):
            joined += [Message("user", "(The conversation goes on.)"), message]
        else:
            joined.append(message)
    return joined


def render(call: ToolCall, dialect: str = "hermes") -> str:
    """Return the call as text in `dialect`, such as `hermes`; a key of `DIALECTS`, KeyError for any other."""
    return DIALECTS[dialect](call.name, call.arguments)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _hermes(name: str, arguments: Mapping[str, Any]) -> str:
    return f"<tool_call>\n{_json({'name': name, 'arguments': dict(arguments)})}\n</tool_call>"


def _qwen_xml(name: str, arguments: Mapping[str, Any]) -> str:
    lines = "".join(f"<parameter={key}>\n{_bare(value)}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{lines}</function>\n</tool_call>"


def _kimi(name: str, arguments: Mapping[str, Any]) -> str:
    call = f"functions.{name}:0<|tool_call_argument_begin|>{_json(dict(arguments))}"
    return f"<|tool_calls_section_begin|><|tool_call_begin|>{call}<|tool_call_end|><|tool_calls_section_end|>"


def _deepseek(name: str, arguments: Mapping[str, Any]) -> str:
    call = f"function<｜tool▁sep｜>{name}\n```json\n{_json(dict(arguments))}\n```"
    return f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{call}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"


def _glm(name: str, arguments: Mapping[str, Any]) -> str:
    pairs = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>\n{_bare(value)}\n</arg_value>\n" for key, value in arguments.items()
    )
    return f"<tool_call>{name}\n{pairs}</tool_call>"


def _minimax(name: str, arguments: Mapping[str, Any]) -> str:
    lines = "".join(f'<parameter name="{key}">\n{_bare(value)}\n</parameter>\n' for key, value in arguments.items())
    return f'<minimax:tool_call>\n<invoke name="{name}">\n{lines}</invoke>\n</minimax:tool_call>'


def _pythonic(name: str, arguments: Mapping[str, Any]) -> str:
    return f"[{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})]"


DIALECTS: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "json": lambda name, arguments: _json({"tool": name, "args": dict(arguments)}),
    "name_json": lambda name, arguments: _json({"name": name, "arguments": dict(arguments)}),
    "openai": lambda name, arguments: _json(
        {"type": "function", "function": {"name": name, "arguments": _json(dict(arguments))}}
    ),
    "list": lambda name, arguments: _json([{"name": name, "parameters": dict(arguments)}]),
    "fenced": lambda name, arguments: (
        f"```json\n{json.dumps({'tool': name, 'args': dict(arguments)}, ensure_ascii=False, indent=2)}\n```"
    ),
    "hermes": _hermes,
    "qwen_xml": _qwen_xml,
    "function_json": lambda name, arguments: f"<function={name}>{_json(dict(arguments))}</function>",
    "kimi": _kimi,
    "deepseek": _deepseek,
    "mistral": lambda name, arguments: f"[TOOL_CALLS] {_json([{'name': name, 'arguments': dict(arguments)}])}",
    "mistral_args": lambda name, arguments: f"[TOOL_CALLS]{name}[ARGS]{_json(dict(arguments))}",
    "llama": lambda name, arguments: f"<|python_tag|>{_json({'name': name, 'parameters': dict(arguments)})}<|eom_id|>",
    "pythonic": _pythonic,
    "glm": _glm,
    "minimax": _minimax,
}
