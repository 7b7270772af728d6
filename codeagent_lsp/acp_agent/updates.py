"""Events of our sessions as updates of the Agent Client Protocol: text, thoughts, tool calls with kinds, places and
diffs, plan, usage. Each object follows one session. Pure: sending is not here (`open_session.py`), nor are questions
(`questions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from acp import schema
from acp.helpers import (
    text_block,
    tool_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_user_message_text,
)

from codeagent_lsp.events.call_words import call_words
from codeagent_lsp.texts import text
from codeagent_lsp.tools.permissions.approvals import exactly
from codeagent_lsp.workspace.text.visible import cut, some_of

Kind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
Update = Any
"""One of the library's models of an update."""

MOST_OUTPUT = 16_000
MOST_TITLE = 200
MOST_CONFLICTS = 5
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("read_file", "read_files", "list_dir", "get_diagnostics", "hover", "preview_edit"), "read"),
    **dict.fromkeys(("git_diff", "git_log", "output", "skill_loader", "ast_extract_function"), "read"),
    **dict.fromkeys(("edit_file", "write_file", "apply_patch", "undo_patch", "batch_edit", "edit_by_ast"), "edit"),
    **dict.fromkeys(("rename_symbol", "code_actions", "import_file", "generate_tests"), "edit"),
    **dict.fromkeys(("grep", "glob_file_search", "search_semantic", "find_definition", "find_references"), "search"),
    **dict.fromkeys(("call_graph", "dependency_graph", "ast_find_symbols", "ast_parse", "type_hierarchy"), "search"),
    **dict.fromkeys(("run_cmd", "run_tests", "analyze_coverage", "terminal", "desktop", "stop"), "execute"),
    **dict.fromkeys(("todowrite", "todoread", "create_plan", "plan_update", "delegate"), "think"),
    **dict.fromkeys(("web_search", "web_scrape"), "fetch"),
    **dict.fromkeys(("plan_enter", "plan_exit"), "switch_mode"),
    "move_file": "move",
    "delete_file": "delete",
}
_STATES = {"running": "in_progress", "in_progress": "in_progress", "completed": "completed", "failed": "completed"}
_ENDED = ("failed", "skipped", "cancelled")
_PATHS = ("path", "new_path", "file_path")


@dataclass(slots=True)
class _Call:
    """A tool call that has no result yet; `output` is what its command has printed, `diffs` what it has staged."""

    kind: Kind
    output: str = ""
    diffs: list[Any] = field(default_factory=list)


