"""A skill as a value, the catalogue of all (the user's, then those of the workspace whose names are not taken), and
what the model is told of them without their full text: names and descriptions, and a hint where a task matches one.

A skill is the head of its `SKILL.md`, its text, and the names of its other files. Broken skills become problems, not
errors. Of a skill that the user does not trust yet the model gets less: a few words and triggers, as what the workspace
says of it. Not here: which are trusted (`trust.py`), installing and full texts (`skill_tools.py`).
"""

# ruff: noqa: PTH119 - paths of the workspace are plain strings

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.tools.skills import skill_folders
from codeagent_lsp.tools.skills.skill_folders import Document, FrontMatterError, parse
from codeagent_lsp.tools.skills.trust import Brings, Translator, Trust, WorkspaceItem
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.visible import cut, cut_at_word, one_line, visible

PROJECT_FOLDER = ".codeagent/skills"
OTHER_FOLDERS = (".agents/skills", ".claude/skills", ".memstack/skills")
"""Where other agents have the skills of a project, in the same form; read, never written."""

FILE_NAME = "SKILL.md"
MAX_NAME = 64
MAX_DESCRIPTION = 500
MAX_TRIGGERS = 30

SkillPlace = Literal["project", "user"]

MODES: Mapping[str, tuple[str, ...]] = MappingProxyType({"default": ("direct", "ask"), "plan": ("direct", "plan")})
"""Other names of modes in `agent_modes`; a direct run makes plans, too."""

_KEYS = ("name", "description", "triggers", "tools", "agent_modes")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
MOST_LISTED = 40
DESCRIPTION = 200
MOST_HINTS = 3
LOOKED_AT = 20_000

UNTRUSTED_WORDS = "of this workspace and not trusted yet: the user is asked before {use}; it says of itself"
"""Introduces the words of a skill or an agent that the user does not trust, so that they are no instructions."""

_CHANGED = "The skill {name} has changed since it was read. Read it again with skill_loader."
_UNTRUSTED_DESCRIPTION, _UNTRUSTED_TRIGGERS, _UNTRUSTED_TRIGGER = 120, 5, 30


class SkillInvalid(ValueError):
    """Raised for a skill that cannot be used; the message is one English sentence for users and models."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill, from the absolute path `folder`; `body` is its text without the head. `triggers` are words in a task
    that call for it; `tools` are names of tools offered with it; `agent_modes` are the agents it is meant for, () for
    all. `files` maps the other files of its folder to their sizes in bytes.

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
        """Return whether it is meant for an agent in this mode (`direct`, `plan`, `ask`, or the name of a subagent);
        True for any if it names none.
        """
        # A skill that names no mode is for all of them.
        wanted = {name for known in self.agent_modes for name in (known, *MODES.get(known, ()))}
        return not wanted or mode in wanted


def skill_of(source: str, folder: str, place: SkillPlace, files: Mapping[str, bytes], fallback: str) -> Skill:
    """Return the skill of the text of a `SKILL.md`; `fallback` is the skill's name if the head has none.

    `files` are the other files of its folder. SkillInvalid with the reason, such as a missing head, name or
    description.
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
    """Return the SHA-256 hash, in hex, of the names and contents of the files, whatever their order."""
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


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """A skill that cannot be used: the absolute path of its folder, and the reason as one English sentence."""

    folder: str
    reason: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The skills that there are now, with unique names, and the folders whose skill cannot be used."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[SkillProblem, ...] = ()

    def get(self, name: str) -> Skill:
        """Return the skill of that name. ToolFailed, with the known names or the problem, if there is none. Names are
        compared exactly.
        """
        for skill in self.skills:
            if skill.name == name:
                return skill
        broken = next((item for item in self.problems if os.path.basename(item.folder) == name), None)
        if broken is not None:
            raise ToolFailed(f"The skill {name!r} cannot be used: {broken.reason}", ErrorCode.PARSE_ERROR)
        names = ", ".join(skill.name for skill in self.skills) or "none"
        raise ToolFailed(f"There is no skill {one_line(name, 80)!r}. Skills: {names}.", ErrorCode.NOT_FOUND)


