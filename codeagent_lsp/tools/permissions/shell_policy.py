"""The judgement whether a command line may run without asking, by its words alone, wherever it runs. Pure functions.

Denied: the built-in list and the user's deny rules, searched everywhere, also in malformed scripts, behind wrappers and
in substitutions. Asked: what an ask or deny rule may cover unseen. Allowed: fully understood scripts, of which each
simple command is harmless or covered by a rule. All else asks. Not here: isolation, which is what makes a command
harmless, and the targets of links; both are the caller's. An allowed command still needs `bash`, a fixed environment
and PATH, and limits on time and output.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath as Path
from typing import Literal

from codeagent_lsp.tools.permissions.shell.denied import denial, join_path
from codeagent_lsp.tools.permissions.shell.git_programs import unknown_subcommand
from codeagent_lsp.tools.permissions.shell.grammar import Unknown
from codeagent_lsp.tools.permissions.shell.harmless import asks_version, check_harmless
from codeagent_lsp.tools.permissions.shell.plain import NotPlain, Simple, plain_commands
from codeagent_lsp.tools.permissions.shell.reading import Invocation, Script, read
from codeagent_lsp.tools.permissions.shell.unread import unread
from codeagent_lsp.tools.permissions.shell.wrappers import Everything, unwrap, wide_readings
from codeagent_lsp.workspace.text.visible import code_point_notation, control_characters, is_odd

MAX_CHARS = 8_192
MAX_COMMANDS = 50
MAX_FOLDERS = 16
# Linux gives no program a longer argument, so such a script could not be run.
MAX_BYTES = 131_071
_VERSION_FILES = ("rust-toolchain", "rust-toolchain.toml", ".tool-versions", "mise.toml", ".mise.toml")
_MAX_WORDS = 64
_BLANKS = re.compile(r"[ \t\n]+")

_HIDDEN_ASCII = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The decision about a whole command line with its reasons in English, at least one."""

    decision: Literal["allow", "ask", "deny"]
    reasons: tuple[str, ...]
    unread: str = ""
    """The kind of rule, ask or deny, that may cover what the script runs unseen, if that is why it asks."""


def judge(command: str, *, allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = ()) -> Judgement:
    """Return the judgement of a bash script. Rules are globs over one simple command; deny wins, then ask, then allow.

    Takes under 2 ms for typical commands; the time is bounded for any input. Nothing is run.
    """
    if not command.strip(" \t\n"):
        return Judgement("deny", ("There is no command.",))
    if len(command.encode("utf-8", "replace")) > MAX_BYTES:
        return Judgement("deny", (f"The command is longer than {MAX_BYTES} bytes.",))
    if controls := control_characters(command):
        return Judgement(
            "deny", (f"It has control characters in it: {', '.join(map(code_point_notation, controls[:5]))}.",)
        )
    # With all that is run inside of something else: `sh -c`, `xargs`, `find -exec`, aliases of git.
    everything = unwrap(read(command))
    # Denied and not asked about: nobody reads a question with hundreds of commands.
    if everything.cut:
        return Judgement("deny", ("It has more commands in it than can be judged.",))
    if (reason := denial(everything)) is not None:
        return Judgement("deny", (reason,))
    # Only rules need them, and they cost a reading for each value of a loop.
    readings = wide_readings(command) if deny or ask else []
    if (rule := _covering_rule(deny, command, everything, *readings)) is not None:
        return Judgement("deny", (f"The deny rule {rule!r} covers it.",))
    if (rule := _covering_rule(ask, command, everything, *readings)) is not None:
        return Judgement("ask", (f"The ask rule {rule!r} covers it.",))
    for kind, rules in (("deny", deny), ("ask", ask)):
        if rules and (found := unread(readings, rules)) is not None:
            reason, surely = found
            return Judgement("deny" if surely and kind == "deny" else "ask", (reason,), unread=kind)
    reasons = tuple(dict.fromkeys(_doubts(command, everything, allow)))
    if reasons:
        return Judgement("ask", reasons)
    return Judgement("allow", ("It only looks, or a rule of the user's covers it.",))


def covering_rule(rules: Sequence[str], command: str) -> str | None:
    """Return the first ask or deny rule that covers the whole text or any command in it; None if there is none. Only
    the first 131,071 characters are read.
    """
    command = command[:MAX_BYTES]
    return _covering_rule(rules, command, unwrap(read(command)), *wide_readings(command)) if rules else None


