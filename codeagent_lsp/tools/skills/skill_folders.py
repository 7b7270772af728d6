"""Safe reading of folders with skills and agents (bounded, without following links, open buffers before the disk), and
of the front matter of their files: the head of a Markdown file between two lines of `---`, as names with texts or
lists.

There are two kinds: folders of the workspace, which are untrusted and read through the file view, and folders of the
user, which are read from the disk. The head is YAML, read by PyYAML (a late import) without types: every value is a
text. What YAML does not allow but people often write is accepted: a plain value with a colon in it, `[one] [two]`, a
value that begins with `@` or `**`. A nested value is left out, or an error that names the line where its key is asked
for. Not here: what the files mean (`skill_library.py`).
"""

# ruff: noqa: PTH118 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from codeagent_lsp.errors import AgentError
from codeagent_lsp.workspace.files.file_view import FileView

MAX_FILES = 100
MAX_BYTES = 2 << 20
MAX_ENTRIES = 200
MAX_DEPTH = 6
Value = str | tuple[str, ...]

MAX_LINES = 400
MAX_HEAD = 16 * 1024
"""Most characters of a head. Its parser is slow, and every run reads the heads of all skills."""
MAX_NESTING = 20

_PAIR = re.compile(r"([A-Za-z_][\w-]*):[ \t]+(\S.*)$")
# `description: Use it when: always` is no YAML, since the value has a colon.
_PLAIN = re.compile(r"[^\s\"'\[\]{}|>&*!%@`#-].*(?::(?:\s|$)|\t)")
_ODD = re.compile(r"\[[^\[\]]*\][ \t]*[^\s#,]|\"[^\"]*\"[ \t]+[^\s#]|'[^']*'[ \t]+[^\s#]|[@`]|\*\W")
"""The beginnings of values that are no YAML, and that nobody means as such."""


_OPENING = re.compile(r"[\[{]|^\s+|[-?:]\s", re.MULTILINE)
"""What may begin something nested."""
_RUN = re.compile(rf"(?:[\[{{][\s'\"]*){{{MAX_NESTING + 1}}}")


class TooMuch(ValueError):
    """Raised for a folder with too many files, or with a link; the message is one English sentence."""


def project_entries(view: FileView, inner: str) -> Iterator[str]:
    """Yield the absolute paths of the entries in `inner` (such as `.codeagent/skills`) of each workspace folder,
    sorted, at most 200 of each; hidden ones are left out. Blocks.
    """
    for root in view.roots.folders:
        names = (name for name in _names(view, os.path.join(root, inner)) if not name.startswith("."))
        for name in sorted(names)[:MAX_ENTRIES]:
            yield os.path.join(root, inner, name)


def project_file(view: FileView, path: str) -> bytes | None:
    """Return the user's version of a file (absolute path), not a staged one, as bytes; None if there is no such file or
    it may not be read. Blocks.
    """
    try:
        found = view.base(path)
    except AgentError:
        return _raw(view, path)
    return None if found is None else found.text.encode("utf-8", "surrogatepass")


def project_tree(view: FileView, folder: str) -> dict[str, bytes]:
    """Return every file below a folder of the workspace, also ignored ones, by its name relative to it. TooMuch above
    100 files, 2 MiB or 6 levels, and for a link. Blocks.
    """
    found: dict[str, bytes] = {}
    pending = [("", folder)]
    while pending:
        above, path = pending.pop()
        for name in _names(view, path):
            inner, place = f"{above}{name}", os.path.join(path, name)
            if view.roots.kind(place) == "link":
                raise TooMuch(f"{inner} is a link.")
            if view.roots.kind(place) == "folder":
                if inner.count("/") + 1 >= MAX_DEPTH:
                    raise TooMuch(f"it is more than {MAX_DEPTH} folders deep.")
                pending.append((f"{inner}/", place))
                continue
            data = project_file(view, place)
            if data is None:
                raise TooMuch(f"{inner} cannot be read.")
            found[inner] = data
            _check(found)
    return found


