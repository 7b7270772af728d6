"""Detection of a call at the end of a reply in a form that is not read. It never runs, but the model gets a message
about it, so that a run does not end with such a text as its answer.

The spellings of other agents and languages are recognized: labels (`Tool: read_file`), elements (`<read_file/>`), code
of any language in a fence, JSON under other keys, YAML. Not here: the forms that are read (`toolcalls.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from codeagent_lsp.llm.calls import dialects, jsontext

_LONGEST = 20_000  # a reply that is one call in an unknown form is no longer
_HEAD = 400

_N = r"(?:functions\.|default_api\.|tools\.)?(?P<name>[A-Za-z_][\w.\-]*)"
_END = r"(?:\s|</s>|<\|\w+\|>|<｜[^｜]+｜>)*\Z"
# `await read_file(…)`, `const a = read_file({…})`, `print(read_file(…))`
_CODE = re.compile(
    rf"(?:(?:await|return|print\(|\[|(?:const |let |var )?\w+\s*=)\s*)*{_N}\s*\(.*\)[\s\]]*;?\Z", re.DOTALL
)
# `read_file {…}`, `#read_file {…}`, `read_file:0{…}`, the name in a line of its own
_BEFORE_JSON = re.compile(rf"[#>/@!\s]*`*{_N}(?::\d+)?`*\s*\{{.*\}}\Z", re.DOTALL)
_ELEMENTS = tuple(
    re.compile(form, re.DOTALL)
    for form in (
        rf"<{_N}\s*/>\Z",
        rf"<{_N}(?:\s[^<>]*)?>.*</(?P=name)>\Z",
        rf"<\w+\s[^<>]*?\b(?:name|tool)=[\"']?{_N}[\"']?[^<>]*>.*\Z",
        rf"<[\w:.\-]+>\s*{_N}\s*[({{].*\Z",
        rf"<[\w:.\-]+>\s*<(?:name|tool|tool_name)>\s*{_N}\s*</.*\Z",
        rf"<[\w:.\-]+>\s*print\(\s*{_N}\(.*\Z",
    )
)
# A label and the name fill a line; what follows is a line with a label of its own, an object, or nothing.
_LABELLED = re.compile(
    rf"^[ \t>*#\-✿]*(?P<label>[^\W\d_]\w*(?: \w+)?)[*✿]*\s*[:：][*]*[ \t]*[`\"'*]*{_N}[`\"'*]*(?=\s|\{{|\Z)",
    re.MULTILINE,
)
_INPUT_BELOW = re.compile(r"[ \t]*\n[ \t>*#]*(?:Action )?Input(?: \d+)?[*]*\s*:", re.IGNORECASE)
_BELOW = re.compile(r"[ \t]*(?:\n+[ \t>*#✿]*[^\W\d_][\w ]{0,24}[*✿]*[:：].*|\s*\{.*|\s*)\Z", re.DOTALL)
_DOING = re.compile(
    r"(?:action|tool|function|call|use)(?: \w+)?|行动|动作|操作|工具|函数|调用|工具名|函数名", re.IGNORECASE
)
_SETTING = re.compile(rf"(?:name|tool|tool_name|function|action)\s*[:=]\s*[\"']?{_N}[\"']?[ \t]*\n.*\Z", re.DOTALL)
_KEYED = re.compile(
    rf"[\"']?(?:name|tool|tool_name|toolName|action|function|function_name|recipient_name|command|method)[\"']?\s*:?\s*"
    rf"[\"']{_N}[\"']"
)
# Nobody but a caller of tools writes so.
_UNKNOWN_KEYED = re.compile(
    r"\{\s*[\"'](?:tool|tool_name|toolName|function|function_name|recipient_name|action)[\"']\s*:\s*[\"'](?P<name>[A-Za-z]\w*_\w+)[\"']"
)
_AS_ITEM = re.compile(rf"\[\s*[\"']{_N}[\"']\s*,\s*\{{")
# In the last line before a fence: the name of the tool that the object in it is for.
_NAMED_ABOVE = re.compile(rf"(?:^|\n)[#*`\s]*{_N}[`*:\s]*\Z")
_AS_KEY = re.compile(rf"\{{\s*[\"']{_N}[\"']\s*:\s*\{{")
_DESCRIBES = re.compile(r"[\"'](?:description|properties|input_?[sS]chema)[\"']\s*:")
# `[read_file(path="a", …`: it does not end.
_CUT = re.compile(rf"\[?\s*{_N}\([^()]*\)?\s*\Z")
_BEGINS_VALUE = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
_MOST_VALUES = 20
_JSON = re.compile(r"\{|\[\s*[{\[\"']")
_WORD = re.compile(r"[\w.\-]+")
_OPEN_FENCE = re.compile(
    r"^[ \t]*(`{3,}|~{3,})(?:json\w*|tool\w*|xml)?[ \t]*\n((?:(?!^[ \t]*\1).)*)\Z", re.MULTILINE | re.DOTALL
)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)\n[ \t]*\1[ \t]*\Z", re.MULTILINE | re.DOTALL)


class LooseCall(NamedTuple):
    """A call in a form that is not read: the name of its tool, and whether it is `sure`, as the reply is nothing else
    and so cannot be an answer with an example.
    """

    name: str
    sure: bool


def loose_call(text: str, is_tool: Callable[[str], bool]) -> LooseCall | None:
    """Return the call in an unknown form that seems to end `text`, a reply in which none was found; `is_tool` returns
    whether a name means a known tool. None if there is none, or the reply is longer than 20,000 characters.
    """
    reply = re.sub(_END, "", text.strip()) if len(text) <= _LONGEST else ""
    # An object that is all of the reply may have fences in its texts.
    if reply.endswith(("}", "]")) and _JSON.match(reply) and (name := _called_tool(reply, is_tool)):
        return LooseCall(name, sure=True)
    if (fence := list(_FENCE.finditer(reply))[-1:]) or (fence := list(_OPEN_FENCE.finditer(reply))[-1:]):
        body = fence[0][2].strip()
        above = _NAMED_ABOVE.search(reply, 0, fence[0].start())
        if above and is_tool(above["name"]) and body.startswith("{"):
            return LooseCall(above["name"], sure=False)
        if name := _called_tool(body, is_tool) or _unknown(body) or _marked_tool(body, is_tool):
            return LooseCall(name, sure=False)
        return None
    if (name := _called_tool(reply, is_tool)) or ((cut := _CUT.match(reply)) and is_tool(name := cut["name"])):
        return LooseCall(name, sure=True)
    if name := next(filter(None, (_called_tool(body, is_tool) for body in _last_values(reply))), "") or _unknown(reply):
        return LooseCall(name, sure=False)
    for match in _LABELLED.finditer(reply):
        doing = _DOING.fullmatch(match["label"]) is not None
        # An unknown name: with an underscore, it is none of a sentence.
        called = doing and ("_" in match["name"] or _INPUT_BELOW.match(reply, match.end()) is not None)
        named = is_tool(match["name"]) or called
        if named and _BELOW.match(reply, match.end()):
            return LooseCall(match["name"], sure=doing)
    return None


def _called_tool(body: str, is_tool: Callable[[str], bool]) -> str:
    """Return the tool that a text calls which is nothing but that call; '' if none."""
    if _JSON.match(body):
        head = body[:_HEAD]
        if _DESCRIBES.search(body):
            return ""
        found = [*_KEYED.finditer(head), *_AS_KEY.finditer(head), *_AS_ITEM.finditer(head)]
        return next((match["name"] for match in found if is_tool(match["name"])), "")
    forms = _ELEMENTS if body.startswith("<") else (_CODE, _BEFORE_JSON, _SETTING)
    matches = (form.match(body) for form in forms)
    return next((match["name"] for match in matches if match and is_tool(match["name"])), "")


def _marked_tool(body: str, is_tool: Callable[[str], bool]) -> str:
    """Return the tool of a call that begins with the marker of a dialect, or with its name, and cannot be read; '' if
    there is none.
    """
    cut = _CUT.match(body)
    if cut is not None and is_tool(cut["name"]):
        return cut["name"]
    marker = next((marker for marker in dialects.READERS if body.startswith(marker)), "")
    if not marker:
        return ""
    read, _ = dialects.READERS[marker](body, 0)
    known = (word for word in _WORD.findall(body[:_HEAD]) if is_tool(word))
    return next((raw.name for raw in read), "") or next(known, "a tool")


def _last_values(reply: str) -> Iterator[str]:
    """Return the JSON objects and lists that begin a line and end the reply."""
    for begin in islice(_BEGINS_VALUE.finditer(reply), _MOST_VALUES):
        if jsontext.span(reply, begin.end() - 1) == len(reply):
            yield reply[begin.end() - 1 :]


def _unknown(body: str) -> str:
    """Return the name of a tool that does not exist, where JSON has exactly the shape of a call."""
    if body[:1] not in ("{", "["):
        return ""
    if named := _UNKNOWN_KEYED.match(body):
        return named["name"]
    try:
        calls = dialects.from_value(jsontext.loads(body))
    except ValueError:
        return ""
    return calls[0].name if calls else ""
