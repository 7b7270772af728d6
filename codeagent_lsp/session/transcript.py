"""Renders a session as Markdown, and as the events with which a client shows it again. Pure.

Requests, answers, tool calls and decisions are in it. Text of a model or a file may reach a document that an editor
renders, so untrusted Markdown is made inert: nothing in it loads or runs, and links lead only to the web or to a file.
Images, HTML that loads or runs something, and links with schemes such as `command:` are escaped so that they show as
text. Code blocks stay as they are, but only where every renderer agrees on what is code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import UNFINISHED
from codeagent_lsp.events.call_words import call_words
from codeagent_lsp.session.request import short_title
from codeagent_lsp.texts import text

MOST_CHARACTERS = 4_000_000
"""Of what is told of a session; the oldest runs are left out beyond it."""
MOST_OF_TEXT = 20_000

_LINE_END = re.compile(r"(\r\n|\n|\r)")
# A fence whose rest has none of its signs: "```a`b" is inline code for some renderers.
_FENCE = re.compile(r"(```+|~~~+)[^`~]*$")
_FENCE_SIGN = re.compile(r"```|~~~")
_HTML_BLOCK = re.compile(r"[\s>*+\-\d.)]*<[A-Za-z/!?]")

_IMAGE = re.compile(r"!\[")
# Any link but `](https://…`, `](<http://…` and plain relative paths. `\s*+` gives nothing back: else the blank in
# `]( command:…` would pass as the end of an empty path.
# Nor is `//host/share` one: behind `file:` it names another machine.
_LINK = re.compile(r"\]\((?!\s*+(?:<?https?://|(?!//)[\w./#-]*[)\s]))", re.IGNORECASE)
# `[x]: command:…`, by the same rule: the address may be in the next line, and entities and escapes stand anywhere in it
# (`[x]: command&#58;…`).
_DEFINITION = re.compile(r"\]:(?!\s*+(?:<?https?://|(?!//)[\w./#-]+(?:\s|$)))", re.IGNORECASE)
# A tag with an attribute (`<p onclick=`), one that goes on in the next line, the elements that load or run, those that
# swallow the text behind them or make a block that only their end closes, `<!--`, `<?`. A `<` behind the name does not
# end a tag: to a browser, `<p<b onclick=…>` is one.
_HTML = re.compile(
    r"<(?=[A-Za-z][^>=]*(?:=|$)|/?(?:pre|script|style|svg|math|iframe|frame|object|embed|base|link|meta|form|img|applet"
    r"|textarea|title|plaintext|xmp|template|noscript|noembed|noframes|frameset|dialog|select|marquee|portal)\b|[!?])",
    re.IGNORECASE,
)
# `<command:…>`, but not `<https://…>`.
_AUTOLINK = re.compile(r"<(?=(?!https?://)[A-Za-z][A-Za-z0-9+.-]*:)", re.IGNORECASE)


def render(stream: Iterable[events.Event], language: str = "en") -> str:
    """Return the whole transcript of a session's events as inert Markdown, in the language `en` or `zh-cn`; '' if they
    say nothing.
    """
    return "".join(part for event in stream if (part := block(event, language)))


def block(event: events.Event, language: str = "en") -> str:
    """Return the text that one event adds to the transcript, inert, in the language `en` or `zh-cn`; '' if it adds
    nothing. A fence that it leaves open is closed: what is added later would be code or not against what it was judged
    to be.
    """
    shown = inert(_block(event, language))
    fence = _open_fence(shown)
    return f"{shown.rstrip()}\n{fence}\n\n" if fence else shown


def replay_events(stream: Sequence[events.Event]) -> tuple[list[dict[str, Any]], bool]:
    """Return the events, as plain data, with which a client shows a session again: whole runs from the end as far as
    they fit into 4,000,000 characters, at least one, and whether some did not. Texts are cut at 20,000 characters; of a
    file's changes only the last is kept, if it is undecided.
    """
    last = {(event.run_id, event.path): event.seq for event in stream if isinstance(event, events.FileChanged)}
    told = [data for event in stream for data in _replay_event(event, last)]
    sizes: dict[str, int] = {}
    for data in told:
        sizes[data["run_id"]] = sizes.get(data["run_id"], 0) + len(str(data))
    room = MOST_CHARACTERS
    kept: set[str] = set()
    for run_id in reversed(sizes):
        room -= sizes[run_id]
        if room < 0 and kept:
            break
        kept.add(run_id)
    return [data for data in told if data["run_id"] in kept], len(kept) < len(sizes)


def _replay_event(event: events.Event, last: Mapping[tuple[str, str], int]) -> Iterable[dict[str, Any]]:
    """Yield what one event shows as plain data; `last` has the number of a file's last change."""
    match event:
        case events.FileChanged() if event.change is None or last[event.run_id, event.path] != event.seq:
            return
        case events.FileChanged():
            yield events.to_dict(event)  # it is compared with the file: all of it counts
        case events.MessageAdded() if event.message.get("role") == "assistant" and _words_of(event.message):
            head = {"session_id": event.session_id, "run_id": event.run_id, "seq": event.seq, "ts": event.ts}
            yield {"type": "token", **head, "content": _words_of(event.message)}
        case events.ChangesApplied():
            yield {key: value for key, value in events.to_dict(event).items() if key != "stayed"} | {"applied": []}
        case events.SessionForked():
            for earlier in _earlier_runs(event):
                yield from _replay_event(earlier, last)
        case _ if not event.internal or isinstance(event, events.RunStarted):
            yield _cut(events.to_dict(event))


