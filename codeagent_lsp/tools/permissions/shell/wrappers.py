"""The commands and scripts that wrapper commands (`sudo`, `xargs`, `bash -c`) run, and all commands of a script, those
inside wrappers included. Pure functions.

For denial and for ask and deny rules: a wrapper is looked through, never trusted. Options are known only as far as
needed to find the inner command. Not here: reading a script (`reading.py`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from codeagent_lsp.tools.permissions.shell.git_programs import SAME_AS_GIT, inner_git
from codeagent_lsp.tools.permissions.shell.programs import STDIN, Inner, started_programs
from codeagent_lsp.tools.permissions.shell.reading import MAX_CHOICES, MAX_TEXT, UNKNOWN, Invocation, Script, read

SHELLS = frozenset(
    "bash sh zsh dash ksh ash fish mksh rbash csh tcsh yash oksh posh nu xonsh elvish pwsh powershell".split()  # noqa: SIM905
)
INTERPRETERS = re.compile(r"(?:python|perl|ruby|node|nodejs|php|lua|awk|gawk|mawk|pypy|bun|deno|osascript)[\d.]*")
_MAX_EXECS = 16
_MAX_ITEMS = 64
# `{}`, `{.}`, `{/}`, `{#}`, `{1}`: what GNU parallel replaces.
_PLACE_OF_ITEM = re.compile(r"\{[./%#+\w]*\}")
_ASSIGNMENT = re.compile(r"\w+=")
_SED_RUNS = re.compile(r"(?:^|[;\n{]|[\d$/,!])\s{0,9}e\s+([^\n]+)")
"""The command `e` of a sed script, which runs a program."""
# `os.system("x")`, `subprocess.run(["a", "b"])`, `execSync('x')`: a call with literal texts.
_SPAWN = re.compile(
    r"(?:system|popen|exec\w{0,8}|spawn\w{0,8}|run|call|check_call|check_output|shell_exec|passthru|getoutput|sh)"
    r"\s{0,9}\(?\s{0,9}\[?\s{0,9}[rbf]?(['\"])(?P<script>(?:\\.|(?!\1).)*)\1(?P<rest>(?:\s{0,9},\s{0,9}['\"][^'\"]*['\"])*)",
    re.DOTALL,
)
MAX_DEPTH = 8
MAX_WORDS = 20_000
_CONTINUED = "\\\n"
# An inner script is parsed anew: a variable that nobody sets is UNKNOWN there, too; a NUL would be a letter.
_UNKNOWN_TEXT = "${_unknown}"


@dataclass(frozen=True, slots=True)
class _Prefix:
    """A wrapper before a command: options that take the next word, operands to skip, whether it sets variables."""

    values: frozenset[str] = frozenset()
    skip: int = 0
    assigns: bool = False


def _prefix(values: str = "", *, skip: int = 0, assigns: bool = False) -> _Prefix:
    return _Prefix(frozenset(values.split()), skip, assigns)


_RUNNERS = tuple("uv poetry pipenv pdm hatch rye mise asdf bundle pnpm yarn npm conda mamba".split())  # noqa: SIM905
"""Commands whose first operand, one of `_RUNS`, runs what comes behind it."""

_RUNS = frozenset(("run", "exec", "x", "dlx", "execute"))

_READ_INPUT = frozenset(("source", ".", "ssh", "at", "batch"))
"""Commands other than shells that run their input, or hand it to a shell."""
_TARS = ("tar", "gtar", "bsdtar")
_SCRIPT_OPTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_TARS, ("-I", "--use-compress-program", "--to-command", "--rsh-command")),
    **dict.fromkeys(("npx", "npm", "pnpm"), ("-c", "--call", "--shell-mode")),
    **dict.fromkeys(("mapfile", "readarray"), ("-C",)),
    "nix-shell": ("--run", "--command"),
    "ssh": ("-o",),
    "man": ("-P", "--pager"),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "zip": ("-TT", "--unzip-command"),
    **dict.fromkeys(("make", "gmake"), ("--eval", "-E")),
    **dict.fromkeys(("sort", "gsort"), ("--compress-program",)),
    "rg": ("--pre", "--hostname-bin"),
}
"""Options whose values programs run as scripts."""

_PREFIXES: dict[str, _Prefix] = {
    "sudo": _prefix("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot", assigns=True),
    "doas": _prefix("-u -C"),
    "run0": _prefix("-u --user"),
    "pkexec": _prefix("--user"),
    "env": _prefix("-u --unset -C --chdir", assigns=True),
    "nice": _prefix("-n --adjustment"),
    "nohup": _prefix(),
    "timeout": _prefix("-k --kill-after -s --signal", skip=1),
    "gtimeout": _prefix("-k --kill-after -s --signal", skip=1),
    "stdbuf": _prefix("-i -o -e --input --output --error"),
    "unbuffer": _prefix(),
    "setsid": _prefix(),
    "ionice": _prefix("-c -n --class --classdata"),
    "chrt": _prefix("-T -P -D", skip=1),
    "taskset": _prefix(skip=1),
    "time": _prefix("-f -o --format --output"),
    "command": _prefix(),
    "builtin": _prefix(),
    "exec": _prefix("-a"),
    "coproc": _prefix(),
    "xargs": _prefix(
        "-I -n -L -P -s -d -E -a --max-args --max-procs --replace --delimiter --arg-file --max-lines --max-chars"
    ),
    "parallel": _prefix("-j -I -a --jobs --arg-file"),
    "watch": _prefix("-n --interval"),
    "flock": _prefix("-w -E --timeout", skip=1),
    "chroot": _prefix("--userspec --groups", skip=1),
    "unshare": _prefix("-S -G --setuid --setgid"),
    "nsenter": _prefix("-t --target -S -G"),
    "strace": _prefix("-o -e -p -s -u"),
    "ltrace": _prefix("-o -e -p -s -u"),
    "busybox": _prefix(),
    "toybox": _prefix(),
    "caffeinate": _prefix("-t -w"),
    "firejail": _prefix(),
    "bwrap": _prefix("--chdir --unsetenv --dir --proc --dev --tmpfs"),
    "dbus-run-session": _prefix(),
    "systemd-run": _prefix("-p --unit --property"),
    "fakeroot": _prefix("-l -s -i -f --lib --faked -b"),
    "prlimit": _prefix("-p --pid"),
    "setpriv": _prefix("--reuid --regid --groups --inh-caps --bounding-set --ambient-caps --securebits"),
    "setarch": _prefix(skip=1),
    "linux32": _prefix(),
    "linux64": _prefix(),
    "numactl": _prefix("-m -N -C -p -l --membind --cpunodebind --physcpubind --preferred --interleave -i"),
    "cgexec": _prefix("-g"),
    "cpulimit": _prefix("-l -p --limit"),
    "runuser": _prefix("-u -g -G -s --user --group --shell"),
    "gosu": _prefix(skip=1),
    "su-exec": _prefix(skip=1),
    "xvfb-run": _prefix("-e -f -n -p -s -w --error-file --auth-file --server-num --server-args --wait"),
    "valgrind": _prefix(),
    "heaptrack": _prefix("-o --output"),
    "perf": _prefix("-o -e -F -p --output --event", skip=1),
    "torsocks": _prefix("-P -u -p"),
    "torify": _prefix(),
    "proxychains": _prefix("-f"),
    "proxychains4": _prefix("-f"),
    "rlwrap": _prefix("-f -H -s -D -C"),
    "entr": _prefix(),
    "npx": _prefix("-p --package"),
    "bunx": _prefix("-p --package"),
    "pnpx": _prefix(),
    "uvx": _prefix("--from --with -p --python"),
    **{name: _prefix("-C --dir --directory --project --with --python -p --group", skip=1) for name in _RUNNERS},
    "direnv": _prefix(skip=2),
    "ssh": _prefix("-o -i -p -l -F -J -L -R -D -E -b -c -m", skip=1),
    "!": _prefix(),
    # Runs nothing: it is here so that its words are not taken for a command (`is_wrapper`).
    "[": _prefix(skip=999),
}


def is_wrapper(name: str) -> bool:
    """Return whether a command of this name, such as `sudo` or `bash`, runs another one that its words name. `name` is
    without a folder.
    """
    return name in _PREFIXES or name in _SCRIPTS or name in SHELLS


def _runs_words(words: Sequence[str], name: str) -> bool:
    """Return whether a command runs its words: `npm test -- a.js` and `npm run build` run a script of the project."""
    if name not in _RUNNERS:
        return True
    operand = next((word for word in words[1:] if not word.startswith("-")), "")
    scripts = name in ("npm", "yarn", "pnpm") and operand == "run"
    # A subcommand that is not known may be one of these.
    return operand.strip(UNKNOWN) != operand or (operand in _RUNS and not scripts)


def inner(command: Invocation, *, wide: bool = False) -> tuple[Inner, ...]:
    """Return the commands and scripts that `command` runs besides itself, one level deep, () for nothing; `wide` as in
    `read`.
    """
    name, words = command.name, command.words
    found: list[Inner] = []
    if name in _PREFIXES and not (name == "command" and {"-v", "-V"} & set(words[1:2])) and _runs_words(words, name):
        found.extend(_after_prefix(_PREFIXES[name], words))
    if name == "xargs":
        found = [_with_items(part, command, wide=wide) for part in found]
    # Not as a prefix alone: it gives its words to a shell, once with each item.
    if name == "parallel":
        found = list(_in_parallel(words, command.stdin))
    if name == "git":
        found.extend(inner_git(words))
    # The programs behind git's commands can be called by their own names.
    if name.startswith("git-"):
        found.append(Inner(words=("git", name[4:], *words[1:])))
    if name in SAME_AS_GIT:
        found.append(Inner(words=("git", *words[1:])))
    if name in _SCRIPTS:
        found.extend(_SCRIPTS[name](words))
    if name in SHELLS:
        found.extend(_shell(command))
    # Without a script of its own, such a program runs what it is fed: `echo … | sh`.
    if name in _READ_INPUT and command.stdin and (name not in ("source", ".") or STDIN.intersection(words[1:2])):
        found.append(Inner(script=command.stdin))
    if name in ("find", "gfind", "fd", "fdfind"):
        found.extend(_find(words, wide=wide))
    found.extend(Inner(script=script) for script in _in_options(name, words))
    if INTERPRETERS.fullmatch(name):
        found.extend(_code(" ".join(words[1:]) + "\n" + (command.stdin or "")))
    found.extend(started_programs(name, words, command.stdin).commands)
    return tuple(part for part in found if part.words or part.script)


def _after_prefix(prefix: _Prefix, words: Sequence[str]) -> list[Inner]:
    """Return the words after the wrapper's own, and scripts given as an option's value (`env -S`, `flock -c`)."""
    place, skip = 1, prefix.skip
    scripts = [Inner(script=script) for script in _with_values(words, "-S", "-c", "--split-string", "--command")]
    while place < len(words):
        word = words[place]
        if word == "--":
            place += 1
            break
        # A lone dash is an option of `env` (`-i`), elsewhere an operand.
        if word.startswith("-") and (len(word) > 1 or prefix.assigns):
            place += 2 if word in prefix.values else 1
        elif prefix.assigns and _ASSIGNMENT.match(word):
            place += 1
        elif skip:
            place, skip = place + 1, skip - 1
        else:
            break
    # Behind `--`, too: `env -- A=1 make`.
    while place < len(words) and prefix.assigns and _ASSIGNMENT.match(words[place]):
        place += 1
    # `timeout -- 5 make`: operands behind `--` still have to be skipped.
    rest = tuple(words[place + skip :]) if words[place - 1 : place] == ("--",) else tuple(words[place:])
    return scripts + ([Inner(words=rest)] if rest else [])


def _with_items(part: Inner, command: Invocation, *, wide: bool) -> Inner:
    """Return the command that `xargs` runs with the items of its input behind it, or in place of its mark."""
    if not part.words:
        return part
    mark = next((words for words in _with_values(command.words, "-I", "-J", "--replace")), "")
    # Glued, as in `-I{}`; BSD has `-J`, older GNU `-i`.
    mark = mark or next((word[2:] for word in command.words[1:] if re.match(r"-[IJi].", word)), "")
    if command.stdin is None or (wide and {"-a", "--arg-file"} & set(command.words)):
        items = [UNKNOWN] if wide else []
    else:
        # With these, or with a mark, each line is one item; else blanks split, too.
        apart = {"-0", "--null", "-d", "--delimiter"} & set(command.words) or mark
        lines = command.stdin.replace("\\0", "\n").replace("\0", "\n")
        items = (lines.strip("\n").split("\n") if apart else lines.split())[:_MAX_ITEMS]
    if mark and items:
        return Inner(words=tuple(word.replace(mark, items[0]) for word in part.words))
    return Inner(words=(*part.words, *items))


def _in_parallel(words: Sequence[str], stdin: str | None) -> Iterator[Inner]:
    """Yield the scripts of `parallel`: its words with each item behind them, or in place of `{}`."""
    place = next((at for at, word in enumerate(words) if word.startswith(":::")), len(words))
    command = next((part.words for part in _after_prefix(_PREFIXES["parallel"], words[:place])), ())
    items = words[place + 1 : place + 1 + _MAX_EXECS]
    items = items or ((stdin.split("\n") if stdin else [UNKNOWN])[:_MAX_EXECS])
    text = " ".join(command)
    text = text if "{" in text else f"{text} {{}}"
    for item in items:
        yield Inner(script=item.join(_PLACE_OF_ITEM.split(text)))


def _shell(command: Invocation) -> list[Inner]:
    """Return the script of `bash -c`, also in a cluster (`-lc`), and the shell's input."""
    found = [Inner(script=command.stdin)] if command.stdin else []
    script, _, parameters = shell_words(command.words)
    if script is not None:
        found.append(Inner(script=script, parameters=parameters))
    # Whatever its options: the first word behind one with a `c`.
    for place, word in enumerate(command.words[1:], 1):
        if re.fullmatch(r"[-+]\w*c\w*", word):
            later = next((each for each in command.words[place + 1 :] if each == "" or each[0] not in "-+"), "")
            return found if later == script else [*found, Inner(script=later)]
    return found


