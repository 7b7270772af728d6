"""How the work of a capable model with its tools ends: judged by tests, once told to mend what is red, and with its
question put to the user.

Whatever is staged is judged, whatever the words or the language of the task: the tests that the task names and those
beside the change run on it, and what fails is compared with what fails without it. Not here: the baseline
(`toolbox.py`), models that work in another way (`solving/task_work.py`), what a single step of a plan has changed: it
may need the next ones.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from codeagent_lsp.agent.intent import classify
from codeagent_lsp.agent.loop import LoopResult
from codeagent_lsp.direct.checks import Checker, LookingShell, brief_of, wants_edit
from codeagent_lsp.direct.workspace_files import test_names_in
from codeagent_lsp.index.grammars import is_test
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.session.conversation.conversation import Conversation
from codeagent_lsp.session.request import ANSWERS, RunRequest
from codeagent_lsp.session.run_parts import Ended, RunParts, files_of
from codeagent_lsp.shadow.shell import CommandResult
from codeagent_lsp.tools.asking import Question, agent_asks
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.workspace.text.visible import some_of

MOST_TESTS = 4
"""Test files that are run for a change beside those that the task names."""
TEST_SECONDS = 30.0
"""How long tests may take that nobody asked for."""
MOST_NAMED = 5
REPORT_CHARS = 6000

RED = (
    "You are not done: with your changes, tests fail.\n{report}\nFind the cause and repair it. If they fail rightly, "
    "say why, and what you did."
)
UNCHANGED = (
    "Nothing is changed. If the task asks for a change, make it now; if nothing has to change, say so and why. If you "
    "need to know something from the user, ask it."
)
ANSWER_NOW = "Do not look any further. Answer now with what you know."

# A question mark of any script, then only closing quotes, brackets and Markdown: `Which one?**`.
_QUESTION = re.compile(r"[?？؟⁇⁈][\s*_`\"'”’»)）\]】]*$")
# A choice below a question: `- red`, `2) blue`, `(a) green`, `一、`.
_LISTED = re.compile(r"^\s*(?:[-*•–]|\(?\w{1,2}[.):、])\s")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the tests on a change: how many pass, the ids of those that fail and have to be repaired, and of
    those that failed before in the same way; `report` is for the model, `problem` is why nothing is known.
    """

    passed: int = 0
    red: tuple[str, ...] = ()
    as_before: tuple[str, ...] = ()
    report: str = ""
    problem: str = ""

    @property
    def green(self) -> bool:
        """Whether tests ran and none has to be repaired."""
        return not self.red and not self.problem and bool(self.passed or self.as_before)


