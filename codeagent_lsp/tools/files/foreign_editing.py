"""Tools of other agents whose calls are calls of the tools that change, move and delete files.

Their edits come as pairs of texts, as blocks of `SEARCH` and `REPLACE`, as lists of lines, and as patches, also in a
shell command. Not here: our tools (`edit_tools.py`, `patch_tools.py`), tools that read (`foreign_reading.py`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from codeagent_lsp.call_forms import (
    Agent,
    Condition,
    ForeignTool,
    Shape,
    blank,
    given_as,
    has,
    number,
    unpack_json,
    without,
)
from codeagent_lsp.errors import WrongArguments
from codeagent_lsp.tools.files.foreign_reading import editors

EDIT: Mapping[str, str] = MappingProxyType({"target_file": "path", "old_text": "old_str", "new_text": "new_str"})
"""The names of other agents for the parameters of one edit."""

WRITE: Mapping[str, str] = MappingProxyType(
    {
        "target_file": "path",
        "contents": "content",
        "file_text": "content",
        "code_content": "content",
    }
)
"""The names of other agents for the parameters of `write_file`."""

_OLD_TEXTS = ("old_string", "oldString", "old_text", "oldText")
# `<<<<<<< SEARCH` (Roo Code) and `------- SEARCH` (cline), with any number of signs from three.
_SEARCH = re.compile(r"^(?:(<{3,}) ?SEARCH>?|(-{3,}) ?SEARCH>?)[ \t]*\r?\n", re.MULTILINE)
_MIDDLE = re.compile(r"^={3,}[ \t]*\r?$\n?", re.MULTILINE)
# Roo Code writes a line of the text that looks like one of the marks with a backslash before it.
_MASKED = re.compile(
    r"^\\(?=(?:={3,}|(?:<|-){3,} ?SEARCH>?|(?:>|\+){3,} ?REPLACE<?|[<>]{7}(?: .*)?)[ \t]*\r?$)", re.MULTILINE
)
_REPLACE = re.compile(r"^(?:>{3,} ?REPLACE<?|\+{3,} ?REPLACE>?)[ \t]*\r?$", re.MULTILINE)
# `:start_line:12` and `-------` before the text.
_ROO_HEAD = re.compile(r"\A(?::(?:start|end)_line: ?\d+[ \t]*\r?\n)+(?:-{3,}[ \t]*\r?\n)?")
_PATCH_CALL = re.compile(r"\s*(?:cd\s+(?P<folder>\S+)\s*&&\s*)?(?:apply_?patch)\b", re.IGNORECASE)
_PATCH = re.compile(r"^\*\*\* Begin Patch[ \t]*$.*?^\*\*\* End Patch[ \t]*$", re.MULTILINE | re.DOTALL)
_PATCHED = re.compile(r"^(\*\*\* (?:(?:Add|Update|Delete) File|Move to): )(?!/)(.*)$", re.MULTILINE)


def every(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an edit with the number of replacements that it expects (`expected_replacements`,
    `allow_multiple`) as `replace_all`; unchanged without these.
    """
    expected, many = number(given.get("expected_replacements")), given.get("allow_multiple")
    given = without(given, "expected_replacements", "allow_multiple")
    if expected is None and many is None:
        return dict(given)
    count = {"expected_replacements": expected} if (expected or 1) > 1 else {}
    # What the call itself says about `replace_all` is behind it and wins.
    return {"replace_all": bool(count) or str(many).lower() == "true", **given, **count}


EVERY = Shape(
    "more than one of `expected_replacements`, or `allow_multiple`, is `replace_all`; there have to be so many", every
)


