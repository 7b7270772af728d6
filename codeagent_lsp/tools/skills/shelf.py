"""The catalogue of all skills: the user's first, then those of the workspace whose names are not taken.

Broken skills become problems, not errors. Not here: what the model is told of them (`agent/skills.py`), installing.
"""

# ruff: noqa: PTH119 - paths of the workspace are plain strings

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.tools.skills import skill_folders
from codeagent_lsp.tools.skills.skill import FILE_NAME, Skill, SkillInvalid, SkillPlace, skill_of
from codeagent_lsp.tools.skills.trust import Trust, WorkspaceItem
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.visible import one_line

PROJECT_FOLDER = ".codeagent/skills"
OTHER_FOLDERS = (".agents/skills", ".claude/skills", ".memstack/skills")
"""Where other agents have the skills of a project, in the same form; read, never written."""


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """A skill that cannot be used, with the reason as one English sentence."""

    folder: str
    reason: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The skills, with unique names, and the problems found."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[SkillProblem, ...] = ()

    def get(self, name: str) -> Skill:
        """Return the skill of that name. ToolFailed, with the known names or the problem, if there is none."""
        for skill in self.skills:
            if skill.name == name:
                return skill
        broken = next((item for item in self.problems if os.path.basename(item.folder) == name), None)
        if broken is not None:
            raise ToolFailed(f"The skill {name!r} cannot be used: {broken.reason}", ErrorCode.PARSE_ERROR)
        names = ", ".join(skill.name for skill in self.skills) or "none"
        raise ToolFailed(f"There is no skill {one_line(name, 80)!r}. Skills: {names}.", ErrorCode.NOT_FOUND)


class SkillShelf:
    """The places of skills. `own` is the user's folder, which installing writes to; `more` returns the folders of a
    setting.

    All methods block.
    """

    def __init__(self, own: Path, trust: Trust, more: Callable[[], Sequence[str]] = lambda: ()) -> None:
        self.own = own
        self.trust = trust
        self._more = more

    def catalogue(self, view: FileView) -> Catalogue:
        """Return every skill as it is now."""
        skills: dict[str, Skill] = {}
        problems: list[SkillProblem] = []
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
        """Yield the skills of the workspace, trusted or not."""
        return (item_of(skill, view) for skill in self.catalogue(view).skills if skill.place == "project")

    def content(self, view: FileView, skill: Skill, name: str) -> str:
        """Return the text of another file of a skill. ToolFailed if there is no such file, or it is no text."""
        if name not in skill.files:
            names = ", ".join(skill.files) or "none"
            raise ToolFailed(f"The skill {skill.name} has no file {name!r}. Files: {names}.", ErrorCode.NOT_FOUND)
        path = os.path.join(skill.folder, *name.split("/"))  # noqa: PTH118 - see above
        try:
            data = skill_folders.project_file(view, path) if skill.place == "project" else Path(path).read_bytes()
            return (data or b"").decode("utf-8")
        except OSError as error:
            raise ToolFailed(f"{name} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise ToolFailed(f"{name} is no text.") from None

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
            if isinstance(found, Skill):
                found = replace(found, approved=self.trust.covers(found.digest))
            yield found


def item_of(skill: Skill, view: FileView) -> WorkspaceItem:
    """Return a skill of the workspace for the question whether it is trusted: its files and its whole text."""
    path = view.roots.relative(skill.folder)
    files = "".join(f"- {name}, {size:,} bytes\n" for name, size in skill.files.items())
    detail = f"{path}\n{files}\n{skill.description}\n\n{skill.body}"
    return WorkspaceItem("skills", skill.name, path, skill.digest, skill.description, detail)


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