def shell_words(words: Sequence[str]) -> tuple[str | None, str | None, tuple[str, ...]]:
    """Return (script, file, arguments) of a shell's words: the script given by `-c` ('' if it is missing), else the
    file to run; None for what is absent. `arguments` are `$0`, `$1` and so on.
    """
    place, runs = 1, False
    while place < len(words):
        word = words[place]
        if word in ("--", "-"):
            place += 1
            break
        if word.casefold() in ("-command", "/c") or (word == "-C" and words[0].endswith("fish")):
            return " ".join(words[place + 1 :]), None, ()
        if word.startswith(("--command=", "--init-command=")):
            return word.partition("=")[2], None, ()
        if word.startswith("--"):
            place += 2 if word in ("--rcfile", "--init-file") else 1
        elif word[:1] in ("-", "+") and len(word) > 1:
            runs = runs or "c" in word
            # Each of these letters takes a name: `bash -eo pipefail -c script`.
            place += 1 + word.count("o") + word.count("O")
        else:
            break
    rest = tuple(words[place:])
    if runs:
        return (rest[0] if rest else ""), None, rest[1:]
    return None, (rest[0] if rest else None), rest


def _find(words: Sequence[str], *, wide: bool) -> list[Inner]:
    found = []
    for place, word in enumerate(words):
        if word in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            rest = words[place + 1 : place + 1_000]
            ends = [at for at, later in enumerate(rest) if later in (";", "+")]
            rest = rest[: ends[0]] if ends else rest
            found.append(Inner(words=tuple(each.replace("{}", UNKNOWN) if wide else each for each in rest)))
            if len(found) == _MAX_EXECS:
                break
    return found


