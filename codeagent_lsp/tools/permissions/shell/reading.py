"""The lenient parser: every command in a script, wherever it occurs, as far as the text determines it. Pure functions.

For denial, for ask and deny rules and for display; it never gives permission (that is `plain.py`). It also reads
malformed scripts. A script is read in one of two ways: as it most likely runs, or `wide`, in which whatever the text
does not determine is `UNKNOWN`. Not here: what commands run other commands (`wrappers.py`), what is denied
(`denied.py`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codeagent_lsp.tools.permissions.shell.syntax import NodePlace, parse, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

MAX_TEXT = 4_096
MAX_COMMANDS = 2_000
_COMMANDS = frozenset(("command", "declaration_command", "unset_command", "test_command"))
_SKIPPED = frozenset(("file_redirect", "herestring_redirect", "heredoc_redirect", "variable_assignment", "comment"))
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", "<>", ">&"))
_RUN_BY_OTHERS = re.compile(
    r"\w*PAGER|\w*EDITOR|VISUAL|FCEDIT|GIT_\w*(?:SSH(?:_COMMAND)?|ASKPASS|EXTERNAL_DIFF|PROXY_COMMAND)"
    r"|GIT_CONFIG_VALUE_\d+|LESS(?:OPEN|CLOSE)|(?:RSYNC|CVS)_RSH|SVN_SSH|S(?:SH|UDO)_ASKPASS|PROMPT_COMMAND"
    r"|BROWSER"
)
"""Variables whose values other programs run as commands."""
_SPLIT = re.compile(r"[;&|\n(){}`]+")
# `{a,b}` but not `${a,b}`.
_BRACED = re.compile(r"(?<!\$)\{([^{}\s]*,[^{}\s]*)\}")
_IFS = re.compile(r"\$(?:\{IFS\}|IFS)")
_WRITE = re.compile(r">[>|&]?[ \t]{0,9}([^\s;|&<>()]+)")
_PASSING = frozenset(("cat", "tee", "head", "tail", "sort", "uniq"))
# No argument of a program can have a NUL, so no word of a script is mistaken for it.
UNKNOWN = "\x00"
MAX_DEPTH = 12
_MAX_BRANCHES = 64
# Where an expansion is split into words; between quotes it is a blank.
_BREAK = "\x01"
# The braces and commas that expand, those without quotes: `"{a,b}"` stays as it is.
_OPEN, _COMMA, _CLOSE = "\x02", "\x03", "\x04"
_BRACES = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_MARKS = str.maketrans({"{": _OPEN, ",": _COMMA, "}": _CLOSE})
_LITERAL = str.maketrans({_OPEN: "{", _COMMA: ",", _CLOSE: "}"})
# The escapes of `$'…'`: `\n`, `\cA`, `\101`, `\x41`, `\u00e9`.
_ESCAPE = re.compile(
    r"\\([abeEfnrtv\\'\"?]|c[\x00-\x7f]|[0-7]{1,3}|x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8})"
)
_CONVERSION = re.compile(r"%(?!%)[-+ #0-9.]*[a-zA-Z]")
_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_BACKSLASH = re.compile(r"\\(\n?)(.?)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{?(\w+|[@*#?$!-])\}?")
_ALL_WORDS = ('"$@"', '"${@}"')
_SETS_WORDS = re.compile(r"\bset[ \t]|\bshift\b|\(\)|\bfunction\b")
"""What gives a script or a part of it other parameters than it was called with."""
# `[[ 'a[$(x)]' -eq 0 ]]` runs x, although it is quoted: arithmetic expands subscripts itself.
_SUBSCRIPT = re.compile(r"[\w\]]\[[^\n]{0,200}?(?:\$\(|`)")
# `${x@P}` and prompts expand the substitutions in a value.
_EXPANDED_LATER = re.compile(r"@P\}|\bPS[0-4]=|PROMPT_COMMAND")
_FINDERS = (("which",), ("command", "-v"), ("type", "-P"))
MAX_CHOICES = 8
_MAX_CALLS = 64
_MAX_CALLED = 500
"""The calls of functions of a script that are followed, and the commands after which no more are."""
WIDE = ""
"""The name, which no variable has, by which the variables of a wide reading are known."""
_TAKE_FILES = frozenset(
    """
    rm rmdir unlink git cat head tail wc grep ls cp mv touch chmod chown stat file du gzip gunzip mkdir diff sort echo
    basename dirname
    """.split()  # noqa: SIM905
)
"""Programs that take names of files and run nothing by them; to others the name of a file may be a program."""
_QUOTED = '"'
"""Before a name: the pattern of files that a loop goes through, the value of its variable between quotes."""
# `${x:-text}`, `${x=text}`, `${x:+text}`; below, `${x:?}`, `${x%/}`, `${x/a/b}`.
_DEFAULT = re.compile(r"\$\{(\w+):?([-=+])(.*)\}", re.DOTALL)
_MODIFIED = re.compile(r"\$\{(\w+)(?::?\?|[:%#/^,@]).*\}", re.DOTALL)
_SUBSTITUTED = "/dev/fd/63"  # what bash makes of `<(…)`
_FIXED = {"HOME": "~", "IFS": _BREAK, "@": "", "*": "", "0": "$0", "SHELL": "bash", "BASH": "bash"}

_POSITIONS = tuple("123456789@*")
_EACH_PARAMETER = re.compile(r"\bshift\b|\$\{?[@*]|\bfor[ \t]+\w+[ \t]*(?:;|\n|do\b)")
"""What makes a function go through its parameters."""
_SETS_UNSEEN = re.compile(
    r"\b(?:read|mapfile|readarray|getopts|declare|typeset|local|eval|source|let|printf)\b|-\S{0,200}v|\$['(\"]|`|\(\(|\\"
)
"""What could set a variable whose name is not seen."""
# Names of files that a pattern gives are no options if they have a letter first, or a dot or a slash in them.
_NO_OPTION = re.compile(r"[\w./][^\x00]*|[*?][^\x00]*[./][^\x00]*")

Variables = Mapping[str, str]
Functions = Mapping[str, "Node"]


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command with its decoded words. `stdin` is its input, if the script holds it."""

    words: tuple[str, ...]
    text: str
    stdin: str | None = None

    @property
    def name(self) -> str:
        """The command's name without its folder, in lower case; '' without words."""
        return self.words[0].rsplit("/", 1)[-1].casefold() if self.words else ""


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed script: its commands, and the files that its redirections write and read. `tree` is None if parsing took
    too long; `cut` is True if commands beyond the limit were dropped.
    """

    text: str
    invocations: tuple[Invocation, ...]
    writes: tuple[str, ...]
    reads: tuple[str, ...]
    tree: Tree | None
    cut: bool = False
    choices: int = 1
    """The number of readings in which every loop over a few texts takes each of them."""
    functions: Functions = field(default_factory=dict)
    """The bodies of the functions that are known behind the script, by their names."""


def read(
    text: str,
    parameters: tuple[str, ...] = (),
    *,
    wide: bool = False,
    choice: int = 0,
    functions: Functions | None = None,
) -> Script:
    """Parse a script and return its commands and redirections in the order of the text.

    `parameters` are `$0`, `$1` and so on, `functions` those that are defined before. With `wide`, what the text does
    not determine is `UNKNOWN`: a variable with several values, a parameter that is not given; loops take the value
    number `choice` of those they name. The calls of functions are followed if not `wide`.
    """
    tree = parse(text.encode("utf-8", "replace"))
    found = _Found(_parameter_values(text, parameters, wide=wide), text if wide else None, choice, functions or {})
    if tree is not None:
        for place in walk(tree.root_node):
            found.visit(place)
    # The grammar loses its way at an `$IFS` in the middle of a word.
    # Beside what was found: commands too many may be denied or asked about, one too few would run unseen.
    if tree is None or tree.root_node.has_error or "IFS" in text:
        found.invocations.extend(_rough(text))
        found.writes.extend(strip_quotes(target) for target in _WRITE.findall(text))
    cut = len(found.invocations) > MAX_COMMANDS
    commands = tuple(found.invocations[:MAX_COMMANDS])
    return Script(text, commands, tuple(found.writes), tuple(found.reads), tree, cut, found.choices, found.functions)


def _parameter_values(text: str, parameters: tuple[str, ...], *, wide: bool) -> dict[str, str]:
    """Return the values of the parameters of a script."""
    if wide and (not parameters or _SETS_WORDS.search(text)):
        return dict.fromkeys((*"0123456789@*", WIDE), UNKNOWN)
    values = {str(place): value for place, value in enumerate(parameters)}
    values |= dict.fromkeys("@*", _BREAK.join(parameters[1:])) if parameters else {}
    return values | ({WIDE: ""} if wide else {})


class _Found:
    """Collects commands, redirections and variables during a walk over the tree."""

    def __init__(self, variables: dict[str, str], wide: str | None, choice: int, functions: Functions) -> None:
        self.invocations: list[Invocation] = []
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.choices = 1  # the most values that a loop of the script names
        self._variables = variables
        self._wide = wide is not None
        self._text = wide  # the script, for a wide reading
        self._prompts = wide is not None and bool(_EXPANDED_LATER.search(wide))
        self._choice = choice  # which of a loop's values this reading takes
        self.functions = dict(functions)
        self._calls = 0  # of functions that were followed
        self._active: list[str] = []  # the functions that are being followed, outermost first
        self._definition_end = 0
        self._outside: dict[str, str] = {}  # the parameters outside of that body

    def visit(self, place: NodePlace) -> None:
        node = place.node
        # Behind the body of a function, the parameters are those of the script again.
        if self._definition_end and node.start_byte >= self._definition_end:
            self._set_positions(self._outside)
            self._definition_end = 0
        if node.type == "function_definition":
            self._define(node)
        if self._wide and node.type in ("raw_string", "ansi_c_string", "string"):
            self._later(node)
        if node.type in _COMMANDS:
            self._command(place)
        elif node.type == "file_redirect":
            self._redirect(node)
        elif node.type == "variable_assignment":
            self._assign(node)
        elif node.type == "for_statement":
            self._loop(node)

    def _command(self, place: NodePlace) -> None:
        node = place.node
        words: list[str] = []
        variables: Variables = self._variables
        for child in node.named_children:
            if child.type not in _SKIPPED:
                words.extend(fields(child, variables))
                if self._wide and len(words) == 1 and words[0] not in _TAKE_FILES:
                    variables = {name: text for name, text in variables.items() if not name.startswith(_QUOTED)}
        words.extend(word for child in _behind_redirections(place) for word in fields(child, variables))
        keyword = node.children[0].type if node.type in ("declaration_command", "unset_command") else ""
        if keyword:
            words.insert(0, keyword)
        if node.type == "test_command":
            words = ["["]
        if words:
            self.invocations.append(Invocation(tuple(words), _cut(node), self._stdin(place)))
            # A wide reading has functions' bodies in the walk already, with every parameter unknown.
            if not self._wide:
                self._follow(words)

    def _define(self, node: Node) -> None:
        """Note the body of a function, in which the parameters are not those of the script."""
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.functions[_cut(name)] = body
        if not self._definition_end:
            self._definition_end = node.end_byte
            self._outside = self._set_positions(dict.fromkeys(_POSITIONS, UNKNOWN))

    def _follow(self, words: Sequence[str]) -> None:
        """Read the body of a function with the words of its call as parameters; follow `shift` and `set --`."""
        if words[0] == "shift" and "@" in self._variables and not self._definition_end:
            number = int(words[1]) if words[1:2] and words[1].isdecimal() else 1
            self._set_positions(_positions(self._variables["@"].split(_BREAK)[number:]))
        elif words[0] == "set" and "--" in words and not self._definition_end:
            self._set_positions(_positions(words[words.index("--") + 1 :]))
        # In a body that is only defined, nothing runs yet; and one round of recursion shows what there is.
        body = self.functions.get(words[0])
        if body is None or self._definition_end or self._active.count(words[0]) > 1:
            return
        each = bool(_EACH_PARAMETER.search(_cut(body)))
        # For `for f; do rm $f; done` and `shift`: each parameter in turn is `$1`, as if those before were gone.
        for first in range(1, min(len(words), MAX_CHOICES) + 1) if each else (1,):
            if self._calls >= _MAX_CALLS or len(self.invocations) > _MAX_CALLED or (first > 1 and first == len(words)):
                return
            self._calls += 1
            self._active.append(words[0])
            before = self._set_positions(_positions(words[first:]))
            for inside in walk(body):
                self.visit(inside)
            self._active.pop()
            self._definition_end = 0
            self._set_positions(before)

    def _set_positions(self, values: Mapping[str, str]) -> dict[str, str]:
        """Set the positional parameters, unset those that have no value, and return what they were."""
        before = {name: self._variables.pop(name) for name in _POSITIONS if name in self._variables}
        self._variables.update(values)
        return before

    def _redirect(self, node: Node) -> None:
        operators = {child.type for child in node.children if not child.is_named}
        target = self.writes if operators & _WRITES else self.reads
        for child in node.children_by_field_name("destination")[:1]:
            target.extend(fields(child, self._variables))

    def _assign(self, node: Node) -> None:
        name, given = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        text = value(given, self._variables) if given is not None else ""
        # The walk goes by the text, and not by what runs: an `if` may leave the variable as it was.
        before = self._variables.get(_cut(name), text)
        # Which of two values it has depends on what runs before.
        self._variables[_cut(name)] = UNKNOWN if self._wide and before != text else text
        if text and _RUN_BY_OTHERS.fullmatch(_cut(name)):
            # `|` and `-` only say how `less` uses what the command prints.
            run = text.lstrip("|- ") if _cut(name).startswith("LESS") else text
            self.invocations.append(Invocation(("sh", "-c", run), text[:MAX_TEXT]))
        # Shells run the file that these name before anything else.
        if text and _cut(name) in ("BASH_ENV", "ENV"):
            self.invocations.append(Invocation(("source", text), text[:MAX_TEXT]))

    def _loop(self, node: Node) -> None:
        """Assign a value of a `for` loop to its variable, as in `for x in /; do rm -r $x; done`."""
        name, given = node.child_by_field_name("variable"), node.children_by_field_name("value")
        # Without words a loop goes through the parameters, which keep the values they have.
        if name is None or not given:
            return
        if not self._wide:
            self._variables[_cut(name)] = next(iter(fields(given[0], self._variables)), "")
            return
        values = [word for each in given for word in fields(each, self._variables)]
        fixed = 0 < len(values) <= MAX_CHOICES and not any(char in word for word in values for char in f"*?[{UNKNOWN}")
        self.choices = max(self.choices, len(values) if fixed else 1)
        self._variables[_cut(name)] = values[self._choice % len(values)] if fixed else UNKNOWN
        if not fixed and len(values) == 1 and _NO_OPTION.fullmatch(values[0]) and self._only_loops(_cut(name)):
            self._variables[_QUOTED + _cut(name)] = values[0]  # one file; unquoted, its name may be several words

    def _only_loops(self, name: str) -> bool:
        """Return whether nothing in the script but one loop could set a variable."""
        text = self._text or ""
        # The name where it is not read: `x`, or `{x` as in `exec {x}>file`. One of these is the loop itself.
        bare = re.findall(rf"(?<![-${{\w]){re.escape(name)}\b|(?<!\$)\{{{re.escape(name)}\b", text)
        return len(bare) == 1 and len(text) <= MAX_TEXT and not _SETS_UNSEEN.search(text)

    def _later(self, node: Node) -> None:
        """Collect the command that bash runs when it expands a quoted text later: in a subscript, or in a prompt."""
        text = _cut(node)
        if ("$(" not in text and "`" not in text) or (
            node.type == "string" and "\\$(" not in text and "\\`" not in text
        ):
            return
        if self._prompts or _SUBSCRIPT.search(text):
            text = value(node, self._variables)
            # The subscript is no command, so `:` takes it, and only its substitutions run.
            self.invocations.append(Invocation(("eval", f": {text[text.find('[') + 1 :]}"), text))

    def _stdin(self, place: NodePlace) -> str | None:
        """Return the input from a here-string, a here-document or a command before the pipe; None if unknown."""
        above = place.above
        holder = above if above is not None and above.node.type == "redirected_statement" else None
        for child in (*place.node.named_children, *(holder.node.named_children if holder else ())):
            if child.type == "herestring_redirect" and child.named_children:
                return value(child.named_children[-1], self._variables)
            if child.type == "heredoc_redirect":
                return "\n".join(_cut(part) for part in child.named_children if part.type == "heredoc_body")
        return self._piped_text(holder or place)

    def _piped_text(self, place: NodePlace) -> str | None:
        """Return the text that comes through the pipe, if the command before it only passes on a text of the script."""
        piped = place.above is not None and place.above.node.type == "pipeline" and place.later
        if not piped or not self.invocations:
            return None
        # Of a group or a loop, the last command alone does not make all the output.
        if self._wide and place.before != "command" and place.before != "redirected_statement":
            return None
        # The walk goes by the text, so the last one found is the one before the pipe.
        before = self.invocations[-1]
        return printed_output(before.name, before.words[1:], before.stdin)


def _behind_redirections(place: NodePlace) -> Iterator[Node]:
    """Yield the words of a command that stand behind a redirection of it, as in `git >x push`: the grammar takes them
    for more files of the redirection.
    """
    above = place.above.node if place.above is not None else None
    if above is None or above.type != "redirected_statement" or above.child_by_field_name("body") != place.node:
        return
    for child in above.named_children:
        if child.type == "file_redirect":
            yield from child.children_by_field_name("destination")[1:]
        elif child.type == "heredoc_redirect":
            yield from child.children_by_field_name("argument")


def _positions(values: Sequence[str]) -> dict[str, str]:
    """Return the positional parameters for the words of a call, without the name of what is called."""
    named = {str(place): text for place, text in enumerate(values[:9], 1)}
    return {**named, "@": _BREAK.join(values), "*": _BREAK.join(values)}


def _cut(node: Node) -> str:
    """Return the text of a node, shortened if long, since nested nodes would be copied repeatedly."""
    if node.end_byte - node.start_byte > MAX_TEXT:
        return _head(node)
    return text_of(node)


def _head(node: Node) -> str:
    """Return the first words of a long node."""
    parts: list[str] = []
    for child in node.named_children[:64]:
        if child.end_byte - child.start_byte < MAX_TEXT:
            parts.append(text_of(child))
    return " ".join(parts)[:MAX_TEXT]


def _rough(text: str) -> Iterator[Invocation]:
    """Yield the commands of a script that cannot be parsed: split at every separator, ignoring quotes."""
    text = _IFS.sub(" ", _BRACED.sub(lambda match: match[1].replace(",", " "), text))
    for piece in _SPLIT.split(text):
        words = tuple(strip_quotes(word) for word in piece.split())
        if words:
            yield Invocation(words, piece.strip()[:MAX_TEXT])


# Prediction of what a few commands print, if the script itself holds their input. Pure functions.


def printed_output(name: str, arguments: Sequence[str], stdin: str | None) -> str | None:
    """Return the output of the command `name` with these arguments and the input `stdin`, for a few such as `echo`;
    None if it is unknown.
    """
    if name in ("echo", "printf"):
        words = [word for word in arguments if not word.startswith("-")]
        if name == "printf":
            return _format_printf(words)
        text = " ".join(words)
        return _ansi(text) if any(re.fullmatch(r"-n?e\w*", word) for word in arguments) else text.replace("\\n", "\n")
    if name in ("find", "gfind"):
        return _find_folders(arguments)
    if stdin is None:
        return None
    if name in ("base64", "gbase64") and set(arguments) & {"-d", "-D", "-di", "--decode"}:
        return _base64(stdin)
    if name == "xxd" and any("r" in word for word in arguments):
        return _hexadecimal(stdin)
    if name == "rev":
        return "\n".join(line[::-1] for line in stdin.split("\n"))
    return stdin if name in _PASSING else None


def _format_printf(words: Sequence[str]) -> str:
    """Return the output of `printf`, whose format is used again as long as there are more words."""
    form, waiting = (words[0] if words else ""), list(words[1:])
    text = _ansi(_CONVERSION.sub(lambda _: waiting.pop(0) if waiting else "", form))
    while waiting and _CONVERSION.search(form):
        text += _ansi(_CONVERSION.sub(lambda _: waiting.pop(0) if waiting else "", form))
    return text


def _find_folders(arguments: Sequence[str]) -> str | None:
    """Return the folders that `find` starts in, the first that it prints, unless a test could leave them out."""
    first = next((place for place, word in enumerate(arguments) if word.startswith(("-", "(", "!"))), len(arguments))
    free = all(word.startswith("-print") or word in ("-depth", "-xdev", "-mount") for word in arguments[first:])
    return "\n".join(arguments[:first]) if free else None


def _base64(text: str) -> str | None:
    try:
        return base64.b64decode(text).decode(errors="replace")
    except (binascii.Error, ValueError):
        return None


def _hexadecimal(text: str) -> str | None:
    try:
        return bytes.fromhex(text).decode(errors="replace")
    except ValueError:
        return None


# Expansion of the words of a script as far as its text determines it: quotes, escapes, braces, known variables. Pure.


def fields(node: Node, variables: Variables) -> tuple[str, ...]:
    """Return the words that the word at `node` expands to; an expansion may yield none or several. `variables` are the
    values by name, as far as they are known.
    """
    first = node.children[0] if node.type == "command_name" and node.child_count == 1 else node
    if "@" in variables and text_of(first) in _ALL_WORDS:
        return tuple(variables["@"].split(_BREAK))
    text = _decode(node, variables, 0)
    found = [part for branch in _branches(text) for part in re.split(f"{_BREAK}+", branch)]
    quoted = node.type in ("string", "raw_string", "ansi_c_string")
    return tuple(part for part in found if part or quoted)


def value(node: Node, variables: Variables) -> str:
    """Return the word at `node` as one text, with `UNKNOWN` for each part that only a run would tell."""
    return _decode(node, variables, 0).translate(_LITERAL).replace(_BREAK, " ")


def strip_quotes(text: str) -> str:
    """Return a word without its quotes and backslashes, ignoring the grammar."""
    return _BACKSLASH.sub(r"\2", text).replace("'", "").replace('"', "").replace("${HOME}", "~").replace("$HOME", "~")


def _decode(node: Node, variables: Variables, depth: int) -> str:
    kind = node.type
    if depth > MAX_DEPTH:
        return UNKNOWN
    if kind == "raw_string":
        return text_of(node)[1:-1]
    if kind in ("ansi_c_string", "ansii_c_string"):
        return _ansi(text_of(node)[2:-1])
    if kind in ("string", "translated_string"):
        return _string(node, variables, depth)
    if kind in ("concatenation", "command_name"):
        return "".join(_decode(child, variables, depth + 1) for child in node.children)
    if kind in ("simple_expansion", "expansion"):
        return _variable(text_of(node), variables)
    if kind == "command_substitution":
        return _expand_output(node, variables, depth)
    if kind == "process_substitution":
        return _SUBSTITUTED
    return _bare(text_of(node)) if not node.is_named or not node.named_child_count else UNKNOWN


def _string(node: Node, variables: Variables, depth: int) -> str:
    source, end, parts = text_of(node).encode(), node.start_byte, []
    for child in node.named_children:
        if child.type == "string_content":
            continue
        parts.append(source[end - node.start_byte : child.start_byte - node.start_byte].decode(errors="replace"))
        name = _VARIABLE.fullmatch(text_of(child))
        pattern = variables.get(_QUOTED + name[1]) if name else None
        parts.append(pattern or _decode(child, variables, depth + 1).replace(_BREAK, " "))
        end = child.end_byte
    parts.append(source[end - node.start_byte :].decode(errors="replace"))
    # `$"…"` is a text that bash translates. Even parts are source, in which backslashes count; odd ones are expansions.
    parts[0] = parts[0].removeprefix("$")[1:]
    parts[-1] = parts[-1][:-1] if parts[-1].endswith('"') else parts[-1]
    return "".join(re.sub(r'\\([\\"$`])|\\\n', r"\1", part) if even % 2 == 0 else part
                   for even, part in enumerate(parts))  # fmt: skip


def _bare(text: str) -> str:
    """Return an unquoted word with its braces and commas marked for brace expansion."""
    return _BACKSLASH.sub(r"\2", text.translate(_MARKS) if "{" in text or "," in text or "}" in text else text)


def _ansi(text: str) -> str:
    """Return the text of `$'…'` with its escapes decoded; an unknown escape is kept, as in bash."""
    return _ESCAPE.sub(_unescape, text)


def _unescape(match: re.Match[str]) -> str:
    body = match[1]
    if body[0] in _LETTERS:
        return _LETTERS[body[0]]
    if body[0] == "c":
        return chr(ord(body[1]) & 0x1F)
    code = int(body[1:], 16) if body[0] in "xuU" else int(body, 8) & 0xFF
    return chr(code) if code < 0x110000 else match[0]


def _variable(text: str, variables: Variables) -> str:
    """Return the value of `$name` and `${name}`; for `${name:-text}` the text if the value is unknown, and for other
    forms, such as `${name:?}` and `${name%/}`, the value as if unchanged, or in a wide reading `UNKNOWN`.
    """
    if (match := _VARIABLE.fullmatch(text)) is not None:
        return _break_at_separators(match[1], variables)
    if (default := _DEFAULT.fullmatch(text)) is not None:
        value = _break_at_separators(default[1], variables)
        if WIDE in variables and (value == UNKNOWN or default[2] == "+"):
            return UNKNOWN
        return strip_quotes(default[3]) if default[2] == "+" or value in ("", UNKNOWN) else value
    modified = _MODIFIED.fullmatch(text)
    return _break_at_separators(modified[1], variables) if modified and WIDE not in variables else UNKNOWN


def _break_at_separators(name: str, variables: Variables) -> str:
    value = variables.get(name, _FIXED.get(name, "" if name.isdigit() else UNKNOWN))
    # `IFS=,; x=rm,-r; $x`: with separators of its own, a script splits what has no blanks.
    separators = variables.get("IFS", "") if WIDE in variables and name != "IFS" else ""
    return re.sub(f"[{re.escape(separators)}]", _BREAK, value) if separators.strip(UNKNOWN) else value


def _expand_output(node: Node, variables: Variables, depth: int) -> str:
    """Return the expansion of `$(echo …)`, `$(printf …)` or `$(which …)`; UNKNOWN for other commands."""
    inner = node.named_children
    if len(inner) != 1 or inner[0].type != "command":
        return UNKNOWN
    words = [_decode(child, variables, depth + 1).translate(_LITERAL) for child in inner[0].named_children]
    words = [part for word in words for part in word.split(_BREAK)]
    if any(tuple(words[:-1]) == finder for finder in _FINDERS):
        return words[-1]
    text = printed_output(words[0], words[1:], None) if words and words[0] in ("echo", "printf") else None
    return UNKNOWN if text is None else _BREAK.join(text.split())


def _branches(text: str) -> list[str]:
    """Return the results of brace expansion: `{a,b}c` gives `ac` and `bc`."""
    done: list[str] = []
    waiting = [text]
    while waiting and len(done) + len(waiting) < _MAX_BRANCHES:
        branch = waiting.pop()
        found = _BRACES.search(branch)
        if found is None:
            done.append(branch.translate(_LITERAL))
        elif _COMMA in found[1]:
            pieces = found[1].split(_COMMA)
            waiting.extend(branch[: found.start()] + piece + branch[found.end() :] for piece in reversed(pieces))
        else:
            waiting.append(f"{branch[: found.start()]}{{{found[1]}}}{branch[found.end() :]}")
    return done + [branch.translate(_LITERAL) for branch in waiting]
