"""Lists skills for the model without their full text: names and descriptions, and a hint where a task matches one.

Of a skill that the user has not approved the model gets only the name. Pure functions. Not here: the full texts, which
the tool `skill_loader` gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from codeagent_lsp.tools.skills.skill import Skill

MOST_LISTED = 40
DESCRIPTION = 200
MOST_HINTS = 3
LOOKED_AT = 20_000

_UNAPPROVED = "(of this workspace; the user is asked before you may read it)"


def listed(skills: Iterable[Skill], mode: str, limit: int) -> str:
    """Return the list of skills for an agent in `mode`, one line each, in at most `limit` characters; '' for none."""
    fitting = [skill for skill in skills if skill.serves(mode)]
    lines: list[str] = []
    size = 0
    for skill in fitting[:MOST_LISTED]:
        line = f"- {skill.name}: {_short(skill)}" if skill.approved else f"- {skill.name} {_UNAPPROVED}"
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
    """Return the names of at most 3 skills whose name, or for approved skills a trigger, occurs in the task."""
    words = task[:LOOKED_AT].casefold()
    return [
        skill.name
        for skill in skills
        if skill.serves(mode)
        and (
            _mentions(words, skill.name) or (skill.approved and any(_mentions(words, each) for each in skill.triggers))
        )
    ][:MOST_HINTS]


def _mentions(words: str, trigger: str) -> bool:
    """Return whether a word or a phrase occurs in the text; in scripts without spaces, also inside a word."""
    wanted = " ".join(trigger.casefold().split())
    if not wanted:
        return False
    pattern = re.escape(wanted).replace(r"\ ", r"\s+")
    before = r"(?<![a-z0-9_])" if wanted[0].isascii() and wanted[0].isalnum() else ""
    after = r"(?![a-z0-9_])" if wanted[-1].isascii() and wanted[-1].isalnum() else ""
    return re.search(f"{before}{pattern}{after}", words) is not None


def _short(skill: Skill) -> str:
    text = skill.description
    return text if len(text) <= DESCRIPTION else text[: DESCRIPTION - 1] + "…"
