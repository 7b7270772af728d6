"""The programs in the words of a command: of `sed`, `awk`, editors and interpreters. Pure functions.

Says which commands such a program starts, as far as they occur in it as literal texts, and whether it could start
others. For ask and deny rules. Not here: what `git` runs (`git_programs.py`), programs that only compute and print
(`harmless.py`, `argument_programs.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from codeagent_lsp.tools.permissions.shell.reading import UNKNOWN

AWKS = frozenset(("awk", "gawk", "mawk", "nawk", "original-awk"))
SEDS = frozenset(("sed", "gsed"))
STDIN = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/dev/fd/63"))
_EDITORS = frozenset(("vim", "vi", "nvim", "view", "gvim", "vimdiff", "ex", "rvim"))
_CONSOLES = frozenset(
    ("gdb", "lldb", "sqlite3", "psql", "mysql", "mariadb", "emacs", "ed", "expect", "tclsh", "less", "more")
)
_KNOWN = AWKS | SEDS | _EDITORS | _CONSOLES
_MOST = 16
_MAX_CODE = 8_192  # characters of a program; a longer one is not looked through
_LITERAL = r"[rbf]{0,2}(?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)"
_LITERALS = re.compile(_LITERAL, re.DOTALL)
# What languages fill into texts: `${x}`, `#{x}`, `{x}`, `$x`.
_IN_CODE = re.compile(r"\$\{[^}]*\}|#\{[^}]*\}|(?<![\\{])\{[^{}\"']*\}|\$\w+")
# What may stand behind the last literal of a call: its end, or named arguments, options, a callback.
_END = re.compile(r"\s*(?:$|[)\];}|]|,\s*(?:\w+\s*=[^=]|\{|function\b|\(|\w+\s*=>|:\w+\s*=>))")


@dataclass(frozen=True, slots=True)
class Started:
    """The commands that a program starts from the words of its command line, as `find -exec` does, if they are literal
    texts; `more` says that it could start others.
    """

    commands: tuple[Inner, ...] = ()
    more: bool = False


@dataclass(frozen=True, slots=True)
class _Language:
    """How an interpreter is given code, and by which words the code starts commands, or code that it makes up."""

    option: re.Pattern[str]
    starts: re.Pattern[str]
    makes: re.Pattern[str]
    quotes: bool = False  # backticks run a command
    needs: re.Pattern[str] = field(default=re.compile(""))  # without it, nothing is started


_PYTHON = _Language(
    re.compile(r"-[A-Za-z]*c"),
    re.compile(
        r"\b(?:system|popen|Popen|(?:posix_)?spawn\w*|exec[lv]\w*|getoutput|getstatusoutput|check_call|check_output"
        r"|create_subprocess_\w+|fork(?:pty)?|(?:(?<=subprocess\.)|(?<=\bs\.)|(?<=\bsp\.))(?:run|call))\b"
    ),
    re.compile(
        r"\b(?:eval|exec|__import__|importlib|getattr|ctypes|runpy|globals|locals|vars|builtins|__builtins__|__dict__"
        r"|attrgetter|methodcaller|pty|pickle|marshal|startfile|from\s+subprocess|import_module)\b|(?<!\.)\bcompile\b"
        r"|from\s+os\s+import\s+\*"
    ),
)
_NODE = _Language(
    re.compile(r"-p?e|-p|--eval|--print|eval"),
    re.compile(r"\b(?:exec|execSync|execFile|execFileSync|spawn|spawnSync|fork|Command)\b"),
    re.compile(
        r"\b(?:eval|Function|constructor|createRequire|_load|dlopen|binding|mainModule|runInThisContext|vm)\b"
        r"|\brequire\s*(?!\()|\brequire\s*\((?!\s*(['\"`])[^'\"`$]*\1\s*\))|\bimport\s*\((?!\s*(['\"`])[^'\"`$]*\2\s*\))"
        r"|\b(?:global|globalThis|process|this)\s*\["
    ),
    # Without one of these words, `exec` is the method of a regular expression.
    needs=re.compile(r"child_process|\bDeno\b|\bBun\b|execa|shelljs|zx"),
)
_PERL = _Language(
    re.compile(r"-[A-Za-z0-9]*[eE]"),
    re.compile(r"\b(?:system|exec)\b|\bopen\b(?=[^;\n]{0,80}(?:\|\s*[\"'/]|[\"']-?\|))"),
    re.compile(
        r"\b(?:eval|syscall|readpipe|IPC|CORE)\b|&\s?[\${]|->\s?[\${]|\brequire\s*\$|\bdo\s+[\$\"']"
        r"|\be{2}\b|s([/|{!,#]).*\1.*\1\w*ee"
    ),
    quotes=True,
)
_RUBY = _Language(
    re.compile(r"-[A-Za-z0-9]*e"),
    re.compile(r"\b(?:system|exec|spawn|popen\w*|capture\w*|pipeline\w*)\b|\bopen\b(?=\s*\(?\s*[\"']\|)"),
    re.compile(
        r"\b(?:eval|send|public_send|__send__|instance_eval|class_eval|module_eval|method|const_get|syscall|Fiddle)\b"
    ),
    quotes=True,
)
_PHP = _Language(
    re.compile(r"-[rRBE]|--run"),
    re.compile(r"\b(?:system|exec|shell_exec|passthru|popen|proc_open|pcntl_exec)\b"),
    re.compile(r"\b(?:eval|assert|create_function|call_user_func\w*|ReflectionFunction|FFI)\b|\$\w+\s*\("),
    quotes=True,
)
_LUA = _Language(
    re.compile(r"-e"),
    re.compile(r"\b(?:execute|popen)\b"),
    re.compile(r"\b(?:load|loadstring|dofile|_G|_ENV|ffi)\b|\b(?:os|io)\s*\["),
)
_APPLE = _Language(re.compile(r"-e"), re.compile(r"do shell script"), re.compile(r"run script"))
_LANGUAGES: tuple[tuple[re.Pattern[str], _Language], ...] = (
    (re.compile(r"(?:python|pypy)[\d.]*"), _PYTHON),
    (re.compile(r"(?:node|nodejs|deno|bun)[\d.]*"), _NODE),
    (re.compile(r"perl[\d.]*"), _PERL),
    (re.compile(r"ruby[\d.]*"), _RUBY),
    (re.compile(r"php[\d.]*"), _PHP),
    (re.compile(r"lua(?:jit)?[\d.]*"), _LUA),
    (re.compile(r"osascript"), _APPLE),
)
_BACKTICKS = re.compile(r"`(?P<a>[^`]*)`|\b(?:qx|%x)\s*[({\[/|!](?P<b>[^)}\]/|!]*)|%x[({\[](?P<c>[^)}\]]*)")

_REGEX = r"(?:\\.|\[\^?\]?[^\]\n]*\]|[^\\\n])"
_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{_REGEX}*?/I?|\\(.){_REGEX}*?\1)"
# `1,5e date`, `/x/e`; below, `s/a/b/e`, which runs its result.
_SED_COMMAND = re.compile(
    rf"(?:^|[;{{}}\n])\s*(?:{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|[+~]\d+))?)?\s*!?\s*\{{?\s*"
    r"e(?:[ \t]+(?P<script>[^\n]+)|\s*(?=$|[;\n}]))"
)
_SED_SUBSTITUTION = re.compile(
    r"(?<![a-zA-Z\\])s(?P<mark>[^\w\s\\])(?:\\.|\[\^?\]?[^\]\n]*\]|(?!(?P=mark))[^\\\n])*(?P=mark)"
    r"(?P<by>(?:\\.|(?!(?P=mark))[^\\])*)(?P=mark)(?P<flags>[gpiImM0-9e]*)"
)
_AWK_PARTS = re.compile(
    r"(?P<string>\"(?:\\.|[^\"\\\n])*\")|(?P<regex>(?:(?<=[(,{};!~&|\n])|^)\s*/(?:\\.|\[\^?\]?[^\]\n]*\]|[^/\\\n])+/)"
    r"|(?P<comment>#[^\n]*)"
)
# Texts are numbers here (see `_of_awk`). Possessive, as optional parts between blanks would be tried in every division.
_AWK_RUNS = re.compile(
    r"\bsystem\s*+\(\s*+(?P<a>\d++)\s*+\)|(?<!\d)(?P<b>\d++)\s*+\)?\s*+\|&?\s*+getline"
    r"|(?<!\|)\|&?\s*+(?P<c>\d++)\s*+(?=[;}\n]|$)"
)
_AWK_MORE = re.compile(r"\bsystem\b|(?<!\|)\|(?!\|)|(?<!\w)@\s*\w")
_BANG = re.compile(
    r"[\s:]{0,9}(?:silent!?\s)?[\s\d,.%$'<>:\\]{0,40}!{1,2}\s{0,9}(?P<a>[^\s!].*)"
    r"|\s{0,9}(?:\.?shell|\.?system|spawn|pipe)\s{1,9}(?P<b>\S.*)"
)
_IN_EDITOR = re.compile(
    r"\b(?:exe(?:cute)?|system(?:list)?|lua|luado|py\w*|perl|ruby|ter(?:minal)?|term_start|job_start|jobstart|eval"
    r"|normal|norm|call-process\w*|(?:async-)?shell-command\w*|start-process\w*|process-file|funcall|python|script)\b"
)


def started_programs(name: str, words: Sequence[str], stdin: str | None) -> Started:
    """Return what the programs in the words of the command `name`, or in its input, start; `more` if they have more
    than 8,192 characters. Nothing for other commands.
    """
    if name not in _KNOWN and not any(pattern.fullmatch(name) for pattern, _ in _LANGUAGES):
        return Started()
    # Not read: to say so is safe, as `more` has the user asked about the whole command.
    if sum(map(len, words)) + len(stdin or "") > _MAX_CODE:
        return Started(more=True)
    if name in SEDS:
        return _join_started(_of_sed(script) for script in _sed_scripts(words))
    if name in AWKS:
        return _join_started(_of_awk(code) for code in _awk_programs(words))
    if name in _EDITORS or name in _CONSOLES:
        return _of_console(words, stdin)
    language = next((known for pattern, known in _LANGUAGES if pattern.fullmatch(name)), None)
    return _of_interpreter(language, words, stdin) if language else Started()


def _join_started(parts: Iterator[Started]) -> Started:
    found = list(parts)
    return Started(tuple(item for part in found for item in part.commands), any(part.more for part in found))


def _of_interpreter(language: _Language, words: Sequence[str], stdin: str | None) -> Started:
    code, place = [], 1
    while place < len(words):
        word, place = words[place], place + 1
        option, equals, given = word.partition("=")
        if language.option.fullmatch(word) and place < len(words):
            code.append(words[place])
            place += 1
        elif equals and option.startswith("--") and language.option.fullmatch(option):
            code.append(given)
        elif language is _PERL and re.fullmatch(r"-[A-Za-z]*e.+", word) and not word.startswith("-M"):
            code.append(word.partition("e")[2])
        # The file that is run; what follows are its own words, even those that look like options.
        elif not word.startswith("-") or word == "-":
            break
    rest = words[place - 1 :] if place > 1 else ()
    reads = len(words) == 1 or bool(STDIN.intersection(rest[:1]))
    if not code and reads:
        return _of_code(language, stdin) if stdin is not None else Started(more=True)
    return _join_started(_of_code(language, each) for each in code)


def _of_code(language: _Language, code: str) -> Started:
    """Return what code starts; a call counts as read if its command consists of literals."""
    # Nothing but the output of another command or a variable: the code is not known at all.
    if UNKNOWN in code and not code.strip(UNKNOWN + " \n"):
        return Started(more=True)
    commands: list[Inner] = []
    more = bool(language.makes.search(code))
    if language.quotes:
        for match in _BACKTICKS.finditer(code):
            commands.append(Inner(script=_IN_CODE.sub(UNKNOWN, match["a"] or match["b"] or match["c"] or "")))
        if language is _PERL:
            more = more or any(UNKNOWN in item.script for item in commands)
    if language.needs.search(code) or not language.needs.pattern:
        for match in language.starts.finditer(code):
            command = _arguments(code, match.end())
            more = more or command is None
            commands += [command] if command else []
    return Started(tuple(commands[:_MOST]), more or len(commands) > _MOST)


def _arguments(code: str, place: int) -> Inner | None:
    """Return the command that a call is given as literals, one of words or a script; None if it is not literal."""
    opening = re.compile(r"\s*\(?\s*\[?\s*").match(code, place)
    place = opening.end() if opening else place
    values: list[str] = []
    while (found := _LITERALS.match(code, place)) is not None and len(values) < _MOST:
        values.append(_IN_CODE.sub(UNKNOWN, found[0].lstrip("rbf")[1:-1]))
        place = found.end()
        comma = re.compile(r"\s*,\s*(?:args\s*:\s*|\{\s*args\s*:\s*)?\[?\s*(?=[rbf]{0,2}[\"'`])").match(code, place)
        if comma is None:
            break
        place = comma.end()
    # A literal that goes on, as in `"rm " + name`, is only the beginning of the command.
    if not values or not _END.match(code, place):
        return None
    # Several literals are the words of one command, a single one is a line for a shell.
    return Inner(words=tuple(values)) if len(values) > 1 else Inner(script=values[0])


def _sed_scripts(words: Sequence[str]) -> Iterator[str]:
    """Yield the scripts of `sed`: those of its options, or else its first operand."""
    place, given = 1, False
    operands = []
    while place < len(words):
        word, place = words[place], place + 1
        if word in ("-e", "--expression", "-f", "--file") or re.fullmatch(r"-[nErsuz]+[ef]", word):
            if not word.endswith("f") and word != "--file" and place < len(words):
                yield words[place]
            place, given = place + 1, True
        elif word.startswith(("--expression=", "--file=")):
            given = True
            if word.startswith("--e"):
                yield word.partition("=")[2]
        elif not word.startswith("-"):
            operands.append(word)
    if not given:
        yield from operands[:1]


def _of_sed(script: str) -> Started:
    if not script.strip(UNKNOWN):
        return Started(more=True)
    commands = [match["script"] or "" for match in _SED_COMMAND.finditer(script)]
    by = [match["by"] for match in _SED_SUBSTITUTION.finditer(script) if "e" in match["flags"]]
    found = tuple(Inner(script=text) for text in (*commands, *by) if text)
    # What stands in for a match is put together from the text, so the script alone never says all; an `e` by itself
    # runs the line of the input.
    return Started(found, bool(by) or "" in commands)


def _awk_programs(words: Sequence[str]) -> Iterator[str]:
    place = 1
    while place < len(words):
        word, place = words[place], place + 1
        if word in ("-e", "--source"):
            yield words[place] if place < len(words) else ""
            place += 1
        # A program in a file: files that are run are asked about by their names elsewhere.
        elif word in ("-f", "--file", "-E", "-i"):
            return
        elif word in ("-F", "-v"):
            place += 1
        elif not word.startswith("-"):
            yield word
            return


def _of_awk(code: str) -> Started:
    """Return what an awk program runs: its texts are replaced by numbers, so that no sign in them misleads."""
    if not code.strip(UNKNOWN):
        return Started(more=True)
    texts: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        if match["string"]:
            texts.append(match["string"][1:-1].replace('\\"', '"'))
            return f" {len(texts) - 1} "
        return " "

    # The program's own numbers become `n` first, so that every number left stands for a text.
    bare = _AWK_PARTS.sub(numbered, re.sub(r"(?<![\w)\]\"])\b\d+(?:\.\d+)?", "n", code))
    found = []

    def run(match: re.Match[str]) -> str:
        number = match["a"] or match["b"] or match["c"]
        found.append(Inner(script=texts[int(number)] if int(number) < len(texts) else ""))
        return " "

    rest = _AWK_RUNS.sub(run, bare)
    # A text that names only a shell: what is piped into it is not in the text.
    shells = any(re.search(r"(?:^|/|\s)(?:ba|da|z|k)?sh\s*$", item.script) for item in found)
    return Started(tuple(found), bool(_AWK_MORE.search(rest)) or shells)


def _of_console(words: Sequence[str], stdin: str | None) -> Started:
    """Return what the commands for an editor, a debugger or a console of a database start."""
    texts = [word.lstrip("+") if word.startswith("+") else word for word in words[1:]]
    texts += (stdin or "").split("\n")
    found = [Inner(script=match["a"] or match["b"]) for text in texts[:64] if (match := _BANG.match(text))]
    given = [text for before, text in zip(("", *texts), texts, strict=False) if before.startswith("-") or "+" in before]
    calls = words[0].endswith("emacs") and not {"-f", "--funcall"}.isdisjoint(words)
    lone = calls or any(text and not text.strip(UNKNOWN) for text in given)
    return Started(tuple(found), lone or any(_IN_EDITOR.search(text) for text in texts if " " in text or "(" in text))


@dataclass(frozen=True, slots=True)
class Inner:
    """The target of a wrapper: either the words of a command or the text of a script with its `$0`, `$1` and so on."""

    words: tuple[str, ...] = ()
    script: str = ""
    parameters: tuple[str, ...] = ()
