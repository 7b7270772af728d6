"""Parsers of the formats in which models write tool calls as text, one function per dialect.

A parser gets the text and the offset of its marker and returns the calls it found as `Raw` values, and the offset
where it stopped. Not here: telling calls from examples (`toolcalls.py`), and serializing (`text_calls.py`).
"""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from codeagent_lsp.llm.calls import jsontext


@dataclass(frozen=True)
class Raw:
    """A call as written, with its name as it stands there: `arguments` None if they are not an object; `textual` if
    values are unparsed text; `unsure` if a value holds a part of the tags that arguments are written in, so that it may
    end elsewhere.
    """

    name: str
    arguments: dict[str, Any] | None
    textual: bool = False
    unsure: bool = False


Read = tuple[list[Raw], int]
Reader = Callable[[str, int], Read]

# One or more opening markers in a row, such as `<tool_calls><|tool_call|>`, `functools` or `[TOOL_CALLS]`.
_OPENING = r"(?:<[|\w]+>\s*)+|functools|\[TOOL_CALLS\]"
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"\s*[\"']?([\w.:\-/]+)[\"']?")
NAME_KEYS = ("name", "tool", "tool_name", "action", "recipient_name", "function_name")
_ARGUMENT_KEYS = (
    "arguments",
    "args",
    "parameters",
    "params",
    "input",
    "tool_input",
    "action_input",
    "kwargs",
)
_WRAPPERS = ("tool_calls", "tool_uses", "calls", "function_calls")


def from_value(value: Any, *, meant: bool = False) -> list[Raw] | None:
    """Return the calls that a JSON value (one object, or a list of them) denotes, in any of the usual keys; None if it
    does not have the form of any. With `meant`, the text around it marks it as a call, so that a name alone is enough.
    """
    if isinstance(value, list):
        inner = [from_value(item, meant=meant) for item in value]
        # All or none: a list of which only some items look like calls is data.
        return [raw for found in inner for raw in found or ()] if value and all(inner) else None
    if not isinstance(value, dict):
        return None
    for key in _WRAPPERS:
        if isinstance(value.get(key), list):
            return from_value(value[key], meant=True)
    function = _first(value, ("function", "function_call", "functionCall", "tool_call", "toolCall", "tool_use"))
    if isinstance(function, dict):
        return from_value(function, meant=True)
    name = function if isinstance(function, str) else _first(value, NAME_KEYS)
    arguments = _first(value, _ARGUMENT_KEYS)
    if arguments is None and (meant or any(key in value for key in _ARGUMENT_KEYS)) and "description" not in value:
        arguments = {}  # `null`, or a call of a tool without arguments
    # A name without arguments is a description or a schema, as in an answer about tools.
    if not isinstance(name, str) or arguments is None:
        return None
    # The answer in the JSON of ReAct agents.
    if isinstance(arguments, str) and name.casefold() == "final answer":
        return [Raw("final_answer", {"text": arguments})]
    # OpenAI's format has the arguments as JSON inside a string.
    if isinstance(arguments, str):
        arguments = jsontext.loads_object(arguments or "{}", repair=True)
    return [Raw(name, arguments if isinstance(arguments, dict) else None)]


def read_json(text: str, start: int) -> Read:
    """Parse one JSON value at `start`, behind a marker, repaired if broken; without an end it extends to the end of the
    text. Return the calls in it, [] for none, and the offset behind it.
    """
    end = jsontext.span(text, start)
    source = text[start:end]
    try:
        calls = from_value(jsontext.loads(source, repair=True), meant=True)
    except ValueError:
        calls = None
    return as_torn(calls or [], source), len(text) if end is None else end


def as_torn(calls: list[Raw], source: str) -> list[Raw]:
    """Return the calls, without their arguments if `source`, the JSON text that they were read from, lost its end."""
    # The name stays, so that the model is told which call was cut.
    return [replace(call, arguments=None) for call in calls] if jsontext.torn(source) else calls


