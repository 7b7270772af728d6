"""Definitions of agents: three built-in ones, and those that users write as Markdown files with YAML-like front matter.

The user's own files come first, then `.codeagent/agents/*.md` of the workspace. Workspace files are untrusted: they can
only narrow what an agent may do, and the user is asked before one is used. Not here: running them (`subagents.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal

from codeagent_lsp.agent.prompt import load
from codeagent_lsp.tools.skills import skill_folders
from codeagent_lsp.tools.skills.skill_folders import FrontMatterError, parse
from codeagent_lsp.tools.skills.skill_library import UNTRUSTED_WORDS, digest_of, quote_untrusted
from codeagent_lsp.tools.skills.trust import Trust, WorkspaceItem
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.numbers import whole_number
from codeagent_lsp.workspace.text.visible import one_line, visible

PROJECT_FOLDER = ".codeagent/agents"
MOST_ITERATIONS = 200
MAX_BYTES = 64 * 1024

Place = Literal["builtin", "user", "project"]

_KEYS = ("name", "description", "max_iterations", "tools", "model")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Profile:
    """The definition of one agent. Empty `tools` means all tools of the run that the agent may use; an empty `model`
    means the run's model, None for `max_iterations` the limit by its window. `reads_only` says that it may not change
    files, `place` whether it is built-in, the user's or the workspace's; `digest` is a hash of the definition, and
    `approved` is False for one of the workspace that the user does not trust yet.
    """

    name: str
    description: str
    instructions: str
    place: Place = "builtin"
    reads_only: bool = True
    tools: tuple[str, ...] = ()
    model: str = ""
    max_iterations: int | None = None
    digest: str = ""
    approved: bool = True


@dataclass(frozen=True, slots=True)
class AgentProblem:
    """A file that should define an agent and does not: its absolute path, and the reason as one English sentence."""

    path: str
    reason: str


class AgentLibrary:
    """Reads the definitions of agents: built-in, from `own` (the user's folder) and from a workspace. Files are read
    again at each call; all methods block.
    """

    def __init__(self, own: Path, trust: Trust) -> None:
        self.own = own
        self.trust = trust

    def profiles(self, view: FileView) -> tuple[Profile, ...]:
        """Return all agents that can be called; the built-in ones first, each name once. Files that define none are
        left out, see `look`. Blocks.
        """
        return self.look(view)[0]

    def items(self, view: FileView) -> Iterator[WorkspaceItem]:
        """Yield the agents of the workspace, trusted or not, as items for the question whether they are trusted; none
        for the built-in and the user's own. Blocks.
        """
        return (item_of(profile) for profile in self.profiles(view) if profile.place == "project")

    def look(self, view: FileView) -> tuple[tuple[Profile, ...], tuple[AgentProblem, ...]]:
        """Return all agents, and the files that define none. When two have the same name (compared exactly), the first
        one wins: built-in, then the user's, then the workspace's; the other is a problem. Never raises: files that
        cannot be read are skipped. Blocks.
        """
        found = {profile.name: profile for profile in builtin()}
        problems = []
        for path, place, data in (*self._of_user(), *_of_project(view)):
            item = _profile(path, place, data, self.trust)
            # A workspace cannot put its own text under a name that the user knows.
            if isinstance(item, Profile) and item.name in found:
                item = AgentProblem(path, f"the name {item.name} is taken.")
            if isinstance(item, Profile):
                found[item.name] = item
            else:
                problems.append(item)
        return tuple(found.values()), tuple(problems)

    def _of_user(self) -> Iterator[tuple[str, Place, bytes]]:
        try:
            paths = sorted(self.own.glob("*.md"))[: skill_folders.MAX_ENTRIES]
        except OSError:
            return
        for path in paths:
            try:
                with path.open("rb") as file:
                    # One byte more than is allowed tells that there is more, without reading a huge file.
                    yield str(path), "user", file.read(MAX_BYTES + 1)
            except OSError:
                continue


def item_of(profile: Profile) -> WorkspaceItem:
    """Return an agent of the workspace as an item for the question whether it is trusted; its detail is name,
    description, tools (`-` for all) and the whole instructions.
    """
    tools = ", ".join(profile.tools) or "-"
    detail = f"{profile.name}: {profile.description}\ntools: {tools}\n\n{profile.instructions}"
    return WorkspaceItem("agents", profile.name, PROJECT_FOLDER, profile.digest, profile.description, detail)


def builtin() -> tuple[Profile, ...]:
    """Return the three built-in agents: planner and reviewer, which only read, and coder, which may change files."""
    return (
        Profile("planner", "looks into the code, answers or writes a plan; only reads", load("planner")),
        Profile("coder", "makes one change, checks it, reports", load("coder"), reads_only=False),
        Profile("reviewer", "reads changes and says what is wrong with them; only reads", load("reviewer")),
    )


def list_agents(profiles: tuple[Profile, ...], limit: int) -> str:
    """Return the agents that are not built in as text for a system prompt: a heading, then one line each, `- name:
    description`, in at most `limit` characters, from the first on; '' if there are none or none fits.
    """
    said = UNTRUSTED_WORDS.format(use="its use")
    lines = [
        f"- {item.name}: {item.description}"
        if item.approved
        else f"- {item.name} ({said}: {quote_untrusted(item.description)})"
        for item in profiles
        if item.place != "builtin"
    ]
    kept: list[str] = []
    for line in lines:
        limit -= len(line) + 1
        if limit < 0:
            break
        kept.append(line)
    return "\n".join(["More agents for delegate:", *kept]) if kept else ""


def _of_project(view: FileView) -> Iterator[tuple[str, Place, bytes]]:
    for path in skill_folders.project_entries(view, PROJECT_FOLDER):
        if path.endswith(".md"):
            data = skill_folders.project_file(view, path)
            if data is not None:
                yield path, "project", data


def _profile(path: str, place: Place, data: bytes, trust: Trust) -> Profile | AgentProblem:
    if len(data) > MAX_BYTES:
        return AgentProblem(path, f"it has more than {MAX_BYTES >> 10} KiB.")
    try:
        document = parse(data.decode("utf-8"), _KEYS)
    except UnicodeDecodeError:
        return AgentProblem(path, "it is not UTF-8.")
    except FrontMatterError as error:
        return AgentProblem(path, f"its head cannot be read, {error}")
    name = document.one("name").strip() or PurePath(path).stem.lower()
    description, limit = one_line(document.one("description"), 200), document.one("max_iterations")
    if not _NAME.fullmatch(name):
        return AgentProblem(path, "its name must be small letters, digits and dashes.")
    if not description or not document.body.strip():
        return AgentProblem(path, "it needs a description in its head and a text after it.")
    if limit and not 1 <= (whole_number(limit) or 0) <= MOST_ITERATIONS:
        return AgentProblem(path, f"max_iterations must be a number from 1 to {MOST_ITERATIONS}.")
    tools, digest = document.many("tools"), digest_of({"agent": data})
    return Profile(
        name,
        description,
        visible(document.body).strip(),
        place,
        # An agent that names no tools only reads; those that it names are what it may use at most.
        not tools,
        tools,
        # A file of the workspace must not choose where code is sent, and at what price.
        one_line(document.one("model"), 100) if place == "user" else "",
        whole_number(limit),
        digest,
        place == "user" or trust.covers(digest),
    )
