"""The commands that a line of `git` runs besides itself: programs in its options, aliases, subcommands, and the
porcelain command that a plumbing command amounts to. Pure functions.

A rule that denies `git push` denies `git send-pack` by this as well. Aliases and settings in files are not read: a
subcommand that git does not have is therefore covered only by an allow rule that names it
(`tools/permissions/shell_policy.py`). Not here: programs whose arguments are code (`programs.py`).
"""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from codeagent_lsp.tools.permissions.shell.programs import Inner
from codeagent_lsp.tools.permissions.shell.reading import UNKNOWN

_GIT_VALUED = frozenset("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source".split())
_GIT_RUNS = re.compile(
    r"core\.(?:pager|editor|sshcommand|fsmonitor|askpass|gitproxy|hookspath)|sequence\.editor|diff\.external|pager\..+"
    r"|.*\.(?:cmd|command|textconv|clean|smudge|process|driver|helper|program|uploadpack|receivepack|proxy)",
    re.IGNORECASE,
)
_GIT_COMMANDS = frozenset(
    """
    add am annotate apply archive backfill bisect blame branch bugreport bundle cat-file check-attr check-ignore
    check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean clone column commit commit-graph
    commit-tree config count-objects credential daemon describe diagnose diff diff-files diff-index diff-tree difftool
    fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck gc
    grep hash-object help hook index-pack init init-db interpret-trailers log ls-files ls-remote ls-tree mailinfo
    mailsplit maintenance merge merge-base merge-file merge-index merge-tree mergetool mktag mktree multi-pack-index mv
    name-rev notes p4 pack-objects pack-refs patch-id prune pull push range-diff read-tree rebase receive-pack reflog
    refs remote repack replace replay request-pull rerere reset restore rev-list rev-parse revert rm send-email
    send-pack shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule svn
    switch symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info upload-pack var
    verify-commit verify-pack verify-tag version whatchanged worktree write-tree
    """.split()
)
_SERVES: dict[str, str] = {
    "push": """
        send-pack, http-push, receive-pack, http-backend, subtree push, lfs push, lfs pre-push, annex push, annex sync,
        annex copy, annex assist, svn dcommit, svn set-tree, svn branch, svn tag, p4 submit, cvsexportcommit
    """,
    "fetch": """
        fetch-pack, http-fetch, upload-pack, remote update, svn fetch, svn clone, lfs fetch, annex get, annex pull,
        annex sync, p4 sync, p4 clone
    """,
    "pull": "subtree pull, lfs pull, svn rebase, p4 rebase, annex pull, annex sync, annex assist",
    "commit": "commit-tree, citool, fast-import, svn commit-diff",
    "merge": "merge-recursive, merge-octopus, merge-ours, merge-resolve, merge-subtree, merge-index, subtree merge",
    "checkout": "checkout-index, read-tree, symbolic-ref",
    "switch": "read-tree, symbolic-ref",
    "restore": "checkout-index, read-tree",
    "reset": "read-tree, update-ref",
    "branch": "update-ref",
    "tag": "update-ref, mktag",
    "add": "stage, update-index",
    "gc": "repack, prune, prune-packed, maintenance",
    "init": "init-db",
    "archive": "upload-archive",
}
"""The plumbing and the extensions that do the work of a command, by that command; most are one word."""
_SERVING = {name: frozenset(tuple(form.split()) for form in forms.split(",")) for name, forms in _SERVES.items()}
_LOOKS: dict[str, re.Pattern[str]] = {
    "symbolic-ref": re.compile(r"(?!.* -d| --delete)(?: -\S+)*(?: [^-]\S*)?"),
    "update-index": re.compile(r"(?: -q| --(?:really-)?refresh| --ignore-\S+| --(?:no-)?assume-unchanged)*"),
    "read-tree": re.compile(r"(?:.* )?(?:-n|--dry-run)(?: .*)?"),
}
"""The arguments with which such a command changes nothing that the other one would."""
_TRANSPORTS = re.compile(r"remote-[\w-]+")
"""Programs for a kind of address, which are told by their input whether to push or to fetch."""
SAME_AS_GIT = frozenset(("hub", "lab", "dulwich", "jgit"))
"""Other programs with git's commands."""
_STARTING = re.compile(r"--(?:exe?c?|extc?m?d?|receive-p\w*|upload-p\w*|open[a-z-]*)(?:=(?P<value>.*))?", re.DOTALL)
"""Options whose value is a command, in any of the abbreviations that git takes."""
_SHORT: dict[str, str] = {"rebase": "-x", "difftool": "-x", "clone": "-u", "grep": "-O"}


