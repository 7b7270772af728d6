"""Skills to install: those in a folder, and one of them as a list of files for the user to review.

Not here: fetching (`fetching.py`), asking and writing (`tools/skills/skill_tools.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.errors import ToolFailed, ToolRetry
from codeagent_lsp.tools.skills.skill import FILE_NAME, Skill, SkillInvalid, skill_of
from codeagent_lsp.tools.skills.skill_folders import TooMuch, user_tree
from codeagent_lsp.workspace.text.visible import one_line, visible

MAX_FOLDERS = 2000
MAX_DEPTH = 5

_SCRIPTS = re.compile(r"\.(?:py|(?:ba|z|fi)?sh|[mc]?js|ts|rb|pl|php|lua|ps1|bat|cmd|exe|dll|so|dylib|jar|wasm)", re.I)
_FILE_NAME = re.compile(r"(?!\.{1,2}$)[\w.+@()-](?:[\w.+@() -]{0,118}[\w+@()-])?")


@dataclass(frozen=True, slots=True)
class Bundle:
    """A skill with all of its files by name, `SKILL.md` included."""

    skill: Skill
    files: Mapping[str, bytes]

    @property
    def scripts(self) -> tuple[str, ...]:
        """Return the names of the files that are programs, by their endings or first bytes."""
        return tuple(name for name, data in self.files.items() if is_script(name, data))

    def listing(self) -> str:
        """Return the text for the user's decision: every file with its size, and the whole text of the skill."""
        scripts = frozenset(self.scripts)
        lines = [
            f"- {name}, {len(data):,} bytes" + (" (a script)" if name in scripts else "")
            for name, data in self.files.items()
        ]
        source = self.files[FILE_NAME].decode("utf-8", "replace")
        return "\n".join([*lines, "", f"{FILE_NAME}:", "", visible(source)])


def is_script(name: str, data: bytes) -> bool:
    """Return whether a file is a program."""
    return bool(_SCRIPTS.fullmatch(Path(name).suffix)) or data[:2] in (b"#!", b"MZ") or data[:4] == b"\x7fELF"


def bundle_in(folder: Path, wanted: str = "") -> Bundle:
    """Return the skill `wanted` in a folder, or its only one. ToolRetry with the names of all,
    ToolFailed if invalid.
    """
    folders = skill_folders(folder)
    if not folders:
        raise ToolFailed(f"There is no {FILE_NAME} in it.")
    fitting = [found for found in folders if _called(found, folder, wanted)] if wanted else folders
    if len(fitting) != 1:
        names = ", ".join(one_line(found.name, 64) for found in folders[:40])
        which = f"no skill {one_line(wanted, 64)!r}" if wanted and not fitting else "more than one skill"
        raise ToolRetry(f"There is {which} in it. Name one of these as skill_name: {names}.")
    return _bundle(fitting[0])


def skill_folders(folder: Path) -> list[Path]:
    """Return the folders at or below `folder` that hold a skill."""
    found: list[Path] = []
    for seen, (above, folders, names) in enumerate(os.walk(folder)):
        place = Path(above)
        if seen > MAX_FOLDERS:
            break
        deep = len(place.relative_to(folder).parts) >= MAX_DEPTH
        folders[:] = [] if deep else sorted(name for name in folders if name not in (".git", "node_modules"))
        if FILE_NAME in names and not (place / FILE_NAME).is_symlink():
            found.append(place)
            folders.clear()
    return found


def _called(found: Path, folder: Path, wanted: str) -> bool:
    inner = found.relative_to(folder).as_posix()
    return wanted in (found.name, inner) or inner.endswith(f"/{wanted}") or _name(found) == wanted


def _name(folder: Path) -> str:
    try:
        return _bundle(folder).skill.name
    except ToolFailed:
        return ""


def _bundle(folder: Path) -> Bundle:
    try:
        files = dict(sorted(user_tree(folder).items()))
        _check_names(tuple(files))
        source = files[FILE_NAME].decode("utf-8")
        others = {name: data for name, data in files.items() if name != FILE_NAME}
        skill = skill_of(source, str(folder), "user", others, folder.name.lower())
    except UnicodeDecodeError:
        raise ToolFailed(f"The skill in {folder.name} cannot be installed: its {FILE_NAME} is not UTF-8.") from None
    except (SkillInvalid, TooMuch, OSError) as error:
        raise ToolFailed(f"The skill in {one_line(folder.name, 64)} cannot be installed: {error}") from None
    return Bundle(skill, files)


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not all(map(_FILE_NAME.fullmatch, name.split("/"))):
            raise SkillInvalid(f"the file name {one_line(name, 80)!r} is not allowed.")
    if len({name.casefold() for name in names}) != len(names):
        raise SkillInvalid("two of its file names differ in capitals only.")
