"""Presentation of a run's events as lines: plan, steps, tool calls and what they print, the answer, problems.

A call's line is printed with its result, or before the first of its output. Of several attempts at once only the calls
are shown, with the attempt's number. Not here: prompts (`screen.py`) and the outcome (`summary.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.text import Text

from codeagent_lsp.terminal.safe import one_line, visible
from codeagent_lsp.terminal.stage import Stage
from codeagent_lsp.terminal.summary import tool_line
from codeagent_lsp.texts import text

SUBJECT_WIDTH = 100
ERROR_WIDTH = 500

Event = Mapping[str, Any]
_CallKey = tuple[str, str]
"""The ids of a run and of a call in it."""


class Story:
    """Prints the events of one run. `place` is the option that names its folder to other commands, '' for none;
    `answer` is the model's last one.
    """

    def __init__(self, stage: Stage, language: str, place: str = "") -> None:
        self.answer = ""
        self._answered = False
        self._stage = stage
        self._language = language
        self._place = place
        self._attempts: dict[str, int] = {}  # their numbers, by run
        self._calls: dict[_CallKey, Event] = {}  # those without a result
        self._named: set[_CallKey] = set()  # those of them that have their line
        self._tellers: dict[str, Callable[[Event], None]] = {
            "token": self._token,
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
            "changes_applied": self._applied,
            "response_end": lambda event: stage.flush(),
        }

    def tell(self, event: Event) -> None:
        """Show an event; unknown ones are ignored."""
        kind, run = event["type"], str(event.get("run_id", ""))
        if kind == "response_start" and event.get("attempt_of"):
            self._attempts[run] = int(event.get("attempt") or 0)
        teller = self._tellers.get(kind)
        if teller is not None and (run not in self._attempts or kind in ("tool_calls", "tool_result")):
            teller(event)

    def end(self) -> None:
        """Show the calls that will have no result, as the run is over."""
        self._name_calls()

    def _token(self, event: Event) -> None:
        self._stage.activity = text("progress.writing", self._language)
        self._stage.write(event["content"])
        self.answer = event["content"] if self._answered else self.answer + event["content"]
        self._answered = False

    def _end_answer(self, event: Event) -> None:
        self._stage.end_answer()
        self._answered = True

    def _tool_calls(self, event: Event) -> None:
        self._stage.flush()
        self._calls.update((_key(event, call.get("id")), call) for call in event["calls"])
        self._stage.activity = " · ".join(map(tool_line, event["calls"]))

    def _tool_result(self, event: Event) -> None:
        key = _key(event, event.get("call_id"))
        call = self._calls.pop(key, {"name": event["tool"]})
        problem = "" if event["success"] else one_line(event.get("error") or event.get("output") or "") or "–"
        if key not in self._named:
            self._print_call(key, call, "red" if problem else "green")
            problem = problem and f"    {problem}"
        else:
            self._stage.flush()
            self._named.remove(key)
            whose = f"{one_line(tool_line(call), SUBJECT_WIDTH)}: " if self._named else ""  # its line is not the last
            problem = problem and f"    ✗ {whose}{problem}"
        if problem:
            self._stage.print(Text(problem, style="red"))
        self._stage.activity = text("progress.thinking", self._language)

    def _name_calls(self) -> None:
        """Print the lines of the calls at work, with a mark that says nothing about their success."""
        for key, call in self._calls.items():
            if key not in self._named:
                self._print_call(key, call, "cyan")
                self._named.add(key)

    def _print_call(self, key: _CallKey, call: Event, colour: str) -> None:
        name, _, subject = tool_line(call).partition(" ")
        attempt = f"{self._attempts[key[0]]}: " if key[0] in self._attempts else ""
        line = Text.assemble(("  ● ", colour), (attempt, "dim"), visible(name))
        self._stage.print(line.append(f" {one_line(subject, SUBJECT_WIDTH)}".rstrip(), style="dim"))

    def _plan(self, event: Event) -> None:
        if not event.get("steps"):  # only the written plan has changed
            return
        head = text("terminal.plan", self._language)
        self._stage.print(Text.assemble((f"{head}: ", "cyan bold"), (one_line(str(event.get("goal", ""))), "bold")))
        for number, step in enumerate(event.get("steps", ()), 1):
            self._stage.print(Text.assemble((f"  {number}. ", "cyan"), one_line(_step_title(step))))
        self._stage.print(Text())

    def _step_started(self, event: Event) -> None:
        self._stage.activity = event.get("description", "")
        self._stage.print(Text.assemble(("▶ ", "cyan"), (one_line(self._stage.activity), "bold")))

    def _step_completed(self, event: Event) -> None:
        self._stage.print(Text.assemble(("✓ ", "green"), (f"{event.get('progress', 0)} %", "dim")))

    def _problem(self, event: Event) -> None:
        self._stage.print(Text.assemble(("! ", "yellow"), one_line(event["error"], ERROR_WIDTH)))

    def _output(self, event: Event) -> None:
        command = f"codeagent-lsp trace show --full --run {event.get('run_id', '')}{self._place}"
        self._name_calls()
        self._stage.output(
            event.get("content", ""),
            lambda count: text("terminal.left_out", self._language, count=f"{count:,}", command=command),
        )

    def _status(self, event: Event) -> None:
        self._stage.activity = event["message"]

    def _applied(self, event: Event) -> None:
        for place in event.get("conflicts", ()):
            self._stage.print(Text.assemble(("! ", "yellow"), visible(place)))


def _key(event: Event, call_id: Any) -> _CallKey:
    return str(event.get("run_id", "")), str(call_id)


def _step_title(step: Event) -> str:
    return str(step.get("title") or step.get("description") or step.get("step_id") or "")