class Finish:
    """Decides how one run of a capable model ends. `request` is what the user asked for; call `begin` before the first
    call of the model.
    """

    def __init__(self, parts: RunParts, request: RunRequest) -> None:
        self._parts = parts
        self._request = request
        self._judged: tuple[str, Verdict | None] | None = None

    async def begin(self) -> None:
        """Start the tests that this task is about on the user's own text, in the background, for later comparison: at
        most 4 test files that the task names or that are beside its files. Does nothing for runs that only answer, or
        if commands are not isolated.
        """
        if self._request.kind in ANSWERS or not self._isolated:
            return
        target = self._request.target
        about = [target.file.path] if target is not None else []
        baselines, words = self._parts.toolbox.baselines, self._request.task
        files = await asyncio.to_thread(files_of, self._parts)
        named = (*files.named(words), *map(files.relative, about))
        tests = dict.fromkeys((*files.test_files_in(words), *files.tests_beside(named)))
        # Now, not when they are compared: later they would take as long as the run has to wait for its verdict.
        baselines.begin([*tests][:MOST_TESTS])
        baselines.follow(lambda names: files_of(self._parts).tests_beside(names)[:MOST_TESTS])

    async def settled(self, conversation: Conversation, result: LoopResult) -> Ended:
        """Ask the model to continue if that is useful, such as once to repair failing tests, and then return (status,
        summary) of the run: `completed`, `stopped` at a limit or while tests fail, `waiting` for an answer. May run the
        tests and ask the user.
        """
        nudged = False
        while True:
            # A model that went in circles while it read mostly knows the answer; without tools it can only give it.
            if result.ending == "anomaly" and not self._changed_names():
                conversation.tell(ANSWER_NOW)
                last = await conversation.loop(iterations=1, only=())
                # Of its circles it is stopped, not of the one call that it had left for an answer.
                result = last if last.ending == "answered" else result
            # Also where it was stopped: changes that are green at the limit count as done.
            verdict = await self._verdict()
            if result.ending != "answered":
                return self._stop(conversation, result, verdict)
            if asks_back(result.text) and self._may_ask():
                if not (answer := await self._ask(result.text)):
                    return "waiting", result.text
                conversation.answer(answer)
            # Once: a model that was told and still says it is done will not do more, and each round costs a test run.
            elif not nudged and (told := self._undone(verdict)):
                nudged = True
                conversation.tell(told)
            else:
                return self._end(result, verdict)
            result = await conversation.loop()

    async def try_step(self) -> None:
        """Run the tests beside what has changed, at most 4 files and only where commands are isolated, so that a step
        of a plan is decided about with their results; it is not judged by them.
        """
        changed, staged = self._changed_names(), self._parts.proposal.changeset
        if not (staged and self._isolated):
            return
        files = await asyncio.to_thread(files_of, self._parts)
        own = [name for name in changed if is_test(name)]
        green = self._parts.proposal.proofs.green(staged)
        beside = dict.fromkeys((*own, *files.tests_beside(changed)))
        await self._beside([name for name in beside if name in files.names and not _is_green(name, green)][:MOST_TESTS])

    async def after_plan(self, conversation: Conversation, ended: Ended) -> Ended:
        """Run the tests on what all steps of a plan have changed together, and let the model repair failures once;
        return (status, summary) of the run, `ended` as it was if that is not `completed` or nothing can be tested.
        """
        status, summary = ended
        verdict = await self._verdict() if status == "completed" else None
        if verdict is None:
            return ended
        result = LoopResult("answered", summary)
        if verdict.red:
            conversation.tell(RED.format(report=verdict.report))
            result = await conversation.loop()
            verdict = await self._verdict()
            if result.ending != "answered":
                return self._stop(conversation, result, verdict)
        return self._end(replace(result, text=summary) if not verdict or not verdict.red else result, verdict)

    def _undone(self, verdict: Verdict | None) -> str:
        """Return what the model is told about what is not done; '' for nothing."""
        if verdict is not None and verdict.red:
            return RED.format(report=verdict.report)
        return UNCHANGED if self._lacks_change() else ""

    def _end(self, result: LoopResult, verdict: Verdict | None) -> Ended:
        text = self._parts.output.text
        if verdict is not None and verdict.red:
            failing = text("solve.fails", names=some_of(verdict.red, MOST_NAMED))
            return "stopped", "\n".join((text("finish.red"), failing, text("solve.said", words=result.text)))
        if self._lacks_change():
            return "stopped", "\n".join((text("finish.unchanged"), text("solve.said", words=result.text)))
        return "completed", "\n\n".join(filter(None, (result.text, self._before(verdict))))

    def _stop(self, conversation: Conversation, result: LoopResult, verdict: Verdict | None) -> Ended:
        """Return the end of a run whose model gave no answer: what is staged and green at the limit is done."""
        text, count = self._parts.output.text, conversation.limits.iterations
        if result.ending == "limit" and self._changed_names() and verdict is not None and verdict.green:
            told = text("finish.limit", count=count, passed=verdict.passed)
            return "completed", "\n\n".join(filter(None, (told, self._before(verdict))))
        key = "run.limit" if result.ending == "limit" else "run.anomaly"
        failing = (
            text("solve.fails", names=some_of(verdict.red, MOST_NAMED)) if verdict is not None and verdict.red else ""
        )
        return "stopped", "\n".join(filter(None, (text(key, count=count), failing)))

    def _before(self, verdict: Verdict | None) -> str:
        """Return a sentence for the user on the tests that fail as they did before; '' for none."""
        if verdict is None or not verdict.as_before:
            return ""
        return self._parts.output.text("finish.as_before", names=some_of(verdict.as_before, MOST_NAMED))

    def _lacks_change(self) -> bool:
        """Return whether the words surely ask for a change, and there is none."""
        if self._changed_names() or self._request.kind in ANSWERS or self._parts.services.user.mode() == "readOnly":
            return False
        return self._request.kind == "test" or wants_edit(self._request.task, has_selection=self._request.has_selection)

    def _may_ask(self) -> bool:
        """Return whether a question at the end is one that has to be answered: not after a plain question or a chat."""
        if self._request.kind in ANSWERS:
            return False
        return classify(self._request.task, has_selection=self._request.has_selection).label in (
            "CODING_TASK",
            "UNCERTAIN",
        )

    async def asked_back(self, words: str) -> str:
        """Put the question with which the model ends in place of a plan to the user; return the answer, '' for none and
        if the reply ends with no question.
        """
        return await self._ask(words) if asks_back(words) and self._may_ask() else ""

    async def _ask(self, words: str) -> str:
        """Put the question at the end of a text to the user; return the answer, '' for none."""
        output = self._parts.output
        title = agent_asks(question_of(words), output.text)
        answer = await output.ask(Question("question", title, detail=words, by_agent=True))
        return "\n".join(answer or ()).strip()

    async def _verdict(self) -> Verdict | None:
        """Return what the tests say of what has changed; None if nothing has, or there is nothing to run.

        What was judged in exactly this state is not run again.
        """
        if not self._changed_names():
            return None
        proposal = self._parts.proposal
        state = proposal.proofs.state(proposal.changeset)
        if self._judged is None or self._judged[0] != state:
            self._judged = state, await self._test()
        return self._judged[1]

    async def _test(self) -> Verdict | None:
        if self._parts.toolbox.shell is None:
            return None
        brief = brief_of(self._request.task)
        if brief.command:
            return _of_command(brief.command, await self._run("run_cmd", command=brief.command))
        files = await asyncio.to_thread(files_of, self._parts)
        changed = self._changed_names()
        own = [name for name in changed if is_test(name)]
        named = [name for name in files.test_files_in(brief.words) if name in files.names]
        paths = named or ([""] if brief.about_tests else [])
        # Tests that nobody asked for run the repository's code, so only where they can do no harm.
        beside = dict.fromkeys((*own, *files.tests_beside(changed))) if self._isolated else {}
        green = self._parts.proposal.proofs.green(self._parts.proposal.changeset)
        also = [name for name in beside if name not in paths and not _is_green(name, green) and name in files.names]
        # What the model has run on exactly this text is not run again.
        passed = bool(paths) and green.issuperset(paths)
        results = [] if passed else [await self._run("run_tests", **({"path": path} if path else {})) for path in paths]
        # The empty path stands for all tests, which have those beside the change among them.
        if "" not in paths:
            results += await self._beside(also[:MOST_TESTS])
        # A test file that the run has changed itself is no measure for it.
        bound = frozenset(named) - frozenset(own)
        verdict = _of_tests(results, bound, test_names_in(brief.words))
        return verdict or (
            Verdict(passed=len(green)) if passed or any(_is_green(name, green) for name in beside) else None
        )

    async def _beside(self, paths: Sequence[str]) -> list[ToolResult]:
        """Return the results of tests that nobody asked for, as far as they are quick."""
        results: list[ToolResult] = []
        try:
            async with asyncio.timeout(TEST_SECONDS):
                for path in paths:
                    results.append(result := await self._run("run_tests", path=path))
                    if result.ok and not any(report["cases"] for report in result.data["reports"]):
                        break  # they cannot run here, and saying so once is enough
        # Those that have ended are judged; nobody waits longer for tests that were not asked for.
        except TimeoutError:
            pass
        return results

    async def _run(self, name: str, **arguments: object) -> ToolResult:
        try:
            return await self._checker.call(ToolCall(name, arguments))
        finally:
            self._parts.output.flush()  # what it prints is shown before the verdict

    @cached_property
    def _checker(self) -> Checker:
        """Return what runs tests and commands on what is staged; what they write is not proposed."""
        parts, context = self._parts, self._parts.toolbox.context()
        shell = LookingShell(context.shell) if context.shell is not None else None
        approvals, user = parts.session.context.approvals, parts.services.user
        looking = replace(context, shell=shell)
        executor = ToolExecutor(parts.services.registry, looking, user.mode, approvals, user.language())
        return Checker(executor, parts.output.emit)

    @property
    def _isolated(self) -> bool:
        shell = self._parts.toolbox.shell
        return shell is not None and shell.isolation.complete

    def _changed_names(self) -> tuple[str, ...]:
        """Return the names of the files that this run has changed, applied or still staged."""
        return tuple(map(self._parts.proposal.view.roots.relative, self._parts.record.changed_paths))


