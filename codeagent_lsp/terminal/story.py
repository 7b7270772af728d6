"""Presentation of a run's events as lines: plan, steps, tool calls and what they print, the answer, problems.

A call's line is printed with its result, or before the first of its output. What tests print is shown only while they
run: their result says it in a line, or what failed. Of several attempts at once only the calls are shown, with the
attempt's number. Not here: prompts (`screen.py`) and the outcome (`summary.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from codeagent_lsp.events.call_words import call_words
from codeagent_lsp.terminal.display import in_terminal, one_line, visible
from codeagent_lsp.terminal.stage import FEW_LINES, Stage
from codeagent_lsp.texts import text

SUBJECT_WIDTH = 100
ERROR_WIDTH = 500
REPORT_LINES = 15
MESSAGE_LINES = 6
_GAP = "    [...]"
TOLD_BY_RESULT = ("run_tests",)
"""Tools whose result tells the user more, and shorter, than what their commands print."""
ASKING = ("approval_requested", "question_asked")
"""The events that the screen shows as questions."""
COUNT_WIDTH = 4
"""Room for the number of a line that comes often."""
SHORTEST_SUBJECT = 20

Event = Mapping[str, Any]
_CallKey = tuple[str, str]
"""The ids of a run and of a call in it."""


@dataclass(slots=True)
class _Call:
    """A call without a result: as the model `asked` for it, in which `reply`, and whether its line is printed."""

    reply: int
    asked: Event
    named: bool = False


class Story:
    """Prints the events of one run on a stage. `place` is the option that names its folder to other commands, '' for
    none; `answer` is the model's last one.
    """

    def __init__(self, stage: Stage, language: str, place: str = "") -> None:
        self.answer = ""
        self._answered = False
        self._stage = stage
        self._language = language
        self._place = place
        self._attempts: dict[str, int] = {}  # their numbers, by run
        self._calls: dict[_CallKey, _Call] = {}  # those without a result
        self._reply = 0
        self._above: _CallKey | None = None  # whose output the next line is, if it is output
        self._tellers: dict[str, Callable[[Event], None]] = {
            "token": self._token,
            "response_start": self._show_thinking,
            "thought": self._show_thinking,
            "usage": self._end_answer,
            "tool_calls": self._tool_calls,
            "tool_result": self._tool_result,
            "plan_created": self._plan,
            "plan_modified": self._plan,
            "step_started": self._step_started,
            "step_completed": self._step_completed,
            "step_error": self._problem,
            "step_output": self._output,
            "stdout": self._output,
            "stderr": self._output,
            "error": self._problem,
            "status": self._status,
            "response_end": lambda event: stage.flush(),
        }

    def tell(self, event: Event) -> None:
        """Show an event, plain data in the form of the protocol; types that are not known are ignored, as are most
        events of attempts.
        """
        kind, run = event["type"], str(event.get("run_id", ""))
        if kind == "response_start" and event.get("attempt_of"):
            self._attempts[run] = int(event.get("attempt") or 0)
        if kind in ASKING:
            self._above = None
        teller = self._tellers.get(kind)
        if teller is not None and (run not in self._attempts or kind in ("tool_calls", "tool_result")):
            teller(event)

    def end(self) -> None:
        """Show the calls that will get no result, as the run is over; to be called once, after the last event."""
        for key, call in self._calls.items():
            if not call.named:
                self._begin(key, "●")

    def _token(self, event: Event) -> None:
        self._above = None
        self._stage.activity = text("progress.writing", self._language)
        self._stage.write(event["content"])
        self.answer = event["content"] if self._answered else self.answer + event["content"]
        self._answered = False

    def _show_thinking(self, event: Event) -> None:
        self._stage.activity = text("progress.thinking", self._language)

    def _end_answer(self, event: Event) -> None:
        self._stage.end_answer()
        self._answered = True

    def _tool_calls(self, event: Event) -> None:
        self._stage.flush()
        self._reply += 1
        for call in event["calls"]:
            self._calls[_key(event, call.get("id"))] = _Call(self._reply, call)
        self._tell_activity()

    def _tool_result(self, event: Event) -> None:
        key = _key(event, event.get("call_id"))
        call = self._calls.pop(key, None) or _Call(self._reply, {"name": event["tool"]})
        failed, summary = not event["success"], one_line(event.get("summary") or "")
        # Of an error the first line: the others tell the model what to do.
        said = str(event.get("error") or event.get("output") or "").strip()
        problem = (one_line(said.partition("\n")[0]) or "–") if failed else ""
        if failed and summary:
            self._print(self._line(key, call, "✗", "red", summary))
            if event.get("status") != "denied":  # else the output speaks to the model
                self._print_report(event)
        elif failed and not call.named:
            self._print(self._line(key, call, "✗", "red"))
            self._print(Text(f"    {problem}", style="red"))
        elif failed:
            whose = "" if self._above == key else f"{one_line(call_words(call.asked), SUBJECT_WIDTH)}: "
            self._print(Text(f"    ✗ {whose}{problem}", style="red"))
        elif summary:
            self._print(self._line(key, call, "✓", "green", summary))
        elif not call.named:
            self._stage.print_often(self._line(key, call, "●", "green"))
        elif self._above == key:
            self._stage.flush()
        self._above = None
        self._tell_activity()

    def _begin(self, key: _CallKey, mark: str) -> None:
        """Print the line of a call at work, above what it prints."""
        call = self._calls[key]
        self._print(self._line(key, call, mark, "cyan"))
        self._above, call.named = key, True

    def _tell_activity(self) -> None:
        """Name the calls that have no result yet; the first of them is at work."""
        lines = dict.fromkeys(call_words(call.asked) for call in self._calls.values())
        self._stage.activity = " · ".join(lines) or text("progress.thinking", self._language)

    def _line(self, key: _CallKey, call: _Call, mark: str, colour: str, summary: str = "") -> Text:
        """Return the line of a call; on a terminal its subject is cut so that it is one line."""
        name, _, subject = call_words(call.asked).partition(" ")
        attempt = f"{self._attempts[key[0]]}: " if key[0] in self._attempts else ""
        line = Text.assemble((f"  {mark} ", colour), (attempt, "dim"), visible(name))
        end = Text(f": {summary}" if summary else "", style="red" if mark == "✗" else "")
        shown = Text(f" {one_line(subject, SUBJECT_WIDTH)}".rstrip(), style="dim")
        if self._stage.console.is_terminal:
            room = self._stage.console.width - line.cell_len - end.cell_len - COUNT_WIDTH
            shown.truncate(max(SHORTEST_SUBJECT, room), overflow="ellipsis")
        return line.append_text(shown).append_text(end)

    def _print(self, line: Text) -> None:
        self._above = None
        self._stage.print(line)

    def _plan(self, event: Event) -> None:
        if not event.get("steps"):  # only the written plan has changed
            return
        head = text("terminal.plan", self._language)
        self._print(Text.assemble((f"{head}: ", "cyan bold"), (one_line(str(event.get("goal", ""))), "bold")))
        for number, step in enumerate(event.get("steps", ()), 1):
            self._print(Text.assemble((f"  {number}. ", "cyan"), one_line(_step_title(step))))
        self._print(Text())

    def _step_started(self, event: Event) -> None:
        self._stage.activity = event.get("description", "")
        self._print(Text.assemble(("▶ ", "cyan"), (one_line(self._stage.activity), "bold")))

    def _step_completed(self, event: Event) -> None:
        self._print(Text.assemble(("✓ ", "green"), (f"{event.get('progress', 0)} %", "dim")))

    def _problem(self, event: Event) -> None:
        self._print(Text.assemble(("! ", "yellow"), one_line(in_terminal(event["error"]), ERROR_WIDTH)))

    def _output(self, event: Event) -> None:
        """Show what a command prints, below the line of its call: anew where something else stands between."""
        key = self._at_work(str(event.get("run_id", "")))
        if key is not None and self._calls[key].asked.get("name") in TOLD_BY_RESULT:
            self._stage.output(event.get("content", ""))
            return
        if key is not None and key != self._above:
            self._begin(key, "⋯" if self._calls[key].named else "●")
        self._stage.output(event.get("content", ""), lambda count: self._left_out(event, count))

    def _print_report(self, event: Event) -> None:
        """Print what a result says below its first line; the first failures matter most, and of each its end."""
        lines = event.get("output", "").splitlines()[1:]
        if len(lines) <= REPORT_LINES + FEW_LINES:
            self._stage.print_output(lines)
            return
        shown = _without_middles(lines)[:REPORT_LINES]
        left_out = len(lines) - sum(line != _GAP for line in shown)
        self._stage.print_output([*shown, self._left_out(event, left_out)])

    def _left_out(self, event: Event, count: int) -> str:
        command = f"codeagent-lsp trace show --full --run {event.get('run_id', '')}{self._place}"
        return text("terminal.left_out", self._language, count=f"{count:,}", command=command)

    def _at_work(self, run: str) -> _CallKey | None:
        """Return the call that prints now: calls that print run one after the other, those of an agent within the call
        that has started it.
        """
        keys = [key for key in self._calls if key[0] == run]
        last = max((self._calls[key].reply for key in keys), default=0)
        return next((key for key in keys if self._calls[key].reply == last), None)

    def _status(self, event: Event) -> None:
        self._stage.activity = event["message"]


def _key(event: Event, call_id: Any) -> _CallKey:
    return str(event.get("run_id", "")), str(call_id)


def _without_middles(lines: list[str]) -> list[str]:
    """Return the lines of failed tests, each a line and its indented message; of a long message the end, which says
    what was wrong.
    """
    failures: list[list[str]] = []
    for line in lines:
        if failures and line[:1].isspace():
            failures[-1].append(line)
        else:
            failures.append([line])
    shown: list[str] = []
    for head, *message in failures:
        shown += [head, *(message if len(message) <= MESSAGE_LINES + 1 else (_GAP, *message[-MESSAGE_LINES:]))]
    return shown


def _step_title(step: Event) -> str:
    return str(step.get("title") or step.get("description") or step.get("step_id") or "")
