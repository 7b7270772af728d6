"""The command `codeagent-lsp trust`: what a workspace brings that needs the user's trust, listed and asked about.

It needs no server: one that runs reads the user's answer when it would use any of it. Not here: what counts as brought
(`session/memory/knowledge.py`), the same question in an editor (`tools/skills/trust.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from codeagent_lsp.session.memory.knowledge import knowledge_in
from codeagent_lsp.state import state_root, workspace_state
from codeagent_lsp.terminal.display import one_line, say, user_locale, visible
from codeagent_lsp.terminal.summary import EXIT_DONE, EXIT_REJECTED, EXIT_USAGE
from codeagent_lsp.texts import choose_language, text
from codeagent_lsp.tools.skills.trust import WorkspaceItem, name_of, named, said_of
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots

Answer = Callable[[str], str]
"""Shows a question and returns what was entered; '' at the end of the input."""


def trust_command(
    workspace: str, *, yes: bool, listing: bool, names: Sequence[str] = (), answer: Answer | None = None
) -> int:
    """List what a workspace brings, or what has these names or paths, and, unless only that is wanted, ask about what
    is not trusted yet; with `yes` all of it is trusted. Return the exit code: 0 if all is trusted or only listed, 3 if
    not, 2 for a bad argument.
    """
    words = partial(_words, choose_language("auto", user_locale()))
    folder = Path(workspace)
    if not folder.is_dir():
        sys.stderr.write(f"codeagent-lsp: {words('terminal.folder', folder=workspace)}\n")
        return EXIT_USAGE
    root = str(folder.resolve())
    own, others = state_root(), (Path.home() / ".claude",)
    knowledge = knowledge_in(own, workspace_state([root]), tuple, lambda: False, others)
    items = knowledge.brought(FileView(Roots([root]), NoBuffers(), NothingStaged()))
    if unknown := [name for name in names if not named(items, name)]:
        known = ", ".join(item.name for item in items) or words("trust.none")
        sys.stderr.write(f"codeagent-lsp: {words('trust.unknown', name=one_line(unknown[0]), names=one_line(known))}\n")
        return EXIT_USAGE
    items = tuple(item for item in items if not names or any(named([item], name) for name in names))
    if not items:
        say(words("trust.nothing"))
        return EXIT_DONE
    for item in items:
        say(_line(item, words, trusted=knowledge.trust.covers(item.digest)))
    open_ones = [item for item in items if not knowledge.trust.covers(item.digest)]
    if listing or not open_ones:
        return EXIT_DONE
    # an answer from a pipe shows no user who has read the list
    if not yes and answer is None and not sys.stdin.isatty():
        say(words("trust.no_terminal"))
        return EXIT_REJECTED
    for item in open_ones if yes else _chosen(open_ones, answer or _entered, words):
        knowledge.trust.add(item.digest, item.name)
    say(said_of(knowledge.trust, open_ones, words))
    return EXIT_DONE if all(knowledge.trust.covers(item.digest) for item in open_ones) else EXIT_REJECTED


def _chosen(items: Sequence[WorkspaceItem], answer: Answer, words: Callable[..., str]) -> Sequence[WorkspaceItem]:
    """Return those that the user trusts: all, none, or each that is shown whole and accepted."""
    said = answer(words("trust.ask")).strip().lower()
    if said == "e":
        return [item for item in items if _accepted(item, answer, words)]
    return items if said in ("y", "yes") else ()


def _accepted(item: WorkspaceItem, answer: Answer, words: Callable[..., str]) -> bool:
    say(f"\n{visible(item.detail)}\n")
    return answer(words("trust.ask_one", what=name_of(item, words))).strip().lower() in ("y", "yes")


def _line(item: WorkspaceItem, words: Callable[..., str], *, trusted: bool) -> str:
    mark = "✓" if trusted else "?"
    return (
        f"{mark} {name_of(item, words)}: {one_line(item.path)}, {item.digest[:12]}  {one_line(item.line, 400)}".rstrip()
    )


def _entered(question: str) -> str:
    try:
        return input(f"{question} ")
    except EOFError:
        return ""


def _words(language: str, key: str, /, **values: object) -> str:
    return text(key, language, **values)