def _earlier_runs(event: events.SessionForked) -> Iterable[events.Event]:
    """Yield the talk that a fork began with as runs of which nothing but the words is known, one for each request."""
    head: dict[str, Any] = {"session_id": event.session_id, "seq": event.seq, "ts": event.ts}
    number, run_id = 0, ""
    for who, words in _talk(event):
        if who == "user":
            if run_id:
                yield events.RunCompleted(**head, run_id=run_id)
            number, run_id = number + 1, f"{event.session_id}-earlier-{number + 1}"
            yield events.RunStarted(**head, run_id=run_id, title=short_title(words, str), task=words, earlier=True)
        elif run_id:
            yield events.MessageAdded(**head, run_id=run_id, message={"role": who, "content": words})
    if run_id:
        yield events.RunCompleted(**head, run_id=run_id)


def _talk(event: events.SessionForked) -> Iterable[tuple[str, str]]:
    """Yield who said what, `user` or `assistant`; what the user did not write themselves has a name."""
    for message in event.messages:
        who, words = message.get("role"), _words_of(message).strip()
        if words and (who == "assistant" or (who == "user" and not message.get("name"))):
            yield who, words


def _words_of(message: Mapping[str, Any]) -> str:
    """Return the words of a message, '' for those that only tell the model where it was stopped."""
    words = str(message.get("content") or "")
    return "" if words == UNFINISHED else words