class Updates:
    """Turns the events of one session into updates for the client. `folder` is the session's, `shown` writes a path as
    the client does; `window` is that of the model in tokens, 0 if unknown; `staged` has the undecided changes of each
    run, by path.
    """

    def __init__(self, folder: Path, language: str, shown: Callable[[str], str] = str) -> None:
        self.window = 0
        self.staged: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._folder = folder
        self._shown = shown
        self._language = language
        self._calls: dict[str, _Call] = {}  # those at work, by their ids
        self._steps: list[dict[str, Any]] = []
        self._said = ""
        self._cost = 0.0
        self._asked: dict[str, str] = {}  # by run, the tool call under which its changes are asked about

    def of(self, event: Mapping[str, Any]) -> list[Update]:
        """Return the updates for an event, plain data with `type`, in order; [] for one that the client is not shown.
        Changes what later calls return.
        """
        handler = getattr(self, f"_on_{event['type']}", None)
        return [] if handler is None else list(handler(event))

    def output(self) -> list[Update]:
        """Return updates with what the running commands have printed so far; [] if none has printed anything."""
        return [self._progress(name, call) for name, call in self._calls.items() if call.output]

    def asked(self, run_id: str, call_id: str) -> None:
        """Note that the user is asked about the changes of a run under this tool call, which `undecided` ends."""
        self._asked[run_id] = call_id

    def undecided(self, run_id: str) -> list[Update]:
        """Return the update that ends the tool call that asked about a run's changes, if they were neither applied nor
        discarded; [] if there is none.
        """
        asked = self._asked.pop(run_id, None)
        if asked is None:
            return []
        return [schema.ToolCallProgress(session_update="tool_call_update", tool_call_id=asked, status="failed")]

    def diffs(self, run_id: str) -> list[Any]:
        """Return all that a run has staged and not decided, as content for the client: a diff for each file, and words
        for one that becomes executable or no longer; [] for an unknown run.
        """
        return self._diffs(self.staged.get(run_id, {}).values())

    def decided(self, event: Mapping[str, Any]) -> None:
        """Forget the changes that the event, a `changes_applied` or `changes_discarded`, says were decided about; what
        the editor refused, or was not chosen, waits as before.
        """
        gone = set(event["files_changed"]) - set(event.get("partly") or ()) - set(event.get("unconfirmed") or ())
        # A part that is left of one of these files is told of next, by a `file_change`.
        for path in () if event.get("undo") else gone:
            self.staged.get(event.get("run_id", ""), {}).pop(path, None)

    def places(self, run_id: str) -> list[schema.ToolCallLocation]:
        """Return the files of `diffs` as locations of the protocol, by the paths that the client writes."""
        return [schema.ToolCallLocation(path=self._shown(path)) for path in self.staged.get(run_id, {})]

    # The conversation.

    def _on_run_started(self, event: Mapping[str, Any]) -> Iterable[Update]:
        self._said = ""
        words = event.get("task") or event.get("title") or ""
        return [update_user_message_text(words)] if words else []

    def _on_response_start(self, event: Mapping[str, Any]) -> Iterable[Update]:
        self._said, self._steps = "", []
        return []

    def _on_token(self, event: Mapping[str, Any]) -> Iterable[Update]:
        self._said += event["content"]
        return [update_agent_message_text(event["content"])]

    def _on_thought(self, event: Mapping[str, Any]) -> Iterable[Update]:
        return [update_agent_thought_text(event["content"])]

    def _on_run_completed(self, event: Mapping[str, Any]) -> Iterable[Update]:
        """Say how a run ended where its own words do not."""
        yield from self._close_calls()
        yield from self.undecided(event.get("run_id", ""))
        words = event.get("error") or event.get("summary") or ""
        # The summary of an answer is the answer, which was streamed already.
        if words.strip() and words.strip() not in self._said:
            yield update_agent_message_text(f"\n\n{words}" if self._said else words)
        self._said = ""

    def _on_anomaly_detected(self, event: Mapping[str, Any]) -> Iterable[Update]:
        return [update_agent_message_text(f"\n\n{event['detail']}\n\n")] if event.get("detail") else []

    def _on_usage(self, event: Mapping[str, Any]) -> Iterable[Update]:
        self._cost += event.get("cost") or 0.0
        used = event.get("prompt_tokens", 0) + event.get("completion_tokens", 0)
        if not self.window:
            return []
        cost = schema.Cost(amount=round(self._cost, 6), currency="USD") if self._cost else None
        return [schema.UsageUpdate(session_update="usage_update", used=used, size=self.window, cost=cost)]

    # Tools.

    def _on_tool_calls(self, event: Mapping[str, Any]) -> Iterable[Update]:
        for call in event.get("calls", ()):
            name, arguments = call.get("name", ""), call.get("arguments") or {}
            self._calls[call["id"]] = _Call(_kind(name))
            yield schema.ToolCallStart(
                session_update="tool_call",
                tool_call_id=call["id"],
                title=_line(call_words(call)),
                kind=_kind(name),
                status="in_progress",
                locations=self._places(arguments) or None,
                raw_input=dict(arguments),
            )

    def _on_step_output(self, event: Mapping[str, Any]) -> Iterable[Update]:
        """Keep the output; it is asked for by `output`, as it may come in a thousand pieces a second."""
        running = [call for call in self._calls.values() if call.kind in ("execute", "other")]
        if running:
            running[0].output = (running[0].output + event["content"])[-MOST_OUTPUT:]
        return []

    def _on_file_change(self, event: Mapping[str, Any]) -> Iterable[Update]:
        change, run_id = event.get("change"), event.get("run_id", "")
        staged = self.staged.setdefault(run_id, {})
        before = staged.pop(event["path"], None)
        if change is None:
            return
        staged[event["path"]] = change
        name = next((name for name, call in self._calls.items() if call.kind not in ("read", "search")), None)
        if name is not None:
            # What this call has changed: the calls before it have shown their part.
            own = change if before is None else _since(change, before)
            self._calls[name].diffs += self._diffs([own])
            yield self._progress(name, self._calls[name])

    def _on_tool_result(self, event: Mapping[str, Any]) -> Iterable[Update]:
        name = event.get("call_id") or next(iter(self._calls), None)
        call = self._calls.pop(name, None) if name else None
        if event.get("todos") is not None:
            yield from self._todo_plan(event["todos"])
        if name is None or call is None:
            return
        words = event.get("error") or event.get("summary") or event.get("output") or ""
        shown = words if call.kind != "execute" else event.get("output") or call.output or words
        yield schema.ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=name,
            status="completed" if event.get("success", True) else "failed",
            content=[*call.diffs, *_as_content(shown)],
        )

    def _diffs(self, changes: Iterable[Mapping[str, Any]]) -> list[Any]:
        """Return changes as diffs; a deleted file is one whose new text is empty. That a file can be executed then, or
        no longer, is said in words: the protocol's diffs have no modes.
        """
        shown: list[Any] = []
        for change in changes:
            path, before, after, runs = change["path"], change.get("base"), change.get("text"), change.get("runs")
            if runs is None or before != after or change.get("moved_from"):
                shown.append(
                    schema.FileEditToolCallContent(
                        type="diff", path=self._shown(path), old_text=before, new_text=after or ""
                    )
                )
            if runs is not None:
                key = "changes.executable" if runs else "changes.not_executable"
                shown.append(tool_content(text_block(text(key, self._language, names=self._relative(path)))))
        return shown

    def _relative(self, path: str) -> str:
        """Return a path as it is named to the user."""
        inside = Path(path).is_relative_to(self._folder)
        return exactly(str(Path(path).relative_to(self._folder)) if inside else self._shown(path))

    def _progress(self, name: str, call: _Call) -> Update:
        return schema.ToolCallProgress(
            session_update="tool_call_update", tool_call_id=name, content=[*call.diffs, *_as_content(call.output)]
        )

    def _close_calls(self) -> Iterable[Update]:
        """End what has no result: the run was stopped."""
        for name in self._calls:
            yield schema.ToolCallProgress(session_update="tool_call_update", tool_call_id=name, status="failed")
        self._calls.clear()

    def _places(self, arguments: Mapping[str, Any]) -> list[schema.ToolCallLocation]:
        line = arguments.get("start_line")
        return [
            schema.ToolCallLocation(
                path=self._shown(str(self._folder / given)), line=line if isinstance(line, int) else None
            )
            for name in _PATHS
            if isinstance(given := arguments.get(name), str) and given
        ]

    # What becomes of changes.

    def _on_changes_applied(self, event: Mapping[str, Any]) -> Iterable[Update]:
        run_id, applied = event.get("run_id", ""), event.get("applied") or ()
        asked = self._asked.pop(run_id, None)
        status: Any = "completed" if event.get("outcome") == "full" else "failed"
        key = f"outcome.{'undone' if event.get('undo') and event.get('outcome') == 'full' else event.get('outcome')}"
        words = text(key, self._language, count=len(event.get("files_changed", ())), reason=event.get("reason") or "-")
        if event.get("conflicts"):
            words = text("outcome.conflict", self._language, places=some_of(event["conflicts"], MOST_CONFLICTS))
        content: list[Any] = [*self._diffs(applied), tool_content(text_block(words))]
        if asked is not None:
            yield schema.ToolCallProgress(
                session_update="tool_call_update", tool_call_id=asked, status=status, content=content
            )
        else:
            yield schema.ToolCallStart(
                session_update="tool_call",
                tool_call_id=f"applied-{run_id}-{event.get('seq', 0)}",
                title=_line(words),
                kind="edit",
                status=status,
                locations=[schema.ToolCallLocation(path=self._shown(change["path"])) for change in applied],
                content=content,
            )

    def _on_changes_discarded(self, event: Mapping[str, Any]) -> Iterable[Update]:
        return self.undecided(event.get("run_id", ""))

    # The plan.

    def _on_plan_created(self, event: Mapping[str, Any]) -> Iterable[Update]:
        self._steps = [dict(step) for step in event.get("steps", ())]
        return self._plan()

    def _on_plan_modified(self, event: Mapping[str, Any]) -> Iterable[Update]:
        if event.get("steps"):
            self._steps = [dict(step) for step in event["steps"]]
        return self._plan()

    def _on_step_started(self, event: Mapping[str, Any]) -> Iterable[Update]:
        return self._set_step_state(event, "in_progress")

    def _on_step_completed(self, event: Mapping[str, Any]) -> Iterable[Update]:
        return self._set_step_state(event, "completed")

    def _on_step_error(self, event: Mapping[str, Any]) -> Iterable[Update]:
        return self._set_step_state(event, "failed")

    def _set_step_state(self, event: Mapping[str, Any], state: str) -> Iterable[Update]:
        for step in self._steps:
            if step.get("step_id") == event.get("step_id"):
                step["state"] = state
        return self._plan()

    def _plan(self) -> Iterable[Update]:
        entries = [_entry(str(step.get("title", "")), str(step.get("state", ""))) for step in self._steps]
        return [schema.AgentPlanUpdate(session_update="plan", entries=entries)] if entries else []

    def _todo_plan(self, todos: Iterable[Mapping[str, Any]]) -> Iterable[Update]:
        """Return the todo list as the plan, where the run has none of its own."""
        entries = [
            _entry(str(todo.get("content", "")), str(todo.get("status", "")), str(todo.get("priority", "medium")))
            for todo in todos
            if todo.get("status") != "cancelled"
        ]
        # An empty list, too: the one before it would stay.
        if not self._steps:
            yield schema.AgentPlanUpdate(session_update="plan", entries=entries)


def _since(change: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the latest call has done to a file of which a change was staged before."""
    runs = change.get("runs")
    return {**change, "base": before.get("text"), "runs": None if runs == before.get("runs") else runs}


def _kind(name: str) -> Kind:
    return _KINDS.get(name, "other")


def _as_content(words: str) -> list[Any]:
    """Return text as content, of a long one the end."""
    return [tool_content(text_block(words[-MOST_OUTPUT:]))] if words.strip() else []


def _entry(words: str, state: str, priority: str = "medium") -> schema.PlanEntry:
    status: Any = "completed" if state in _ENDED else _STATES.get(state, "pending")
    level: Any = priority if priority in ("high", "medium", "low") else "medium"
    return schema.PlanEntry(content=f"✗ {words}" if state in _ENDED else words, priority=level, status=status)


def _line(words: str) -> str:
    return cut(" ".join(words.split()), MOST_TITLE)