def may_be_covered(rules: Sequence[str], command: str) -> bool:
    """Return whether a deny rule with one of these patterns would stop a script, or would have it asked about because
    what it runs cannot be seen.
    """
    judged = judge(command, deny=rules) if command.strip() else None
    return judged is not None and (judged.decision == "deny" or bool(judged.unread))


def covered_by(rules: Sequence[str], command: str) -> bool:
    """Return whether the user's allow rules cover every command of a script; False for one that is not plain, and
    without rules.
    """
    # Plain ones only: what a rule allows is a command as it is written, with nothing expanded into it.
    script = read(command[:MAX_BYTES])
    if not rules or script.tree is None:
        return False
    try:
        found = plain_commands(script.text, script.tree)
    except NotPlain:
        return False
    return all(allows(rules, item.text, [word.value for word in item.words]) for item in found)


def words(command: str) -> tuple[str, ...]:
    """Return all words of all commands in a script, unquoted and each once, and the files of its redirections: the
    possible paths.

    An option's value is repeated without the option (`--include=x` and `x`).
    """
    everything = unwrap(read(command[:MAX_BYTES]))
    found = [word for invocation in everything.invocations for word in invocation.words]
    found += [target for script in everything.scripts for target in (*script.writes, *script.reads)]
    values = [word.partition("=")[2] for word in found if "=" in word]
    return tuple(dict.fromkeys(word for word in (*found, *values) if word))


def paths_named(command: str, folder: str = "") -> tuple[str, ...] | None:
    """Return all words of a script as paths, as `words` and also from every folder that it may be in after `cd`; None
    if these are more than 16. `folder` is the one it starts in.
    """
    everything = unwrap(read(command[:MAX_BYTES]))
    folders = _folders(everything, folder)
    if len(folders) > MAX_FOLDERS:
        return None
    found = words(command)
    return tuple(dict.fromkeys(join_path(place, word) for place in folders for word in found))


def followed_folders(command: str, folder: str = "") -> tuple[str, ...]:
    """Return the folders in which a script's commands follow links, as paths: those that `diff -r` compares; () for
    none. Relative paths are joined to `folder`; links are not resolved.
    """
    everything = unwrap(read(command[:MAX_BYTES]))
    trees = [word for invocation in everything.invocations if invocation.name == "diff" for word in _trees(invocation)]
    return tuple(dict.fromkeys(join_path(place, tree) for place in _folders(everything, folder) for tree in trees))


def version_files(command: str, folder: str = "") -> tuple[str, ...]:
    """Return the paths at which there may be files by which a workspace chooses the program that a command asks for its
    version.

    Version managers (rustup, asdf, mise) look for them in the folder of the command and above, and they can name a
    program in the workspace.
    """
    everything = unwrap(read(command[:MAX_BYTES]))
    if not any(len(item.words) == 2 and asks_version(item.words[0], item.words[1]) for item in everything.invocations):
        return ()
    found = (Path(place) for place in _folders(everything, folder))
    places = dict.fromkeys(str(above) for place in found for above in (place, *place.parents))
    return tuple(join_path(place, name) for place in places for name in _VERSION_FILES)


def _trees(invocation: Invocation) -> Iterator[str]:
    options = [word for word in invocation.words if word.startswith("-")]
    if any(word == "--recursive" or re.match(r"-\w*r", word) for word in options):
        yield from (word for word in invocation.words[1:] if not word.startswith("-"))


def _folders(everything: Everything, start: str) -> tuple[str, ...]:
    """Return the folders that commands of a script may run in: a `cd` may fail, or be only in a branch."""
    # Every folder stays possible: a `cd` that fails leaves the script where it was.
    folders = dict.fromkeys(("", start))
    for invocation in everything.invocations:
        if invocation.name in ("cd", "pushd") and len(folders) <= MAX_FOLDERS:
            targets = [word for word in invocation.words[1:] if not word.startswith("-")][:1]
            folders |= {join_path(place, target): None for place in tuple(folders) for target in targets}
    return tuple(folders)


def _covering_rule(rules: Sequence[str], command: str, *readings: Everything) -> str | None:
    """Return the first rule that covers the whole text or any command in one of its readings."""
    if not rules:
        return None
    # The text itself as well: a rule may have been written for a whole line.
    texts = {command.strip(): None}
    for invocation in (each for everything in readings for each in everything.invocations):
        texts |= dict.fromkeys(spellings(invocation.text, invocation.words))
    return covering(rules, tuple(texts))


