"""Whether a script could run, unseen, a command that an ask or deny rule covers. Pure functions.

A rule is matched with what a script runs as far as its text says so. Here is the rest: names, words and programs that
only come about while it runs. Programs in files (scripts, Makefiles, tests) are not looked into: they are programs like
any other. Not here: what the text does say (`shell_policy.py`, `wrappers.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from codeagent_lsp.tools.permissions.shell.git_programs import unknown_subcommand
from codeagent_lsp.tools.permissions.shell.programs import STDIN, started_programs
from codeagent_lsp.tools.permissions.shell.reading import UNKNOWN, Invocation
from codeagent_lsp.tools.permissions.shell.wrappers import INTERPRETERS, SHELLS, Everything, is_wrapper, shell_words

_MAX_LENGTH = 200
_UNSEEN = re.compile(rf"[{UNKNOWN}*]+")
_MAX_STEPS = 40_000
_GLOB = re.compile(r"[*?]|\[.+\]")
_QUERIES = frozenset(("--version", "--help", "-V", "-h"))
_MOVERS = frozenset(("ln", "cp", "mv", "install", "hash", "link"))
# These run their words or text in a place of their own; what is in them is as good as run.
_CARRIERS = frozenset(
    """
    docker podman nerdctl kubectl oc tmux screen byobu zellij expect lxc lxd incus vagrant heroku fly gcloud vim vi nvim
    gvim view ex emacs gdb lldb sqlite3 psql mysql mariadb ed crontab at batch wsl cmd deno bun osascript
    """.split()  # noqa: SIM905
)
# These take any text, and run none of it.
_TAKERS = frozenset(
    """
    echo printf print grep egrep fgrep rg ag ack git man info which whereis type whatis apropos tldr help cat tee gh
    glab jq yq curl wget http sed gsed awk gawk mawk nawk find gfind fd fdfind perl ruby node nodejs python python3
    php lua ls test [ [[ logger say notify-send mail less more head tail sort cut tr wc touch mkdir rmdir cp mv rm
    ln read set unset export declare local readonly typeset basename dirname date bat diff code : true false case cd
    pushd pytest jest
    """.split()  # noqa: SIM905
)
# The options of runners of tests whose values are names of tests, and no more.
_NAMES_OF_TESTS: dict[str, frozenset[str]] = {
    "cargo": frozenset(("--test", "--bench", "--skip", "-E", "--filter-expr", "--filterset")),
    **dict.fromkeys(("bun", "vitest"), frozenset(("-t", "--test-name-pattern", "--testNamePattern"))),
    **dict.fromkeys(("deno", "dotnet", "phpunit", "pest", "jasmine"), frozenset(("--filter",))),
    **dict.fromkeys(("mocha", "playwright"), frozenset(("-g", "--grep", "-f", "--fgrep", "--grep-invert"))),
    "go": frozenset(("-run", "--run", "-test.run", "-bench", "-skip", "--skip", "-fuzz")),
    "rspec": frozenset(("-e", "--example", "-E", "--example-matches")),
    "ctest": frozenset(("-R", "-E", "-L", "-LE", "--tests-regex", "--exclude-regex", "--label-regex")),
    "swift": frozenset(("--filter", "--skip")),
    **dict.fromkeys(("gradle", "gradlew"), frozenset(("--tests",))),
    **dict.fromkeys(("mvn", "mvnw"), frozenset(("-Dtest", "-Dit.test"))),
    "bats": frozenset(("-f", "--filter")),
    **dict.fromkeys(("behave", "cucumber", "rails"), frozenset(("-n", "--name"))),
    "ginkgo": frozenset(("--focus", "--skip", "-focus", "-skip")),
    "ava": frozenset(("-m", "--match")),
    "busted": frozenset(("--filter",)),
}
_TESTING = frozenset(("test", "t", "bench", "nextest"))
_BY_SUBCOMMAND = frozenset(("cargo", "bun", "deno", "go", "dotnet", "swift", "playwright", "rails"))
"""Runners of tests that also run other things, such as `bun run`."""
_NAMES_AS_OPERANDS = frozenset(("cargo", "bun", "vitest"))
_FLAGS = frozenset(
    """
    -- -q -v --quiet --verbose --release --lib --bins --tests --doc --all --workspace --all-features --all-targets
    --no-fail-fast --nocapture --exact --ignored --watch --run --coverage --bail run
    """.split()  # noqa: SIM905
)


def unread(readings: Sequence[Everything], rules: Sequence[str]) -> tuple[str, bool] | None:
    """Return (reason, sure): why one of the rules (globs over commands) may cover what a script runs unseen, in
    English, and whether it surely does; None if none may.
    """
    found = [reason for everything in readings for reason in _reasons(everything, rules)]
    return next((reason for reason in found if reason[1]), found[0] if found else None)


def _reasons(everything: Everything, rules: Sequence[str]) -> Iterator[tuple[str, bool]]:
    stems = [stem for rule in rules if (stem := _stem(rule))]
    heads = {rule.split()[0] for rule in rules if rule.split() and not _GLOB.search(rule.split()[0])}
    if any(script.tree is None for script in everything.scripts):
        yield "It could not be read in time.", False
    if _runs_what_it_writes(everything) and any(
        stem.search(each.text) for stem in stems for each in everything.scripts
    ):
        yield "It runs a file that it writes, and the command of a rule is in it.", False
    for invocation in everything.invocations:
        if (reason := _hidden(invocation)) is not None:
            yield reason, False
        if _meets_any(rules, invocation.words):
            yield "Whether a rule covers it cannot be seen before it runs.", False
        if "git" in heads and _is_alias(invocation.words):
            yield "A git alias may stand for a command that a rule covers.", False
        if _renames(invocation, heads):
            yield "It gives another name to a program that a rule is about.", False
        if (surely := _carries(invocation, stems)) is not None:
            yield "The command of a rule is in its words.", surely


def _runs_what_it_writes(everything: Everything) -> bool:
    """Return whether a command of a script is, or reads as a program, a file that the script writes."""
    tees = (word for each in everything.invocations if each.name == "tee" for word in each.words[1:])
    written = {target.removeprefix("./") for target in (*everything.writes, *tees)}
    for each in everything.invocations if written else ():
        runs = each.name in SHELLS or each.name in ("source", ".", "make") or INTERPRETERS.fullmatch(each.name)
        words = each.words if runs else each.words[:1]
        if not written.isdisjoint(word.removeprefix("./") for word in words):
            return True
    return False


def _hidden(command: Invocation) -> str | None:
    """Return why it cannot be seen what a command runs; None if it can."""
    name, words = command.name, command.words
    if UNKNOWN in name or name.startswith("/dev/fd/"):
        return "The name of a command in it is not known before it runs."
    if len(name) > 1 and name not in ("[[", "[") and _GLOB.search(name):
        return "The name of a command in it is a pattern."
    if _QUERIES.intersection(words[1:2]):
        return None
    if name in SHELLS and _reads_unknown(command):
        return "A shell in it reads commands that are not known before it runs."
    if name in ("source", ".") and STDIN.intersection(words[1:2]) and command.stdin is None:
        return "A shell in it reads commands that are not known before it runs."
    if name == "ssh" and command.stdin is None and _is_bare(words):
        return "A shell in it reads commands that are not known before it runs."
    if name == "enable" and "-f" in words:
        return "It loads a builtin of the shell from a file."
    if started_programs(name, words, command.stdin).more:
        return f"What the program for {name!r} in it runs is not known before it runs."
    return None


def _reads_unknown(command: Invocation) -> bool:
    words = command.words
    if words[0].endswith(("pwsh", "powershell")) and any(word.casefold().startswith("-e") for word in words[1:]):
        return True
    script, operand, _ = shell_words(words)
    options = [word for word in words[1:] if word.startswith("-")]
    if script is not None:
        return not script
    if any(word.startswith("/dev/fd/") for word in words[1:]):
        return True
    reads = operand is None or operand in STDIN or any(re.fullmatch(r"-\w*s\w*", word) for word in options)
    return reads and command.stdin is None


def _is_bare(words: Sequence[str]) -> bool:
    """Return whether `ssh` is given a host and no command."""
    return len([word for word in words[1:] if not word.startswith("-")]) == 1


def _is_alias(words: Sequence[str]) -> bool:
    subcommand = unknown_subcommand(words)
    return subcommand == UNKNOWN or (bool(subcommand) and UNKNOWN not in subcommand and subcommand[0] != "-")


def _renames(command: Invocation, heads: set[str]) -> bool:
    name, words = command.name, command.words
    if name == "alias":
        values = [word.partition("=")[2].split() for word in words[1:] if "=" in word]
        return any(value and value[0].rsplit("/", 1)[-1] in heads and len(value) == 1 for value in values)
    if name not in _MOVERS:
        return False
    lone = name in ("ln", "cp", "hash")
    return any(word.rsplit("/", 1)[-1] in heads and (lone or "/" in word) for word in words[1:])


def _carries(command: Invocation, stems: Sequence[re.Pattern[str]]) -> bool | None:
    """Return whether a command runs the words of a rule that stand in its own, if they do: surely, or perhaps."""
    name = command.name
    if name in _TAKERS or is_wrapper(name) or not stems:
        return None
    text = "\n".join((" ".join(_without_names_of_tests(command)[1:]), command.stdin or ""))
    if not any(stem.search(text) for stem in stems):
        return None
    return name in _CARRIERS


def _without_names_of_tests(command: Invocation) -> list[str]:
    """Return the words of a command without those by which a runner of tests chooses tests."""
    name, words = command.name, list(command.words)
    options = _NAMES_OF_TESTS.get(name)
    if options is None:
        return words
    sub = next((word for word in words[1:] if not word.startswith(("-", "+"))), "")
    if name in _BY_SUBCOMMAND and (sub not in _TESTING or (sub == "t" and name != "cargo")):
        return words
    for place in range(2 if name in _BY_SUBCOMMAND else 1, len(words)):
        word, before = words[place], words[place - 1]
        option, equals, _ = word.partition("=")
        # Behind an option that may take a value, a word is perhaps that and no name of a test.
        is_operand = name in _NAMES_AS_OPERANDS and word[:1] != "-" and (before[:1] != "-" or before in _FLAGS)
        if before in options or (equals and option in options) or is_operand:
            words[place] = "_"
    return words


def _stem(rule: str) -> re.Pattern[str] | None:
    """Return a pattern for the words that a rule begins with, if these are at least two."""
    words = rule.rstrip("* ").split()
    if len(words) < 2 or any(map(_GLOB.search, words)):
        return None
    # Between the words may be quotes and commas, as in `["git", "push"]`.
    return re.compile(r"(?<![\w./-])(?:[\w./-]*/)?" + r"\W{1,6}".join(map(re.escape, words)) + r"(?![\w-])")


def _meets_any(rules: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether words with unknown parts or patterns of names could be those of a rule."""
    if not words or not any(UNKNOWN in word or _GLOB.search(word) for word in words):
        return False
    name = words[0].rsplit("/", 1)[-1]
    if name.strip(UNKNOWN) == "" and UNKNOWN in name:
        return False  # said already
    if not any(UNKNOWN in word or word.startswith("-") for word in words[1:]):
        rules = [rule for rule in rules if not any(word.startswith("-") for word in rule.split())]  # globs give files
    text = " ".join((name, *words[1:]))[:_MAX_LENGTH]
    text = _UNSEEN.sub("*", text)
    return any(meet(form, text) for rule in rules for form in _forms(rule))


def _forms(rule: str) -> Iterator[str]:
    rule = " ".join(rule.split())[:_MAX_LENGTH]
    if not rule or _GLOB.search(rule.split()[0]):
        return
    stem = rule.rstrip("*").rstrip(" ")
    yield from (rule,) if stem == rule else (stem, f"{stem} *", rule)


def meet(one: str, other: str) -> bool:
    """Return whether a text could match both globs; `[…]` stands for any character in either. True also if that takes
    too many steps to find out.
    """
    first, second = (re.sub(r"\[[^\]]+\]", "?", text) for text in (one, other))
    # A search over pairs of places in the two globs, each visited once, as backtracking could take for ever.
    waiting, seen = [(0, 0)], {(0, 0)}
    while waiting and len(seen) < _MAX_STEPS:
        a, b = waiting.pop()
        if a == len(first) and b == len(second):
            return True
        for step in _steps(first, second, a, b):
            if step not in seen:
                seen.add(step)
                waiting.append(step)
    # Given up, it counts as a match: nothing gets past a rule by being long.
    return len(seen) >= _MAX_STEPS


def _steps(first: str, second: str, a: int, b: int) -> Iterator[tuple[int, int]]:
    one, other = first[a : a + 1], second[b : b + 1]
    if one == "*":
        yield a + 1, b
        if other:
            yield a, b + 1
    if other == "*":
        yield a, b + 1
        if one:
            yield a + 1, b
    if one and other and "*" not in (one, other) and (one == other or "?" in (one, other)):
        yield a + 1, b + 1
