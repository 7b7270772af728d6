"""Skills as files, and a small workspace with a shelf over it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from codeagent_lsp.tools.skills.skill_library import Catalogue, Skill, SkillLibrary
from codeagent_lsp.tools.skills.trust import Trust
from tests.workspace.file_fakes import Workspace, workspace


def skill(name: str = "", description: str = "does things", body: str = "Do it well.", **more: str) -> str:
    """The text of a `SKILL.md`."""
    head = [f"name: {name}"] if name else []
    lines = ["---", *head, f"description: {description}", *(f"{key}: {value}" for key, value in more.items()), "---"]
    return "\n".join([*lines, "", body, ""])


@dataclass
class Shelves:
    """A workspace `w`, the user's own folder `own`, and the state folder, all below one temporary folder."""

    place: Path
    more: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.files: Workspace = workspace(self.place / "w")
        self.own = self.place / "own"
        self.trust = Trust(self.place / "state" / "trusted.json")
        self.shelf = SkillLibrary(self.own, self.trust, lambda: self.more)

    def project(self, folder: str, text: str, **others: str) -> None:
        self.files.write(f".codeagent/skills/{folder}/SKILL.md", text)
        for name, content in others.items():
            self.files.write(f".codeagent/skills/{folder}/{name}", content)

    def user(self, folder: str, text: str, root: Path | None = None) -> Path:
        path = (root or self.own) / folder / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def look(self) -> Catalogue:
        return self.shelf.catalogue(self.files.view)

    def skills(self) -> dict[str, Skill]:
        return {found.name: found for found in self.look().skills}

    def reasons(self) -> list[str]:
        return [problem.reason for problem in self.look().problems]