def _literal(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a search and its replacement as an edit of all places. WrongArguments for a pattern."""
    if any(str(given.get(name)).lower() == "true" for name in ("use_regex", "ignore_case")):
        raise WrongArguments("Only exact texts can be replaced here: give old_str as it stands in the file")
    # The range itself cannot be kept. As one replacement the text has to be unique in the file, so that no other place
    # can have been meant.
    part = given.get("start_line") is not None or given.get("end_line") is not None
    given = without(given, "use_regex", "ignore_case", "start_line", "end_line")
    return {"replace_all": not part, **given}


# One name of a tool can stand for an edit, a new file, or several edits; these conditions part the three, and no call
# may meet two of them.
_CREATES, _LISTS = blank(*_OLD_TEXTS), has("edits")
_COUNTED = Condition(
    "with `expected_replacements`",
    lambda given: "expected_replacements" in given and not (_CREATES.holds(given) or _LISTS.holds(given)),
)
_EDITS = Condition("with a text to replace", lambda given: not (_CREATES.holds(given) or _LISTS.holds(given)))

EDIT_FILE: tuple[ForeignTool, ...] = (
    ForeignTool("Edit", ("Claude Code",), when=_EDITS),
    ForeignTool("edit", ("opencode", "pi", "Roo Code"), when=_EDITS),
    ForeignTool("edit_file", ("Roo Code",), when=_COUNTED),
    ForeignTool("replace", ("Gemini CLI",), when=_EDITS),
    ForeignTool("search_replace", ("Cursor", "Roo Code"), when=_EDITS),
    ForeignTool("StrReplace", ("Cursor",)),
    ForeignTool("replace_string_in_file", ("Copilot",), when=_EDITS),
    ForeignTool(
        "search_and_replace", ("Roo Code",), {"search": "old_str", "replace": "new_str"}, has("search"),
        shapes=(Shape("all places, or the one in a range of lines", _literal),),
    ),
    ForeignTool("search_and_replace", ("Roo Code",), when=has("old_string")),
    ForeignTool("editor", ("cline",), when=has("old_text")),
    *editors("str_replace", new_str=""),
)  # fmt: skip


def _one_file(given: dict[str, Any]) -> dict[str, Any]:
    """Return the path and content of the only file of a list."""
    files = unpack_json(given.get("files"))
    return {**without(given, "files"), **files[0]}


def _file_count(given: Mapping[str, Any]) -> int:
    files = unpack_json(given.get("files"))
    return len(files) if isinstance(files, list) and all(isinstance(item, Mapping) for item in files) else 0


def _pairs(diff: Any) -> list[tuple[str, str]]:
    """Return the blocks of a diff of `SEARCH` and `REPLACE`, as pairs of the old and the new text; none if one of them
    is not whole, as the others would be made without it.
    """
    text = diff if isinstance(diff, str) else ""
    opened = list(_SEARCH.finditer(text))
    found: list[tuple[str, str]] = []
    ends = [*(mark.start() for mark in opened[1:]), len(text)]
    for mark, stop in zip(opened, ends, strict=False):  # an end more where there is no mark
        part = text[mark.end() : stop]
        end = _REPLACE.search(part)
        body = _ROO_HEAD.sub("", part[: end.start()] if end else "", count=1)
        # A line of signs may be the underline of a heading: the divider is as long as the mark.
        dividers = list(_MIDDLE.finditer(body))
        exact = [each for each in dividers if len(each[0].strip()) == len(mark[1] or mark[2])]
        middle = (exact or dividers)[0] if len(exact or dividers) == 1 else None
        if middle is None:
            return []
        found.append((_MASKED.sub("", body[: middle.start()]), _MASKED.sub("", body[middle.end() :])))
    return found


def _is_all_new(given: Mapping[str, Any]) -> bool:
    pairs = _pairs(given.get("diff"))
    return len(pairs) == 1 and not pairs[0][0].strip()


def _all_new(given: dict[str, Any]) -> dict[str, Any]:
    return {**without(given, "diff"), "content": _pairs(given["diff"])[0][1]}


_CREATING: Mapping[str, tuple[Agent, ...]] = {
    "Edit": ("Claude Code",),
    "edit": ("opencode", "Roo Code"),
    "edit_file": ("Roo Code",),
    "replace": ("Gemini CLI",),
    "search_replace": ("Cursor",),
    "replace_string_in_file": ("Copilot",),
}
"""Tools that make a file where the text to replace is empty."""
_NEW_FILE = {"new_string": "content", "new_text": "content", "new_str": "content"}
_UNUSED = (*_OLD_TEXTS, "replace_all", "replaceAll", "expected_replacements", "allow_multiple", "instruction")
_WHOLE = Condition(
    "with a `new_text` alone", lambda given: given.get("old_text") is None and given.get("insert_line") is None
)

WRITE_FILE: tuple[ForeignTool, ...] = (
    ForeignTool("Write", ("Claude Code", "Cursor")),
    ForeignTool("write", ("opencode", "pi", "Cursor")),
    ForeignTool("write_to_file", ("cline", "Roo Code", "Windsurf")),
    ForeignTool("create_file", ("Copilot",)),
    ForeignTool(
        "write_file", ("aider",),
        when=Condition("with one of `files`", lambda given: _file_count(given) == 1),
        shapes=(Shape("the one file of its list", _one_file),),
    ),
    ForeignTool("edit_file", ("Zed",), when=given_as("mode", "create", "overwrite", "write"), ignored=("mode",)),
    ForeignTool("editor", ("cline",), {"new_text": "content"}, _WHOLE),
    *editors("create"),
    *(ForeignTool(name, agents, _NEW_FILE, _CREATES, _UNUSED) for name, agents in _CREATING.items()),
    ForeignTool(
        "replace_in_file", ("cline",), when=Condition("with one block, whose `SEARCH` is empty", _is_all_new),
        shapes=(Shape("what replaces nothing is the whole file", _all_new),),
    ),
)  # fmt: skip


def _spread_path(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the path that stands once in each of the edits."""
    keys = ("edits", "replacements", "operations")
    edits = next((unpack_json(given[key]) for key in keys if key in given), None)
    path = next((given[key] for key in _PATHS if given.get(key)), None)
    given = without(given, *_PATHS, *keys)
    if not isinstance(edits, list):
        return given
    # A path beside the list is that of all edits, whatever stands in them.
    own = {} if path is None else {"path": path}
    named = [without(edit, *(_PATHS if own else ())) if isinstance(edit, Mapping) else edit for edit in edits]
    return {**given, "edits": [{**own, **every(edit)} if isinstance(edit, Mapping) else edit for edit in named]}


def _blocks(given: dict[str, Any]) -> dict[str, Any]:
    """Return the blocks of a diff as edits. WrongArguments if it has none."""
    pairs = _pairs(given.get("diff"))
    if not pairs:
        raise WrongArguments(
            "The diff has no whole block of <<<<<<< SEARCH, =======, >>>>>>> REPLACE, or one that is not whole. If the "
            "text itself has such a line, write all marks of its block longer, or use edit_file"
        )
    return {"edits": [{"path": given.get("path"), "old_str": old, "new_str": new} for old, new in pairs]}


def _lines(given: dict[str, Any]) -> dict[str, Any]:
    """Return edits whose texts are lists of lines as such of texts."""
    edits = unpack_json(given.get("edits"))
    return {
        "edits": [
            {
                "path": edit.get("path"),
                "old_str": _join_lines(edit.get("original_lines")),
                "new_str": _join_lines(edit.get("updated_lines")),
            }
            for edit in (edits if isinstance(edits, list) else [])
            if isinstance(edit, Mapping)
        ]
    }


def _join_lines(lines: Any) -> str:
    parts = lines if isinstance(lines, list) else [lines or ""]
    # With or without an end of its own, a line gets exactly one.
    return "".join(f"{str(line).rstrip(chr(10))}\n" for line in parts)


def _from_search(given: dict[str, Any]) -> dict[str, Any]:
    """Return edits with `search` and `replace` as those with an old and a new text."""
    names = {"search": "old_str", "replace": "new_str"}
    edits = [{names.get(key, key): value for key, value in edit.items()} for edit in given.get("edits", ())]
    return {**given, "edits": edits}


_PATHS = ("path", "file_path", "filePath")
_SPREAD = Shape("its path is that of each edit", _spread_path)
_BLOCKS = Shape("blocks of `SEARCH` and `REPLACE` are edits; their line numbers are not needed", _blocks)

BATCH_EDIT: tuple[ForeignTool, ...] = (
    ForeignTool("MultiEdit", ("Claude Code", "Cursor"), shapes=(_SPREAD,)),
    ForeignTool("multiedit", ("opencode",), shapes=(_SPREAD,)),
    ForeignTool("Edit", ("Claude Code",), when=_LISTS, shapes=(_SPREAD,)),
    ForeignTool("edit", ("pi",), when=_LISTS, shapes=(_SPREAD,)),
    ForeignTool("edit_file", ("Zed",), when=_LISTS, ignored=("mode",), shapes=(_SPREAD,)),
    ForeignTool("multi_replace_string_in_file", ("Copilot",), shapes=(_SPREAD,)),
    ForeignTool(
        "search_and_replace", ("Roo Code",), when=has("operations"),
        shapes=(_SPREAD, Shape("`search` and `replace` of each", _from_search)),
    ),
    ForeignTool("replace_in_file", ("cline",), {"absolute_path": "path"}, shapes=(_BLOCKS,)),
    ForeignTool("apply_diff", ("Roo Code",), shapes=(_BLOCKS,)),
    ForeignTool("replace_lines", ("aider",), shapes=(Shape("its texts are lists of lines", _lines),)),
)  # fmt: skip


def _insert_after(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with a line before which to insert as the one after which; 0 is the end."""
    line = number(given.get("line"))
    rest = without(given, "line")
    return rest if line == 0 else {**rest, "line": given.get("line") if line is None else line - 1}


_INSERTED = {"insert_line": "line", "new_str": "text", "insert_text": "text", "new_text": "text", "content": "text"}
_BEFORE = Shape("it inserts before a line", _insert_after)

INSERT_TEXT: tuple[ForeignTool, ...] = (
    *editors("insert", _INSERTED),
    ForeignTool(
        "insert_content", ("Roo Code",), _INSERTED,
        shapes=(Shape("it inserts before a line; 0 is the end", _insert_after),),
    ),
    ForeignTool("editor", ("cline",), _INSERTED, has("insert_line"), shapes=(_BEFORE,)),
)  # fmt: skip


def _files_patched(given: dict[str, Any]) -> dict[str, Any]:
    """Return several whole files as a patch."""
    parts = ["*** Begin Patch"]
    for item in unpack_json(given.get("files")):
        # As a patch, and not as one write after the other, so that all the files are made or none.
        lines = str(item.get("content", "")).removesuffix("\n").split("\n")
        parts += [f"*** Add File: {item.get('path')}", *(f"+{line}" for line in lines)]
    return {"patch": "\n".join([*parts, "*** End Patch", ""])}


def _command_of(given: Mapping[str, Any]) -> str:
    """Return the shell command of a call, which may be a list."""
    command = unpack_json(given.get("command", given.get("cmd")))
    if not isinstance(command, list):
        return command if isinstance(command, str) else ""
    words = [str(word) for word in command]
    # `["bash", "-lc", COMMAND]`, the form of codex.
    if len(words) == 3 and PurePosixPath(words[0]).name in ("bash", "sh", "zsh") and words[1].startswith("-"):
        return words[2]
    # `["apply_patch", PATCH]`: the patch begins its own line, as the pattern wants it.
    return " ".join((words[0], *(f"\n{word}" for word in words[1:]))) if words else ""


def _is_patch(given: Mapping[str, Any]) -> bool:
    command = _command_of(given)
    return bool(_PATCH_CALL.match(command) and _PATCH.search(command))


def _patch_in(given: dict[str, Any]) -> dict[str, Any]:
    """Return the patch in a shell command, with names of files below the folder in which it runs."""
    command = _command_of(given)
    # Its paths are relative to where the command would have run; ours are to the workspace.
    called, patch = _PATCH_CALL.match(command), _PATCH.search(command)
    folders = [given.get("workdir"), *shlex.split((called and called["folder"]) or "")]
    below = "/".join(str(folder).rstrip("/") for folder in folders if folder and folder != ".")
    text = patch[0] if patch else ""
    return {"patch": _PATCHED.sub(lambda found: f"{found[1]}{below}/{found[2]}", text) if below else text}


_AS_PATCH = Condition("with a patch for `apply_patch` in the command", _is_patch)
_IN_COMMAND = Shape("the patch in it, below its folder", _patch_in)

APPLY_PATCH: tuple[ForeignTool, ...] = (
    ForeignTool("apply_patch", ("codex", "cline", "Copilot"), when=has("input")),
    ForeignTool("apply_patch", ("opencode",), when=has("patchText")),
    ForeignTool("patch", ("opencode",)),
    *(
        ForeignTool(name, ("codex",), when=_AS_PATCH, shapes=(_IN_COMMAND,))
        for name in ("shell", "shell_command", "exec_command", "local_shell", "container.exec")
    ),
    ForeignTool(
        "write_file", ("aider",),
        when=Condition("with several `files`", lambda given: _file_count(given) > 1),
        shapes=(Shape("each of its files is added", _files_patched),),
    ),
)  # fmt: skip

UNDO_PATCH: tuple[ForeignTool, ...] = editors("undo_edit")

MOVE_FILE: tuple[ForeignTool, ...] = (
    ForeignTool("move_path", ("Zed",), {"source_path": "path", "destination_path": "new_path"}),
)

DELETE_FILE: tuple[ForeignTool, ...] = (
    ForeignTool("Delete", ("Cursor",)),
    ForeignTool("delete_file", ("Cursor",), when=has("target_file")),
    ForeignTool("delete_path", ("Zed",)),
)

NEAR_EDITS = ("insert_edit_into_file", "reapply", "edit_notebook", "edit_notebook_file", "NotebookEdit")
NEAR_WRITES = ("save_memory", "update_memory", "memory", "create_new_workspace")
"""Tools of other agents that no call of ours can stand for: drafts that another model completes, and notebooks; what is
to be remembered, which belongs into a file such as AGENTS.md, and whole new projects.
"""
