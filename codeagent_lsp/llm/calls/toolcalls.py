"""Extraction of the tool calls from a model's text, leaving out examples inside explanations.

From left to right, the first match decides: a fence or inline code is prose, a marker of a dialect begins a
call. Bare JSON counts when it has exactly the shape of a call of a known tool with fitting arguments; fenced
JSON only at the end of the reply. Not here: the dialects (`dialects.py`), schemas (`schema.py`), what may be
shown while streaming (`stream_filter.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codeagent_lsp.llm.calls import dialects, jsontext, schema
from codeagent_lsp.llm.calls.dialects import Raw
from codeagent_lsp.llm.calls.stream_filter import CALL_FENCES, MARKER, NEXT, StreamFilter
from codeagent_lsp.messages import ToolCall, ToolSpec

TEXT_LIMIT = 4 * 1024 * 1024
_EFFORT = 10
_MOST_PROBLEMS = 3

_END_TOKENS = re.compile(r"(?:\s*(?:</s>|<\|(?:im_end|eot_id|eom_id|end|endoftext|call)\|>|<｜end▁of▁sentence｜>))+\Z")
_PRINTED = re.compile(r"\A\s*print\((.*)\)\s*\Z", re.DOTALL)
_THINKING = re.compile(r"\A\s*<(think|thinking)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Extraction:
    """The content of a reply: its calls, its text without them, and in English what was wrong, for the model."""

    calls: tuple[ToolCall, ...] = ()
    text: str = ""
    problem: str = ""


def parse(text: str, tools: Iterable[ToolSpec]) -> list[ToolCall]:
    """Return the tool calls in `text`, a complete reply, in order."""
    return list(extract(text, tools).calls)


def extract(text: str, tools: Iterable[ToolSpec]) -> Extraction:
    """Return the calls, the text around them and the problem with any call that is not understood."""
    finder = _Finder(tuple(tools))
    source = _THINKING.sub("", text[:TEXT_LIMIT])
    finder.scan(source)
    return Extraction(tuple(finder.calls), finder.remaining(source), " ".join(finder.problems[:_MOST_PROBLEMS]))


def normalise_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known tool that `name` means (`functions.x:0`, another case, `a.b` for `a__b`), or None."""
    names = list(known)
    stripped = re.sub(r":\d+$|\.call$", "", name.strip().strip("\"'"))
    for candidate in (name, stripped, stripped.removeprefix("functions.").removeprefix("tools.")):
        if candidate in names:
            return candidate
    folded = [item for item in names if _fold(item) == _fold(stripped.removeprefix("functions."))]
    if len(folded) == 1:
        return folded[0]
    ending = [item for item in names if re.search(rf"[./:]{re.escape(item)}$", stripped)]
    return ending[0] if len(ending) == 1 else None


def check(name: str, arguments: Mapping[str, Any] | None, tools: Iterable[ToolSpec]) -> ToolCall | str:
    """Return the call with its name and arguments coerced to a known tool, or in English what to correct."""
    by_name = {tool["name"]: tool for tool in tools}
    known = normalise_name(name, by_name)
    if known is None:
        return f"There is no tool {name!r}. The tools are: {', '.join(by_name)}."
    if arguments is None:
        return f"The arguments of {known} are not a JSON object. Send one JSON object."
    try:
        return ToolCall(known, schema.fit(arguments, _parameters(by_name[known])))
    except schema.Misfit as misfit:
        return f"The call of {known} does not fit: {misfit}. Correct it and call again."


class StreamParser:
    """Extracts the calls of a reply while it is streamed.

    Nothing is a call before the reply has ended, as the following text decides whether a block was a call or an
    example, and a reply that breaks off must not run anything: `feed` returns no calls, `close` returns all.
    `visible` returns what may be shown meanwhile.
    """

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self._tools = tuple(tools)
        self._stream_filter = StreamFilter()
        self._pieces: list[str] = []
        self._fresh: list[str] = []
        self._shown: list[str] = []
        self._result: Extraction | None = None

    def feed(self, chunk: str) -> list[ToolCall]:
        """Take the next piece; always returns an empty list."""
        self._pieces.append(chunk)
        self._fresh.append(chunk)
        return []

    def visible(self) -> str:
        """Return the text that has become safe to show since the last call: none of it can belong to a tool call."""
        shown = self._stream_filter.feed("".join(self._fresh))
        self._fresh.clear()
        self._shown.append(shown)
        return shown

    def close(self) -> list[ToolCall]:
        """Return all calls of the complete reply."""
        return list(self.result().calls)

    def result(self) -> Extraction:
        """Return the extraction of the complete reply, computed once."""
        if self._result is None:
            self._result = extract("".join(self._pieces), self._tools)
        return self._result

    def rest(self) -> str:
        """Return the part of the answer's text that `visible` held back although it is text."""
        shown = "".join(self._shown)
        text = self.result().text
        return text[len(shown) :] if text.startswith(shown) else ""


