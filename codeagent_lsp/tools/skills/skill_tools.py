"""The tools `skill_loader` and `skill_installer`: read a skill, and install new ones, each with the user's approval.

A skill of the workspace is read only after the user trusted its exact content. One to install is first shown with all
of its files; in a project it becomes staged changes. Not here: fetching and judging (`tools/skills/`).
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool
from codeagent_lsp.errors import ErrorCode, PermissionDenied, ToolFailed, ToolRetry
from codeagent_lsp.state import make_private
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.skills.fetching import SkillSource, fetch, parse
from codeagent_lsp.tools.skills.skill_folders import TooMuch, user_tree
from codeagent_lsp.tools.skills.skill_library import (
    FILE_NAME,
    PROJECT_FOLDER,
    RunSkills,
    Skill,
    SkillInvalid,
    item_of,
    skill_of,
)
from codeagent_lsp.tools.skills.trust import is_trusted
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolGroups, ToolTraits
from codeagent_lsp.workspace.text.visible import one_line, visible

Location = Literal["project", "global"]
MAX_FOLDERS = 2000
MAX_DEPTH = 5

_SCRIPTS = re.compile(r"\.(?:py|(?:ba|z|fi)?sh|[mc]?js|ts|rb|pl|php|lua|ps1|bat|cmd|exe|dll|so|dylib|jar|wasm)", re.I)
_FILE_NAME = re.compile(r"(?!\.{1,2}$)[\w.+@()-](?:[\w.+@() -]{0,118}[\w+@()-])?")


class SkillLoaderParameters(Parameters):
    """Parameters of `skill_loader`: the skill to read; `name/file` means another file of it."""

    skill_name: str = Field(min_length=1, max_length=300, description="A skill, or skill/file for a file of it")


class SkillLoader(Tool[SkillLoaderParameters]):
    """The tool `skill_loader`: the full text of a skill; one of the workspace only once the user trusts it."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "skill_loader", "Read a skill: instructions for a kind of task. Do it before such a task.", "read", "skills",
        timeout=None, errors=(ErrorCode.NOT_FOUND,),)  # fmt: skip
    parameters = SkillLoaderParameters
    example: ClassVar[Example] = {"skill_name": "release"}
    forms: ClassVar[CallForms] = CallForms(
        also={"skill": "skill_name", "name": "skill_name"},
        foreign=(
            ForeignTool("Skill", ("Claude Code",), {"command": "skill_name"}, ignored=("args",)),
            ForeignTool("skill", ("opencode", "Roo Code"), ignored=("args",)),
            ForeignTool("skills", ("cline",), ignored=("args",)),
            ForeignTool("use_skill", ("cline",)),
            ForeignTool("activate_skill", ("Gemini CLI",)),
        ),
        near=("SlashCommand", "run_slash_command", "fetch_instructions"),
    )
    output = dict[str, Any]  # name, digest, title, output, metadata; or name, file

    async def run(self, arguments: SkillLoaderParameters, context: ToolContext) -> ToolOutput:
        """Return the text, with the names of its other files and of the tools that it uses, which are offered from now
        on. May ask the user first. ToolFailed if there is no such skill or file, PermissionDenied if the user does not
        trust it.
        """
        skills = _skills(context)
        name, _, file = arguments.skill_name.strip().partition("/")
        catalogue = await asyncio.to_thread(skills.library.catalogue, context.view)
        skill = catalogue.get(name)
        if not skill.serves(skills.mode):
            message = f"The skill {name} is meant for other agents: {', '.join(skill.agent_modes)}."
            raise ToolFailed(message, ErrorCode.INVALID_PARAM)
        # Before any of its text reaches the model.
        if not skill.approved and not await _is_vouched_for(skill, skills, context):
            raise PermissionDenied(f"The user does not trust the skill {name}. Go on without it.")
        if file:
            content = await asyncio.to_thread(skills.library.content, context.view, skill, file)
            return ToolOutput(content, {"name": skill.name, "file": file})
        if (groups := context.get(ToolGroups)) is not None:
            # Tools that the skill names may not have been offered in this run yet.
            groups.offer(skill.tools)
        text = render_skill(skill, context)
        metadata = {"name": skill.name, "tools": list(skill.tools), "source": skill.place}
        data = {"name": skill.name, "digest": skill.digest, "title": f"Loaded skill: {skill.name}"}
        return ToolOutput(text, {**data, "output": text, "metadata": metadata})


class SkillInstallerParameters(Parameters):
    """Parameters of `skill_installer`: the source, the skill in it, the branch of git to take, and whether it is
    installed for this workspace (`project`) or for the user (`global`).
    """

    skill_source: str = Field(
        min_length=1, max_length=500, description="owner/repo, URL of a repository or of skills.sh, or local folder"
    )
    skill_name: str | None = Field(None, max_length=100, description="Needed where the source has several skills")
    install_location: Location = "project"
    branch: str | None = Field(None, max_length=200)


