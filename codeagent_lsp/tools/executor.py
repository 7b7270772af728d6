"""The executor of tool calls: circuit, repair and validation of arguments, permission, time limit, output limit,
record.

Each concern is a small wrapper around the next. What the model can do something about (`AgentError`), errors of the
operating system and faults of a tool become results that it can read; errors about the run, such as a `ModelError`, and
cancellation are raised.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import PurePath
from typing import Any

from pydantic import ValidationError

from codeagent_lsp.call_forms import MCP_CALLS, MCP_PREFIX, plain, respelt, translate_arguments, unpack_json
from codeagent_lsp.errors import (
    AgentError,
    CircuitOpen,
    CodeAgentError,
    ErrorCode,
    ErrorType,
    NotAccepted,
    PermissionDenied,
    ReplyUnreadable,
    ToolFailed,
    ToolRetry,
    WrongArguments,
)
from codeagent_lsp.messages import UNREADABLE, Status, ToolCall, ToolError, ToolResult
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import Calls, PresentTexts, TaskWords, ToolContext
from codeagent_lsp.tools.edit_diagnostics import with_remark
from codeagent_lsp.tools.hooks.hooks import Hooks
from codeagent_lsp.tools.lost_marks import check_marks, mark_looked_for
from codeagent_lsp.tools.outputs import OutputStore, name_of, truncate
from codeagent_lsp.tools.permissions.approvals import Approvals, about, asked_detail, asked_title, fingerprint
from codeagent_lsp.tools.permissions.policy import CommandEnvironment, Decision, Mode, decide, resolved_paths
from codeagent_lsp.tools.registry import CallOutcome, ToolRegistry, own_call
from codeagent_lsp.tools.tool import Tool, ToolOutput
from codeagent_lsp.tools.variables.variables import Variables
from codeagent_lsp.workspace.text.excerpts import join_names

logger = logging.getLogger(__name__)

MAX_NAMED = 3
UNKNOWN_TEXT = (
    "[The text of {files} in the editor is not known any more: the editor told a change of it that does not fit. What "
    "is read here is its last known text, and no change reaches it. Tell the user to save it, close it and open it "
    "again.]"
)
UNEXPECTED = "The tool failed by a fault of its own ({kind}). Try another way."


@dataclass(frozen=True, slots=True)
class Invocation:
    """One validated call on its way to the tool; `call` holds the repaired and completed arguments, `arguments` the
    same as an object of the tool's `parameters`.
    """

    call: ToolCall
    tool: Tool[Any]
    arguments: Any


Handler = Callable[[Invocation], Awaitable[ToolOutput]]
OnDone = Callable[[ToolCall, ToolResult], None]


class ToolExecutor:
    """Runs the tool calls of one run. `mode` is read at every call, so that a change takes effect at once."""

    def __init__(
        self,
        registry: ToolRegistry,
        context: ToolContext,
        mode: Callable[[], Mode],
        approvals: Approvals,
        language: str = "en",
    ) -> None:
        self._registry = registry
        self._context = context.having((Calls, Calls(self.execute, registry.get)))
        self._mode = mode
        self._approvals = approvals
        self._language = language
        # The time limit is inside of the permission: how long the user thinks is not the tool's time.
        self._handler: Handler = self._with_permission(self._with_time_limit(self._run))

    def shown(self, path: str) -> str:
        """Return a path of a call for display: an absolute one in the workspace relative to it, any other as it is.
        Nothing is looked at on the disk.
        """
        return self._context.view.roots.relative(path) if PurePath(path).is_absolute() else path

    async def execute(self, call: ToolCall) -> ToolResult:
        """Run one call and return its result, which also counts for the statistics and the circuit of its tool. Waits
        for the user if the call needs an approval. Errors of the call become failed results; those about the run (a
        CodeAgentError that is not an AgentError) are raised.
        """
        started = time.perf_counter()
        # First of all: rules, circuits and counts know tools by our names, not by those of other agents.
        name, arguments, problem = own_call(call.name, call.arguments, self._registry.entries())
        call = replace(call, name=name, arguments=arguments)
        known = self._registry.traits(call.name) is not None
        if problem:
            result = self._redact(_failure("retry", ErrorCode.INVALID_PARAM, problem))
        else:
            # Names that a model invents get no circuit: there would be no end of them.
            result = self._redact(await self._within_circuit(call) if known else (await self._run_guarded(call))[0])
        milliseconds = (time.perf_counter() - started) * 1000
        if self._registry.traits(call.name) is not None:  # it may be gone by now
            self._registry.count(call.name, ok=result.ok, milliseconds=milliseconds)
        folders = self._context.view.roots.folders
        return replace(
            result,
            # Masked first: a cut could leave half of a secret, which no pattern knows.
            text=f"{await self._shorten(call, result.text)}{self._about_marks(call)}",
            stats={"time_ms": round(milliseconds, 3)},
            context={"cwd": folders[0] if folders else "", "params_input": dict(call.arguments)},
        )

    async def execute_batch(self, calls: Sequence[ToolCall], done: OnDone = lambda *_: None) -> tuple[ToolResult, ...]:
        """Run the calls of one reply and return their results in order; concurrently if all of them only read, else one
        after the other. Errors and cancellation as of `execute`. Of more than 64 calls the rest is not run, and fails
        with a result that says so.

        `done` is called with each result, in the same order, as soon as it and those before it are there.
        """
        results: list[ToolResult] = []

        def ended(result: ToolResult) -> None:
            done(calls[len(results)], result)
            results.append(result)

        run = calls[:MAX_CALLS]
        # One that writes or runs something sees what the calls before it have done.
        if all(map(self._only_reads, run)):
            async with asyncio.TaskGroup() as group:  # none goes on when another one fails
                # All are started before the first is awaited.
                for task in [group.create_task(self.execute(call)) for call in run]:
                    ended(await task)
        else:
            for call in run:
                ended(await self.execute(call))
        # Each with a result of its own: servers refuse a conversation in which a call has none.
        for call in calls[MAX_CALLS:]:
            ended(_left_out(call, self._registry))
        return tuple(results)

    def reject(self, call: ToolCall, problem: str) -> ToolResult:
        """Return the result of a call that could not be understood: its tool is unknown, or its arguments do not fit.
        It counts as a failure of its tool, if there is one with that name.
        """
        name, _, _ = own_call(call.name, call.arguments, self._registry.entries())
        known = self._registry.traits(name) is not None
        code = ErrorCode.INVALID_PARAM if known else ErrorCode.NOT_FOUND
        code = ErrorCode.PARSE_ERROR if name == UNREADABLE else code
        if known:
            self._registry.count(name, ok=False, milliseconds=0.0)
            with contextlib.suppress(CircuitOpen):
                attempt = self._registry.circuits.admit(name)
                self._registry.circuits.settle(attempt, "failure", _cause(problem))
        return _failure("retry", _code_for(name, code), problem)

    async def _within_circuit(self, call: ToolCall) -> ToolResult:
        """Run a call to a registered tool and report its outcome to its circuit; a failed result if the circuit is
        open.
        """
        circuits = self._registry.circuits
        try:
            attempt = circuits.admit(call.name)
        except CircuitOpen as error:
            return _failure("failed", error.code, str(error))
        outcome: CallOutcome = "neither"  # also of a call that is cancelled
        message = ""
        try:
            result, outcome = await self._run_guarded(call)
            message = result.text
            return result
        finally:
            circuits.settle(attempt, outcome, _cause(message))

    def _redact(self, result: ToolResult) -> ToolResult:
        """Return the result with secrets and the values of the user's variables masked."""

        def clean(text: str) -> str:
            return self._context.redaction.hide(text if variables is None else variables.masked(text))

        variables = self._context.get(Variables)
        error = result.error and replace(result.error, message=clean(result.error.message))
        return replace(result, text=clean(result.text), error=error)

    def _reveal(self, call: ToolCall, tool: Tool[Any]) -> ToolCall:
        """Return the call; for a tool that writes, with masked secrets in its arguments replaced by their values."""
        if tool.traits.effect != "write":
            return call
        check_marks(call, tool.traits, self._context)
        return replace(call, arguments=self._context.redaction.reveal(call.arguments))

    def _about_marks(self, call: ToolCall) -> str:
        """Return a note, as lines of their own, for a call that looks for the mark of a secret; '' for any other."""
        traits = self._registry.traits(call.name)
        if traits is None or traits.effect == "write":
            return ""
        note = mark_looked_for(self._context.redaction, call.arguments, is_command=traits.effect == "run")
        return note and f"\n\n{note}"

    async def _shorten(self, call: ToolCall, value: str) -> str:
        """Return the text cut to the tool's limit; the full text is stored in a file that the model can read."""
        limit, outputs = self._limit(call.name), self._context.get(OutputStore)
        keywords = (self._context.get(TaskWords) or TaskWords()).words
        # Once to see whether it is too long at all: only then is the text written to the disk.
        short = truncate(value, limit, "", keywords)
        if short == value or outputs is None or name_of(call.arguments.get("path")):  # that is kept already
            return short
        try:
            name = await asyncio.to_thread(outputs.keep, value)
        except OSError:  # a full disk takes the rest, not the result
            return short
        return truncate(value, limit, f"read_file {name}", keywords)

    def _limit(self, name: str) -> int:
        """Return the most bytes of a tool's text that the model gets: the smaller of the setting and the tool's own
        limit.
        """
        traits, setting = self._registry.traits(name), self._context.settings.tools.max_output_bytes
        own = None if traits is None else traits.max_output_bytes
        return setting if own is None else min(own, setting)

    async def _run_guarded(self, call: ToolCall) -> tuple[ToolResult, CallOutcome]:
        """Run a call and return its result, errors included, and what it counts as for the tool's circuit. The model
        hears of files whose text in the editor is not known any more.
        """
        result, outcome = await self._attempt(call)
        remark = self._unknown(call) if result.status != "denied" else ""
        return replace(result, text=f"{result.text}\n{remark}") if remark else result, outcome

    def _unknown(self, call: ToolCall) -> str:
        texts, traits = self._context.get(PresentTexts), self._registry.traits(call.name)
        if texts is None or traits is None:
            return ""
        roots = self._context.view.roots
        if roots.folders and not texts.unknown(roots.folders):  # nearly always: no call is read a second time for it
            return ""
        with contextlib.suppress(AgentError):
            call = understood(call, self._registry.get(call.name)).call
        paths = resolved_paths(traits, call.arguments, roots)
        # A command reads what it wants, and has the texts of the editor before it.
        lost = texts.unknown(roots.folders if traits.effect == "run" else paths)
        return UNKNOWN_TEXT.format(files=join_names(map(roots.relative, lost), MAX_NAMED)) if lost else ""

    async def _attempt(self, call: ToolCall) -> tuple[ToolResult, CallOutcome]:
        """Run a call and return its result, errors included, and what it counts as for the tool's circuit."""
        try:
            tool = self._registry.get(call.name)
            output = await self._handler(understood(self._reveal(call, tool), tool))
        # The order matters: both of these are AgentErrors, and a denial is no failure of the tool.
        except PermissionDenied as error:
            return replace(_failure("denied", error.code, str(error)), summary=error.told), "neither"
        except ToolRetry as error:
            code = _code_for(call.name, error.code)
            result = _failure("retry", code, str(error), from_server=error.from_server)
            return result, "failure" if error.counts else "neither"
        except ReplyUnreadable as error:
            return _failure("failed", _code_for(call.name, error.code), str(error)), "failure"
        except AgentError as error:
            result = _failure("failed", _code_for(call.name, error.code), str(error))
        except OSError as error:
            result = _failure("failed", ErrorCode.EXECUTION_ERROR, f"{type(error).__name__}: {error}")
        # Behind AgentError, its subclass for what a model can do something about.
        except CodeAgentError:
            raise  # about the run, not about this call
        except Exception as error:  # a fault of ours must not take the work of a run with it
            logger.exception("the tool %s failed", call.name)
            result = _failure("failed", ErrorCode.EXECUTION_ERROR, UNEXPECTED.format(kind=type(error).__name__))
        else:
            text = f"{output.text}{_passed_over(call, tool)}"
            done = ToolResult(
                "ok",
                text,
                output.data,
                failed=output.failed,
                artifacts=output.artifacts,
                images=output.images,
                summary=output.summary,
                todos=output.todos,
            )
            return done, "success"
        return result, "failure" if result.error and _is_failure(result.error) else "neither"

    def _with_permission(self, handler: Handler) -> Handler:
        async def permitted(invocation: Invocation) -> ToolOutput:
            call, tool, context = invocation.call, invocation.tool, self._context
            # From the completed arguments: a default that the model left out may be what needs approval.
            traits = replace(tool.traits, approved=tool.approves(invocation.arguments, context.settings))
            isolation = context.shell.isolation if context.shell else None
            settings = replace(context.settings.permissions, mode=self._mode())
            place = CommandEnvironment(context.settings.shell, isolation, context.no_shell)
            decision = decide(traits, call.arguments, settings, context.view.roots, place, tool.forms.names)
            if invocation.tool.caution and decision.verdict != "deny":
                decision = Decision("ask", invocation.tool.caution, firm=True)
            # Before the refusal, so that denied calls are recorded as well.
            context.redaction.decided(call.name, about(call, tool.traits), decision.verdict, decision.reason)
            if decision.verdict == "deny":
                raise PermissionDenied(f"Not allowed: {decision.reason}")
            # Behind the denial: no hook can allow what the policy forbids.
            if (hooks := context.get(Hooks)) is not None:
                decision = await hooks.before_tool(context, call, tool, decision)
            # Bound to the isolation, or to the pinned form of the tool: when that changes, an approval of before says
            # nothing.
            approval_id = fingerprint(call, place.terms if traits.effect == "run" else traits.pin)
            if decision.verdict == "ask" and not (decision.remember and self._approvals.covers(approval_id)):
                await self._ask(invocation, approval_id, decision, place)
                # A tool whose description has changed is shown as such until the user has approved a call of it.
                invocation.tool.accepted()
            # After the question, which may have been open for hours.
            if (texts := context.get(PresentTexts)) is not None:
                await texts.refresh(resolved_paths(traits, call.arguments, context.view.roots))
            run: Callable[[], Awaitable[ToolOutput]] = partial(handler, invocation)
            if hooks is not None:
                run = partial(hooks.around, context, call, tool, run)
            return await with_remark(context, run)

        return permitted

    async def _ask(
        self, invocation: Invocation, approval_id: str, decision: Decision, place: CommandEnvironment
    ) -> None:
        call, traits = invocation.call, invocation.tool.traits
        deny, once, session, always = (text(key, self._language) for key in _APPROVAL_KEYS)
        title, whole = asked_title(call, traits, place, invocation.tool.news, self._language)
        standing = self._approvals.standing if whole else None
        # The safest first, as Helix preselects the first.
        choices: tuple[str, ...] = (deny, once)
        if decision.remember:
            choices = (*choices, session, always) if standing else (*choices, session)
        detail = asked_detail(call, traits, place, decision, self._language)
        question = Question("approval", title, choices, detail=detail, danger=True, call_id=call.id)
        answer = await self._context.asker.ask(question)
        if answer is None:  # nobody saw it, or nobody answered in time
            raise PermissionDenied(UNANSWERED, text("call.unanswered", self._language))
        if not answer or answer[0] not in choices[1:]:
            raise PermissionDenied(DENIED, text("call.denied", self._language))
        if answer[0] == session:
            self._approvals.allow_for_session(approval_id)
        elif answer[0] == always and standing:
            try:
                standing.add(call, approval_id, about(call, traits, self._context.redaction.hide))
            except OSError:  # it cannot be kept: then it holds as long as it can
                self._approvals.allow_for_session(approval_id)

    def _with_time_limit(self, handler: Handler) -> Handler:
        async def limited(invocation: Invocation) -> ToolOutput:
            own = invocation.tool.traits.timeout
            limit = self._context.settings.tools.timeout_seconds if own == "setting" else own
            scope = asyncio.timeout(limit)
            try:
                async with scope:
                    return await handler(invocation)
            except TimeoutError as error:
                if not scope.expired():  # the tool's own, from a file or a socket
                    raise
                message = f"{invocation.call.name} took longer than {limit:g} s and was stopped."
                raise ToolFailed(message, ErrorCode.TIMEOUT) from error

        return limited

    async def _run(self, invocation: Invocation) -> ToolOutput:
        return await invocation.tool.run(invocation.arguments, self._context)

    def _only_reads(self, call: ToolCall) -> bool:
        traits = self._registry.traits(call.name)
        return traits is not None and traits.effect == "read"