def inner_git(words: Sequence[str]) -> list[Inner]:
    """Return what `git …` (`words`, its name first) runs besides itself, [] for nothing: the command without global
    options, aliases, commands in settings.
    """
    rest, settings = _divide(words)
    found = [Inner(script=value.removeprefix("!")) for name, value in settings.items() if _GIT_RUNS.fullmatch(name)]
    if not rest:
        return found
    # Only if options were taken off: else a command would be inside of itself for ever.
    if len(rest) + 1 < len(words):
        found.append(Inner(words=("git", *rest)))
    alias = settings.get(f"alias.{rest[0].casefold()}", "")
    if alias.startswith("!"):
        found.append(Inner(script=f"{alias[1:]} {shlex.join(rest[1:])}"))
    elif alias:
        # An alias may use another one of the same settings.
        kept = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        found.append(Inner(words=("git", *kept, *_split(alias), *rest[1:])))
    return [*found, *_started_commands(rest), *_served_commands(rest)]


def unknown_subcommand(words: Sequence[str]) -> str:
    """Return the subcommand of a git command that git itself does not have, such as an alias; '' if there is none, and
    for other programs.
    """
    if not words or words[0].rsplit("/", 1)[-1] != "git":
        return ""
    rest, settings = _divide(words)
    if UNKNOWN in settings:
        return UNKNOWN
    return rest[0] if rest and rest[0] not in _GIT_COMMANDS else ""


def _divide(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the subcommand with its arguments, and the settings given before it, by name in lower case."""
    place, settings = 1, {}
    while place < len(words) and words[place].startswith("-"):
        option, place = words[place], place + 1
        if option in _GIT_VALUED:
            if option == "-c":
                name, _, value = (words[place] if place < len(words) else "").partition("=")
                settings[name.casefold()] = value
            place += 1
    return tuple(words[place:]), settings


def _started_commands(rest: Sequence[str]) -> Iterator[Inner]:
    """Yield the commands that a subcommand starts: of each submodule, of each step of a search or a rebase, the program
    of the other side of a connection.
    """
    name, words = rest[0], rest[1:]
    operands = [word for word in words if not word.startswith("-")]
    if name in ("submodule", "submodule--helper") and operands[:1] == ["foreach"]:
        behind = list(words[words.index("foreach") + 1 :])
        while behind and behind[0].startswith("-"):
            del behind[0]
        yield Inner(script=" ".join(behind))
    elif name == "bisect" and operands[:1] == ["run"]:
        yield Inner(words=tuple(words[words.index("run") + 1 :]))
    elif name == "for-each-repo":
        at = next((at for at, word in enumerate(words) if _is_operand(words, at)), len(words))
        yield Inner(words=("git", *words[at:]))
    elif name == "filter-branch":
        yield from (Inner(script=rest[at + 1]) for at, word in enumerate(rest[:-1]) if word.endswith("-filter"))
    elif name == "shell":
        yield from (Inner(script=rest[at + 1]) for at, word in enumerate(rest[:-1]) if word == "-c")
    short = _SHORT.get(name, "-")
    for word, later in zip(words, (*words, "")[1:], strict=True):
        if match := _STARTING.fullmatch(word):
            yield Inner(script=match["value"] or later)
        elif short != "-" and word.startswith(short):
            yield Inner(script=word.removeprefix(short) or later)


def _is_operand(words: Sequence[str], at: int) -> bool:
    """Return whether a word is neither an option nor the value of `--config`."""
    return not words[at].startswith("-") and (at == 0 or words[at - 1] != "--config")


def _served_commands(rest: Sequence[str]) -> Iterator[Inner]:
    """Yield the commands whose work a plumbing command or an extension does, with the same arguments."""
    if _TRANSPORTS.fullmatch(rest[0]):
        yield from (Inner(words=("git", name, *rest[1:])) for name in ("push", "fetch"))
    looks = _LOOKS.get(rest[0])
    if looks is not None and looks.fullmatch("".join(f" {word}" for word in rest[1:])):
        return
    for name, forms in _SERVING.items():
        for form in forms & {(rest[0],), tuple(rest[:2])}:
            yield Inner(words=("git", name, *rest[len(form) :]))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
