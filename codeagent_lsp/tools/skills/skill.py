"""A skill as a value: the head of its `SKILL.md`, its text, and the names of its other files.

Not here: where skills are looked for (`shelf.py`) and which are trusted (`trust.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from codeagent_lsp.tools.skills.front_matter import Document, FrontMatterError, parse
from codeagent_lsp.workspace.text.visible import one_line, visible

FILE_NAME = "SKILL.md"
MAX_NAME = 64
MAX_DESCRIPTION = 500
MAX_TRIGGERS = 30

SkillPlace = Literal["project", "user"]

MODES: Mapping[str, tuple[str, ...]] = MappingProxyType({"default": ("direct", "ask"), "plan": ("direct", "plan")})
"""Other names of modes in `agent_modes`; a direct run makes plans, too."""

_KEYS = ("name", "description", "triggers", "tools", "agent_modes")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")


class SkillInvalid(ValueError):
    """Raised for a skill that cannot be used; the message is one English sentence for users and models."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. `files` maps the other files of its folder to their sizes in bytes.

    `digest` is a hash of the whole content; `approved` is False for a skill of the workspace that the user does not
    trust yet.
    """

    name: str
    description: str
    body: str
    folder: str
    place: SkillPlace
    digest: str
    triggers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    agent_modes: tuple[str, ...] = ()
    files: Mapping[str, int] = field(default_factory=dict)
    approved: bool = True

    def serves(self, mode: str) -> bool:
        """Return whether it is meant for an agent in this mode (`direct`, `plan`, `ask`, or the name of a subagent)."""
        wanted = {name for known in self.agent_modes for name in (known, *MODES.get(known, ()))}
        return not wanted or mode in wanted


def skill_of(source: str, folder: str, place: SkillPlace, files: Mapping[str, bytes], fallback: str) -> Skill:
    """Parse the text of a `SKILL.md`; `fallback` is the skill's name if the head has none.

    `files` are the other files of its folder. SkillInvalid with the reason.
    """
    document = _document(source)
    name = document.one("name").strip() or fallback
    if not _NAME.fullmatch(name):
        raise SkillInvalid(f"the name {one_line(name, 40)!r} must be small letters, digits and dashes.")
    description = one_line(document.one("description"), MAX_DESCRIPTION)
    if not description:
        raise SkillInvalid("its head has no `description`.")
    if not document.body.strip():
        raise SkillInvalid("there is no text after its head.")
    return Skill(
        name,
        description,
        visible(document.body),
        folder,
        place,
        digest_of({**files, FILE_NAME: source.encode("utf-8", "surrogatepass")}),
        _short(document, "triggers"),
        _short(document, "tools"),
        _short(document, "agent_modes"),
        {file: len(data) for file, data in sorted(files.items())},
    )


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 hash, in hex, of the names and contents of the files."""
    whole = hashlib.sha256()
    for name, data in sorted(files.items()):
        for part in (name.encode("utf-8", "surrogatepass"), data):
            # With their lengths, so that the same bytes in other files give another hash.
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def _document(source: str) -> Document:
    try:
        document = parse(source, _KEYS)
    except FrontMatterError as error:
        raise SkillInvalid(f"its head cannot be read, {error}") from error
    if not document.head:
        raise SkillInvalid("it has no head (name and description between two lines of ---).")
    return document


def _short(document: Document, name: str) -> tuple[str, ...]:
    return tuple(one_line(item, 80) for item in document.many(name)[:MAX_TRIGGERS])