MAX_CALLS = 64
"""The most tool calls of one reply of a model that are run."""

_TOO_MANY = f"Not run: only the first {MAX_CALLS} calls of a reply are. Call it again if you still need it."
DENIED = "The user did not allow this call. Do not try it again in another way."
UNANSWERED = "This call needs the user's approval, which was not given. Do not try it again in another way."
_APPROVAL_KEYS = ("choice.deny", "choice.once", "choice.session", "choice.always")
_ERROR_LENGTH = 300
MISSPELT = 0.8
"""The least similarity (0 to 1) of an unknown argument to a parameter that was not given, at which it is refused as
misspelt.
"""
REMARKS = (
    *("description", "explanation", "justification", "instruction", "instructions", "reason", "security_risk"),
    *("requires_approval", "require_user_approval", "task_progress", "display_description", "toolSummary"),
)
"""Arguments of other agents' tools that only say something about the call."""
_MCP = "[MCP Error] "
_CODES_OF_MCP = {
    ErrorCode.INVALID_PARAM: ErrorCode.MCP_PARAM_ERROR,
    ErrorCode.NOT_FOUND: ErrorCode.MCP_NOT_FOUND,
}
_FAILURES = (ErrorType.EXECUTION, ErrorType.NETWORK)  # what else went wrong is no fault of the tool


