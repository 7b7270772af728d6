"""Extracts from a task's words how it is to be checked: failing tests, a command, tests to be written. Pure functions.

Word lists in English and Chinese; what they miss only costs a check. Not here: whether a request is a task or a
question (`agent/intent.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from codeagent_lsp.agent.intent import classify
from codeagent_lsp.tools.testing.projects import runs_all_tests

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
_COMMAND = re.compile(
    r"\b(python3? -m (?:unittest|pytest)(?: -[\w-]+| [\w./]+\.py\b| discover)*|npm (?:run )?test\b"
    r"|go test(?: \./\.\.\.)?|cargo test\b|make (?:test|check)\b|pytest(?: -[\w-]+| [\w./]+\.py\b)*(?=[\s)`.,;:!?]|$))"
)
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
class Brief:
    """A task's words as checks need them. `command` decides by its exit code ('' for none, or for a known test runner),
    `about_tests` says that tests have to pass in the end, `writes_tests` that test files may change, `everywhere` that
    all uses of something are meant, `creates` that new files may be needed, `adds` that something new is asked for,
    `repairs` that something is wrong now and nothing new is asked for.
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
    """Return what the first 4,000 characters of a task say."""
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
    """Return whether the words surely ask for changed files: such a task is not done while nothing has changed."""
    if classify(words, has_selection=has_selection).label != "CODING_TASK":
        return False
    read = words[:READ].strip()
    if _CHANGES_NOTHING.search(read):
        return False
    # "Run the tests" changes nothing, "run the tests and fix what fails" does.
    return not _ONLY_RUN.match(read) or bool(_THEN_CHANGE.search(read)) or bool(_FAILING.search(read))


def may_want_edit(words: str, *, has_selection: bool = False) -> bool:
    """Return whether the words ask for changed files, or do not say what they ask for."""
    if classify(words, has_selection=has_selection).label == "UNCERTAIN":
        return not _ONLY_RUN.match(words[:READ].strip())
    return wants_edit(words, has_selection=has_selection)


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
    return first.startswith("./") or (first in _PROGRAMS and bool(rest or first in _ALONE))
