"""Checks of a change: which ones a task's words ask for, what a check found, compared with one before, and running one
in the shadow: named tests, all tests, a command, or the tests beside the files.

The words are in English and Chinese lists; what these miss only costs a check. Checks go through the executor, so that
permissions, limits and records apply; files that they write are not proposed. Not here: whether a request is a task or
a question (`agent/intent.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.agent.intent import classify
from codeagent_lsp.agent.loop import call_data, result_event
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.shadow.shell import Command, CommandResult, Isolation, OnOutput, Shell, no_output
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.testing.projects import TEST_COMMANDS, runs_all_tests
from codeagent_lsp.tools.testing.reports import contains, shorten
from codeagent_lsp.workspace.text.excerpts import excerpt

REPORT_CHARS = 1500
MOST_TOLD = 3
# What unittest draws of a difference: `- a`, `? ^^`, `First differing element`. It takes room and tells no more than
# the values.
_DRAWN = re.compile(r"^\s*(?:\? |[-+] |Traceback |First differing|First list|Second list|\[\.\.\.|[\^~]+$)")
RUN_TESTS, RUN_COMMAND = "run_tests", "run_cmd"
READ = 4000

NEAR = 60
"""Characters before and after a command that are searched for words on its outcome ("fails", "passes")."""

_PROGRAM_NAMES = """
    python python3 pytest npm npx yarn pnpm bun go cargo make tox nox uv poetry bundle rake mvn gradle dotnet php
    composer ruby node deno sh bash ruff mypy tsc eslint ctest cmake swift rspec phpunit
