"""The commands of a script including those inside wrappers: the lenient parser, applied recursively.

For denial and for ask and deny rules. Not here: how a wrapper is looked through (`wrappers.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from codeagent_lsp.tools.permissions.shell.reading import MAX_TEXT, Invocation, Script, read
from codeagent_lsp.tools.permissions.shell.wrappers import inner

MAX_DEPTH = 8
MAX_WORDS = 20_000
_CONTINUED = "\\\n"


@dataclass(frozen=True, slots=True)
class Everything:
    """All scripts, the given one first, and all commands. `cut` is True if some were dropped at a limit."""

    scripts: tuple[Script, ...]
    invocations: tuple[Invocation, ...]
    cut: bool = False

    @property
    def writes(self) -> tuple[str, ...]:
        """Return the targets of all redirections that write."""
        return tuple(target for script in self.scripts for target in script.writes)


def unwrap(script: Script) -> Everything:
    """Return `script` with every script and command that it runs, up to a depth and size limit."""
    scripts = [script]
    if _CONTINUED in script.text:  # the shell joins such lines before it looks at words
        scripts.append(read(script.text.replace(_CONTINUED, "")))
    invocations = [invocation for each in scripts for invocation in each.invocations]
    waiting = [(invocation, 0) for invocation in reversed(invocations)]
    added = 0
    while waiting:
        invocation, depth = waiting.pop()
        found = inner(invocation)
        if found and (depth >= MAX_DEPTH or added > MAX_WORDS):
            return Everything(tuple(scripts), tuple(invocations), cut=True)
        for part in found:
            new = _direct(part.words, invocation.stdin)
            text = part.script or (part.words[0] if part.words and " " in part.words[0] else "")
            if text.strip():
                scripts.append(read(text))
                new.extend(scripts[-1].invocations)
            invocations.extend(new)
            added += sum(len(each.words) for each in new)
            waiting.extend((each, depth + 1) for each in new)
    return Everything(tuple(scripts), tuple(invocations), cut=any(each.cut for each in scripts))


def _direct(words: tuple[str, ...], stdin: str | None) -> list[Invocation]:
    return [Invocation(words, " ".join(words)[:MAX_TEXT], stdin)] if words else []
