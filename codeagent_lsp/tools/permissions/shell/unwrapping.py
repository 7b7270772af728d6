"""The commands of a script including those inside wrappers: the lenient parser, applied recursively.

For denial and for ask and deny rules. Not here: how a wrapper is looked through (`wrappers.py`).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from codeagent_lsp.tools.permissions.shell.reading import MAX_CHOICES, MAX_TEXT, UNKNOWN, Invocation, Script, read
from codeagent_lsp.tools.permissions.shell.wrappers import inner

MAX_DEPTH = 8
MAX_WORDS = 20_000
_CONTINUED = "\\\n"
# An inner script is parsed anew: a variable that nobody sets is UNKNOWN there, too; a NUL would be a letter.
_UNKNOWN_TEXT = "${_unknown}"


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


def unwrap(script: Script, *, wide: bool = False, choice: int = 0) -> Everything:
    """Return `script` with every script and command that it runs, up to a depth and size limit; `wide` and `choice` say
    how these are read, as in `read`.
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
            new = _direct(part.words, invocation.stdin)
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
    """Return everything in a script, read widely, once for each value that its loops go through."""
    found = [unwrap(read(command, wide=True), wide=True)]
    choices = min(MAX_CHOICES, max(script.choices for script in found[0].scripts))
    return found + [unwrap(read(command, wide=True, choice=at), wide=True, choice=at) for at in range(1, choices)]


def _direct(words: tuple[str, ...], stdin: str | None) -> list[Invocation]:
    return [Invocation(words, " ".join(words)[:MAX_TEXT], stdin)] if words else []
