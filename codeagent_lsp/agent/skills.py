"""Lists skills for the model without their full text: names and descriptions, and a hint where a task matches one.

Of a skill that the user does not trust yet the model gets less: a few words and triggers, as what the workspace says of
it. Pure functions. Not here: the full texts, which the tool `skill_loader` gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from codeagent_lsp.tools.skills.shelf import Skill
from codeagent_lsp.workspace.text.visible import cut_at_word

MOST_LISTED = 40
DESCRIPTION = 200
MOST_HINTS = 3
LOOKED_AT = 20_000

UNTRUSTED_WORDS = "of this workspace and not trusted yet: the user is asked before {use}; it says of itself"
"""Introduces the words of a skill or an agent that the user does not trust, so that they are no instructions."""

_UNTRUSTED_DESCRIPTION, _UNTRUSTED_TRIGGERS, _UNTRUSTED_TRIGGER = 120, 5, 30


def listed(skills: Iterable[Skill], mode: str, limit: int) -> str:
    """Return the list of skills for an agent in `mode`, one line each, in at most `limit` characters; '' for none."""
    fitting = [skill for skill in skills if skill.serves(mode)]
    lines: list[str] = []
    size = 0
    for skill in fitting[:MOST_LISTED]:
        line = f"- {skill.name}: {_short(skill)}" if skill.approved else _untrusted(skill)
        size += len(line) + 1
        if size > limit:
            break
        lines.append(line)
    if not lines:
        return ""
    more = len(fitting) - len(lines)
    tail = [f"(and {more} more)"] if more else []
    return "\n".join(["Skills, each read with skill_loader before a task that it is for:", *lines, *tail])


def hint(skills: Iterable[Skill], task: str, mode: str) -> str:
    """Return a note on which skills to read first for `task`; '' where none matches."""
    names = matching(skills, task, mode)
    if not names:
        return ""
    return f"Skills that look made for this: {', '.join(names)}. Read them first with skill_loader."


def matching(skills: Iterable[Skill], task: str, mode: str) -> Sequence[str]:
    """Return the names of at most 3 skills whose name or a trigger occurs in the task; those that the user trusts come
    first, so that a workspace cannot push them out.
    """
    words = task[:LOOKED_AT].casefold()
    return [
        skill.name
        for skill in sorted(skills, key=lambda skill: not skill.approved)
        if skill.serves(mode) and any(_mentions(words, each) for each in (skill.name, *skill.triggers))
    ][:MOST_HINTS]


def quoted(words: str, limit: int = _UNTRUSTED_DESCRIPTION) -> str:
    """Return words that the user does not trust as a short quotation on one line, which cannot end itself."""
    # A quotation mark inside would end the quotation, and what follows would read as our own words.
    return f'"{cut_at_word(words.replace(chr(34), chr(39)), limit)}"'


def _mentions(words: str, trigger: str) -> bool:
    """Return whether a word or a phrase occurs in the text; in scripts without spaces, also inside a word."""
    wanted = " ".join(trigger.casefold().split())
    if not wanted:
        return False
    pattern = re.escape(wanted).replace(r"\ ", r"\s+")
    # Not `\b`: between a Han character and a letter there is none, though a word begins.
    before = r"(?<![a-z0-9_])" if wanted[0].isascii() and wanted[0].isalnum() else ""
    after = r"(?![a-z0-9_])" if wanted[-1].isascii() and wanted[-1].isalnum() else ""
    return re.search(f"{before}{pattern}{after}", words) is not None


def _untrusted(skill: Skill) -> str:
    said = UNTRUSTED_WORDS.format(use="you may read it")
    triggers = [quoted(each, _UNTRUSTED_TRIGGER) for each in skill.triggers[:_UNTRUSTED_TRIGGERS]]
    when = f", for {', '.join(triggers)}" if triggers else ""
    return f"- {skill.name} ({said}: {quoted(skill.description)}{when})"


def _short(skill: Skill) -> str:
    text = skill.description
    return text if len(text) <= DESCRIPTION else text[: DESCRIPTION - 1] + "…"