def read_hermes(text: str, start: int) -> Read:
    """Parse `<tool_call>` with JSON, Qwen-Coder XML or GLM pairs inside, closed or not, at the offset `start` of its
    `<`; return the calls and the offset behind them.
    """
    begin = _skip(text, text.index(">", start) + 1)
    # Some models put a code block inside the tags.
    if text.startswith("```", begin):
        begin = _skip(text, (text.find("\n", begin) + 1) or len(text))
    if text.startswith("<function", begin):
        calls, end = read_function(text, begin)
    elif text[begin : begin + 1] in ("{", "["):
        calls, end = _read_values(text, begin)
    else:
        calls, end = _read_pairs(text, begin)
    return calls, _eat(text, end, r"[\s`]*</tool_call>")


def read_function(text: str, start: int) -> Read:
    """Parse `<function=NAME>` (Qwen-Coder) with `<parameter=K>V</parameter>` or a JSON object inside, at the offset
    `start`; return the calls, [] for none, and the offset behind them.
    """
    head = re.compile(r"<function(?:=|\s+name=)[\"']?([^>\"'\s]+)[\"']?\s*>").match(text, start)
    if head is None:
        return [], start + 1
    inside = _skip(text, head.end())
    if text[inside : inside + 1] == "{":
        end = jsontext.span(text, inside)
        arguments = jsontext.loads_object(text[inside:end], repair=True)
        return [Raw(head[1], arguments)], _eat(text, len(text) if end is None else end, r"\s*</function>")
    call, end = _parameters(text, inside, head[1], _XML)
    return [call], _eat(text, end, r"\s*</function>")


def read_invoke(text: str, start: int) -> Read:
    """Parse one or several `<invoke name="…">` with `<parameter name="…">`, inside any wrapper, or JSON or Python calls
    in it, at the offset `start`; return the calls, [] for none, and the offset behind them.
    """
    calls: list[Raw] = []
    position = start
    pattern = re.compile(r"\s*(?:<[\w:]+>\s*)?<invoke\s+name=[\"']?([^>\"']+)[\"']?\s*>\s*")
    while head := pattern.match(text, position):
        call, position = _parameters(text, head.end(), head[1], _INVOKE)
        calls.append(call)
        position = _eat(text, position, r"\s*</invoke>")
    if not calls and (bare := _INVOKED.match(text, start)):
        return [Raw(bare[1], {})], _eat(text, bare.end(), r"\s*</[\w:]+>")
    if not calls:
        return read_wrapped(text, start)
    return calls, _eat(text, position, r"\s*</[\w:]+>")


# `<invoke name="todoread"/>`
_INVOKED = re.compile(r"\s*(?:<[\w:]+>\s*)?<invoke\s+name=[\"']?([^>\"'/\s]+)[\"']?\s*/>")


def read_kimi(text: str, start: int) -> Read:
    """Parse repeated `<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`; at the
    offset `start`; return the calls, [] for none, and the offset behind them.
    """
    pattern = re.compile(
        r"\s*(?:<\|tool_calls?_section_begin\|>\s*)?<\|tool_call_begin\|>\s*([^\s<{]+)\s*"
        r"(?:<\|tool_call_argument_begin\|>\s*)?"
    )
    ending = r"\s*<\|tool_call_end\|>"
    calls, end = _sequence(text, start, pattern, ending)
    return calls, _eat(text, end, r"\s*<\|tool_calls?_section_end\|>")


def read_deepseek(text: str, start: int) -> Read:
    """Parse repeated `<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME`, then JSON, fenced or not, at `start`.

    Return the calls, [] for none, and the offset behind them.
    """
    pattern = re.compile(
        r"\s*(?:<｜tool▁calls▁begin｜>\s*)?<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?\s*([^\s<{]+)\s*"
        r"(?:<｜tool▁sep｜>\s*)?(?:```(?:json)?\s*)?"
    )
    calls, end = _sequence(text, start, pattern, r"\s*(?:```)?\s*<｜tool▁call▁end｜>")
    return calls, _eat(text, end, r"\s*<｜tool▁calls▁end｜>")


