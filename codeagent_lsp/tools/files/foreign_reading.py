"""Tools of other agents whose calls are calls of the tools that read, list and search files.

Each counts lines in its own way, and searches with its own defaults. Not here: our tools (`read_tools.py`,
`find_tools.py`), tools that change files (`foreign_editing.py`), how such calls are resolved (`call_forms.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from codeagent_lsp.call_forms import (
    Agent,
    Condition,
    ForeignTool,
    Shape,
    given_as,
    has,
    number,
    unpack_json,
    without,
)

FOLDER_PATH: Mapping[str, str] = MappingProxyType(
    {"dir_path": "path", "directory": "path", "target_directory": "path", "relative_workspace_path": "path"}
)
"""The names of other agents for the parameter `path` that means a folder."""

_EDITORS: Mapping[str, tuple[Agent, ...]] = {
    "str_replace_editor": ("OpenHands", "Anthropic API"),
    "str_replace_based_edit_tool": ("Anthropic API",),
    "file_editor": ("OpenHands",),
    "text_editor": ("Anthropic API",),
}
"""Tools that view, create and edit files, by their argument `command`."""

_MOST_CONTEXT, _MOST_RESULTS, _MOST_LEVELS = 10, 2000, 5  # as `grep` and `list_dir` allow
_LIMITS = ("head_limit", "limit", "total_max_matches", "maxResults")
_OTHERS = (
    *("-A", "-B", "before", "after", "offset", "case_sensitive", "output_mode", "literal", "fixed_strings"),
    *("isRegexp", "type", "names_only"),
)
_OUTPUTS = {"content": None, "files_with_matches": "files", "count": "count"}
_FLAGS = re.compile(r"\(\?([aimsux]+)\)")
_FILE_TYPES = {  # ripgrep's names of types, where they are not the files' ending
    "c": "*.{c,h}",
    "cpp": "*.{cpp,cc,cxx,hpp,hh,hxx,h,inl}",
    "cs": "*.cs",
    "csharp": "*.cs",
    "css": "*.{css,scss}",
    "docker": "*Dockerfile*",
    "elixir": "*.{ex,exs,eex,heex}",
    "haskell": "*.{hs,lhs}",
    "html": "*.{html,htm}",
    "javascript": "*.{js,jsx,mjs,cjs,vue}",
    "js": "*.{js,jsx,mjs,cjs,vue}",
    "json": "*.{json,jsonl}",
    "kotlin": "*.{kt,kts}",
    "make": "{Makefile,makefile,GNUmakefile,*.mk}",
    "markdown": "*.{md,markdown,mdx}",
    "md": "*.{md,markdown,mdx}",
    "perl": "*.{pl,pm,t}",
    "php": "*.{php,phtml}",
    "py": "*.{py,pyi}",
    "python": "*.{py,pyi}",
    "ruby": "*.{rb,rbw,gemspec,rake}",
    "rust": "*.rs",
    "sh": "*.{sh,bash,zsh}",
    "ts": "*.{ts,tsx,mts,cts}",
    "typescript": "*.{ts,tsx,mts,cts}",
    "txt": "*.txt",
    "yaml": "*.{yaml,yml}",
}


def editors(
    command: str, arguments: Mapping[str, str] | None = None, shapes: tuple[Shape, ...] = (), **fixed: Any
) -> tuple[ForeignTool, ...]:
    """Return the file editing tools of other agents, for calls whose `command` is this one. `arguments` maps their
    names of parameters to ours, `fixed` are arguments to add.
    """
    when = given_as("command", command)
    # Our undo takes back the last step, whichever file it was in.
    ignored = ("command", *({"undo_edit": ("path",)}.get(command, ())))
    return tuple(
        ForeignTool(name, agents, arguments or {}, when, ignored, shapes, fixed) for name, agents in _EDITORS.items()
    )


def _from_line(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with `offset`, the first line, and `limit`, a number of lines, as a range."""
    first, count = number(given.get("offset")), number(given.get("limit"))
    given = without(given, "offset", "limit")
    if first is not None and first > 0:
        given["start_line"] = first
    # Whatever is not a sensible number is dropped: more of the file than was asked for serves better than a refusal.
    if count is not None and count > 0:
        given["end_line"] = given.get("start_line", 1) + count - 1
    return given


