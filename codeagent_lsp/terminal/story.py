"""Presentation of a run's events as lines: plan, steps, tool calls, the answer, problems.

Not here: prompts (`screen.py`) and the outcome (`summary.py`).
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


class Story:
    """Prints the events of one run."""

    def __init__(self, stage: Stage, language: str) -> None:
        self._stage = stage
        self._language = language
        self._after_tool = False
        self._calls: dict[str, Event] = {}
        self._tellers: dict[str, Callable[[Event], None]] = {
            "token": self._token,
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
        teller = self._tellers.get(event["type"])
        if teller is not None:
            teller(event)

    def _token(self, event: Event) -> None:
        if self._after_tool:
            self._after_tool = False
            self._stage.print(Text())
        self._stage.activity = text("progress.writing", self._language)
        self._stage.write(event["content"])

    def _tool_calls(self, event: Event) -> None:
        self._stage.flush()
        self._calls.update((str(call.get("id")), call) for call in event["calls"])
        self._stage.activity = " · ".join(map(tool_line, event["calls"]))

    def _tool_result(self, event: Event) -> None:
        call = self._calls.pop(str(event.get("call_id")), {"name": event["tool"]})
        name, _, subject = tool_line(call).partition(" ")
        colour = "green" if event["success"] else "red"
        line = Text.assemble(("  ● ", colour), visible(name), " ", (one_line(subject, SUBJECT_WIDTH), "dim"))
        if not event["success"]:
            line.append(f"\n    {one_line(event.get('error') or event.get('output') or '')}", style="red")
        self._stage.print(line)
        self._after_tool = True
        self._stage.activity = text("progress.thinking", self._language)

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
        self._stage.print(Text(visible(event.get("content", "")).rstrip("\n"), style="dim"))

    def _status(self, event: Event) -> None:
        self._stage.activity = event["message"]

    def _applied(self, event: Event) -> None:
        for place in event.get("conflicts", ()):
            self._stage.print(Text.assemble(("! ", "yellow"), visible(place)))


def _step_title(step: Event) -> str:
    return str(step.get("title") or step.get("description") or step.get("step_id") or "")