def read_mistral(text: str, start: int) -> Read:
    """Parse `[TOOL_CALLS]` before a JSON list, or before repeated `NAME[ARGS]{…}`; at the offset `start`; return the
    calls, [] for none, and the offset behind them.
    """
    if text[_skip(text, start + len("[TOOL_CALLS]")) :][:1] in ("[", "{"):
        return read_wrapped(text, start)
    # `[TOOL_CALLS]name[CALL_ID]x[ARGS]{…}`: newer templates of Mistral; the marker comes once or before each.
    pattern = re.compile(r"\s*(?:\[TOOL_CALLS\])?\s*([\w.:\-/]+)\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\])?\s*(?=\{)")
    return _sequence(text, start, pattern, "")


def read_harmony(text: str, start: int) -> Read:
    """Parse `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`, also in another channel,
    with the name before the channel, and without the tokens, which some servers remove. Content that is not JSON, such
    as code for a `python` tool, makes a call without readable arguments. Return the calls at the offset `start`, [] for
    none, and the offset behind them. The format is OpenAI's, of its gpt-oss models.
    """
    calls: list[Raw] = []
    position = start
    while match := _HARMONY.match(text, position):
        begin = match.end()
        if text[begin : begin + 1] == "{":
            end = jsontext.span(text, begin) or len(text)
            arguments = jsontext.loads_object(text[begin:end], repair=True)
        else:
            ended = _HARMONY_ENDS.search(text, begin)
            end = ended.start() if ended else len(text)
            arguments = {} if ended and not text[begin:end].strip() else None
        calls.append(Raw(match[1], arguments))
        position = _eat(text, end, r"\s*<\|(?:call|end)\|>")
    return calls, max(position, start + 1)


def read_gemma(text: str, start: int) -> Read:
    """Parse `<|tool_call>call:NAME{key:<|"|>text<|"|>,other:5}<tool_call|>`, in which keys have no quotes and texts
    have tokens for them; at the offset `start`; return the calls, [] for none, and the offset behind them.
    """
    calls: list[Raw] = []
    position = start
    while match := _GEMMA.match(text, position):
        # A text may hold whatever JSON is written with.
        plain = _GEMMA_TEXT.sub(lambda value: json.dumps(value[2]), match[2])
        source = _GEMMA_KEY.sub(lambda key: key[0] if key[2] is None else f'{key[1]}"{key[2]}":', plain)
        calls.append(Raw(match[1], jsontext.loads_object(source)))
        position = match.end()
    return calls, max(position, start + 1)


def read_wrapped(text: str, start: int) -> Read:
    """Parse JSON values, separated by `;` or nothing, or Python calls, after the opening marker of a dialect at the
    offset `start`; return the calls, [] for none, and the offset behind them.
    """
    begin = _eat(text, start, _OPENING)
    calls, position = _read_values(text, begin)
    if not calls:
        # Up to the next special token or closing tag.
        source = re.split(r"<[|/]", text[begin:], maxsplit=1)[0]
        calls, position = read_python(source) or [], begin + len(source)
    return calls, _eat(text, position, r"\s*(?:<\|[\w/]+\|>|</[\w:]+>)")


def _read_values(text: str, start: int) -> Read:
    """Parse JSON values that are calls, one after the other; return these and the offset behind them."""
    calls: list[Raw] = []
    position = start
    while text[(at := _skip(text, position)) : at + 1] in ("{", "["):
        found, end = read_json(text, at)
        if not found:
            # Of the first one, nothing is left to read.
            return calls, position if calls else end
        calls += found
        position = _eat(text, end, r"\s*[;,]")
    return calls, position


def read_python(source: str) -> list[Raw] | None:
    """Parse `[f(a=1), g("x")]` or `f(a=1)` and return the calls; None for anything else. Nothing is evaluated.
    Positional arguments are named `0`, `1`, …
    """
    try:
        tree = ast.parse(source.strip(), mode="eval")
        body = tree.body
        nodes = body.elts if isinstance(body, ast.List | ast.Tuple) else [body]
        return [_python_call(node) for node in nodes] or None
    # `ast` raises all of these for what is no Python: NULs, deep nesting, unhashable keys; the last one by a fault of
    # its own, at times, where two threads parse at once.
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError, SystemError):
        return None


