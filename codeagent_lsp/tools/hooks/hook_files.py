"""The files that define hooks: read, checked, and run only once the user trusts them as they are, by their digest.

A file has the shape of `.claude/settings.json`: `{"hooks": {"PostToolUse": [{"matcher": "edit_file", "hooks":
[{"type": "command", "command": "…", "timeout": 60}]}]}}`. Those of the workspace are read as the user has them, never
with text that the agent has staged. Not here: running (`hooks.py`).
"""

# ruff: noqa: PTH118 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

from codeagent_lsp.shadow.shell import Isolation, Shell
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.hooks.hook_scripts import ScriptFinder
from codeagent_lsp.tools.skills import skill_folders
from codeagent_lsp.tools.skills.skill_library import digest_of
from codeagent_lsp.tools.skills.trust import Brings, Trust, WorkspaceItem, ask_trust
from codeagent_lsp.workspace.files.file_view import FileView

HookEvent = Literal["SessionStart", "PreToolUse", "PostToolUse", "UserPromptSubmit", "PreProposal", "RunEnd"]
SessionSource = Literal["startup", "resume"]
"""How a session begins: as a new one, or with the conversation of an earlier one."""

PROJECT_FILES = (".codeagent/hooks.json", ".claude/settings.json", ".claude/settings.local.json")
MAX_BYTES = 256 * 1024
MOST_HOOKS = 50
DEFAULT_SECONDS = 60.0
MOST_SECONDS = 600.0

_OTHER_NAMES: Mapping[str, HookEvent] = {"Stop": "PreProposal"}
_MATCHER = re.compile(r"[\w.:*-]*")
_CONDITION = re.compile(r"\s*([\w.:*-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_WRITING = ("Edit", "MultiEdit", "Write", "edit_file", "write_file")
_FOREIGN_FOLDER = ".claude"

CONFINED = Isolation("overlay", confined=True, offline=True, hidden=True)
"""How hooks are kept from everything else wherever they run at all."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One command for one event. `tools` are the names of the tools it is for, with `*`; () for all. At the beginning
    of a session they are the ways in which it begins. `seconds` is its time limit; `only` is the condition under which
    it runs, of the form `Bash(git *)`.
    """

    event: HookEvent
    command: str
    tools: tuple[str, ...] = ()
    seconds: float = DEFAULT_SECONDS
    only: str = ""

    def is_for(self, names: Sequence[str]) -> bool:
        """Return whether it is for a tool that has one of these names, or begins a session in one of these ways; True
        for any if it names none. Its names are globs, case-sensitive.
        """
        return not self.tools or any(fnmatchcase(name, tool) for tool in self.tools for name in names)

    def is_met(self, names: Sequence[str], subjects: Sequence[str], command: str = "") -> bool:
        """Return whether its condition holds for a call of a tool with these names. `subjects` are the call's paths, as
        written and resolved; `command` is its command line, read as the permissions read it. If these are not known
        before the call, the condition holds, since a guard should rather run too often.
        """
        match = _CONDITION.fullmatch(self.only)
        if match is None or not names:
            return True
        if any(name in _WRITING for name in names):
            names = (*names, *_WRITING)  # what one tool must not write, no other may
        if not any(fnmatchcase(name, match[1]) for name in names):
            return False
        patterns = _patterns(match[2] or "*")
        if not subjects or any(fnmatchcase(subject, each) for subject in subjects for each in patterns):
            return True
        if not command:
            return False
        from codeagent_lsp.tools.permissions.shell_policy import may_be_covered  # late: only commands need a parser

        return may_be_covered(patterns, command)


@dataclass(frozen=True, slots=True)
class HookFile:
    """The hooks of one file, an absolute path. `digest` covers them and the files of the workspace that they run;
    `left_out` says what in it was not understood. `foreign` says that its commands expect the names of another program,
    `stops` that no hooks of foreign files may run.
    """

    path: str
    hooks: tuple[Hook, ...]
    digest: str = ""
    left_out: tuple[str, ...] = ()
    foreign: bool = False
    stops: bool = False

    def of(self, event: HookEvent, names: Sequence[str] = ()) -> tuple[Hook, ...]:
        """Return the hooks for an event, and for a tool, or the beginning of a session, with one of these names; () for
        names means any.
        """
        return tuple(hook for hook in self.hooks if hook.event == event and (not names or hook.is_for(names)))


class HookLibrary:
    """Reads the hooks from `own`, the user's files, and from a workspace, anew with each call. All methods block."""

    def __init__(self, own: Sequence[Path], trust: Trust) -> None:
        self.trust = trust
        self.refused: set[tuple[str, str]] = set()
        """What the user did not trust, by session and digest: who was asked once is not asked in every run."""
        self.begun: set[str] = set()
        """The sessions whose beginning, in this process, the hooks were told of."""
        self._own = tuple(own)
        self._finder = ScriptFinder()

    def files(self, view: FileView) -> tuple[HookFile, ...]:
        """Return the files that define hooks, or that have faults, the user's own first; () for none. Files that cannot
        be read are left out. A file of another program that switches hooks off does so for the files of that program:
        one of the user's for all, one of the workspace's for those there.
        """
        own = [_file(path, data, view, self._finder) for path, data in self._of_user()]
        project = [_file(path, data, view, self._finder) for path, data in _of_project(view)]
        # The switch of the other program: our own files are not for it to switch off.
        if any(file.stops for file in own):
            own, project = _not_foreign(own), _not_foreign(project)
        if any(file.stops for file in project):
            project = _not_foreign(project)
        return tuple(file for file in (*own, *project) if file.hooks or file.left_out)

    def _of_user(self) -> Iterator[tuple[str, bytes]]:
        for path in self._own:
            try:
                with path.open("rb") as file:
                    yield str(path), file.read(MAX_BYTES + 1)
            except OSError:
                continue


def _of_project(view: FileView) -> Iterator[tuple[str, bytes]]:
    for root in view.roots.folders:
        for name in PROJECT_FILES:
            path = os.path.join(root, name)
            data = skill_folders.project_file(view, path)
            if data is not None or os.path.lexists(path):  # behind a link out of the workspace
                yield path, data or b""


def _not_foreign(files: Sequence[HookFile]) -> list[HookFile]:
    return [file for file in files if not file.foreign]


def _file(path: str, data: bytes, view: FileView, finder: ScriptFinder) -> HookFile:
    foreign = os.path.basename(os.path.dirname(path)) == _FOREIGN_FOLDER  # noqa: PTH119, PTH120
    try:
        given = json.loads(data.decode("utf-8")) if len(data) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, Mapping):
        return HookFile(path, (), left_out=("the file: not a JSON object",), foreign=foreign)
    # A settings file of the other program need not have hooks; a file of ours is there for nothing else.
    hooks, left_out = _read(given.get("hooks", {} if foreign or "disableAllHooks" in given or not given else None))
    folder = view.roots.root_of(path) or next(iter(view.roots.folders), "/")
    commands = dict.fromkeys(hook.command for hook in hooks)
    # With the scripts: consent to `sh check.sh` is consent to what check.sh says now.
    named = {f"file:{name}": data for each in commands for name, data in finder.scripts_of(each, folder, view).items()}
    digest = digest_of({"hooks": repr(hooks).encode("utf-8", "surrogatepass"), **named}) if hooks else ""
    return HookFile(path, hooks, digest, left_out, foreign, stops=given.get("disableAllHooks") is True)


