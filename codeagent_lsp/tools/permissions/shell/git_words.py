"""The commands that a git command line runs behind its global options, by aliases and by settings given on it. Pure.

For denial and for ask and deny rules, as `wrappers.py`. Aliases and settings in files are not seen here: a subcommand
that git does not have is therefore covered only by an allow rule that names it (`tools/permissions/shell_policy.py`).
"""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from codeagent_lsp.tools.permissions.shell.programs import Inner
from codeagent_lsp.tools.permissions.shell.reading import UNKNOWN

_VALUED = frozenset("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source".split())
_RUNS = re.compile(
    r"core\.(?:pager|editor|sshcommand|fsmonitor|askpass|gitproxy|hookspath)|sequence\.editor|diff\.external|pager\..+"
    r"|.*\.(?:cmd|command|textconv|clean|smudge|process|driver|helper|program|uploadpack|receivepack|proxy)",
    re.IGNORECASE,
)
_KNOWN = frozenset(
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


def inner_git(words: Sequence[str]) -> list[Inner]:
    """Return what `git …` runs besides itself: the command without global options, aliases, commands in settings."""
    rest, settings = _divided(words)
    found = [Inner(script=value.removeprefix("!")) for name, value in settings.items() if _RUNS.fullmatch(name)]
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
    return found + _started(rest)


def unknown_subcommand(words: Sequence[str]) -> str:
    """Return the subcommand of a git command that git itself does not have, such as an alias; '' if there is none."""
    if not words or words[0].rsplit("/", 1)[-1] != "git":
        return ""
    rest, settings = _divided(words)
    if UNKNOWN in settings:
        return UNKNOWN
    return rest[0] if rest and rest[0] not in _KNOWN else ""


def _divided(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the subcommand with its arguments, and the settings given before it, by name in lower case."""
    place, settings = 1, {}
    while place < len(words) and words[place].startswith("-"):
        option, place = words[place], place + 1
        if option in _VALUED:
            if option == "-c":
                name, _, value = (words[place] if place < len(words) else "").partition("=")
                settings[name.casefold()] = value
            place += 1
    return tuple(words[place:]), settings


def _started(rest: Sequence[str]) -> list[Inner]:
    """Return the commands that a subcommand starts: of each submodule, of each step of a search or a rebase."""
    if rest[:2] == ("submodule", "foreach"):
        return [Inner(script=" ".join(word for word in rest[2:] if not word.startswith("--")))]
    if rest[:2] == ("bisect", "run"):
        return [Inner(words=tuple(rest[2:]))]
    if rest[0] == "filter-branch":
        return [Inner(script=rest[at + 1]) for at, word in enumerate(rest[:-1]) if word.endswith("-filter")]
    named = [word.partition("=")[2] for word in rest if word.startswith(("--exec=", "--extcmd="))]
    named += [rest[at + 1] for at, word in enumerate(rest[:-1]) if word in ("-x", "--exec", "--extcmd")]
    return [Inner(script=text) for text in named] if rest[0] in ("rebase", "difftool") else []


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