"""
_PROGRAMS = frozenset(_PROGRAM_NAMES.split())
# Programs that are a command without any argument; `python` or `npm` alone is a word of a sentence.
_ALONE = frozenset(("pytest", "tox", "nox", "make", "rspec", "phpunit", "ctest", "mypy", "tsc"))
_OUTCOME = re.compile(
    r"\b(?:fail\w*|exits?|errors?|crash\w*|broken|breaks?|pass|passes|succeeds?|works?|green|red|shows?|does not"
    r"|doesn't|fix|repair)\b|失败|报错|出错|通过|不行|修复",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"`([^`\n]{2,200})`")
# Ways to run tests that are named without backticks: `python -m pytest tests/a.py`, `npm run test`, `go test ./...`.
_COMMAND = re.compile(rf"\b((?:{TEST_COMMANDS}|make (?:test|check))(?![A-Za-z0-9_/-]))")
_TESTS = r"(?:\btest_\w+(?:\.\w+)?|\w+_test\b(?:\.\w+)?|\w*tests?\b|\bspecs?\b|test suite|\bci\b)"
# Tests and a word on their outcome in one sentence: `test_x fails`, `make the tests pass`, `CI is red`.
_FAILING = re.compile(
    rf"{_TESTS}[^.!?\n]{{0,80}}?\b(?:fail\w*|break\w*|broken|red|error\w*|crash\w*|pass|passes|succeed|green|work)\b"
    rf"|\b(?:fail\w*|broken|red|breaks?)\b[^.!?\n]{{0,60}}?{_TESTS}|测试[^。！？\n]{{0,30}}?(?:失败|不通过|没通过|没有通过|报错|出错|通过|挂|不过)"
    r"|(?:失败|不通过|报错)[^。！？\n]{0,20}?测试",
    re.IGNORECASE,
)
_WRITES_TESTS = re.compile(  # not "change the parser so that the tests pass"
    r"\b(?:write|add|create|generate|extend|implement|cover|update|change|adapt|adjust|rewrite|complete)\b"
    r"(?: (?!so\b|that\b|until\b|till\b|make|pass|because\b|when\b)\w+){0,4} (?:unit )?tests?\b"
    r"(?!\.py|_| (?:all )?(?:pass|succeed|work|run|are green|(?:turn|go|get) green))"
    r"|(?:写|编写|添加|增加|补充|生成|补上|更新|修改)(?:(?!让|使|直到|以便|通过)[^。，,]){0,12}测试(?!都|全部|能|可以|通过)",
    re.IGNORECASE,
)
_EVERYWHERE = re.compile(
    r"\b(?:rename\w*|everywhere|every use|all (?:uses|callers|places|files|usages|references))\b"
    r"|重命名|改名|所有|全部|处处",
    re.IGNORECASE,
)
_CREATES = re.compile(
    r"\b(?:create|new (?:file|module|class|package|script|page)|add (?:a|an|the) (?:file|module|script|page))\b"
    r"|新建|创建|新文件|新增",
    re.IGNORECASE,
)
_REPAIRS = re.compile(
    r"\b(?:fix\w*|repair\w*|bugs?|wrong\w*|broken|mistakes?|faults?|faulty|incorrect\w*|correct it|fails?|failing"
    r"|failed|error\w*|crash\w*|does not work|doesn't work)\b|修复|修正|修好|错误|出错|报错|失败|有误|不对|问题|bug",
    re.IGNORECASE,
)
_ADDS = re.compile(
    r"\b(?:add\w*|implement\w*|writes?|creates?|new|needs? (?:a|an)|introduce|support\w*|extend|optional|give|takes?)\b"
    r"|添加|增加|新增|实现|编写|写一|支持|新建|创建",
    re.IGNORECASE,
)
_CHANGES_NOTHING = re.compile(
    r"\b(?:change|edit|modify|touch|write|alter) (?:nothing|no (?:code|files?))\b"
    r"|\b(?:don't|do not|never|without|no need to) (?:change|edit|modify|touch|alter)(?:ing)?"
    r" (?:anything|any (?:code|files?)|the code|the files)\b|\bnothing (?:is to|has to|should|must) (?:be )?changed?\b"
    r"|\b(?:ändere|verändere|ändern sie|ändern) nichts\b|\bnichts (?:ändern|verändern)\b"
    r"|\bne (?:change|modifie[sz]?) rien\b|\bno (?:cambies|modifiques|cambie|modifique) nada\b"
    r"|(?:不要|不用|无需|请勿|别)(?:做)?(?:任何)?(?:修改|改动|更改|改)(?:任何|代码|文件)?(?=[。，,.!！\s]|$)|何も変更し(?:ない|ません)",
    re.IGNORECASE,
)
_CODE_NAME = re.compile(r"`[^`\n]*`|[\w/\\-]*[./\\_](?=\w)[\w./\\-]*", re.ASCII)
_NOT_TESTS = re.compile(
    r"\b(?:not|never|don't|do not|without (?:changing|touching)|leave)\b(?: \w+){0,4} tests?\b"
    r"|不要?(?:修?改|动)[^。，,]{0,6}测试",
    re.IGNORECASE,
)
_ONLY_RUN = re.compile(
    r"^(?:please |can you |could you |now )*(?:run|execute|rerun|launch|start|stop|deploy|publish|release|commit|push"
    r"|rebase|install|uninstall|revert|undo|roll ?back|rollback|restore|format|lint|stage|check|show|list|search|find"
    r"|merge|pull|test|print|build|profile|benchmark|measure|review|open|call|use|plan)\b|^(?:请|帮我|现在)*(?:运行|执行|跑"
    r"|提交|推送|部署|发布|安装|卸载|撤销|回滚|恢复|还原|格式化|检查|查看|列出|搜索)",
    re.IGNORECASE,
)
_THEN_CHANGE = re.compile(
    r"\b(?:and|then|,) (?:then )?(?:fix|repair|correct|change|add|remove|rename|update|refactor|implement|solve|write"
    r"|replace|edit)\b|(?:并|然后|再)(?:修复|修改|改|添加|删除|重构)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A failed test: its id as its framework writes it, its file relative to the workspace ('' if unknown), and its
    line (1-based, 0 if unknown).
    """

    test_id: str
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one check. `report` is for the model, shortened to the failures; with a `problem` (English) there
    is no result, since the tests could not run. A command that failed counts as one failed test.

    `binding` says that the task mentions what was checked, so that all of it has to pass; else the tests were only
    chosen by the names of the files.
    """

    passed: int = 0
    failed: tuple[FailedTest, ...] = ()
    report: str = ""
    problem: str = ""
    binding: bool = True

    @property
    def known(self) -> bool:
        """Whether the check has a result: at least one test passed or failed."""
        return not self.problem and bool(self.passed or self.failed)

    @property
    def good(self) -> bool:
        """Whether the check has a result, and all of it passed."""
        return self.known and not self.failed

    @property
    def names(self) -> frozenset[str]:
        """The ids of the failed tests, as their framework writes them."""
        return frozenset(each.test_id for each in self.failed)


def satisfied(after: Verdict | None, before: Verdict | None) -> bool:
    """Return whether a change is good enough as far as a check can tell: everything passes; or, if the check is not
    binding, fewer tests fail than before and no new one. Without a result after, it is good enough unless there was one
    before.
    """
    if after is None or after.good:
        return True
    # Tests that could not run before either say nothing about the change.
    if not after.known:
        return before is None or not before.known
    return no_worse(after, before) and before is not None and after.names != before.names


def no_worse(after: Verdict | None, before: Verdict | None) -> bool:
    """Return whether a change broke nothing that passed before, by a check that is not binding; True without a check
    (`after` is None), False if the check is binding or has no result.
    """
    if after is None:
        return True
    return after.known and not after.binding and before is not None and before.known and after.names <= before.names


def better(one: Verdict | None, other: Verdict | None) -> bool:
    """Return whether `one` went better than `other`: fewer failures, then more passes. False if `one` has no result,
    else True if `other` has none. A test file that cannot be loaded is worse than failures of all the tests in it.
    """
    if one is None or not one.known:
        return False
    if other is None or not other.known:
        return True
    # Not the passes first: a change may remove tests, or keep some from being found.
    return (_weight(one, other), -one.passed) < (_weight(other, one), -other.passed)


def _weight(verdict: Verdict, other: Verdict) -> int:
    """Return the number of failures; one that contains failures of the other check counts for them, and one more."""
    return sum(1 + sum(contains(one, each) for each in other.names) for one in verdict.names)


# Runs the checks of a change in the shadow: named tests, all tests, a command, or the tests beside the files.


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """The check to run: a command, or the tests in these files (relative paths), or all tests; no check if all are
    empty.

    `beside` says that the task does not mention tests: they were only chosen by the names of the files that change.
    """

    command: str = ""
    tests: tuple[str, ...] = ()
    all_tests: bool = False
    beside: bool = False


class Checker:
    """Runs the checks of one run by its tools. `executor` works on the run's staged state; `emit` receives the calls
    and results, which the user sees.
    """

    def __init__(self, executor: ToolExecutor, emit: Callable[[events.Event], None]) -> None:
        self._executor = executor
        self._emit = emit
        self._ids = count(1)

    async def run(self, plan: CheckPlan) -> Verdict | None:
        """Run the check and return the verdict on all of it; None if there is nothing to run. Failing tools do not
        raise: the verdict has a `problem`.
        """
        if plan.command:
            return _of_command(plan.command, await self._call(RUN_COMMAND, command=plan.command))
        if plan.all_tests:
            return verdict_of_tests([await self._call(RUN_TESTS)])
        if not plan.tests:
            return None
        return verdict_of_tests([await self._call(RUN_TESTS, path=path) for path in plan.tests])

    async def _call(self, name: str, **arguments: object) -> ToolResult:
        return await self.call(ToolCall(name, arguments))

    async def call(self, call: ToolCall) -> ToolResult:
        """Execute a tool call under a new id, emit it and its result as events, and return the result, which may be a
        failure: nothing is raised for it.
        """
        # An id of our own: no model has made this call, and clients pair results by it.
        call = replace(call, id=f"check_{next(self._ids)}")
        self._emit(events.ToolCalls(calls=(call_data(call),)))
        result = await self._executor.execute(call)
        self._emit(result_event(call, result))
        return result


class LookingShell:
    """A shell for checks: what its commands write does not become a proposed change."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    @property
    def isolation(self) -> Isolation:
        """The isolation of the wrapped shell."""
        return self._shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        """Run the command in the wrapped shell with `proposes=False`, whatever the command says, and return its result.
        ToolFailed if it cannot be started.
        """
        return await self._shell.run(replace(command, proposes=False), on_output)