class SkillLibrary:
    """The places of skills. `own` is the user's folder, which installing writes to; `more` returns the folders of a
    setting.

    All methods block.
    """

    def __init__(self, own: Path, trust: Trust, more: Callable[[], Sequence[str]] = lambda: ()) -> None:
        self.own = own
        self.trust = trust
        self._more = more

    def catalogue(self, view: FileView) -> Catalogue:
        """Read every skill and return them, sorted by name; one that cannot be used, or whose name is taken, is among
        the problems. The user's own win.
        """
        skills: dict[str, Skill] = {}
        problems: list[SkillProblem] = []
        # The user's own first: a workspace cannot put a skill in the place of one of theirs.
        for found in (*self._of_user(), *self._of_project(view)):
            if isinstance(found, SkillProblem):
                problems.append(found)
            elif found.name not in skills:
                skills[found.name] = found
            elif found.digest != skills[found.name].digest:  # the same for several agents is no problem
                problems.append(
                    SkillProblem(found.folder, f"the name {found.name} is taken by {skills[found.name].folder}.")
                )
        return Catalogue(tuple(sorted(skills.values(), key=lambda skill: skill.name)), tuple(problems))

    def items(self, view: FileView) -> Iterator[WorkspaceItem]:
        """Yield the skills of the workspace, trusted or not, as items to be asked about; those that cannot be used are
        left out.
        """
        return (item_of(skill, view) for skill in self.catalogue(view).skills if skill.place == "project")

    def content(self, view: FileView, skill: Skill, name: str) -> str:
        """Return the text of another file of a skill. ToolFailed if there is no such file, if it is no text, or if a
        skill of the workspace has changed since it was read: the user's trust is in what it was then.
        """
        if name not in skill.files:
            names = ", ".join(skill.files) or "none"
            raise ToolFailed(f"The skill {skill.name} has no file {name!r}. Files: {names}.", ErrorCode.NOT_FOUND)
        try:
            if skill.place == "project":
                # Read as a whole again: the question about it may have been open for hours.
                files = skill_folders.project_tree(view, skill.folder)
                if digest_of(files) != skill.digest:
                    raise ToolFailed(_CHANGED.format(name=skill.name), ErrorCode.NOT_FOUND)
                return files[name].decode("utf-8")
            return Path(skill.folder, *name.split("/")).read_bytes().decode("utf-8")
        except OSError as error:
            raise ToolFailed(f"{name} cannot be read: {error.strerror}.") from None
        except skill_folders.TooMuch:
            raise ToolFailed(_CHANGED.format(name=skill.name), ErrorCode.NOT_FOUND) from None
        except UnicodeDecodeError:
            raise ToolFailed(f"{name} is no text.", ErrorCode.INVALID_PARAM) from None

    def _of_user(self) -> Iterator[Skill | SkillProblem]:
        for place in (self.own, *(Path(path).expanduser() for path in self._more())):
            folders = [place] if (place / FILE_NAME).is_file() else skill_folders.user_folders(place)
            for folder in folders:
                if (folder / FILE_NAME).is_file():
                    yield _read(str(folder), "user", lambda folder=folder: skill_folders.user_tree(folder))  # type: ignore[misc]

    def _of_project(self, view: FileView) -> Iterator[Skill | SkillProblem]:
        places = (skill_folders.project_entries(view, inner) for inner in (PROJECT_FOLDER, *OTHER_FOLDERS))
        for folder in chain.from_iterable(places):
            head = os.path.join(folder, FILE_NAME)  # noqa: PTH118 - see above
            if skill_folders.project_file(view, head) is None:
                if view.roots.kind(head) is not None:
                    yield SkillProblem(folder, f"{FILE_NAME} is not read: it is too large, a link or no plain file.")
                continue
            found = _read(folder, "project", lambda folder=folder: skill_folders.project_tree(view, folder))  # type: ignore[misc]
            # Read before it is asked whether it is trusted, as trust is in its content; nothing of it is told but a
            # quotation.
            if isinstance(found, Skill):
                found = replace(found, approved=self.trust.covers(found.digest))
            yield found