def _code(text: str) -> list[Inner]:
    """Return the commands that program code starts, as far as they occur in it as literal texts."""
    found = []
    for match in _SPAWN.finditer(text):
        rest = re.findall(r"['\"]([^'\"]*)['\"]", match["rest"])
        found.append(Inner(words=(match["script"], *rest)) if rest else Inner(script=match["script"]))
    return found


def _with_values(words: Sequence[str], *options: str) -> list[str]:
    found = []
    for place, word in enumerate(words):
        name, equals, given = word.partition("=")
        if word in options and place + 1 < len(words):
            found.append(words[place + 1])
        elif equals and name.startswith("--") and name in options:
            found.append(given)
        elif "-S" in options and word.startswith("-S") and len(word) > 2:
            found.append(word[2:])
        elif "-S" in options and re.fullmatch(r"-[i0v]+S.*", word):
            found.append(word.partition("S")[2] or "".join(words[place + 1 : place + 2]))
    return found


def _in_options(name: str, words: Sequence[str]) -> list[str]:
    """Return the scripts that programs other than wrappers take in an option's value or an operand."""
    found = _with_values(words, *_SCRIPT_OPTIONS.get(name, ()))
    if name in _TARS:
        found += [word.partition("=exec=")[2] for word in words if word.startswith("--checkpoint-action=exec=")]
    if name in ("sed", "gsed"):
        found += [match[1] for word in words[1:] for match in _SED_RUNS.finditer(word)]
    if name == "ssh":
        # Of `-o Name=value`, only ProxyCommand, LocalCommand and the like are run.
        found = [text.partition("=")[2] for text in found if "command" in text.partition("=")[0].casefold()]
    if name in ("make", "gmake"):
        # `--eval 'x: ; cmd'`: of a rule, the recipe runs.
        found = [re.sub(r"^[^:;\n]*:[^;\n]*;?", "", text) for text in found]
    return found