# The name (group 1) may stand before or after the channel, so it is looked for first, within the head before `{`.
_HARMONY = re.compile(
    r"\s*(?:<\|start\|>)?(?:assistant)?\s*(?=[^{]{0,40}?\bto=([\w.\-]+))(?:to=[\w.\-]+)?\s*"
    r"(?:<\|channel\|>)?(?:commentary|analysis|final)(?:\s+to=[\w.\-]+)?\s*"
    r"(?:<\|constrain\|>\s*)?(?:json|code)?\s*(?:<\|message\|>\s*|(?=\{))"
)
_GEMMA = re.compile(
    r"\s*(?:<\|tool_call>|<start_function_call>)\s*call:([\w.\-]+)\s*(\{.*?\})\s*(?:<tool_call\|>|<end_function_call>)",
    re.DOTALL,
)
_GEMMA_TEXT = re.compile(r'(<\|"\|>|<escape>)(.*?)\1', re.DOTALL)
_GEMMA_KEY = re.compile(r'"(?:[^"\\]|\\.)*"|([{,]\s*)([A-Za-z_]\w*)\s*:')
_HARMONY_ENDS = re.compile(r"\s*<\|(?:call|end|start)\|>")

READERS: dict[str, Reader] = {
    "<tool_call>": read_hermes,
    "<function=": read_function,
    "<function name=": read_function,
    "<invoke name=": read_invoke,
    "<minimax:tool_call>": read_invoke,
    "<function_calls>": read_invoke,
    "<|tool_calls_section_begin|>": read_kimi,
    "<|tool_call_begin|>": read_kimi,
    "<｜tool▁calls▁begin｜>": read_deepseek,
    "<｜tool▁call▁begin｜>": read_deepseek,
    "[TOOL_CALLS]": read_mistral,
    **dict.fromkeys(
        (
            *(
                f"{before}{channel} to={functions}"
                for channel in ("commentary", "analysis", "final")
                for before, functions in (
                    ("<|channel|>", ""),
                    ("<|start|>assistant<|channel|>", ""),
                    ("", "functions."),
                )
            ),
            "<|start|>assistant to=",
        ),
        read_harmony,
    ),
    **dict.fromkeys(
        (
            "<|python_tag|>",
            "<|python_start|>",
            "<|tool_call|>",
            "<|tool_call_start|>",
            "<|tools_prefix|>",
            "<|START_ACTION|>",
            "<|action_start|>",
            "<function_call>",
            "<tool_calls>",
            "<TOOLCALL>",
            "functools[",
        ),
        read_wrapped,
    ),
    **dict.fromkeys(("<|tool_call>", "<start_function_call>"), read_gemma),
}


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((value[key] for key in keys if key in value), None)


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _eat(text: str, position: int, pattern: str) -> int:
    match = re.compile(pattern).match(text, position)
    return match.end() if match else position


def _sequence(text: str, start: int, head: re.Pattern[str], ending: str) -> Read:
    """Parse a sequence of calls: a head with the name, a JSON object, an ending."""
    calls: list[Raw] = []
    position = start
    while match := head.match(text, position):
        begin = match.end()
        if text[begin : begin + 1] != "{":
            # Closed at once: a call without arguments. Anything else lost them.
            calls.append(Raw(match[1], {} if re.compile(ending).match(text, begin) else None))
            position = _eat(text, begin, ending) if ending else begin
            continue
        end = jsontext.span(text, begin)
        calls.append(Raw(match[1], jsontext.loads_object(text[begin:end], repair=True)))
        position = _eat(text, len(text) if end is None else end, ending)
    return calls, max(position, start + 1)


class _Tags(NamedTuple):
    """How a dialect writes arguments: `head` matches the beginning of one, with its name as group 1; `opening` finds
    all tags that `closing` closes; `ends` is what ends the call.
    """

    head: re.Pattern[str]
    opening: re.Pattern[str]
    closing: str
    ends: re.Pattern[str]