def user_tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder of the user, `.git` left out, by its name relative to it. TooMuch above 100
    files, 2 MiB or 6 levels, and for a link; OSError if one cannot be read. Blocks.
    """
    found: dict[str, bytes] = {}
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        inside = Path(above).relative_to(folder)
        if len(inside.parts) >= MAX_DEPTH and folders:
            raise TooMuch(f"it is more than {MAX_DEPTH} folders deep.")
        for name in sorted((*names, *(each for each in folders if (Path(above) / each).is_symlink()))):
            path = Path(above) / name
            if path.is_symlink() or not path.is_file():
                raise TooMuch(f"{(inside / name).as_posix()} is a link or no plain file.")
            with path.open("rb") as file:
                found[(inside / name).as_posix()] = file.read(MAX_BYTES + 1)
            _check(found)
    return found


def user_folders(folder: Path) -> list[Path]:
    """Return the folders in `folder`, sorted, at most 200 and no hidden ones; [] if it cannot be read."""
    try:
        folders = (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        return sorted(folders)[:MAX_ENTRIES]
    except OSError:
        return []


class FrontMatterError(ValueError):
    """Raised for an invalid head of a file; `line` is the 1-based line of the fault."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line, self.problem = line, problem


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed Markdown file: the values of its head by name, and the text after it."""

    head: Mapping[str, Value]
    body: str

    def one(self, name: str) -> str:
        """Return a value as one text, a list joined by `, `; '' if it is missing."""
        value = self.head.get(name, "")
        return value if isinstance(value, str) else ", ".join(value)

    def many(self, name: str) -> tuple[str, ...]:
        """Return a value as a tuple; a single text is split at its commas, () if it is missing."""
        value = self.head.get(name, ())
        return value if isinstance(value, tuple) else tuple(filter(None, map(str.strip, value.split(","))))


def parse(source: str, names: Collection[str]) -> Document:
    """Return a Markdown file's head and body; without a head, between two lines `---` at the beginning, all is body.
    FrontMatterError if it is malformed, or if the value of one of the `names`, which are asked for, is nested.
    """
    lines = source.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return Document({}, source)
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise FrontMatterError(1, "the head begins with --- and never ends.")
    if end > MAX_LINES:
        raise FrontMatterError(1, f"the head has more than {MAX_LINES} lines.")
    if sum(map(len, lines[1:end])) > MAX_HEAD:
        raise FrontMatterError(1, f"the head has more than {MAX_HEAD:,} characters.")
    head = _head(tuple(lines[1:end]), frozenset(names))
    if isinstance(head, FrontMatterError):
        raise FrontMatterError(head.line, head.problem)
    return Document(head, "\n".join(lines[end + 1 :]).strip("\n") + "\n")


def _names(view: FileView, folder: str) -> set[str]:
    """Return the names in a folder: on the disk, and of open buffers without a file."""
    try:
        names = {child.name for child in view.roots.scan(folder)}
    except AgentError:
        names = set()
    prefix = folder + os.sep
    opened = (path for path in view.over_disk() if path.startswith(prefix))
    names |= {inner.partition(os.sep)[0] for path in opened if (inner := path[len(prefix) :]) and _has(view, path)}
    return names - {".git"}


def _has(view: FileView, path: str) -> bool:
    try:
        return view.base(path) is not None
    except AgentError:
        return True


def _raw(view: FileView, path: str) -> bytes | None:
    try:
        return view.roots.read_bytes(path, MAX_BYTES)
    except AgentError:
        return None


def _check(found: dict[str, bytes]) -> None:
    if len(found) > MAX_FILES:
        raise TooMuch(f"it holds more than {MAX_FILES} files.")
    if sum(map(len, found.values())) > MAX_BYTES:
        raise TooMuch(f"it holds more than {MAX_BYTES >> 20} MiB.")


@lru_cache(maxsize=MAX_ENTRIES)  # the parser is slow, and each run reads the heads of all skills several times
def _head(lines: Sequence[str], names: Collection[str]) -> Mapping[str, Value] | FrontMatterError:
    try:
        return MappingProxyType(_parsed_head(lines, names))
    except FrontMatterError as error:
        return error


def _parsed_head(lines: Sequence[str], names: Collection[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    node = _mapping(lines)
    for key, value in node.value if node is not None else ():
        # Marks count from 0, and the first line is the `---`.
        line = key.start_mark.line + 2
        if key.id != "scalar":
            raise FrontMatterError(line, "expected `name: value`.")
        if key.value in found:
            raise FrontMatterError(line, f"`{key.value}` stands here twice.")
        try:
            found[key.value] = _value(value)
        except FrontMatterError:
            if key.value in names:
                raise
    return found


def _mapping(lines: Sequence[str]) -> Any:
    """Return the head as a YAML node; None if it is empty."""
    from yaml import YAMLError  # late: only who reads skills and agents needs it

    try:
        node = _compose(lines)
    except YAMLError as error:
        try:
            node = _compose([_quote_value(line) for line in lines])
        except YAMLError:
            raise _problem(error) from error
    if node is not None and node.id != "mapping":
        raise FrontMatterError(node.start_mark.line + 2, "expected `name: value`.")
    return node


def _compose(lines: Sequence[str]) -> Any:
    import yaml  # late: only who reads skills and agents needs it

    text, depth = "\n".join(lines), 0
    # The time of the parser grows with the square of the depth, at the first bracket already.
    if (found := _RUN.search(text)) is not None:
        raise FrontMatterError(text.count("\n", 0, found.start()) + 2, "what is nested so deeply cannot be read.")
    for event in yaml.parse(text, Loader=yaml.BaseLoader) if len(_OPENING.findall(text)) > MAX_NESTING else ():
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_NESTING:
            raise FrontMatterError(
                event.start_mark.line + 2 if event.start_mark else 2, "what is nested so deeply cannot be read."
            )
    return yaml.compose(text, Loader=yaml.BaseLoader)


def _quote_value(line: str) -> str:
    """Return a line with its value in quotes if the value is no YAML as it is."""
    match = _PAIR.fullmatch(line.rstrip())
    if match is None or not (_PLAIN.match(match[2]) or _ODD.match(match[2])):
        return line
    value = re.split(r"\s#", match[2], maxsplit=1)[0].rstrip()
    return f"{match[1]}: {json.dumps(value, ensure_ascii=False)}"


def _problem(error: Exception) -> FrontMatterError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or "it has characters that cannot be read")
    return FrontMatterError(mark.line + 2 if mark is not None else 2, f"{problem}.")


def _value(node: Any) -> Value:
    if node.id == "sequence":
        return tuple(filter(None, map(_text, node.value)))
    return _text(node)


def _text(node: Any) -> str:
    if node.id != "scalar":
        raise FrontMatterError(node.start_mark.line + 2, "expected a text or a list, not something nested.")
    if node.style is None and node.value in ("~", "null"):
        return ""
    return str(node.value).strip("\n") if node.style in ("|", ">") else str(node.value)
