"""Commands that users write: Markdown files whose text is a task, called as `/name arguments`; and the menu of them for
code actions and completion, answered from memory and read again in the background.

The user's own folders come first, then `.codeagent/commands` and `.claude/commands` of the workspace, whose files are
untrusted: the user is asked before one is used, and again when it has changed. A file says what is to be done and
grants nothing: heads that name allowed tools change no rule, and nothing in it is run.

Not here: the run that it begins.
"""

# ruff: noqa: PTH118 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import asyncio
import os
import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import UsageError
from codeagent_lsp.tools.skills import skill_folders
from codeagent_lsp.tools.skills.skill_folders import FrontMatterError, parse
from codeagent_lsp.tools.skills.skill_library import digest_of
from codeagent_lsp.tools.skills.trust import Trust, WorkspaceItem
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.visible import one_line, visible

PROJECT_FOLDERS = (".codeagent/commands", ".claude/commands")
MAX_BYTES = 64 * 1024
MOST_ARGUMENTS = 20_000

_KEYS = ("description", "argument-hint")
_NAME = re.compile(r"[^\W_](?:[\w.-]{0,62}[^\W_])?")
# `/review`, `/db:migrate users`: a letter or digit first, so that `//` and `/-` call nothing.
_CALL = re.compile(r"\s*/([^\W_][\w.:-]{0,126})(?:\s+|$)")
# `"two words"`, `'two words'` or `word`; a quote that does not end at a blank is a part of the word (`it's`).
_ARGUMENT = re.compile(r""""([^"]*)"(?!\S)|'([^']*)'(?!\S)|(\S+)""")
# `\$`, `$ARGUMENTS` and `$1`, but not `$ARGUMENTS_X` or `$10`.
_PLACEHOLDER = re.compile(r"\\(\$)|\$(?:(ARGUMENTS)(?![A-Za-z0-9_])|([1-9])(?![0-9]))")
FRESH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class CustomCommand:
    """A command that a user wrote as a file at `path`. `hint` shows its arguments, `body` is the text of the task;
    `digest` is a hash of the file; `approved` is False for one of the workspace that the user does not trust yet.
    """

    name: str
    description: str
    hint: str
    body: str
    path: str
    digest: str = ""
    approved: bool = True


@dataclass(frozen=True, slots=True)
class Called:
    """A command with the arguments of one call; `cut` says that these were longer than 20,000 characters and are not
    complete.
    """

    command: CustomCommand
    arguments: str
    cut: bool = False

    @property
    def task(self) -> str:
        """The text of the command's file, with the user's arguments in it."""
        return expand_arguments(self.command.body, self.arguments)