_XML = _Tags(
    re.compile(r"\s*<parameter(?:=|\s+name=)[\"']?([^>\"'=\s]+)[\"']?(?:>|=)"),
    # `<parameter=k>`, `<parameter name="k">`, and the slip `<parameter=k=v`; `<parameter/>` opens nothing.
    re.compile(r"<parameter(?:[=\s][^<>]*)?(?<!/)>|<parameter=[^<>\s=]+="),
    "</parameter>",
    re.compile(r"</function>|</tool_call>|\Z"),
)
_INVOKE = _XML._replace(ends=re.compile(r"</invoke>|\Z"))
_GLM = _Tags(
    re.compile(r"\s*<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>", re.DOTALL),
    re.compile(r"<arg_value>"),
    "</arg_value>",
    re.compile(r"</tool_call>|\Z"),
)
_TAG = re.compile(r"<(?P<slash>/?)(?P<name>parameter|function|invoke|tool_call|arg_value|arg_key)\b[^<>]*(?<!/)>")
_MOST_ENDS = 50
"""So many places where a call may end are tried."""
_LOST_END = re.compile(r"</parameter>|(?=\s*</function>|\s*</invoke>|\s*</tool_call>|\s*<parameter=[\w.\-]+>)")


def _parameters(text: str, position: int, name: str, tags: _Tags) -> tuple[Raw, int]:
    """Parse the `<parameter=K>V</parameter>` pairs of a call from `position`; a missing end, or `<parameter=k=v`, is
    tolerated, but not where the text ends within a value. Where something is left over, as after a value that holds
    such tags itself, there are no arguments: a part of it must not pass for all.
    """
    ends = _ends_after(text, tags, position)
    # The strict reading first, at every end; the looser one only where none of them fits.
    for read in (_balanced_arguments, _split):
        for end in ends:
            if (found := read(tags, text[position:end])) is not None and not _goes_on(text, end):
                return Raw(name, dict(found), textual=True, unsure=read is _split), end
    values: dict[str, str] = {}
    begin, cut = position, False
    while (head := tags.head.match(text, position)) and head[1] not in values:
        match = _LOST_END.search(text, head.end())
        cut = match is None
        # A missing end. A name that comes twice would mean that a value holds such tags itself: the loop stops there.
        values[head[1]] = _unwrap(text[head.end() : match.start() if match else len(text)].strip())
        position = match.end() if match else len(text)
    ended = tags.ends.match(text, _skip(text, position)) is not None and not _goes_on(text, _skip(text, position))
    # More opened than closed: the ends were left out, as some models do. Otherwise the tags are in a value.
    lost = len(tags.opening.findall(text, begin, position)) > text.count(tags.closing, begin, position)
    whole = ended and not cut and (lost or not values)
    return Raw(name, dict(values) if whole else None, textual=True), position


@lru_cache(maxsize=4)
def _ends(text: str, ends: re.Pattern[str]) -> tuple[int, ...]:
    """Return where a call may end, for all calls of a text at once: a hostile one has thousands."""
    return tuple(match.start() for match in ends.finditer(text))


def _ends_after(text: str, tags: _Tags, position: int) -> tuple[int, ...]:
    found = _ends(text, tags.ends)
    first = bisect_left(found, position)
    return found[first : first + _MOST_ENDS]