class SkillInstaller(Tool[SkillInstallerParameters]):
    """The tool `skill_installer`: fetches a skill, shows it to the user, and installs it once they agree."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "skill_installer",
        "Install a skill, after the user has seen it and agreed.",
        "net",
        "skills",
        timeout=None,
        errors=(
            ErrorCode.NETWORK_ERROR,
            ErrorCode.NOT_FOUND,
        ),
    )
    parameters = SkillInstallerParameters
    example: ClassVar[Example] = {"skill_source": "owner/repository", "skill_name": "release"}
    output = dict[str, str]

    async def run(self, arguments: SkillInstallerParameters, context: ToolContext) -> ToolOutput:
        """Install the skill, in the project as staged changes; return its files and place. ToolFailed or ToolRetry if
        it cannot be fetched or found, PermissionDenied if the user does not agree.
        """
        skills = _skills(context)
        source = parse(arguments.skill_source, arguments.branch or "")
        # Read as a whole here: what the user sees is byte for byte what gets installed, whatever becomes of the source.
        with tempfile.TemporaryDirectory(prefix="skill-") as place:
            folder = await _fetch_source(source, Path(place), context)
            bundle = await asyncio.to_thread(bundle_in, folder, arguments.skill_name or source.skill)
        target = await asyncio.to_thread(_target, bundle.skill.name, arguments.install_location, context)
        await _ask(bundle, source, target, skills, context)
        if arguments.install_location == "project":
            what = await _stage(bundle, target, skills, context)
        else:
            what = await asyncio.to_thread(_write, bundle, Path(target))
        return ToolOutput(f"{what}\nRead it with skill_loader {bundle.skill.name!r}.", {"name": bundle.skill.name})


def render_skill(skill: Skill, context: ToolContext) -> str:
    """Return a skill as text for the model: its place, its text, the names and sizes of its files, the tools that it
    uses.
    """
    place = context.view.roots.relative(skill.folder) if skill.place == "project" else "the user's own skills"
    parts = [f"Skill {skill.name} ({place}):\n\n{skill.body.strip()}"]
    if skill.files:
        names = "\n".join(f"- {name} ({size:,} bytes)" for name, size in skill.files.items())
        parts.append(f"Other files of this skill (read with skill_loader {skill.name}/FILE):\n{names}")
    if skill.tools:
        parts.append(f"It uses these tools, where you have them: {', '.join(skill.tools)}.")
    return "\n\n".join(parts)


def _skills(context: ToolContext) -> RunSkills:
    return context.need(RunSkills, "There are no skills here.")


async def _is_vouched_for(skill: Skill, skills: RunSkills, context: ToolContext) -> bool:
    return await is_trusted(
        skills.library.trust, item_of(skill, context.view), context.asker, skills.words, skills.brings
    )


async def _fetch_source(source: SkillSource, place: Path, context: ToolContext) -> Path:
    """Return the folder that holds the skills of a source."""
    if source.folder:
        return await asyncio.to_thread(_local, source.folder, context)
    into = place / "repository"
    context.note(source.shown)
    await fetch(source, into, network=context.settings.network)
    folder = into / source.inner if source.inner else into
    # Resolved: the repository can hold a link that leads out of it, to the user's own files.
    if not folder.resolve().is_relative_to(into.resolve()) or not folder.is_dir():
        raise ToolRetry(f"There is no folder {source.inner!r} in this repository.")
    return folder


def _local(words: str, context: ToolContext) -> Path:
    roots = context.view.roots.folders
    folder = Path(roots[0] if roots else "/", Path(words).expanduser()).resolve()
    if not folder.is_dir():
        raise ToolRetry(f"{words} is not a folder.")
    return folder


def _target(name: str, location: Location, context: ToolContext) -> str:
    """Return the folder to install into. ToolFailed if no workspace is open for a project skill."""
    if location == "global":
        return str(_skills(context).library.own / name)
    roots = context.view.roots
    if not roots.folders:
        raise ToolFailed("No workspace folder is open. Use install_location global.")
    return roots.resolve(os.path.join(roots.folders[0], PROJECT_FOLDER, name))  # noqa: PTH118 - plain strings here


async def _ask(bundle: Bundle, source: SkillSource, target: str, skills: RunSkills, context: ToolContext) -> None:
    size = f"{sum(map(len, bundle.files.values())):,}"
    counts = {"files": len(bundle.files), "size": size, "scripts": len(bundle.scripts)}
    title = skills.words("skills.install", name=bundle.skill.name, source=source.shown, **counts)
    deny, install = skills.words("choice.deny"), skills.words("choice.install")
    replaces = "\n" + skills.words("skills.replaces") if await asyncio.to_thread(os.path.exists, target) else ""
    detail = f"{source.shown} -> {target}{replaces}\n\n{bundle.listing()}"
    answer = await context.asker.ask(Question("approval", title, (deny, install), detail=detail, danger=True))
    if answer != (install,):
        raise PermissionDenied("The user did not want this skill. Do not try it again in another way.")


async def _stage(bundle: Bundle, target: str, skills: RunSkills, context: ToolContext) -> str:
    """Stage the files as changes for the user to review; their content is trusted from now on."""
    roots, texts = context.view.roots, {}
    for name, data in bundle.files.items():
        path = roots.resolve(os.path.join(target, *name.split("/")))  # noqa: PTH118 - plain strings here
        try:
            texts[path] = data.decode("utf-8")
        except UnicodeDecodeError:
            message = f"{name} is no text, so it cannot become a change of the project. Use install_location global."
            raise ToolFailed(message) from None
    await asyncio.to_thread(context.staging.write, texts)
    # By its content: the user has seen all of it just now, and any change of it asks again.
    skills.library.trust.add(bundle.skill.digest, bundle.skill.name)
    return f"Staged {len(texts)} files in {roots.relative(target)}; the skill is there once the user accepts them."


def _write(bundle: Bundle, target: Path) -> str:
    """Write the files to the user's own folder, all or none."""
    make_private(target.parent)
    # Beside the target, on the same file system, so that a rename puts it into place at once.
    draft = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    old = draft.with_name(f".old{draft.name}")
    try:
        for name, data in bundle.files.items():
            path = draft / name
            make_private(path.parent)
            path.write_bytes(data)
            path.chmod(0o600)
        # Moved away first: a folder with something in it cannot be replaced by a rename.
        if target.exists():
            target.rename(old)
        draft.rename(target)
    finally:
        # Something failed between the two renames: the former skill comes back.
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    return f"Installed {len(bundle.files)} files in {target}."