def _doubts(command: str, everything: Everything, allow: Sequence[str]) -> Iterator[str]:
    """Yield the reasons why a script is not allowed by itself."""
    if found := hidden_characters(command):
        yield f"It has characters that are not seen: {', '.join(map(code_point_notation, found[:5]))}."
    elif len(command) > MAX_CHARS:
        yield "It is too long to be judged."
    else:
        # The script itself is enough: no wrapper is harmless, so what is inside of one never comes to be allowed by
        # this.
        yield from _doubts_of_commands(everything.scripts[0], allow)


def _doubts_of_commands(script: Script, allow: Sequence[str]) -> Iterator[str]:
    if script.tree is None:
        yield "It could not be read in time."
        return
    try:
        commands = plain_commands(script.text, script.tree)
    except NotPlain as problem:
        yield str(problem)
        return
    if len(commands) > MAX_COMMANDS:
        yield "It is too long to be judged."
        return
    yield from (reason for command in commands if (reason := _doubt(command, allow)) is not None)


def _doubt(command: Simple, allow: Sequence[str]) -> str | None:
    if allows(allow, command.text, [word.value for word in command.words]):
        return None
    try:
        check_harmless(command)
    except Unknown as reason:
        return str(reason)
    return None


# The user's rules about commands: globs over the text of one simple command. Pure functions.


def allows(rules: Iterable[str], written: str, words: Sequence[str]) -> bool:
    """Return whether an allow rule covers a plain command, as written or with minimal quoting. A program path with `..`
    is covered only by a rule with `..`, a git alias only by a rule that names it.
    """
    texts = {written, shlex.join(words)}
    climbs = ".." in words[0].split("/")
    alias = unknown_subcommand(words)
    fitting = [rule for rule in rules if (".." in rule or not climbs) and (not alias or alias in rule.split())]
    return any(_covers(rule, text) for rule in fitting for text in texts)


def covering(rules: Iterable[str], texts: Sequence[str]) -> str | None:
    """Return the first ask or deny rule that covers one of the spellings, None if none does; a final `*` in a rule
    needs no blank before it.
    """
    for rule in rules:
        loose = _pattern(_BLANKS.sub(" ", rule).strip())
        if any(loose.fullmatch(text) or _covers(rule, text) for text in texts):
            return rule
    return None


def spellings(written: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the spellings of a command to match ask and deny rules with: as written, without quotes, without its
    folder, without the options before its subcommand.
    """
    bare = " ".join(words)
    name = words[0].rsplit("/", 1)[-1] if words else ""
    plain = name.casefold().removesuffix(".exe")  # the same program where names have no case
    behind = () if plain == "git" else tuple(_behind_options(words[:_MAX_WORDS]))  # git's options are known
    short = (" ".join((form, *rest)) for form in dict.fromkeys((name, plain)) for rest in (words[1:], *behind))
    return tuple(dict.fromkeys((_BLANKS.sub(" ", written).strip(), bare, *short)))


def _behind_options(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the words behind each option that stands first, with and without a word that may be its value."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 1
        yield words[place:]
        if place + 1 < len(words) and not words[place].startswith("-") and "=" not in words[place - 1]:
            place += 1
            yield words[place:]


def _covers(rule: str, text: str) -> bool:
    rule = _BLANKS.sub(" ", rule).strip()
    if not rule:
        return False
    stem = rule.rstrip("*")
    # `git push*` covers `git push` and `git push -f`, but not `git pushy`.
    if stem == rule or not re.search(r"\w[ ]?$", stem):
        return bool(_pattern(rule).fullmatch(text))
    stem = stem.rstrip(" ")
    return bool(_pattern(stem).fullmatch(text) or _pattern(f"{stem} *").fullmatch(text))


@lru_cache(maxsize=512)
def _pattern(rule: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(rule))


def hidden_characters(text: str) -> tuple[str, ...]:
    """Return the distinct invisible characters of `text` in order of their first occurrence: controls, direction marks,
    blanks other than space, tab and newline, unassigned ones; () for none.
    """
    if text.isascii():
        return tuple(dict.fromkeys(_HIDDEN_ASCII.findall(text)))
    return tuple(dict.fromkeys(filter(is_odd, text)))
