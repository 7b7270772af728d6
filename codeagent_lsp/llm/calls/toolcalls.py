"""Extraction of the tool calls from a model's text, leaving out examples inside explanations.

A text is read from left to right, and the first match decides:
- a fence or inline code is prose
- a marker of a dialect begins a call, as `Action:` at the start of a line does before a tool with arguments
- bare JSON is a call if it has exactly the shape of one, of a known tool and with fitting arguments
- fenced JSON is one only at the end of the reply

Fenced JSON with words behind it, and bare Python with words around it, may be an example: the model is asked. Not here:
the dialects (`dialects.py`), bare JSON and Python (`bare_calls.py`), what of a reply is shown while it streams
(`streamed_calls.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from codeagent_lsp.llm.calls import dialects, jsontext
from codeagent_lsp.llm.calls.bare_calls import (
    ACTION_INPUT,
    bare_name,
    check_raw,
    is_known,
    nameless_call,
    read_action,
    read_json,
    read_python,
    read_strict,
)
from codeagent_lsp.llm.calls.dialects import Raw
from codeagent_lsp.llm.calls.loose_calls import loose_call
from codeagent_lsp.messages import UNREADABLE, ToolCall, ToolSpec

# Longer than any reply of a model; it bounds the time that a hostile server can cost.
TEXT_LIMIT = 4 * 1024 * 1024
# The text may be gone over so often by looking for the ends of brackets.
_EFFORT = 10
_MOST_PROBLEMS = 3
_MOST_ACTIONS = 20  # that could not be read

UNCLEAR = (
    "Your reply has a call of {names} that is quoted or stands among words or other code, so it did not run. If you "
    "mean to call, send the call with nothing around or behind it. If it was only an example in your answer, send the "
    "answer again."
)
"""The message to the model about a call that may be an example."""
UNCLEAR_BESIDE = (
    "Your reply also has a call of {names} that is quoted or stands among words: that one did not run. If you meant "
    "it, send it again with nothing around it."
)

_END = r"(?:\s*(?:</s>|<\|(?:im_end|eot_id|eom_id|end|endoftext|call)\|>|<｜end▁of▁sentence｜>))"
_END_TOKENS, _ONLY_END_TOKENS = re.compile(rf"{_END}+\Z"), re.compile(rf"{_END}*\s*\Z")
_END_TOKENS_NEXT = re.compile(rf"{_END}+")
_ONLY_ENDS = re.compile(rf"(?:\s*</[A-Za-z][\w:.\-]*>|{_END})*\s*\Z")
# A word or a comma right behind a marker: "`<tool_call>` is how I would call it".
_IN_SENTENCE = re.compile(r"[ \t]*[,\w]")
_NAMED = re.compile(r"[\[{]\s*[\[{\"']")
_MARKER_NAME = re.compile(r"<([A-Za-z][\w:]*)")
_ONLY_NAME = re.compile(r"\{\s*[\"']\w+[\"']\s*:\s*[\"'][\w.\-]+[\"']\s*\}")
_RUINED = re.compile(r"\s*(?:\[\s*\{|\(\s*\w+\s*=)")
CALL_HEAD = re.compile(
    r"\{\s*[\"'](?:name|tool|tool_name|action|function_name|recipient_name)[\"']\s*:\s*[\"'](?P<called>[\w.\-]+)[\"']"
    r"\s*,\s*[\"'](?:args|arguments|parameters|params|input|action_input)[\"']\s*:"
)
# Gemma's `tool_code` blocks print what the call returns: `print(read_file(path="a"))`.
_PRINTED = re.compile(r"\A\s*print\((.*)\)\s*\Z", re.DOTALL)
# `Action: list_files` at the very end: a tool without arguments.
_LAST_ACTION = re.compile(r"^[ \t]*Action(?: \d+)?:[ \t]*([\w.\-]+)\s*\Z", re.MULTILINE)
_PYTHON = re.compile(r"(?:^[ \t]*|[:：][ \t]{0,4})\[?(?P<called>[A-Za-z_][\w.\-]*)\(", re.MULTILINE)
_MOST_PYTHON = 20  # that could not be read
_GOES_ON = re.compile(r"(?:Observation|Thought|Action)(?: \d+)?:")
# Thoughts at the beginning, also without an end: what is called there is only considered.
_THINKING = re.compile(r"\A\s*<(think|thinking)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
CALL_FENCES = ("", "json", "jsonc", "json5", "tool_call", "tool_calls", "tool_code", "tool", "xml")
# The longest first, as an alternation takes the first that fits.
MARKER = "|".join(re.escape(marker) for marker in sorted(dialects.READERS, key=len, reverse=True))
# In this order at one place: a fence, `Action:`, inline code, a marker, a bracket.
NEXT = re.compile(
    rf"(?P<fence>^[ \t]*(?P<ticks>`{{3,}}|~{{3,}})(?P<info>[^\n`]*)(?:\n|\Z))"
    r"|(?P<action>^[ \t]*[*_]*(?:Action|动作|行动|操作)(?: \d+)?[*_]*[:：][*_]*[ \t]*`?(?P<called>[A-Za-z_][\w.\-]*)"
    rf"(?=[\[(]|{ACTION_INPUT.pattern}))"
    rf"|(?P<code>(?<!`)(?P<tick>`{{1,2}})(?!`)[^\n]+?(?<!`)(?P=tick)(?!`))|(?P<marker>{MARKER})|(?P<json>[\[{{])",
    re.MULTILINE,
)

_CALL_LINE = re.compile(
    rf"^[ \t]*(?:{MARKER}|{CALL_HEAD.pattern.replace('?P<called>', '')}|{_ONLY_NAME.pattern}[ \t]*$"
    r"|Action(?: \d+)?:[ \t]*[\w.\-]+[ \t]*[\[(])",
    re.MULTILINE,
)

# A call in a form that is not read, such as `<write_to_file><path>…</path>` or `<｜DSML｜invoke …>` of DeepSeek: what
# stands inside is its content, whatever it looks like.
_ELEMENT = re.compile(
    r"^[ \t]*<(?P<name>｜DSML｜\w+|antml:\w+|[A-Za-z][\w.\-]*)(?:[ \t][^<>\n]*)?>\s*(?:<(?P<inner>[\w.\-]+)>)?", re.M
)
_USUAL_PARAMETERS = frozenset(("path", "file_path", "command", "content", "args", "diff"))
_MOST_ELEMENTS = 200
UNREAD_FORM = (
    "A call of {name} is written in a form that is not understood, so nothing of it ran. Write it exactly as told, as "
    "one JSON object."
)
NAMELESS = (
    "Your reply is nothing but arguments, as {name} takes them, and names no tool, so nothing ran. Write the call "
    "exactly as told, with the tool's name."
)

_TAG = re.compile(r"<(?P<closes>/?)(?P<name>[A-Za-z][\w:.\-]*)(?:\s[^<>]*)?>|(?P<opens><!--)|(?P<ends>-->)")
_QUOTING = frozenset(
    """
    <!-- example examples sample samples demo demonstration illustration quote quotation blockquote q cite doc docs
    document documentation documents excerpt snippet history transcript conversation user human system context
    result results tool_result tool_results function_result function_results observation observations
    think thinking thought thoughts reasoning reflection scratchpad
    pre code samp kbd tt p li ul ol td th tr table section article details summary div span html body
    """.split()  # noqa: SIM905
)
"""Elements whose content is shown or thought, not done; all others, such as `<answer>`, only stand around a call."""
_CODE = re.compile(r"(`{1,2})[^`\n]+\1")
# At the end of what is said before a call: `For example:`, `the call looks like this:`, `例如`.
_EXAMPLE = re.compile(
    r"^\W*(?:for (?:example|instance)\b|e\.g\.)|\be\.g\.,?\s*\Z|\bfor (?:example|instance)\W*\Z"
    r"|\bexample(?: call| usage| of (?:a|the|such a|this) call)?\s*:\s*\Z"
    r"|\b(?:call|usage|invocation|syntax|format)\b.*\blooks? like(?: this| so)?\s*:\s*\Z"
    r"|例如|比如|举例|示例\s*[:：]\s*\Z",
    re.IGNORECASE,
)
_DOES = re.compile(r"\b(?:let me|let us|let's|i|i'll|i'm|i’ll|i’m|we|we'll)\b|我|咱|让", re.IGNORECASE)
"""Who says that they do something announces no example."""
# What a model that goes on by itself invents behind its call: the result, in its own template or in our words.
_INVENTED = re.compile(
    r"(?:\s|</?[\w:.\-]+_calls?>|`{3})*(?:<(?:tool|function)_(?:response|result|results|output|outputs)\b[^<>]*>"
    r"|<(?:observation|function_calls_result)>|Observation(?: \d+)?:|Result of \w[\w.\-]*:"
    r"|<\|(?:start|im_start|start_header_id)\|>(?!assistant)|<\|(?:tool|observation|user)\|>|<｜tool▁outputs?▁begin｜>)"
)
# Left over around calls: brackets, tags and tokens of wrappers, nothing that says something.
_MARKUP = re.compile(r"</?[\w:.\-｜▁|]+(?:\s[^<>]*)?/?>|[\s`{}\[\](),;*]+")
_CLOSERS = re.compile(r"(?:\s*(?:[}\])]+|</[\w:.\-]+>))+(?=\s|\Z)")
_LATE_FENCE, _FENCE_END = re.compile(r"(?:Action:[ \t]*)?`{3}\w*\s*\Z"), re.compile(r"(?:\s*`{3})?")
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s)")
_QUOTES = {'"': '"', "'": "'", "`": "`", "(": ")", "“": "”", "‘": "’", "«": "»", "「": "」", "（": "）"}
SHORT = 20  # characters after which it can be told whether a block begins like a call
_DEEPEST = 50  # open elements that are remembered
LONG = 200  # characters: no marker is longer, nor a sentence that announces an example


@dataclass(frozen=True)
class Extraction:
    """The content of a reply: its calls, its text without them, and what was wrong, in English for the model.
    `unusable` are the calls that `problem` is about, as they were written. `unclear` says that they fit, but text
    follows them, as after an example in an answer.
    """

    calls: tuple[ToolCall, ...] = ()
    text: str = ""
    problem: str = ""
    unusable: tuple[ToolCall, ...] = ()
    unclear: bool = False


def begins_call(line: str) -> bool:
    """Return whether a line begins a call in one of the known forms, of whatever tool: a marker of a dialect, JSON with
    a tool's name, `Action:`.
    """
    return _CALL_LINE.match(line) is not None


def before_calls(text: str) -> str:
    """Return a text up to the first line that begins a call (see `begins_call`), without blanks at its end; all of it
    if none does.
    """
    found = _CALL_LINE.search(text)
    return text if found is None else text[: found.start()].rstrip()


def parse(text: str, tools: Iterable[ToolSpec]) -> list[ToolCall]:
    """Return the tool calls in `text`, a complete reply, in order; [] for none. Calls that do not fit the tools are
    left out; `extract` says why.
    """
    return list(extract(text, tools).calls)


def extract(text: str, tools: Iterable[ToolSpec]) -> Extraction:
    """Return the calls in `text`, a complete reply, the text around them, and the problem with any call that is not
    understood or does not fit the tools. Thinking is left out; of more than 4 Mi characters the rest is not read. Never
    raises; pure.
    """
    finder = _Finder(tuple(tools))
    # Calls in thoughts are plans, not calls.
    source = _THINKING.sub("", text[:TEXT_LIMIT])
    finder.scan(source)
    # Only then is the whole reply in question; beside calls that ran, the doubtful ones are just named.
    if finder.doubtful and not finder.calls and not finder.problems:
        names = ", ".join(sorted({call.name for call in finder.doubtful}))
        return Extraction((), source, UNCLEAR.format(names=names), tuple(finder.doubtful), unclear=True)
    problem = " ".join((*finder.problems[:_MOST_PROBLEMS], *finder.left_out()))
    return Extraction(tuple(finder.calls), finder.remaining(source), problem, tuple(finder.unusable))


@dataclass
class _Finder:
    """Walks over one text, collecting calls, problems and the spans they cover."""

    tools: tuple[ToolSpec, ...]
    calls: list[ToolCall] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    unusable: list[ToolCall] = field(default_factory=list)
    doubtful: list[ToolCall] = field(default_factory=list)
    _scanned: int = 0  # characters read in search of the ends of JSON
    _unread: int = 0  # actions that were no calls
    _pending: list[tuple[list[ToolCall], tuple[int, int]]] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _tags_read: int = 0  # how far the tags have been read into `_open`
    _fenced: list[tuple[int, int]] = field(default_factory=list)

    def scan(self, text: str) -> None:
        # A reply that is nothing but calls has no prose that could quote one.
        if self._whole(text):
            return
        position = 0
        # Found first: what is inside of such an element must not be taken for a call of another form.
        unread = self._unread_forms(text)
        while match := NEXT.search(text, position):
            # An element that a fence has in it is an example.
            unread = [each for each in unread if each[0] >= position]
            if unread and unread[0][0] <= match.start():
                self._leave_unread(unread[0])
                position = unread[0][1]
            elif match["fence"]:
                position = self._fence(text, match)
            elif match["action"]:
                position = self._action(text, match)
            elif match["marker"]:
                position = self._parse_at_marker(text, match)
            elif match["json"]:
                position = self._inline_json(text, match.start())
            else:
                position = match.end()
            # All from there on rests on a result that there was not.
            if self.calls and self.spans and self.spans[-1][1] == position and _INVENTED.match(text, position):
                self.spans.append((position, len(text)))
                position = len(text)
        for each in unread:
            if each[0] >= position:
                self._leave_unread(each)
        self._settle(text)

    def _leave_unread(self, element: tuple[int, int, str]) -> None:
        begin, end, name = element
        self.problems.append(UNREAD_FORM.format(name=name))
        self.unusable.append(ToolCall(UNREADABLE, {}))
        self.spans.append((begin, end))

    def _unread_forms(self, text: str) -> list[tuple[int, int, str]]:
        """Return begin, end and tool of the elements that are calls in a form that is not read, in order."""
        found: list[tuple[int, int, str]] = []
        for match in islice(_ELEMENT.finditer(text), _MOST_ELEMENTS):
            name, inner = match["name"], match["inner"]
            if found and match.start() < found[-1][1]:
                continue
            foreign = name.startswith(("｜DSML｜", "antml:"))
            if not foreign and (inner is None or not self._takes(name, inner)):
                continue
            # Its last end: the content may have the same tag.
            end = text.rfind(f"</{name}>", match.end())
            if end >= 0:
                found.append((match.start(), end + len(name) + 3, "a tool" if foreign else name))
        return found

    def _takes(self, name: str, parameter: str) -> bool:
        """Return whether a tool of this name may have such a parameter."""
        if f"<{name}>" in dialects.READERS or not is_known(name, self.tools):
            return False
        own = next((tool for tool in self.tools if tool["name"] == name), None)
        return parameter in _USUAL_PARAMETERS or (
            own is not None and parameter in (own.get("parameters", {}).get("properties") or {})
        )

    def remaining(self, text: str) -> str:
        """Return the text around the calls, without what only belongs to how they were written."""
        pieces, position = [], 0
        for start, end in sorted(self.spans):
            pieces.append(text[position:start])
            closers = _CLOSERS.match(text, end)
            position = closers.end() if closers else end
        pieces.append(text[position:])
        left = "".join(pieces).strip() if self.spans else text
        return left if not self.spans or _MARKUP.sub("", left) else ""

    def left_out(self) -> list[str]:
        """Return what to tell the model of calls that may be examples, beside those that run."""
        ran = [(call.name, call.arguments) for call in self.calls]
        names = sorted({call.name for call in self.doubtful if (call.name, call.arguments) not in ran})
        return [UNCLEAR_BESIDE.format(names=", ".join(names))] if ran and names else []

    def _parse_at_marker(self, text: str, match: re.Match[str]) -> int:
        """Parse a call at a dialect's marker, and return where to go on. A marker within a sentence is prose."""
        calls, end = dialects.READERS[match["marker"]](text, match.start())
        end = max(end, match.end()) if calls else _end_of_unread(text, match, end)
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        # After a first call, words before a marker are what some models write between two calls.
        sentence = before and not self.calls
        if sentence and (not calls or _IN_SENTENCE.match(text, end)):
            return match.end()
        # Noted and not dropped: if nothing else is in the reply, the model is asked whether it meant it.
        if calls and self._is_quoted(text, match.start(), end):
            self._note(calls)
            return end
        self._take(calls, (match.start(), _end_tokens(text, end)), sure=True)
        return end

    def _action(self, text: str, match: re.Match[str]) -> int:
        """Take `Action: NAME[{…}]`, `Action: NAME(…)` or one with an `Action Input:` as a call, unless words follow
        that neither go on with the pattern nor make up its observation; return where to go on. An unknown name without
        named arguments is a word of a sentence.
        """
        if self._unread >= _MOST_ACTIONS:
            return match.end()
        calls, end = read_action(text, match.start("called"), self.tools)
        if not calls and is_known(match["called"], self.tools) and _is_ruined(text, end):
            # Arguments behind the name, to the end of the reply: no sentence, and no call that can be read.
            self._leave_unread((match.start(), len(text), match["called"]))
            return len(text)
        if not is_known(match["called"], self.tools):
            # Positional arguments are named by digits: `Action: wait (2)` is a sentence.
            calls = [raw for raw in calls if raw.arguments and not any(map(str.isdigit, raw.arguments))]
        if not calls:
            self._unread += 1
            return match.end()
        following = text[end:].lstrip("`* \t\n")
        if following and not _GOES_ON.match(following):
            self._note(calls)
            return end
        # A model that goes on by itself invents the result of its own call: all from there on is dropped.
        made_up = following.startswith("Observation")
        self._take(calls, (match.start(), len(text) if made_up else end), sure=True)
        return len(text) if made_up else end

    def _whole(self, text: str) -> bool:
        """Take the calls of a text that consists only of JSON or Python calls, and return whether it does."""
        stripped = _END_TOKENS.sub("", text.strip())
        calls: list[Raw] | None = None
        sure = False
        if stripped[:1] in ("{", "[") and not stripped.startswith("[TOOL_CALLS]"):
            calls, sure = read_json(stripped, self.tools), stripped[:1] == "{"
        if calls is None:
            # Unsure: any Python expression with a bracket looks like it, so all has to fit a tool.
            calls, sure = read_python(stripped, self.tools), False
        return bool(calls) and self._take(calls or [], (0, len(text)), sure=sure)

    def _python(self, text: str) -> None:
        """Note calls that are written in Python on lines of their own, beside words: they may be code of an answer."""
        found = (match for match in _PYTHON.finditer(text) if is_known(match["called"], self.tools))
        for match in islice(found, _MOST_PYTHON):
            start = match.start("called")
            end = ends.start() if (ends := _ONLY_ENDS.search(text, start)) else len(text)
            if any(first <= start < last for first, last in self._fenced):
                continue
            whole = read_python(text[start:end].rstrip(" ]\n"), self.tools)
            if raws := whole or read_action(text, start, self.tools)[0]:
                self._note(raws)
                return

    def _loose(self, text: str) -> None:
        """Tell of a call that ends the reply in a form that is not read."""
        if self.doubtful:
            return
        own = {tool["name"] for tool in self.tools}
        # Other names of tools may be words of a language: `open(…)` in Python.
        found = loose_call(text, lambda name: name in own or ("_" in name and is_known(name, self.tools)))
        if found is None and (nameless := nameless_call(text, self.tools)):
            self.problems.append(NAMELESS.format(name=nameless))
            self.unusable.append(ToolCall(UNREADABLE, {}))
        if found is None:
            return
        if found.sure:
            known = is_known(found.name, self.tools)
            self.problems.append(
                UNREAD_FORM.format(name=found.name) if known else str(check_raw(Raw(found.name, {}), self.tools))
            )
            self.unusable.append(ToolCall(UNREADABLE if known else found.name, {}))
        else:
            self.doubtful.append(ToolCall(found.name, {}))

    def _fence(self, text: str, match: re.Match[str]) -> int:
        """Note a fenced block that holds nothing but calls of known tools, and return its end."""
        end = self._end_of_fence(text, match)
        self._fenced.append((match.start(), end))
        return end

    def _end_of_fence(self, text: str, match: re.Match[str]) -> int:
        ticks = rf"{match['ticks'][0]}{{{len(match['ticks'])},}}"
        closing = re.compile(rf"^[ \t]*{ticks}(?:[ \t]*$|(?={_END}))", re.MULTILINE)
        close = closing.search(text, match.end())
        end = close.end() if close else len(text)
        # Words between two blocks: the first was an example.
        if self._pending and text[self._pending[-1][1][1] : match.start()].strip():
            self._doubt()
        body = text[match.end() : close.start() if close else len(text)]
        # A finder of its own: whether the block counts depends on what follows it.
        info, inner = match["info"].strip().lower(), _Finder(self.tools)
        if info == "tool_code":
            body = _PRINTED.sub(r"\1", body)
        if info in CALL_FENCES:
            inner.scan_block(body)
        if inner.calls and not inner.problems and not inner.remaining(body).strip():
            if self._is_quoted(text, match.start(), end):
                self.doubtful += inner.calls
                return end
            self._pending.append((inner.calls, (match.start(), end)))
        return end

    def _settle(self, text: str) -> None:
        """Accept the fenced calls if no text follows them."""
        # Words behind the last block: an answer that shows calls, not one that makes them.
        if self._pending and not _ONLY_ENDS.match(text, self._pending[-1][1][1]):
            self._doubt()
        # An action without arguments is a call only at the very end of a reply that has no other.
        last = _LAST_ACTION.search(text)
        if last and not self.calls and not self._pending and is_known(last[1], self.tools):
            self._take([Raw(last[1], {})], last.span(), sure=True)
        # The loosest form comes last, where nothing else was found.
        if not self.calls and not self._pending and not self.problems and not self.doubtful:
            self._python(text)
            self._loose(text)
        for calls, span in self._pending:
            self.calls += calls
            self.spans.append(span)

    def _doubt(self) -> None:
        """Note that the pending calls have words behind them."""
        self.doubtful += [call for calls, _ in self._pending for call in calls]
        self._pending.clear()

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
            return self._unended_json(text, start)
        begins_line = not text[text.rfind("\n", 0, start) + 1 : start].strip()
        ends_line = not text[end:].split("\n", 1)[0].strip(" \t.;`*")
        ends_text = not text[end:].strip(" \t\n.;`*")
        calls = read_strict(text[start:end]) if _NAMED.match(text, start) else None
        # Alone at the end, a name is enough: an answer does not end in an object that it does not speak of.
        last = begins_line and ends_text and not text[end:].strip()
        if not calls and last and _ONLY_NAME.match(text, start):
            calls = read_json(text[start:end], self.tools)
        # Before the place in the line is looked at: also a quoted call may fill its line.
        quoted = bool(calls) and self._is_quoted(text, start, end)
        if calls and not quoted and ((begins_line and ends_line) or ends_text):
            # At the end, one whose arguments do not fit is told: it is no answer.
            known = last and all(raw.name and is_known(raw.name, self.tools) for raw in calls)
            if self._take(calls, (start, end), sure=known):
                return end
            # Of a tool that does not exist: it may be an example as well.
            self.doubtful += map(_as_written, calls) if last else ()
        # Amid prose it may be an example; the run asks the model, if all of it could be carried out.
        elif calls:
            results = [check_raw(raw, self.tools) for raw in calls]
            fitting = [result for result in results if isinstance(result, ToolCall)]
            self.doubtful += fitting if len(fitting) == len(results) else []
        # A list may hold an object that is a call; behind an object that is none, what is inside of it is its data.
        return start + 1 if text[start] == "[" and not quoted else end

    def _unended_json(self, text: str, start: int) -> int:
        """Tell of a call in JSON that never ends, at the beginning of a line; return where to go on."""
        begins_line = not text[text.rfind("\n", 0, start) + 1 : start].strip()
        called = CALL_HEAD.match(text, start) if begins_line else None
        if called is None or not is_known(called["called"], self.tools) or self._is_quoted(text, start, len(text)):
            return start + 1
        self._leave_unread((start, len(text), called["called"]))
        return len(text)

    def _note(self, raws: list[Raw]) -> None:
        """Note calls that may be an example."""
        found = (check_raw(raw, self.tools) for raw in raws)
        self.doubtful += [call for call in found if isinstance(call, ToolCall)]

    def _is_quoted(self, text: str, start: int, end: int) -> bool:
        """Return whether a call stands in a quotation, a table, a comment or an element that is none of calls, or is
        announced as an example.
        """
        # A fence that opens behind words in the same line; what surrounds it counts, not its backticks.
        if fence := _LATE_FENCE.search(text, max(0, start - 2 * SHORT), start):
            start, end = fence.start(), end + len(_FENCE_END.match(text, end)[0])  # type: ignore[index] # also empty
        before = text[text.rfind("\n", 0, start) + 1 : start]
        end = tokens.end() if (tokens := _END_TOKENS_NEXT.match(text, end)) else end
        after = text[end : end + 1]
        # A quotation or a table of Markdown.
        if before.lstrip()[:1] in (">", "|"):
            return True
        if after and _QUOTES.get(before[-1:]) == after:
            return True
        if self._in_quoting_element(text, start, end):
            return True
        said = text[max(0, start - LONG) : start].rstrip().rpartition("\n")[2]
        sentence = _SENTENCE_END.split(said)[-1].strip()
        return _EXAMPLE.search(sentence) is not None and not _DOES.search(sentence)

    def _in_quoting_element(self, text: str, start: int, end: int) -> bool:
        """Return whether an element around a call quotes it. Tags within earlier calls are text of their arguments, and
        code in the text opens and closes none.
        """
        plain = _CODE.sub(lambda code: " " * len(code[0]), text[self._tags_read : start])
        for tag in _TAG.finditer(plain):
            name = "<!--" if tag["opens"] or tag["ends"] else tag["name"].lower()
            if name not in _QUOTING:
                continue
            if not tag["closes"] and not tag["ends"]:
                # Bounded, as a hostile reply opens thousands.
                self._open = [*self._open[-_DEEPEST:], name]
            elif name in self._open:
                del self._open[len(self._open) - 1 - self._open[::-1].index(name) :]
        self._tags_read = end
        # An element that is never closed behind the call does not quote it: `<p>` at the beginning of a reply.
        ends = text[start:].lower() if self._open else ""
        return any(("-->" if name == "<!--" else f"</{name}") in ends for name in self._open)

    def _take(self, raws: list[Raw], span: tuple[int, int], *, sure: bool) -> bool:
        """Add the calls. If it is not certain that they are meant as calls, all must fit or none counts."""
        results = [check_raw(raw, self.tools) for raw in raws]
        good = [result for result in results if isinstance(result, ToolCall)]
        bad = [result for result in results if isinstance(result, str)]
        # Silently: it was probably no call, and a complaint about it would confuse the model.
        if not sure and bad:
            return False
        # A marker of a dialect with nothing that can be read: surely meant, so the model is told.
        if sure and not raws:
            bad = ["A tool call could not be read. Write it exactly as told, as one JSON object."]
            self.unusable.append(ToolCall(UNREADABLE, {}))
        self.unusable += [
            _as_written(raw) for raw, result in zip(raws, results, strict=True) if isinstance(result, str)
        ]
        self.calls += good
        self.problems += bad
        self.spans.append(span)
        return True


def _as_written(raw: Raw) -> ToolCall:
    return ToolCall(bare_name(raw.name) or UNREADABLE, raw.arguments or {})


def _is_ruined(text: str, position: int) -> bool:
    """Return whether named arguments begin at `position` and no words stand in the lines below."""
    below = text[position:].split("\n")[1:] if _RUINED.match(text, position) else None
    return below is not None and not any(line[:1].isalpha() and not _GOES_ON.match(line) for line in below)


def _end_of_unread(text: str, match: re.Match[str], end: int) -> int:
    """Return the end of a call in a dialect of which nothing could be read: its closing tag, else that of the text."""
    name = _MARKER_NAME.match(match["marker"])
    close = text.find(f"</{name[1]}>", match.end()) if name else -1
    return max(end, close + len(name[1]) + 3 if name and close >= 0 else len(text))


def _end_tokens(text: str, position: int) -> int:
    """Return the end of the text when only end tokens follow `position`, else `position`."""
    return len(text) if _ONLY_END_TOKENS.match(text, position) else position