def _read(given: Any) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Return the hooks, and what is none that is known."""
    hooks: list[Hook] = []
    left_out: list[str] = []
    for name, group, item in _items(given):
        hook = _hook(_OTHER_NAMES.get(name, name), group, item)
        # Told, and not dropped in silence: a guard that does not run is one that the user counts on.
        if hook is None or len(hooks) == MOST_HOOKS:
            left_out.append(name)
        else:
            hooks.append(hook)
    return tuple(hooks), tuple(dict.fromkeys(left_out))


def _items(given: Any) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """Yield each hook with its event and its group; None for what stands where there should be one."""
    if not isinstance(given, Mapping) and given != []:
        yield "hooks", {}, None
    for name, groups in given.items() if isinstance(given, Mapping) else ():
        for group in groups if isinstance(groups, list) else (None,):
            inner = group.get("hooks") if isinstance(group, Mapping) else None
            for item in inner if isinstance(inner, list) else (None,):
                yield str(name)[:80], group if isinstance(group, Mapping) else {}, item


def _hook(event: str, group: Mapping[str, Any], item: Any) -> Hook | None:
    known = next((name for name in get_args(HookEvent) if name == event), None)
    if known is None or not isinstance(item, Mapping) or item.get("type", "command") != "command":
        return None
    command, seconds, tools = item.get("command"), item.get("timeout", DEFAULT_SECONDS), _tools(group.get("matcher"))
    only = item.get("if", "")
    if not isinstance(command, str) or not command.strip() or tools is None:
        return None
    if not isinstance(only, str) or (only and not _CONDITION.fullmatch(only)):
        return None
    if known == "SessionStart" and not Hook(known, command, tools).is_for(get_args(SessionSource)):
        return None  # for what else others call a beginning, such as a compaction
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        seconds = DEFAULT_SECONDS
    return Hook(known, command, tools, float(min(seconds, MOST_SECONDS)), only)


def _patterns(given: str) -> tuple[str, ...]:
    """Return the patterns that a condition means: `git *` is `git`, too, `src/**/*` any file in src, and a path may
    begin in any folder. Brackets are letters of names.
    """
    plain = given.replace(":*", "*").replace("[", "[[]").removeprefix("./").removeprefix("/")
    each = (plain, plain.replace("**/", ""), plain.removesuffix(" *"))
    return (*each, *(f"*/{pattern}" for pattern in each))


def _tools(matcher: Any) -> tuple[str, ...] | None:
    """Return the names in a matcher, such as `Edit|Write` or `mcp__files__.*`; None if it is a pattern of another kind,
    which would have to be run as one.
    """
    if matcher in (None, "", "*", ".*"):
        return ()
    if not isinstance(matcher, str):
        return None
    plain = matcher.strip().removeprefix("^").removesuffix("$")
    plain = plain[1:-1] if plain.startswith("(") and plain.endswith(")") else plain
    names = [name.strip().removeprefix("^").removesuffix("$") for name in plain.split("|")]
    if not all(map(_MATCHER.fullmatch, names)):
        return None
    return tuple(name.replace(".*", "*") for name in names if name)


class HookConsent:
    """The user's consent to the hooks of files, in one run; `brings` returns what else of the workspace needs trust."""

    def __init__(self, library: HookLibrary, session_id: str, brings: Brings = tuple) -> None:
        self._library = library
        self._session_id = session_id
        self._brings = brings
        self._asking = asyncio.Lock()
        self._answers: dict[str, bool] = {}

    def copy(self) -> HookConsent:
        """Return a copy for another run, with the answers until now; later answers there do not come back here."""
        made = HookConsent(self._library, self._session_id, self._brings)
        made._answers.update(self._answers)
        return made

    def decided(self, file: HookFile, shell: Shell) -> bool:
        """Return whether the user has already answered in this run whether these hooks, with this content, may run."""
        return _digest(file, shell.isolation) in self._answers

    def given(self, file: HookFile, shell: Shell) -> bool:
        """Return whether the user trusts the hooks of a file as they are; False also if nobody was asked yet
        (`decided`).
        """
        return self._answers.get(_digest(file, shell.isolation), False)

    async def ask(self, context: ToolContext, file: HookFile, shell: Shell) -> None:
        """Make sure that the hooks of a file, as they are, are decided: ask the user, at most once in a run, unless
        they trust them already. After a refusal in this session there is only a notice.
        """
        digest, name = _digest(file, shell.isolation), context.view.roots.relative(file.path)
        async with self._asking:
            if digest in self._answers:
                return
            if (self._session_id, digest) in self._library.refused and not self._library.trust.covers(digest):
                context.note(context.words("hooks.refused_before", path=name))
                self._answers[digest] = False
                return
            item = WorkspaceItem("hooks", name, name, digest, _hooks_line(file), _hooks_line(file))
            answer = await ask_trust(self._library.trust, item, context.asker, context.words, self._brings)
            self._answers[digest] = bool(answer)
            if answer is False:
                self._library.refused.add((self._session_id, digest))


def hook_items(library: HookLibrary, view: FileView) -> Iterator[WorkspaceItem]:
    """Yield the files of the workspace that define hooks, trusted or not, as items for the question whether they are
    trusted. Blocks.
    """
    for file in library.files(view):
        if file.hooks and view.roots.root_of(file.path) is not None:
            name = view.roots.relative(file.path)
            yield WorkspaceItem("hooks", name, name, _digest(file, CONFINED), _hooks_line(file), _hooks_line(file))


def _digest(file: HookFile, isolation: Isolation) -> str:
    """Return what the user's trust is bound to: the hooks, and how they are kept from everything else."""
    kept = f"{file.path} {file.digest} {isolation.confined} {isolation.offline} {isolation.hidden}"
    return hashlib.sha256(kept.encode("utf-8", "surrogatepass")).hexdigest()


def _hooks_line(file: HookFile) -> str:
    """Return the hooks for the question whether they are trusted."""
    return "; ".join(
        f"{' '.join(filter(None, (hook.event, '|'.join(hook.tools), hook.only)))}: {hook.command}"
        for hook in file.hooks
    )