class CommandLibrary:
    """Reads the users' own commands from `own`, the user's folders, and from a workspace. Files are read again at each
    call; all methods block.
    """

    def __init__(self, own: Sequence[Path], trust: Trust) -> None:
        self.trust = trust
        self._own = tuple(own)

    def commands(self, view: FileView) -> tuple[CustomCommand, ...]:
        """Return all commands, sorted by name; the first of a name wins, the user's own before the workspace's. Files
        that define none or cannot be read are left out. Blocks.
        """
        found: dict[str, CustomCommand] = {}
        for name, path, data, own in self._files(view):
            made = _command(name, path, data)
            if isinstance(made, CustomCommand) and name not in found:
                approved = own or self.trust.covers(made.digest)
                # Its name alone: a description is text of the workspace that would stand in the user's list.
                found[name] = made if approved else _without_approval(made)
        return tuple(found[name] for name in sorted(found))

    def items(self, view: FileView) -> Iterator[WorkspaceItem]:
        """Yield the commands of the workspace, trusted or not, as items for the question whether they are trusted; none
        for the user's own. Blocks.
        """
        for command in self.commands(view):
            if not command.approved or self.trust.covers(command.digest):
                yield item_of(command, view)

    def called(self, view: FileView, words: str) -> Called | None:
        """Return the command that these words (`/name arguments`) call, with its arguments, cut at 20,000 characters;
        None if they call none that exists. UsageError if its file does not define one. Blocks.
        """
        match = _CALL.match(words)
        if match is None:
            return None
        command = find_command(self.commands(view), match[1])
        if command is None:
            self._refuse(view, match[1])
            return None
        arguments = words[match.end() :].strip()
        return Called(command, arguments[:MOST_ARGUMENTS], cut=len(arguments) > MOST_ARGUMENTS)

    def _refuse(self, view: FileView, called: str) -> None:
        for name, path, data, _ in self._files(view):
            # A file of that name that is broken is told; without one the words are an ordinary task.
            if called in (name, name.rpartition(":")[2]) and isinstance(why := _command(name, path, data), str):
                raise UsageError(why, path=view.roots.relative(path), most=MAX_BYTES // 1024)

    def _files(self, view: FileView) -> Iterator[tuple[str, str, bytes, bool]]:
        """Yield the name of the command, the path, the content, and whether the file is the user's own."""
        yield from self._of_user()
        yield from _of_project(view)

    def _of_user(self) -> Iterator[tuple[str, str, bytes, bool]]:
        for folder in self._own:
            try:
                paths = sorted((*folder.glob("*.md"), *folder.glob("*/*.md")))[: skill_folders.MAX_ENTRIES]
            except OSError:
                continue
            for path in paths:
                try:
                    with path.open("rb") as file:
                        yield _command_name(path.relative_to(folder)), str(path), file.read(MAX_BYTES + 1), True
                except OSError:
                    continue


def item_of(command: CustomCommand, view: FileView) -> WorkspaceItem:
    """Return a command of the workspace as an item for the question whether it is trusted; its detail is the whole text
    of its task.
    """
    path = view.roots.relative(command.path)
    return WorkspaceItem("commands", command.name, path, command.digest, command.description, command.body)


def called_name(words: str) -> str:
    """Return the name of the command that these words would call (`name` of `/name arguments`), whether it exists or
    not; '' if they do not begin so.
    """
    match = _CALL.match(words)
    return "" if match is None else match[1]


def find_command(commands: Sequence[CustomCommand], name: str) -> CustomCommand | None:
    """Return the command with this name, or the only one with it in a subfolder (`folder:name`); None if there is none,
    or several in subfolders.
    """
    short = [item for item in commands if item.name.rpartition(":")[2] == name]
    return next((item for item in commands if item.name == name), short[0] if len(short) == 1 else None)


def expand_arguments(body: str, arguments: str) -> str:
    r"""Return a command's text with `$ARGUMENTS` and `$1` to `$9` replaced, and `\$` as `$`; `$3` without a third
    argument becomes ''; arguments without a place are appended after a blank line. Quotes hold an argument together;
    nothing else is read as in a shell.
    """
    parts = list(_ARGUMENT.finditer(arguments))
    used: set[int] = set()

    def put(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        if match[2]:
            used.update(range(len(parts)))
            return arguments
        index = int(match[3]) - 1
        if index >= len(parts):
            return ""
        used.add(index)
        return next(filter(None, parts[index].groups()), "")

    # One pass: what the user writes for `$1` may itself contain `$2`.
    text = _PLACEHOLDER.sub(put, body).strip()
    left, at = "", 0
    for part in (parts[index] for index in sorted(used)):  # what stands between them stays as it was written
        left, at = left + arguments[at : part.start()], part.end()
    return f"{text}\n\n{(left + arguments[at:]).strip()}".strip()


class CommandMenu:
    """The names and descriptions of all commands for menus, read in the background, so that they may be some seconds
    old. Belongs to one event loop, until `close`.
    """

    def __init__(self, library: CommandLibrary, view: Callable[[], FileView]) -> None:
        self._library = library
        self._view = view
        self._known: tuple[tuple[str, str], ...] = ()
        self._read = 0.0
        self._tasks = BackgroundTasks()

    def offered(self) -> tuple[tuple[str, str], ...]:
        """Return (name, description) of all commands as last read, () before the first time; they are read again in the
        background if that was more than 5 s ago.
        """
        # The answer is that of before: a code action must not wait for files.
        if time.monotonic() - self._read > FRESH_SECONDS and not len(self._tasks):
            self._tasks.start(self._refresh())
        return self._known

    def close(self) -> None:
        """Cancel a reading in the background; the commands as last read stay."""
        self._tasks.cancel()

    async def _refresh(self) -> None:
        self._read = time.monotonic()
        found: tuple[CustomCommand, ...] = await asyncio.to_thread(self._library.commands, self._view())
        self._known = tuple((item.name, item.description) for item in found)


def _of_project(view: FileView) -> Iterator[tuple[str, str, bytes, bool]]:
    for folder in PROJECT_FOLDERS:
        for entry in skill_folders.project_entries(view, folder):
            for inside, path in _files(view, entry):
                data = skill_folders.project_file(view, path)
                if data is not None:
                    yield _command_name(PurePath(inside)), path, data, False


def _files(view: FileView, entry: str) -> Iterator[tuple[str, str]]:
    """Yield a file, or the files of a folder, with the name inside of the commands' folder."""
    name = os.path.basename(entry)  # noqa: PTH119
    if entry.endswith(".md"):
        yield name, entry
    elif view.roots.kind(entry) == "folder":
        inside = islice(view.roots.scan(entry), skill_folders.MAX_ENTRIES)
        inner = [child.name for child in inside if child.name.endswith(".md")]
        yield from ((f"{name}/{child}", os.path.join(entry, child)) for child in sorted(inner))


def _command_name(inside: PurePath) -> str:
    """Return the name of a command: folders before it, with a colon; letters with marks as they are typed."""
    return unicodedata.normalize("NFC", ":".join((*inside.parts[:-1], inside.stem)))


def _command(name: str, path: str, data: bytes) -> CustomCommand | str:
    """Return the command that a file defines, or why it defines none, as a key of the texts."""
    if not all(_NAME.fullmatch(part) for part in name.split(":")):
        return "commands.no_name"
    if len(data) > MAX_BYTES:
        return "commands.too_large"
    try:
        document = parse(data.decode("utf-8"), _KEYS)
    except UnicodeDecodeError:
        return "commands.no_text"
    except FrontMatterError:
        return "commands.no_head"
    body = visible(document.body).strip()
    if not body:
        return "commands.empty"
    description = one_line(document.one("description"), 200) or one_line(body, 80)
    hint = one_line(document.one("argument-hint"), 100)
    return CustomCommand(name, description, hint, body, path, digest_of({"command": data}))


def _without_approval(command: CustomCommand) -> CustomCommand:
    return CustomCommand(command.name, "", "", command.body, command.path, command.digest, approved=False)