@lru_cache(maxsize=4)
def _tag_openings(text: str) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Return the offsets of all tags of arguments and calls, and for each whether from there on one is closed that was
    not opened there.
    """
    tags = list(_TAG.finditer(text))
    missing: Counter[str] = Counter()
    found: list[bool] = []
    for tag in reversed(tags):
        name = tag["name"]
        # Read from the end: a closing tag waits for its opening one further left.
        missing[name] = max(0, missing[name] + (1 if tag["slash"] else -1))
        found.append(any(missing.values()))
    return tuple(tag.start() for tag in tags), tuple(reversed(found))


def _goes_on(text: str, end: int) -> bool:
    """Return whether something is closed behind the end of a call that was not opened there: the call goes on."""
    starts, missing = _tag_openings(text)
    at = bisect_left(starts, _eat(text, end, r"(?:\s*</(?:function|invoke|[\w:]*tool_calls?|function_calls)>)*"))
    return at < len(starts) and missing[at]


def _balanced_arguments(tags: _Tags, text: str) -> dict[str, str] | None:
    """Return the arguments of a text that is nothing but arguments, each up to the tag that closes it; None for another
    text. In a value every tag that is opened is closed, and all arguments are written alike: one that is not may stand
    in the value of another.
    """
    values: dict[str, str] = {}
    position = 0
    styles: list[str] = []
    while head := tags.head.match(text, position):
        styles.append(text[head.start() : head.start(1)] + text[head.end(1) : head.end()])
        depth, position = 1, head.end()
        while depth:
            closing = text.find(tags.closing, position)
            if closing < 0:
                return None
            depth += sum(1 for _ in tags.opening.finditer(text, position, closing)) - 1
            position = closing + len(tags.closing)
        if head[1] in values:
            return None
        values[head[1]] = _unwrap(text[head.end() : position - len(tags.closing)])
    # The blanks before the first one were passed over.
    alike = len(set(styles[1:])) <= 1 and len({style.lstrip() for style in styles}) <= 1
    return values if alike and not text[position:].strip() else None


def _split(tags: _Tags, text: str) -> dict[str, str] | None:
    """Return the arguments of a text that begins with one and ends with the end of one, each up to the last tag that
    closes one before the next argument; None for another text.
    """
    if not text.rstrip().endswith(tags.closing):
        return None
    values: dict[str, str] = {}
    position, last = 0, text.rindex(tags.closing)
    while head := tags.head.match(text, position):
        closing = text.find(tags.closing, head.end())
        # A closing tag counts only if the next argument begins right behind it, or if it is the last one.
        while 0 <= closing < last and tags.head.match(text, closing + len(tags.closing)) is None:
            closing = text.find(tags.closing, closing + len(tags.closing))
        if closing < 0 or head[1] in values:
            return None
        values[head[1]] = _unwrap(text[head.end() : closing])
        position = closing + len(tags.closing)
    return None if text[position:].strip() else values


def _read_pairs(text: str, start: int) -> Read:
    """Parse GLM's format: a name, then `<arg_key>K</arg_key><arg_value>V</arg_value>` pairs."""
    head = _NAME.match(text, start)
    if head is None:
        return [], start
    position = head.end()
    ends = _ends_after(text, _GLM, position)
    for read in (_balanced_arguments, _split):
        for end in ends:
            values = read(_GLM, text[position:end])
            # A name alone is a call only if it is closed: `<tool_call>` may be a word of a sentence.
            if (values or (values is not None and text.startswith("</tool_call>", end))) and not _goes_on(text, end):
                return [Raw(head[1], dict(values), textual=True, unsure=read is _split)], end
    return [], start


def _unwrap(value: str) -> str:
    """Return a value without the line breaks that the template puts around it, if there are both."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == "\n" else value


def _python_call(node: ast.expr) -> Raw:
    if not isinstance(node, ast.Call):
        raise ValueError("not a call")
    # Literals only: nothing of a reply is ever evaluated.
    arguments = {str(position): ast.literal_eval(value) for position, value in enumerate(node.args)}
    for keyword in node.keywords:
        if keyword.arg is None:
            arguments.update(ast.literal_eval(keyword.value))
        else:
            arguments[keyword.arg] = _python_literal(keyword.value)
    return Raw(ast.unparse(node.func), arguments)


def _python_literal(node: ast.expr) -> Any:
    """Return the value of a literal, JSON's `true`, `false`, `null` included. Tuples and sets become lists."""
    if isinstance(node, ast.Name) and node.id in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[node.id]
    value = ast.literal_eval(node)
    return list(value) if isinstance(value, tuple | set) else value