def _is_failure(error: ToolError) -> bool:
    """Return whether an error counts for the tool's circuit: also a reply of a server that cannot be read, but no file
    that cannot.
    """
    return error.type in _FAILURES or error.code == ErrorCode.MCP_PARSE_ERROR


def understood(call: ToolCall, tool: Tool[Any]) -> Invocation:
    """Return the call with validated and completed arguments, so that what is judged and shown is what runs.
    WrongArguments or ToolRetry as from `validate_arguments`.
    """
    arguments = validate_arguments(tool, call.arguments)
    return Invocation(replace(call, arguments=arguments.model_dump()), tool, arguments)


def validate_arguments(tool: Tool[Any], arguments: Mapping[str, Any]) -> Any:
    """Return the object of the tool's `parameters` for these arguments. Other spellings are understood, unknown
    arguments ignored, optional ones that say nothing left out, and texts that hold JSON unpacked once. WrongArguments
    lists each wrong argument; ToolRetry if all of them are refused by the tool's own checks (`NotAccepted`).
    """
    given = known_arguments(translate_arguments(arguments, tool.forms), tool.accepted_schema())
    fields = tool.parameters.model_fields
    given = {
        key: each for key, each in given.items() if each != "" or key not in fields or fields[key].default is not None
    }
    try:
        # As it is, first: for a text parameter, "[1]" is a text and no list.
        return tool.parameters.model_validate(given)
    except ValidationError as first:
        open_texts = {key: unpack_json(value) for key, value in given.items()}
        for other in (_without_empty(given, first), known_arguments(open_texts, tool.accepted_schema())):
            with contextlib.suppress(ValidationError):
                return tool.parameters.model_validate(other)
        refused = all(isinstance(each.get("ctx", {}).get("error"), NotAccepted) for each in first.errors())
        raise (ToolRetry if refused else WrongArguments)(_explain(tool, first)) from first