def _cut(value: Any) -> Any:
    """Return the value with each long text in it cut."""
    if isinstance(value, str):
        return value if len(value) <= MOST_OF_TEXT else f"{value[:MOST_OF_TEXT]}…"
    if isinstance(value, Mapping):
        return {name: _cut(item) for name, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value


def _block(event: events.Event, language: str) -> str:
    match event:
        case events.RunStarted():
            return f"\n## {_line(event.title or event.task)}\n\n{_quote(event.task)}"
        case events.Steered():
            return f"\n{_quote(event.text)}"
        case events.MessageAdded() if event.message.get("role") == "assistant":
            content = _words_of(event.message).strip()
            return f"\n{content}\n\n" if content else ""  # after a list of calls, it would join the last one
        case events.ToolCalls():
            return "".join(f"- `{_call(call)}`\n" for call in event.calls)
        case events.ToolFinished(success=False):
            said = text("record.failed", language, tool=event.tool, error=_line(event.error or event.output))
            return f"  - {said}\n"
        case events.QuestionAnswered() | events.ApprovalResolved():
            answer = event.answer if event.answer is not None else text("record.no_answer", language)
            return f"\n> {answer}\n\n"
        case events.QuestionAsked() | events.ApprovalRequested():
            return f"\n**{_line(event.title)}**\n"
        case events.ChangesApplied():
            whole = "undone" if event.undo else event.verdict or "applied"
            done = whole if event.outcome == "full" else event.outcome
            return f"\n*{text(f'record.{done}', language, count=len(event.files_changed))}*\n\n"
        case events.ChangesDiscarded():
            return f"\n*{text('record.discarded', language, count=len(event.files_changed))}*\n\n"
        case events.FileRunStarted():
            return f"`{_line(event.command).replace('`', chr(39))}`\n\n"
        case events.Stdout() | events.Stderr():
            # Indented, not fenced: output may have fences itself.
            return "".join(f"    {line}\n" for line in event.content.splitlines())
        case events.FileRunExit():
            said = text("record.exit", language, code=event.exit_code, seconds=f"{event.duration:.1f}")
            return f"\n*{said}*\n\n"
        case events.RunCompleted() if event.error:
            return f"\n**{_line(event.error)}**\n\n"
        case events.RunCompleted(status="completed" | "waiting"):
            return ""
        case events.RunCompleted():
            said = text(f"record.ended.{event.status}", language)
            return f"\n*{said} {event.summary}".rstrip() + "*\n\n"
        case events.SessionForked():
            return "".join(_quote(words) if who == "user" else f"\n{words}\n\n" for who, words in _talk(event))
        case events.SessionRestored():
            return f"\n*{text('record.restored', language)}*\n\n"
    return _plan_block(event, language)


def _plan_block(event: events.Event, language: str) -> str:
    match event:
        case events.PlanCreated():
            steps = "".join(
                f"{number}. {_line(str(step.get('title', '')))}\n" for number, step in enumerate(event.steps, 1)
            )
            return f"\n**{_line(event.goal)}**\n\n{steps}\n"
        case events.StepStarted():
            return f"\n### {_line(event.step_id)}. {_line(event.description)}\n\n"
        case events.StepError():
            said = text("record.step_failed", language, step=_line(event.step_id), error=_line(event.error))
            return f"\n*{said}*\n\n"
        case events.PlanModified(rolled_back_to=str(step_id)):
            return f"\n*{text('record.rolled_back', language, step=step_id)}*\n\n"
        case events.ReplanWarning():
            return f"\n*{text('record.replanned', language)}*\n\n"
    return ""


def _quote(task: str) -> str:
    return "".join(f"> {line}\n" for line in task.strip().split("\n")) + "\n" if task.strip() else ""


def _line(value: str) -> str:
    return " ".join(value.split())


def _call(call: Mapping[str, Any]) -> str:
    return _line(call_words(call)).replace("`", "'")[:120]


def inert(markdown: str) -> str:
    """Return `markdown` with images, active HTML and links that are not safe escaped, so that they show as text; code
    blocks and line ends stay as they are.
    """
    pieces = _LINE_END.split(markdown)
    lines, ends = pieces[::2], [*pieces[1::2], ""]
    code = _code_lines(lines)
    return "".join((line if kept else _neutral(line)) + end for line, end, kept in zip(lines, ends, code, strict=True))


def _code_lines(lines: list[str]) -> list[bool]:
    """Return for each line whether it is certainly code; False for all if a fence or HTML is ambiguous."""
    fence, found = "", []
    for line in lines:
        opened = _FENCE.match(line)
        if fence:
            found.append(True)
            if opened and line.rstrip(" \t") == opened[1] and opened[1].startswith(fence):
                fence = ""
            continue
        if not opened and (_FENCE_SIGN.search(line) or _HTML_BLOCK.match(line)):
            # A fence inside a list or a quote opens code for some renderers only: then nothing counts as code, all is
            # escaped.
            return [False] * len(lines)
        fence = opened[1] if opened else ""
        found.append(opened is not None)
    return found


def _open_fence(markdown: str) -> str:
    """Return the fence that is open at the end of a text, '' if there is none."""
    fence = ""
    for line in _LINE_END.split(markdown)[::2]:
        opened = _FENCE.match(line)
        if opened and not fence:
            fence = opened[1]
        elif opened and line.rstrip(" \t") == opened[1] and opened[1].startswith(fence):
            fence = ""
    return fence


def _neutral(line: str) -> str:
    line = _DEFINITION.sub(r"]\\:", line)
    line = _IMAGE.sub(r"!\\[", line)
    line = _LINK.sub(r"]\\(", line)
    return _AUTOLINK.sub("&lt;", _HTML.sub("&lt;", line))  # a backslash could meet one that is there already