@dataclass(frozen=True, slots=True)
class Brief:
    """What the words of a task mean for checks. `command` decides by its exit code ('' if the task names none, or a
    known test runner), `about_tests` says that tests have to pass in the end, `writes_tests` that test files may
    change, `everywhere` that all uses of something are meant.

    `creates` says that new files may be needed, `adds` that something new is asked for, `repairs` that something is
    wrong now and nothing new is asked for.
    """

    words: str
    command: str = ""
    about_tests: bool = False
    writes_tests: bool = False
    everywhere: bool = False
    creates: bool = False
    adds: bool = False
    repairs: bool = False


def brief_of(words: str) -> Brief:
    """Return what a task asks for, by English and Chinese patterns over its first 4,000 characters. Pure."""
    read = words[:READ]
    command = _command(read)
    runner = runs_all_tests(command)
    about = runner or bool(_FAILING.search(read))
    writes = bool(_WRITES_TESTS.search(read)) and not _NOT_TESTS.search(read)
    everywhere, creates = bool(_EVERYWHERE.search(read)), bool(_CREATES.search(read))
    prose = _CODE_NAME.sub(" ", read)  # a file named support asks for no support
    adds = bool(_ADDS.search(prose))
    repairs = (about or bool(_REPAIRS.search(prose))) and not adds
    return Brief(words, "" if runner else command, about, writes, everywhere, creates or writes, adds, repairs)