def _is_green(name: str, green: frozenset[str]) -> bool:
    """Return whether the tests of a file are among those that are green, as `Tally` names them."""
    folders = (each for each in green if each.endswith("/"))
    return name in green or any(folder == "/" or name.startswith(folder) for folder in folders)


def asks_back(text: str) -> bool:
    """Return whether the last line of a text, apart from a list of choices below it, ends with a question mark: the
    Latin one, one of full width or the Arabic one. Questions without such a mark are not recognized.
    """
    return bool(question_of(text))


def question_of(text: str) -> str:
    """Return the question at the end of a text, the last sentence before a list of choices; '' if it ends with none.
    See `asks_back` for what is one.
    """
    lines = [line for line in text.strip().splitlines() if line.strip()]
    if lines and not _QUESTION.search(lines[-1]):
        while lines and _LISTED.match(lines[-1]):
            lines.pop()
    if not lines or not _QUESTION.search(lines[-1]):
        return ""
    return re.split(r"(?<=[.!?。！？])\s+", lines[-1].strip())[-1]


def _of_command(command: str, result: ToolResult) -> Verdict:
    if not result.ok or not isinstance(result.data, CommandResult):
        return Verdict(problem=result.text)
    finished = result.data.finished
    # The shell's code for a command that does not exist: the machine lacks it, the change is not at fault.
    if finished.exit_code == 127:
        return Verdict(problem=result.text)
    if finished.exit_code == 0 and finished.ending == "exited":
        return Verdict(passed=1)
    return Verdict(red=(command,), report=result.text[-REPORT_CHARS:])


