"""The commands and scripts that wrapper commands (`sudo`, `xargs`, `bash -c`) run. Pure functions.

For denial and for ask and deny rules: a wrapper is looked through, never trusted. Options are known only as far as
needed to find the inner command. Not here: reading an inner script (`reading.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codeagent_lsp.tools.permissions.shell.git_words import inner_git
from codeagent_lsp.tools.permissions.shell.inner_command import Inner
from codeagent_lsp.tools.permissions.shell.reading import Invocation

SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "ash", "fish", "mksh", "rbash", "csh", "tcsh"))
INTERPRETERS = re.compile(r"(?:python|perl|ruby|node|nodejs|php|lua|awk|gawk|mawk|pypy|bun|deno|osascript)[\d.]*")
_MAX_EXECS = 16
_MAX_ITEMS = 64
_ASSIGNMENT = re.compile(r"\w+=")
_SED_RUNS = re.compile(r"(?:^|[;\n{]|[\d$/,!])\s{0,9}e\s+([^\n]+)")
"""The command `e` of a sed script, which runs a program."""
_SPAWN = re.compile(
    r"(?:system|popen|exec\w{0,8}|spawn\w{0,8}|run|call|check_call|check_output|shell_exec|passthru|getoutput|sh)"
    r"\s{0,9}\(?\s{0,9}\[?\s{0,9}[rbf]?(['\"])(?P<script>(?:\\.|(?!\1).)*)\1(?P<rest>(?:\s{0,9},\s{0,9}['\"][^'\"]*['\"])*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Prefix:
    """A wrapper before a command: options that take the next word, operands to skip, whether it sets variables."""

    values: frozenset[str] = frozenset()
    skip: int = 0
    assigns: bool = False


def _prefix(values: str = "", *, skip: int = 0, assigns: bool = False) -> _Prefix:
    return _Prefix(frozenset(values.split()), skip, assigns)


_RUNNERS = tuple("uv poetry pipenv pdm hatch rye mise asdf bundle pnpm yarn npm conda mamba".split())  # noqa: SIM905
"""Commands whose first operand (`run`, `exec`) runs what comes behind it."""

_TARS = ("tar", "gtar", "bsdtar")
_SCRIPT_OPTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_TARS, ("-I", "--use-compress-program", "--to-command", "--rsh-command")),
    **dict.fromkeys(("npx", "npm", "pnpm"), ("-c", "--call", "--shell-mode")),
    **dict.fromkeys(("mapfile", "readarray"), ("-C",)),
    "nix-shell": ("--run", "--command"),
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
    "[": _prefix(skip=999),
}


def is_wrapper(name: str) -> bool:
    """Return whether the command that this one runs is known from its words."""
    return name in _PREFIXES or name in _SCRIPTS or name in SHELLS


def inner(command: Invocation) -> tuple[Inner, ...]:
    """Return the commands and scripts that `command` runs besides itself, one level deep."""
    name, words = command.name, command.words
    found: list[Inner] = []
    if name in _PREFIXES:
        found.extend(_after_prefix(_PREFIXES[name], words))
    if name == "xargs":
        found = [_with_items(part, command.stdin or "") for part in found]
    if name == "git":
        found.extend(inner_git(words))
    if name.startswith("git-"):
        found.append(Inner(words=("git", name[4:], *words[1:])))
    if name in _SCRIPTS:
        found.extend(_SCRIPTS[name](words))
    if name in SHELLS:
        found.extend(_shell(command))
    if name in ("find", "gfind", "fd", "fdfind"):
        found.extend(_find(words))
    found.extend(Inner(script=script) for script in _in_options(name, words))
    if INTERPRETERS.fullmatch(name):
        found.extend(_code(" ".join(words[1:]) + "\n" + (command.stdin or "")))
    return tuple(found)


def _after_prefix(prefix: _Prefix, words: Sequence[str]) -> list[Inner]:
    """Return the words after the wrapper's own, and scripts given as an option's value (`env -S`, `flock -c`)."""
    place, skip = 1, prefix.skip
    scripts = [Inner(script=script) for script in _valued(words, "-S", "-c", "--split-string", "--command")]
    while place < len(words):
        word = words[place]
        if word == "--":
            place += 1
            break
        if word.startswith("-") and len(word) > 1:
            place += 2 if word in prefix.values else 1
        elif prefix.assigns and _ASSIGNMENT.match(word):
            place += 1
        elif skip:
            place, skip = place + 1, skip - 1
        else:
            break
    rest = tuple(words[place + skip :]) if words[place - 1 : place] == ("--",) else tuple(words[place:])
    return scripts + ([Inner(words=rest)] if rest else [])


def _with_items(part: Inner, stdin: str) -> Inner:
    """Return the command that `xargs` runs with the items of its input behind it."""
    items = stdin.replace("\\0", " ").replace("\0", " ").split()[:_MAX_ITEMS]
    return Inner(words=(*part.words, *items)) if part.words else part


def _shell(command: Invocation) -> list[Inner]:
    """Return the script of `bash -c`, also in a cluster (`-lc`), and the shell's input."""
    words = command.words
    found = [Inner(script=command.stdin)] if command.stdin else []
    for place, word in enumerate(words[1:], 1):
        if re.fullmatch(r"[-+]\w*c\w*", word):
            script = next((later for later in words[place + 1 :] if later == "" or later[0] not in "-+"), "")
            return [*found, Inner(script=script)]
    return found