def _in_range(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with a list of the first and the last line as two; a last line of -1 is the end."""
    bounds = unpack_json(given.get("view_range", given.get("read_range")))
    given = without(given, "view_range", "read_range")
    found = [number(bound) for bound in bounds] if isinstance(bounds, list) else []
    for name, bound in zip(("start_line", "end_line"), found, strict=False):
        if bound is not None and bound > 0:
            given[name] = bound
    return given


def _some_lines(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without lines if the whole file is asked for."""
    whole = str(given.get("should_read_entire_file")).lower() == "true"
    return _from_line(
        without(given, "should_read_entire_file", *(("start_line", "end_line", "offset", "limit") if whole else ()))
    )


FROM_LINE = Shape("`offset` is the first line, counted from 1, `limit` a number of lines", _from_line)
IN_RANGE = Shape("a range is a list of two lines, counted from 1; -1 is the end", _in_range)

READ_FILE: tuple[ForeignTool, ...] = (
    ForeignTool("Read", ("Claude Code", "Cursor"), shapes=(IN_RANGE, FROM_LINE)),
    ForeignTool("read", ("opencode", "pi"), when=has("path", "filePath"), shapes=(FROM_LINE,)),
    ForeignTool("read_file", ("Gemini CLI",), {"absolute_path": "path"}, has("absolute_path")),
    ForeignTool(
        "read_file",
        ("codex", "Copilot", "Cursor", "Roo Code"),
        {
            "target_file": "path",
            "start_line_one_indexed": "start_line",
            "end_line_one_indexed_inclusive": "end_line",
        },
        has("offset", "limit", "target_file"),
        ("mode", "indentation"),
        (Shape("`offset` is the first line, counted from 1, `limit` a number of lines", _some_lines),),
    ),
    ForeignTool("read_file", ("Copilot",), when=has("filePath", "startLine")),
    ForeignTool("view_image", ("codex", "Copilot")),
    ForeignTool("view_file", ("Windsurf",), {"absolute_path": "path"}, shapes=(IN_RANGE,)),
    ForeignTool("view", ("OpenHands",), shapes=(IN_RANGE,)),
    ForeignTool(
        "read_command_output", ("Roo Code",), {"artifact_id": "path"},
        Condition("without `search`", lambda given: not given.get("search")), ("offset", "limit", "search"),
    ),
    ForeignTool("NotebookRead", ("Claude Code",), {"notebook_path": "path"}),
    *editors("view", shapes=(IN_RANGE,)),
)  # fmt: skip


def _several(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with all files that they name, in whatever list, as `files`."""
    # Roo Code has its list in `args`, which can also come as text.
    held = unpack_json(given.get("args", given))
    keys = ("files", "file", "paths", "file_paths", "include")
    named = next((unpack_json(held[key]) for key in keys if key in held), []) if isinstance(held, Mapping) else held
    items = named if isinstance(named, list) else [named]
    return {
        **without(given, "args", *keys),
        "files": [part for item in items for part in ([{"path": item}] if isinstance(item, str) else _parts(item))],
    }


def _parts(item: Any) -> list[Any]:
    """Return a file for each range of lines, such as `1-50`, that is asked of it."""
    if not isinstance(item, Mapping):
        return [item]
    ranges = unpack_json(item.get("line_range", item.get("line_ranges")))
    rest = _from_line(without(item, "line_range", "line_ranges"))
    found = []
    for each in ranges if isinstance(ranges, list) else [ranges]:
        first, last = each if isinstance(each, list) and len(each) == 2 else (str(each).partition("-")[::2])
        if number(first) is not None and number(last) is not None:
            found.append({**rest, "start_line": number(first), "end_line": number(last)})
    return found or [rest]


_ALL_FILES = Shape("the files, or globs, may be in any of its lists, with ranges such as `1-50`", _several)

READ_FILES: tuple[ForeignTool, ...] = (
    ForeignTool(
        "read_many_files", ("Gemini CLI",), ignored=("recursive", "useDefaultExcludes", "file_filtering_options"),
        shapes=(_ALL_FILES,),
    ),
    ForeignTool("read_files", ("cline",), when=has("paths", "file_paths"), shapes=(_ALL_FILES,)),
    ForeignTool("read_file", ("Roo Code",), when=has("args", "files"), shapes=(_ALL_FILES,)),
)  # fmt: skip


def _not_too_deep(given: dict[str, Any]) -> dict[str, Any]:
    depth = number(given.get("depth"))
    return given if depth is None else {**given, "depth": max(1, min(depth, _MOST_LEVELS))}


LIST_DIR: tuple[ForeignTool, ...] = (
    ForeignTool("LS", ("Claude Code", "Cursor"), ignored=("ignore", "ignore_globs")),
    ForeignTool("ls", ("pi",), ignored=("limit",)),
    ForeignTool("list", ("opencode",), ignored=("ignore",)),
    ForeignTool(
        "list_dir", ("codex",), when=has("dir_path"), ignored=("offset", "limit"),
        shapes=(Shape("a greater `depth` is the greatest", _not_too_deep),),
    ),
    ForeignTool(
        "list_dir", ("Cursor",), when=has("target_directory", "relative_workspace_path"), ignored=("ignore_globs",)
    ),
    ForeignTool(
        "list_directory",
        ("Gemini CLI", "Zed"),
        ignored=("ignore", "file_filtering_options", "respect_git_ignore"),
    ),
    ForeignTool("list_files", ("cline", "Roo Code")),
    ForeignTool("read_project_structure", ("Copilot",), fixed={"depth": 3}),
)  # fmt: skip


def _fuzzy(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with a part of a path as a glob that finds it."""
    query = given.get("pattern")
    # A query that is a glob already means what it says.
    if not isinstance(query, str) or set(query) & set("*?[{") or not query.strip("/ "):
        return given
    folder, _, name = query.strip("/ ").rpartition("/")
    return {**given, "pattern": f"**/{folder}/{name}*" if folder else f"**/*{name}*"}


GLOB: tuple[ForeignTool, ...] = (
    ForeignTool("Glob", ("Claude Code", "Cursor")),
    ForeignTool("glob", ("Gemini CLI", "opencode", "OpenHands"), ignored=("case_sensitive", "respect_git_ignore")),
    ForeignTool("find", ("pi",), ignored=("limit",)),
    ForeignTool("find_path", ("Zed",), {"glob": "pattern"}, ignored=("offset",)),
    ForeignTool(
        "file_search", ("Copilot", "Cursor"), {"query": "pattern"}, ignored=("maxResults",),
        shapes=(Shape("a query without `*` is a part of a path", _fuzzy),),
    ),
    ForeignTool("glob_file_search", ("Cursor",), when=has("glob_pattern")),
)  # fmt: skip

SOUGHT: Mapping[str, str] = MappingProxyType(
    {
        **FOLDER_PATH,
        "ignore_case": "case_insensitive",
        "regex": "pattern",
        "query": "pattern",
        "include": "glob",
        "include_pattern": "glob",
        "file_pattern": "glob",
    }
)
"""The names of other agents for parameters of `grep`."""


def sought(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a search in the spelling of `grep`, from all the spellings that other agents' searches
    use; numbers above our limits are lowered.
    """
    # All are read before `without` takes them away: `grep` refuses parameters that it does not know.
    around = [number(given.get(name)) or 0 for name in ("-A", "-B", "before", "after", "context")]
    most = next(filter(None, (number(given.get(name)) for name in _LIMITS)), 0)
    skipped = number(given.get("offset")) or 0
    sensitive, mode = given.get("case_sensitive"), given.get("output_mode")
    # `isRegexp` means it only if it is given and false; without it a pattern is one.
    exact = _is(given.get("literal"), given.get("fixed_strings")) or str(given.get("isRegexp")).lower() == "false"
    typed = _FILE_TYPES.get(str(given.get("type")).lower(), f"*.{given.get('type')}") if given.get("type") else ""
    pattern, glob = given.get("pattern"), given.get("glob")
    mode = "files_with_matches" if _is(given.get("names_only")) else mode
    given = without(given, *_OTHERS, *_LIMITS)
    if any(around):
        # `grep` shows as many lines before as after, so the larger of the two.
        given["context"] = min(max(around), _MOST_CONTEXT)
    if most > 0:
        # `grep` skips nothing, so those that were to be skipped are shown as well.
        given["max_results"] = min(most + max(skipped, 0), _MOST_RESULTS)
    if sensitive is not None:
        given["case_insensitive"] = not _is(sensitive)
    if mode in _OUTPUTS:
        given["output"] = _OUTPUTS[mode]
    if exact and isinstance(pattern, str):
        given["pattern"] = re.escape(pattern)
    elif _is(given.get("multiline")) and isinstance(pattern, str):
        given["pattern"] = _spanning(pattern)
    given.pop("multiline", None)
    # A glob of the model's own is narrower than the type, and `grep` takes one of them.
    if typed and glob in (None, "", "*", "**", "**/*"):
        given["glob"] = typed
    elif glob in ("", "*", "**", "**/*"):
        del given["glob"]
    return given


def _spanning(pattern: str) -> str:
    """Return a pattern as one that matches across lines, with `.` for their ends too."""
    # Flags stand only at the very start of a pattern, so its own are put together with `s`.
    flags = _FLAGS.match(pattern)
    rest = pattern[flags.end() :] if flags else pattern
    return f"(?{''.join(sorted({'s', *(flags[1] if flags else '')}))}){rest}".replace("\n", "\\n")


def _is(*values: Any) -> bool:
    return any(value is True or str(value).lower() == "true" for value in values)


def _any_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with a list of patterns as one."""
    queries = unpack_json(given.get("queries"))
    found = [query for query in (queries if isinstance(queries, list) else [queries]) if isinstance(query, str)]
    pattern = found[0] if len(found) == 1 else "|".join(f"(?:{query})" for query in found)
    return {**without(given, "queries"), "pattern": pattern} if found else given


# What the tool of that name does unless it is told otherwise; the same for `case_sensitive` below.
_FILES_FIRST = {"output_mode": "files_with_matches"}

GREP: tuple[ForeignTool, ...] = (
    ForeignTool("Grep", ("Claude Code", "Cursor"), fixed=_FILES_FIRST),
    ForeignTool("grep", ("opencode", "OpenHands"), when=has("include")),
    ForeignTool("grep", ("Zed",), when=has("regex"), fixed={"case_sensitive": False}),
    ForeignTool("grep", ("pi",), when=has("ignoreCase", "literal", "limit")),
    ForeignTool("grep_files", ("codex",), fixed=_FILES_FIRST),
    ForeignTool("search_file_content", ("Gemini CLI",), fixed={"case_sensitive": False}),
    ForeignTool(
        "grep_search", ("Copilot", "Gemini CLI"), when=has("isRegexp", "pattern"), fixed={"case_sensitive": False},
        ignored=("includeIgnoredFiles", "no_ignore"),
    ),
    ForeignTool("grep_search", ("Cursor",)),
    ForeignTool("search_files", ("cline", "Roo Code")),
    ForeignTool("search_codebase", ("cline",), shapes=(Shape("several `queries` are one pattern", _any_of),)),
    ForeignTool(
        "read_command_output", ("Roo Code",), {"artifact_id": "path", "search": "pattern"},
        Condition("with a `search`", lambda given: bool(given.get("search"))), ("offset", "limit"),
    ),
)  # fmt: skip