def _join_words(words: Sequence[str]) -> list[Inner]:
    return [Inner(script=" ".join(words[2:] if words[1:2] == ("--",) else words[1:]))]


def _option(words: Sequence[str]) -> list[Inner]:
    """Return the script of `su -c 'script'` and `script -qc 'script'`."""
    for place, word in enumerate(words[1:-1], 1):
        if re.fullmatch(r"-\w*c", word) or word in ("--command", "--session-command"):
            return [Inner(script=words[place + 1])]
    glued = [word[2:] for word in words[1:] if re.match(r"-c.", word)]
    return [Inner(script=given) for given in (*glued, *_with_values(words, "--command", "--session-command"))]


def _aliases(words: Sequence[str]) -> list[Inner]:
    given = [word.partition("=")[2] for word in words[1:_MAX_ITEMS] if "=" in word]
    return [Inner(script=text) for text in given]


def _first(words: Sequence[str]) -> list[Inner]:
    operands = [word for word in words[1:] if word != "--"]
    return [Inner(script=operands[0])] if operands else []


_SCRIPTS: dict[str, Callable[[Sequence[str]], list[Inner]]] = {
    "eval": _join_words,
    "watch": _join_words,
    "su": _option,
    "runuser": _option,
    "script": _option,
    "trap": _first,
    "alias": _aliases,
}