def _find(words: Sequence[str]) -> list[Inner]:
    found = []
    for place, word in enumerate(words):
        if word in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            rest = words[place + 1 : place + 1_000]
            ends = [at for at, later in enumerate(rest) if later in (";", "+")]
            found.append(Inner(words=tuple(rest[: ends[0]] if ends else rest)))
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


def _valued(words: Sequence[str], *options: str) -> list[str]:
    found = []
    for place, word in enumerate(words):
        name, equals, given = word.partition("=")
        if word in options and place + 1 < len(words):
            found.append(words[place + 1])
        elif equals and name.startswith("--") and name in options:
            found.append(given)
        elif "-S" in options and word.startswith("-S") and len(word) > 2:
            found.append(word[2:])
    return found


def _in_options(name: str, words: Sequence[str]) -> list[str]:
    """Return the scripts that programs other than wrappers take in an option's value or an operand."""
    found = _valued(words, *_SCRIPT_OPTIONS.get(name, ()))
    if name in _TARS:
        found += [word.partition("=exec=")[2] for word in words if word.startswith("--checkpoint-action=exec=")]
    if name in ("sed", "gsed"):
        found += [match[1] for word in words[1:] for match in _SED_RUNS.finditer(word)]
    return found


def _joined(words: Sequence[str]) -> list[Inner]:
    return [Inner(script=" ".join(words[1:]))]


def _option(words: Sequence[str]) -> list[Inner]:
    """Return the script of `su -c 'script'` and `script -qc 'script'`."""
    for place, word in enumerate(words[1:-1], 1):
        if re.fullmatch(r"-\w*c", word) or word in ("--command", "--session-command"):
            return [Inner(script=words[place + 1])]
    return [Inner(script=given) for given in _valued(words, "--command")]


def _aliases(words: Sequence[str]) -> list[Inner]:
    return [Inner(script=word.partition("=")[2]) for word in words[1:_MAX_ITEMS] if "=" in word]


def _first(words: Sequence[str]) -> list[Inner]:
    operands = [word for word in words[1:] if word != "--"]
    return [Inner(script=operands[0])] if operands else []


_SCRIPTS: dict[str, Callable[[Sequence[str]], list[Inner]]] = {
    "eval": _joined,
    "watch": _joined,
    "su": _option,
    "runuser": _option,
    "script": _option,
    "trap": _first,
    "alias": _aliases,
}
