"""Checks a command's arguments against its declaration (one JSON object, known keys, right types), and converts them to
a request of the session layer: ranges, diagnostics, names of files and hunks.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from codeagent_lsp.config import MOST_ATTEMPTS
from codeagent_lsp.errors import AgentError, SessionError, UsageError
from codeagent_lsp.index.enclosing import enclosing_symbol
from codeagent_lsp.messages import MOST_IMAGE, MOST_IMAGES, Image
from codeagent_lsp.protocol import Argument, Command
from codeagent_lsp.session.request import Planning, RunKind, RunRequest, Target, short_title, write_mention
from codeagent_lsp.texts import text
from codeagent_lsp.tools.plan.plan import StepEdit
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.numbers import whole_number
from codeagent_lsp.workspace.text.position import LineIndex, offset_at

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.server.documents import Documents
    from codeagent_lsp.session.run import Run
    from codeagent_lsp.workspace.changes.reviewed import ChosenHunks
    from codeagent_lsp.workspace.files.file_view import FileView

_ARGS: Mapping[RunKind, tuple[str, ...]] = {"skills.install": ("name", "location", "branch"), "trust": ("what", "name")}
ATTACHMENT = "{uri, range?} | {data, name?}"
PLANNING: Mapping[str, Planning] = {"direct": "never", "plan": "always"}
Arguments = Mapping[str, Any]
"""The checked arguments of a command, by name."""

Table = dict[str, Callable[[Arguments], Any]]
"""Handlers of commands by name: each returns the answer, or a coroutine that returns it."""

Later = Callable[[Awaitable[Any]], None]
"""A function that runs work after the answer has been sent; its errors are shown to the user."""

_CHECKS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "uri": lambda value: isinstance(value, str) and bool(value),
    # True is an int.
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "range": lambda value: is_range(value),
    "any": lambda value: True,
}


def run_request(
    kind: RunKind,
    arguments: Mapping[str, Any],
    documents: Documents,
    view: FileView,
    language: str,
    hide: Callable[[str], str] = str,
) -> RunRequest:
    """Return the request for a command that starts a run; `hide` masks secrets in its title. UsageError when its file
    cannot be read or its text in the editor is not known, for a task without words, pictures that cannot be used, and a
    wrong number of attempts.
    """
    given = (arguments.get(key) for key in ("task", "question", "instruction", "source"))
    own = str(next(filter(None, given), "")).strip()
    words = "\n\n".join(filter(None, (own, attachment_mentions(arguments, view))))
    images = _pictures(arguments)
    if kind == "edit" and images:
        raise UsageError("attachments.no_edit")
    target = _target(arguments, documents, view)
    if kind == "run" and not words and not images:
        raise UsageError("task.empty")
    name = title(kind, short_title(words, hide), target, language)
    names = _ARGS.get(kind, ())
    args = tuple(map(str, arguments.get("args", [arguments.get(name, "") for name in names])))
    planning = PLANNING.get(str(arguments.get("mode", "")))
    attempts = arguments.get("attempts", 1)
    if not 1 <= attempts <= MOST_ATTEMPTS:
        raise UsageError("command.kind", command="codeagent.run", name="attempts", kind=f"1 … {MOST_ATTEMPTS}")
    return RunRequest(
        kind,
        words,
        name,
        target,
        _diagnostics(arguments),
        args,
        planning,
        attempts=attempts,
        wordless=not own,
        images=images,
        until_proven=arguments.get("untilProven", False),
    )


def title(kind: RunKind, short: str, target: Target | None, language: str) -> str:
    """Return the title of a run for the user, one line: `label: subject`, the label of its kind, and `short` or the
    file's name; for `run` `short` alone.
    """
    if kind == "run":
        return short
    name = kind.replace(".", "_").lower()
    label = text(f"title.{name}", language)
    subject = short or (PurePath(target.file.path).name if target is not None else "")
    return f"{label}: {subject}" if subject else label


def chosen_hunks(arguments: Mapping[str, Any], view: FileView) -> ChosenHunks | None:
    """Convert hunks `path#id`, as the review names them, to ids by absolute path, and `path#number` (1-based, in the
    order of the review) to 0-based numbers. None when there is no such argument; UsageError for a malformed one.
    """
    if "hunks" not in arguments:
        return None
    chosen: dict[str, set[int | str]] = {}
    for name in arguments["hunks"]:
        path, _, hunk = str(name).rpartition("#")
        # Ids are hexadecimal; one of digits alone is a number, which counts from 1.
        if not path or not re.fullmatch(r"[0-9a-f]+", hunk) or not hunk.strip("0"):
            raise UsageError("command.kind", command="codeagent.apply", name="hunks", kind="path#id")
        number = whole_number(hunk)
        chosen.setdefault(_path(path, view), set()).add(hunk if number is None else number - 1)
    return {path: frozenset(hunks) for path, hunks in chosen.items()}


def chosen_files(arguments: Mapping[str, Any], view: FileView) -> frozenset[str] | None:
    """Convert file names or URIs to absolute paths. None when there is no such argument `files`; PathRefused for one
    outside of the workspace, UsageError for a URI that is no file.
    """
    if "files" not in arguments:
        return None
    return frozenset(_path(str(name), view) for name in arguments["files"])


def step_edits(steps: Sequence[Any]) -> list[StepEdit]:
    """Return the steps of a plan as the user wants them, from a command's argument. UsageError for one that is not
    `{stepId?, title, description?}`.
    """
    edits = []
    for item in steps:
        given = item if isinstance(item, Mapping) else {}
        edit = StepEdit(given.get("stepId") or "", given.get("title", None), given.get("description"))
        if not all(isinstance(word, str) for word in (edit.step_id, edit.title, edit.description or "")):
            raise UsageError(
                "command.kind", command="codeagent.plan.edit", name="steps", kind="{stepId?, title, description?}"
            )
        edits.append(edit)
    return edits


def _path(name: str, view: FileView) -> str:
    try:
        return view.roots.resolve(name)
    except AgentError as error:
        raise UsageError("command.not_open", uri=name) from error


def attachment_mentions(arguments: Mapping[str, Any], view: FileView) -> str:
    """Return the attached places as mentions (`@path#L3-L9`), joined by blanks, with lines counted from 1; '' for none,
    pictures are left out. UsageError for one that is malformed or not in the workspace.
    """
    found = []
    for item in arguments.get("attachments", ()):
        if isinstance(item, Mapping) and "data" in item:
            continue
        uri = item.get("uri") if isinstance(item, Mapping) else None
        if not isinstance(uri, str) or not (item.get("range") is None or is_range(item["range"])):
            raise UsageError("command.kind", command="codeagent.run", name="attachments", kind=ATTACHMENT)
        path = _path(uris.to_path(uri) or uri, view)
        found.append(write_mention(view.roots.relative(path), _lines(item.get("range"))))
    return " ".join(found)


def check_arguments(command: Command, arguments: list[Any]) -> dict[str, Any]:
    """Return the one argument of a command, a JSON object, {} for none; members that are null count as missing.
    UsageError for an unknown or missing member or a wrong type, which it names.
    """
    if len(arguments) > 1 or (arguments and not isinstance(arguments[0], Mapping)):
        raise UsageError("command.arguments", command=command.name)
    # Lua and Emacs Lisp clients send null for what they leave out.
    given = {key: value for key, value in (arguments[0] if arguments else {}).items() if value is not None}
    known = {argument.name: argument for argument in command.arguments}
    for name in given:
        if name not in known:
            raise UsageError("command.unknown_key", command=command.name, name=name, known=", ".join(known) or "-")
    for name, argument in known.items():
        if name in given:
            _check(command, argument, given[name])
        elif argument.required:
            raise UsageError("command.missing", command=command.name, name=name)
    return given


def is_range(value: Any) -> bool:
    """Return whether a JSON value has the shape of an LSP `Range`, whatever text it is for."""
    return isinstance(value, Mapping) and all(_is_position(value.get(end)) for end in ("start", "end"))


# Finds runs of the workspace by their ids, also those whose session is not loaded, as lists of runs name them.


async def recorded_run(backend: Backend, run_id: str) -> Run:
    """Return a run by its id; its session is loaded if necessary, without becoming the current one. SessionError if
    there is none, or another process works with its session.
    """
    try:
        return backend.manager.runs.get(run_id)
    except SessionError:
        await load_session_of(backend, run_id)
        return backend.manager.runs.get(run_id)


async def load_session_of(backend: Backend, run_id: str) -> None:
    """Load the session of a run, or of a task that waits to be one, if it is recorded and not loaded. SessionError if
    another process works with it.
    """
    await backend.ready()  # what is done with it is stored
    session_id = await asyncio.to_thread(backend.kept.history.session_of, run_id)
    if session_id is not None:
        backend.manager.resume(session_id, enter=False)


def _pictures(arguments: Mapping[str, Any]) -> tuple[Image, ...]:
    """Return the attached pictures. UsageError for one that is none, or too large, and for too many."""
    given = [item for item in arguments.get("attachments", ()) if isinstance(item, Mapping) and "data" in item]
    if len(given) > MOST_IMAGES:
        raise UsageError("attachments.many", most=MOST_IMAGES)
    return tuple(map(_picture, given))


def _picture(item: Mapping[str, Any]) -> Image:
    data, name = item["data"], str(item.get("name") or "-")
    if not isinstance(data, str):
        raise UsageError("command.kind", command="codeagent.run", name="attachments", kind=ATTACHMENT)
    if len(data) > MOST_IMAGE * 4 // 3 + 4:
        raise UsageError("attachments.large", name=name, most=MOST_IMAGE // 1024**2)
    try:
        found = Image.of(b64decode(data, validate=True))
    except ValueError:
        found = None
    if found is None:
        raise UsageError("attachments.no_picture", name=name)
    return found


def _lines(span: Any) -> tuple[int, int] | None:
    """Return the first and last line of a range, 1-based; the line on which it ends at the very beginning is out."""
    if span is None:
        return None
    # Some clients send a selection that was made backwards as it is.
    first, last = sorted((span[name]["line"], span[name]["character"]) for name in ("start", "end"))
    # Editors select whole lines up to the beginning of the next.
    return first[0] + 1, max(first[0], last[0] - (last[1] == 0)) + 1


def _target(arguments: Mapping[str, Any], documents: Documents, view: FileView) -> Target | None:
    uri = arguments.get("uri")
    if uri is None:
        return None
    if uris.is_nameless(uri):  # the editor could not be told what to change
        raise UsageError("command.no_name")
    path = uris.to_path(uri)
    where = path if path is not None else uri
    if not documents.in_step(uri):
        raise UsageError("editor.out_of_step", file=where)
    try:
        if path is not None:
            where = view.roots.resolve(path)
        file = view.read(where)
    except AgentError as error:
        raise UsageError("command.not_open", uri=uri) from error
    whole = file.text
    start, end = _offsets(arguments.get("range"), whole, documents)
    # A cursor without a selection means the definition around it.
    if start == end and "range" in arguments:
        start, end = enclosing_symbol(where, whole, start) or _line_at(whole, start)
    return Target(file, start, end)


def _offsets(span: Any, whole: str, documents: Documents) -> tuple[int, int]:
    if span is None:
        return 0, len(whole)
    index = LineIndex.of(whole)
    ends = [(span[name]["line"], span[name]["character"]) for name in ("start", "end")]
    first, last = (offset_at(whole, index, end, documents.encoding) for end in ends)
    return min(first, last), max(first, last)


def _line_at(whole: str, offset: int) -> tuple[int, int]:
    index = LineIndex.of(whole)
    line = index.line_at(offset)
    end = index.starts[line + 1] if line + 1 < len(index) else len(whole)
    return index.starts[line], end


def _diagnostics(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    found = []
    for item in arguments.get("diagnostics", ()):
        if isinstance(item, Mapping) and item.get("message"):
            # Ours have `line`; clients that pass a diagnostic of LSP have its range.
            line = item.get("line") or _line_of(item)
            found.append(f"line {line}: {item['message']}" if line else str(item["message"]))
        elif isinstance(item, str):
            found.append(item)
    return tuple(found)


def _line_of(item: Mapping[str, Any]) -> int | None:
    try:
        return int(item["range"]["start"]["line"]) + 1
    except (KeyError, TypeError, ValueError):
        return None


def _check(command: Command, argument: Argument, value: Any) -> None:
    if not _CHECKS[argument.kind](value):
        raise UsageError("command.kind", command=command.name, name=argument.name, kind=argument.kind)
    if argument.choices and value not in argument.choices:
        raise UsageError("command.kind", command=command.name, name=argument.name, kind=" | ".join(argument.choices))


def _is_position(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(value.get(name), int) and not isinstance(value.get(name), bool) and value[name] >= 0
        for name in ("line", "character")
    )