# Skills to install: those in a folder, and one of them as a list of files for the user to review.


@dataclass(frozen=True, slots=True)
class Bundle:
    """A skill to install with all of its files by name, `SKILL.md` included, as they were fetched."""

    skill: Skill
    files: Mapping[str, bytes]

    @property
    def scripts(self) -> tuple[str, ...]:
        """The names of the files that are programs, by their endings or first bytes."""
        return tuple(name for name, data in self.files.items() if is_script(name, data))

    def listing(self) -> str:
        """Return the text for the user's decision: every file with its size, and the whole text of the skill. Invisible
        characters are escaped in that text.
        """
        scripts = frozenset(self.scripts)
        lines = [
            f"- {name}, {len(data):,} bytes" + (" (a script)" if name in scripts else "")
            for name, data in self.files.items()
        ]
        source = self.files[FILE_NAME].decode("utf-8", "replace")
        return "\n".join([*lines, "", f"{FILE_NAME}:", "", visible(source)])


def is_script(name: str, data: bytes) -> bool:
    """Return whether a file is a program, by the ending of its name or its first bytes (`#!`, ELF, MZ)."""
    return bool(_SCRIPTS.fullmatch(Path(name).suffix)) or data[:2] in (b"#!", b"MZ") or data[:4] == b"\x7fELF"


def bundle_in(folder: Path, wanted: str = "") -> Bundle:
    """Return the skill `wanted` in a folder or below it, or its only one for ''. ToolRetry with the names of all if
    that is not exactly one, ToolFailed if there is none or it is invalid. Blocks.
    """
    folders = skill_folders(folder)
    if not folders:
        raise ToolFailed(f"There is no {FILE_NAME} in it.", ErrorCode.NOT_FOUND)
    fitting = [found for found in folders if _is_called(found, folder, wanted)] if wanted else folders
    if len(fitting) != 1:
        names = ", ".join(one_line(found.name, 64) for found in folders[:40])
        which = f"no skill {one_line(wanted, 64)!r}" if wanted and not fitting else "more than one skill"
        raise ToolRetry(f"There is {which} in it. Name one of these as skill_name: {names}.")
    return _bundle(fitting[0])


def skill_folders(folder: Path) -> list[Path]:
    """Return the folders at or below `folder` that hold a skill, 5 levels deep at most; those inside of another are
    left out; [] for none. Blocks.
    """
    found: list[Path] = []
    for seen, (above, folders, names) in enumerate(os.walk(folder)):
        place = Path(above)
        if seen > MAX_FOLDERS:
            break
        deep = len(place.relative_to(folder).parts) >= MAX_DEPTH
        folders[:] = [] if deep else sorted(name for name in folders if name not in (".git", "node_modules"))
        if FILE_NAME in names and not (place / FILE_NAME).is_symlink():
            found.append(place)
            # A skill's own folders belong to it, with whatever examples of skills they hold.
            folders.clear()
    return found


def _is_called(found: Path, folder: Path, wanted: str) -> bool:
    inner = found.relative_to(folder).as_posix()
    # Last, as it reads all its files: the name in the head can differ from that of the folder.
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
    # Where file names have no case, one would replace the other.
    if len({name.casefold() for name in names}) != len(names):
        raise SkillInvalid("two of its file names differ in capitals only.")