@dataclass(frozen=True, slots=True)
class RunSkills:
    """The skills of one run. `mode` is that of the agent: `direct`, `plan`, `ask`, or the name of a subagent; `brings`
    returns what else of the workspace needs trust.
    """

    library: SkillLibrary
    words: Translator
    mode: str = "direct"
    brings: Brings = tuple


def item_of(skill: Skill, view: FileView) -> WorkspaceItem:
    """Return a skill of the workspace as an item for the question whether it is trusted; its detail has its files with
    their sizes and its whole text.
    """
    path = view.roots.relative(skill.folder)
    files = "".join(f"- {name}, {size:,} bytes\n" for name, size in skill.files.items())
    detail = f"{path}\n{files}\n{skill.description}\n\n{skill.body}"
    return WorkspaceItem("skills", skill.name, path, skill.digest, skill.description, detail)


def list_skills(skills: Iterable[Skill], mode: str, limit: int) -> str:
    """Return the list of skills for an agent in `mode`, one line each below a heading, at most 40 and, without the
    heading and a last line that counts those left out, in at most `limit` characters; '' if there are none or none
    fits.
    """
    fitting = [skill for skill in skills if skill.serves(mode)]
    lines: list[str] = []
    size = 0
    for skill in fitting[:MOST_LISTED]:
        line = f"- {skill.name}: {cut(skill.description, DESCRIPTION)}" if skill.approved else _untrusted_line(skill)
        size += len(line) + 1
        # The first that does not fit ends the list, as the count of the others counts on.
        if size > limit:
            break
        lines.append(line)
    if not lines:
        return ""
    more = len(fitting) - len(lines)
    tail = [f"(and {more} more)"] if more else []
    return "\n".join(["Skills, each read with skill_loader before a task that it is for:", *lines, *tail])


def hint(skills: Iterable[Skill], task: str, mode: str) -> str:
    """Return a note for the model on which skills to read first for `task`, 3 at most; '' if none matches."""
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


def quote_untrusted(words: str, limit: int = _UNTRUSTED_DESCRIPTION) -> str:
    """Return words that the user does not trust as a short quotation on one line, which cannot end itself, cut at
    `limit` characters.
    """
    # A quotation mark inside would end the quotation, and what follows would read as our own words.
    return f'"{cut_at_word(words.replace(chr(34), chr(39)), limit)}"'


def _read(folder: str, place: SkillPlace, tree: Callable[[], dict[str, bytes]]) -> Skill | SkillProblem:
    try:
        files = tree()
        source = files.pop(FILE_NAME).decode("utf-8")
        return skill_of(source, folder, place, files, os.path.basename(folder).lower())
    except UnicodeDecodeError:
        return SkillProblem(folder, f"{FILE_NAME} is not UTF-8.")
    except KeyError:
        return SkillProblem(folder, f"{FILE_NAME} is gone.")
    except OSError as error:
        return SkillProblem(folder, f"it cannot be read ({error.strerror or type(error).__name__}).")
    except (SkillInvalid, skill_folders.TooMuch) as error:
        return SkillProblem(folder, str(error))


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


def _untrusted_line(skill: Skill) -> str:
    said = UNTRUSTED_WORDS.format(use="you may read it")
    triggers = [quote_untrusted(each, _UNTRUSTED_TRIGGER) for each in skill.triggers[:_UNTRUSTED_TRIGGERS]]
    when = f", for {', '.join(triggers)}" if triggers else ""
    return f"- {skill.name} ({said}: {quote_untrusted(skill.description)}{when})"