def _of_tests(results: Sequence[ToolResult], bound: frozenset[str], names: frozenset[str]) -> Verdict | None:
    """Return the verdict of test runs: all has to pass but what failed before in the same way. That too has to pass
    where the task names it: `names` are those of tests in it, `bound` files that it names.
    """
    ran = [result for result in results if result.ok]
    if not ran:
        problem = next((result.text for result in results if not result.ok), "")
        return Verdict(problem=problem) if problem else None
    passed = sum(report["passed"] for result in ran for report in result.data["reports"])
    cases = [case for result in ran for case in result.data["failures"]]
    known = (case["id"] for result in ran for report in result.data["reports"] for case in report["cases"])
    # A task that names single tests asks for these alone; other failures in their file may have been there before.
    specific = any(_names(names, test_id) for test_id in known)
    red: dict[str, None] = {}
    before: dict[str, None] = {}
    for case in cases:
        wanted = _names(names, case["id"]) if specific else case["file"] in bound
        (before if case["fate"] == "as_before" and not wanted else red)[case["id"]] = None
    told = "\n\n".join(result.text for result in ran)
    return Verdict(passed, tuple(red), tuple(before), told[:REPORT_CHARS])


def _names(names: frozenset[str], test_id: str) -> bool:
    # Ids of all runners: `tests/a.py::T::test_x[1]`, `pkg/TestX`, `test_x (mod.T)`.
    return not names.isdisjoint(re.split(r"[.:/\[\s(]+", test_id))