@dataclass
class _Finder:
    """Walks over one text, collecting calls, problems and the spans they cover."""

    tools: tuple[ToolSpec, ...]
    calls: list[ToolCall] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    _scanned: int = 0
    _pending: list[tuple[list[ToolCall], tuple[int, int]]] = field(default_factory=list)

    def scan(self, text: str) -> None:
        if self._whole(text):
            return
        position = 0
        while match := NEXT.search(text, position):
            if match["fence"]:
                position = self._fence(text, match)
            elif match["marker"]:
                position = self._marked(text, match)
            elif match["json"]:
                position = self._inline_json(text, match.start())
            else:
                position = match.end()
        self._settle(text)

    def remaining(self, text: str) -> str:
        pieces, position = [], 0
        for start, end in sorted(self.spans):
            pieces.append(text[position:start])
            position = end
        pieces.append(text[position:])
        return "".join(pieces).strip() if self.spans else text

    def _marked(self, text: str, match: re.Match[str]) -> int:
        """Parse a call at a dialect's marker, and return where to go on. A marker within a sentence is prose."""
        calls, end = dialects.READERS[match["marker"]](text, match.start())
        end = max(end, match.end())
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        sentence = before and not self.calls
        if sentence and (not calls or re.match(r"[ \t]*[,\w]", text[end:])):
            return match.end()
        self._take(calls, (match.start(), _end_tokens(text, end)), sure=True)
        return end

    def _whole(self, text: str) -> bool:
        """Take the calls of a text that consists only of JSON or Python calls, and return whether it does."""
        stripped = _END_TOKENS.sub("", text.strip())
        calls: list[Raw] | None = None
        sure = False
        if stripped[:1] in ("{", "[") and not stripped.startswith("[TOOL_CALLS]"):
            calls, sure = self._json(stripped), stripped[:1] == "{"
        if calls is None:
            calls, sure = self._python(stripped), False
        return bool(calls) and self._take(calls or [], (0, len(text)), sure=sure)

    def _json(self, source: str) -> list[Raw] | None:
        """Return the calls of a text that consists of JSON values, repaired if broken and call-like; else None."""
        found: list[Raw] = []
        position = 0
        while position < len(source):
            if source[position] not in "{[":
                if source[position] in ";,\n\r\t ":
                    position += 1
                    continue
                return None
            end = jsontext.span(source, position)
            try:
                value = jsontext.loads(source[position:end], repair=self._looks_like_call(source))
            except ValueError:
                return None
            calls = dialects.from_value(value) or self._keyed(value)
            if not calls:
                return None
            found += calls
            position = len(source) if end is None else end
        return found or None

    def _looks_like_call(self, source: str) -> bool:
        return bool(re.match(r"\s*\[?\s*\{\s*[\"']?(name|tool|function|type|tool_name|tool_calls)\b", source))

    def _keyed(self, value: Any) -> list[Raw] | None:
        """Parse `{"read_file": {…}}`: the tool's name as the only key."""
        if isinstance(value, dict) and len(value) == 1:
            name, arguments = next(iter(value.items()))
            if isinstance(arguments, dict) and any(tool["name"] == name for tool in self.tools):
                return [Raw(name, arguments)]
        return None

    def _python(self, source: str) -> list[Raw] | None:
        if not re.match(r"\[?\s*[A-Za-z_][\w.\-]*\s*\(", source):
            return None
        calls = dialects.read_python(source) or dialects.read_python(self._identifiers(source))
        return self._positional(calls) if calls else None

    def _identifiers(self, source: str) -> str:
        """Return the source with the known tools' names made valid Python identifiers."""
        for tool in self.tools:
            name = tool["name"]
            if not name.replace(".", "_").isidentifier():
                source = source.replace(f"{name}(", f"{re.sub(r'[^0-9A-Za-z_]', '_', name)}(")
        return source

    def _positional(self, calls: list[Raw]) -> list[Raw]:
        return [Raw(call.name, self._named(call)) for call in calls]

    def _named(self, call: Raw) -> dict[str, Any]:
        known = normalise_name(call.name, [tool["name"] for tool in self.tools])
        tool = next((tool for tool in self.tools if tool["name"] == known), None)
        order = list((_parameters(tool).get("properties") or {}) if tool else ())
        arguments = call.arguments or {}
        return {
            order[int(key)] if key.isdigit() and int(key) < len(order) else key: value
            for key, value in arguments.items()
        }

    def _fence(self, text: str, match: re.Match[str]) -> int:
        """Note a fenced block that holds nothing but calls of known tools, and return its end."""
        closing = re.compile(rf"^[ \t]*{match['ticks'][0]}{{{len(match['ticks'])},}}[ \t]*$", re.MULTILINE)
        close = closing.search(text, match.end())
        end = close.end() if close else len(text)
        if self._pending and text[self._pending[-1][1][1] : match.start()].strip():
            self._pending.clear()
        body = text[match.end() : close.start() if close else len(text)]
        info, inner = match["info"].strip().lower(), _Finder(self.tools)
        if info == "tool_code":
            body = _PRINTED.sub(r"\1", body)
        if info in CALL_FENCES:
            inner.scan_block(body)
        if inner.calls and not inner.problems and not inner.remaining(body).strip():
            self._pending.append((inner.calls, (match.start(), end)))
        return end

    def _settle(self, text: str) -> None:
        """Accept the fenced calls if no text follows them."""
        if self._pending and not text[self._pending[-1][1][1] :].strip():
            for calls, span in self._pending:
                self.calls += calls
                self.spans.append(span)

    def scan_block(self, body: str) -> None:
        """Scan the inside of a fence, which may be bare JSON or a call in a dialect, but no prose."""
        if self._whole(body):
            return
        if marker := re.match(rf"\s*({MARKER})", body):
            calls, end = dialects.READERS[marker[1]](body, marker.start(1))
            self._take(calls, (marker.start(1), end), sure=True)

    def _inline_json(self, text: str, start: int) -> int:
        """Take JSON amid prose as a call if it fills its line or ends the text, and fits a known tool."""
        if self._scanned > _EFFORT * len(text):
            return start + 1  # thousands of brackets that never close: not a call
        end = jsontext.span(text, start)
        self._scanned += (len(text) if end is None else end) - start
        if end is None:
            return start + 1
        begins_line = not text[text.rfind("\n", 0, start) + 1 : start].strip()
        ends_line = not text[end:].split("\n", 1)[0].strip(" \t.;`*")
        ends_text = not text[end:].strip(" \t\n.;`*")
        if (begins_line and ends_line) or ends_text:
            calls = self._strict(text[start:end])
            if calls and self._take(calls, (start, end), sure=False):
                return end
        return start + 1 if text[start] == "[" else end

    def _strict(self, source: str) -> list[Raw] | None:
        try:
            return dialects.from_value(jsontext.loads(source))
        except ValueError:
            return None

    def _take(self, raws: list[Raw], span: tuple[int, int], *, sure: bool) -> bool:
        """Add the calls. If it is not certain that they are meant as calls, all must fit or none counts."""
        results = [self._check(raw) for raw in raws]
        good = [result for result in results if isinstance(result, ToolCall)]
        bad = [result for result in results if isinstance(result, str)]
        if not sure and bad:
            return False
        if sure and not raws:
            bad = ["A tool call could not be read. Write it exactly as told, as one JSON object."]
        self.calls += good
        self.problems += bad
        self.spans.append(span)
        return True

    def _check(self, raw: Raw) -> ToolCall | str:
        arguments = raw.arguments
        known = normalise_name(raw.name, [tool["name"] for tool in self.tools])
        tool = next((tool for tool in self.tools if tool["name"] == known), None)
        if raw.textual and tool and arguments is not None:
            arguments = schema.from_text(arguments, _parameters(tool))
        return check(raw.name, arguments, self.tools)


def _parameters(tool: ToolSpec) -> Mapping[str, Any]:
    return tool.get("parameters") or {}


def _end_tokens(text: str, position: int) -> int:
    """Return the end of the text when only end tokens follow `position`, else `position`."""
    return len(text) if not _END_TOKENS.sub("", text[position:]).strip() else position


def _fold(name: str) -> str:
    return re.sub(r"[._\-/:]+", "_", name).lower()