@dataclass(frozen=True, slots=True)
class Everything:
    """All scripts in a command, the given one first, and all commands in them. `cut` is True if some were dropped at a
    limit.
    """

    scripts: tuple[Script, ...]
    invocations: tuple[Invocation, ...]
    cut: bool = False

    @property
    def writes(self) -> tuple[str, ...]:
        """The targets of all redirections that write, as the scripts name them."""
        return tuple(target for script in self.scripts for target in script.writes)


def unwrap(script: Script, *, wide: bool = False, choice: int = 0) -> Everything:
    """Return `script` with every script and command that it runs, 8 levels deep and about 20,000 at most; `wide` and
    `choice` say how these are read, as in `read`.
    """
    scripts = [script]
    functions = dict(script.functions)
    if _CONTINUED in script.text:  # the shell joins such lines before it looks at words
        scripts.append(read(script.text.replace(_CONTINUED, ""), wide=wide, choice=choice))
    invocations = [invocation for each in scripts for invocation in each.invocations]
    waiting = [(invocation, 0) for invocation in reversed(invocations)]
    added = 0
    while waiting:
        invocation, depth = waiting.pop()
        found = inner(invocation, wide=wide)
        if found and (depth >= MAX_DEPTH or added > MAX_WORDS):
            return Everything(tuple(scripts), tuple(invocations), cut=True)
        for part in found:
            new = [Invocation(part.words, " ".join(part.words)[:MAX_TEXT], invocation.stdin)] if part.words else []
            # No program has a blank in its name: in `ssh host 'rm -r x'`, a shell gets the word as a script.
            text = part.script or (part.words[0] if part.words and " " in part.words[0] else "")
            # `eval f x`: only a script's reading follows the calls of functions.
            if not wide and part.words and part.words[0] in functions:
                text = shlex.join(part.words)
            if text.strip():
                text = text.replace(UNKNOWN, _UNKNOWN_TEXT) if wide else text
                scripts.append(read(text, part.parameters, wide=wide, choice=choice, functions=functions))
                functions |= scripts[-1].functions
                new.extend(scripts[-1].invocations)
            invocations.extend(new)
            added += sum(len(each.words) for each in new)
            waiting.extend((each, depth + 1) for each in new)
    return Everything(tuple(scripts), tuple(invocations), cut=any(each.cut for each in scripts))


def wide_readings(command: str) -> list[Everything]:
    """Return everything in a script, read widely, once for each value that its loops take, 8 times at most."""
    found = [unwrap(read(command, wide=True), wide=True)]
    choices = min(MAX_CHOICES, max(script.choices for script in found[0].scripts))
    return found + [unwrap(read(command, wide=True, choice=at), wide=True, choice=at) for at in range(1, choices)]