def _without_empty(given: Mapping[str, Any], error: ValidationError) -> dict[str, Any]:
    """Return the arguments without those that an error is about and that say nothing, such as a limit of 0: some models
    fill in every parameter. A required one is missing then, which is an error as well.
    """
    left = deepcopy(dict(given))
    for each in error.errors():
        place: Any = left
        with contextlib.suppress(LookupError, TypeError):  # of a union, the error also names the type that was tried
            for key in each["loc"][:-1]:
                place = place[key]
            if _is_empty(place[each["loc"][-1]]):
                del place[each["loc"][-1]]
    return left


def _is_empty(value: Any) -> bool:
    return value in ("", 0, [], {}) and not isinstance(value, bool)


def known_arguments(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return the arguments without those that their closed JSON Schema does not know, also inside of objects and lists:
    models learn their calls from many programs, and most such arguments mean nothing here. A parameter in another
    spelling (`startLine`) is taken; one that looks misspelt, and objects without any known argument, stay and are
    refused.
    """
    return _only_known(respelt(value, schema), schema)


def _only_known(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        items = schema.get("items")
        return [_only_known(item, items) for item in value] if isinstance(items, Mapping) else value
    properties = schema.get("properties")
    if not isinstance(value, Mapping) or not isinstance(properties, Mapping):
        return value
    if schema.get("additionalProperties") is not False:
        return {key: _only_known(item, properties.get(key) or {}) for key, item in value.items()}
    # What the call gives already cannot be what another name was meant for.
    free = [plain(name) for name in properties if name not in value]
    given = {
        key: _only_known(item, properties.get(key) or {})
        for key, item in value.items()
        if key in properties or get_close_matches(plain(key), free, 1, MISSPELT)
    }
    return given if given or not properties else value


def _passed_over(call: ToolCall, tool: Tool[Any]) -> str:
    """Return a note on the arguments of a call that its tool does not have and that ask for something; '' for none."""
    given = translate_arguments(call.arguments, tool.forms)
    known = known_arguments(given, tool.accepted_schema())
    names = [name for name in given if name not in (*known, *REMARKS) and plain(name) not in map(plain, known)]
    return f"\n(Passed over, as {call.name} has no such argument: {', '.join(names)}.)" if names else ""


def _explain(tool: Tool[Any], error: ValidationError) -> str:
    problems = [f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in error.errors()]
    names = ", ".join(tool.input_schema().get("properties", {}))
    return f"Wrong arguments for {tool.traits.name}: {'; '.join(problems[:5])}. Parameters: {names or 'none'}."


def _left_out(call: ToolCall, registry: ToolRegistry) -> ToolResult:
    if call.name in registry.names():
        registry.count(call.name, ok=False, milliseconds=0.0)
    return _failure("retry", ErrorCode.INVALID_PARAM, _TOO_MANY)


def _code_for(name: str, code: ErrorCode) -> ErrorCode:
    """Return the code of an error in a call, which for tools of MCP servers is one of their own."""
    is_foreign = name.startswith(MCP_PREFIX) or name in MCP_CALLS
    return _CODES_OF_MCP.get(code, code) if is_foreign else code


def _cause(message: str) -> str:
    """Return the first line of an error's message, with the next one where it only announces it."""
    first, _, rest = message.partition("\n")
    told = f"{first} {rest.strip().partition(chr(10))[0]}" if first.endswith(":") else first
    return told.strip()[:_ERROR_LENGTH]


def _failure(status: Status, code: ErrorCode, message: str, *, from_server: bool = False) -> ToolResult:
    advice = code.advice
    text = f"{_MCP}{message}" if from_server or code.startswith("MCP_") else message
    return ToolResult(status, text, error=ToolError(code.value, message, advice.type.value, advice.retry))