def wants_edit(words: str, *, has_selection: bool = False) -> bool:
    """Return whether the words surely ask for changed files, so that the task is not done while nothing has changed.
    Judged by patterns, without a model.
    """
    if classify(words, has_selection=has_selection).label != "CODING_TASK":
        return False
    read = words[:READ].strip()
    if _CHANGES_NOTHING.search(read):
        return False
    # "Run the tests" changes nothing, "run the tests and fix what fails" does.
    return not _ONLY_RUN.match(read) or bool(_THEN_CHANGE.search(read)) or bool(_FAILING.search(read))


def may_want_edit(words: str, *, has_selection: bool = False) -> bool:
    """Return whether the words ask for changed files, or do not say what they ask for; False for a question and for a
    request only to run something. Judged by patterns, without a model.
    """
    if classify(words, has_selection=has_selection).label == "UNCERTAIN":
        return not _ONLY_RUN.match(words[:READ].strip())
    return wants_edit(words, has_selection=has_selection)


def verdict_of_tests(results: Sequence[ToolResult]) -> Verdict:
    """Return one verdict on the results of several calls of `run_tests`; if one of the calls was refused, the verdict
    has its message as `problem` and no result.
    """
    refused = next((result for result in results if not result.ok), None)
    if refused is not None:
        return Verdict(problem=refused.error.message if refused.error else refused.text)
    reports = [report for result in results for report in (result.data or {}).get("reports", ())]
    cases = [case for report in reports for case in report["cases"]]
    failed = tuple(
        _failed_test(case) for report in reports for case in report["cases"] if case["outcome"] in ("failed", "error")
    )
    passed = sum(report["passed"] for report in reports)
    problems = [report["problem"] for report in reports if report["problem"]]
    if problems and not failed:  # nothing ran, or not to its end: only its message is known
        # A syntax error keeps tests from running as well, but by the change's own fault.
        failed = (FailedTest(problems[0].splitlines()[0][:200]),) if passed or _is_fault(problems[0]) else ()
    told = "\n".join(map(_describe, [case for case in cases if case["outcome"] in ("failed", "error")][:MOST_TOLD]))
    text = told or excerpt("\n".join(result.text for result in results), REPORT_CHARS)
    return Verdict(passed, failed, text, "" if passed or failed else "; ".join(problems) or text)


def _describe(case: Mapping[str, Any]) -> str:
    """Return a failed test for the model: the assertion and the values, without the drawing of a difference."""
    lines = [line for line in str(case["message"]).splitlines() if line.strip() and not _DRAWN.match(line)]
    return f"{case['id']}\n{shorten(chr(10).join(lines), REPORT_CHARS // MOST_TOLD)}"


def _is_fault(problem: str) -> bool:
    """Return whether the problem of tests that could not run is one of the code, not of the machine."""
    return any(
        word in problem for word in ("SyntaxError", "ImportError", "IndentationError", "NameError", "AttributeError")
    )


def _failed_test(case: dict[str, Any]) -> FailedTest:
    return FailedTest(str(case["id"]), case.get("file") or "", case.get("line") or 0)


def _of_command(command: str, result: ToolResult) -> Verdict:
    if not result.ok or not isinstance(result.data, CommandResult):
        return Verdict(problem=result.error.message if result.error else result.text)
    finished = result.data.finished
    if finished.exit_code == 0 and finished.ending == "exited":
        return Verdict(passed=1, report=excerpt(result.text, REPORT_CHARS))
    # The shell has no such command: the machine lacks it.
    if finished.exit_code == 127:
        return Verdict(problem=excerpt(result.text, REPORT_CHARS))
    return Verdict(failed=(FailedTest(command),), report=excerpt(result.text, REPORT_CHARS))


def _command(words: str) -> str:
    """Return the command that fails or has to work, in backticks or as a known way to run tests; '' for none."""
    for found in (*_QUOTED.finditer(words), *_COMMAND.finditer(words)):
        command = found[1].strip()
        around = words[max(0, found.start() - NEAR) : found.start()] + words[found.end() : found.end() + NEAR]
        # A command that is only mentioned, such as how the program is started, is no check.
        if _is_command(command) and _OUTCOME.search(around):
            return command
    return ""


def _is_command(text: str) -> bool:
    first, _, rest = text.partition(" ")
    is_program = first in _PROGRAMS or _COMMAND.fullmatch(text) is not None
    return first.startswith("./") or (is_program and bool(rest or first in _ALONE))
