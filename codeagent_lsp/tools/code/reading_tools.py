"""The tools that look at code: `ast_parse`, `ast_find_symbols`, `ast_extract_function` and `ast_get_imports` for
definitions and imports, `search_semantic` by a description; and `code_index_build`, which updates the index.

Every answer comes from the current text that the run sees. Not here: uses of names (`graph_tools.py`), searching
(`index/answers.py`).
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool
from codeagent_lsp.errors import AgentError, ErrorCode, ToolFailed
from codeagent_lsp.index.port import CodeIndex
from codeagent_lsp.index.symbols import Import, SymbolInfo, SymbolKind
from codeagent_lsp.tools.code.asking_servers import server_calls
from codeagent_lsp.tools.code.codebase import Codebase
from codeagent_lsp.tools.code.extent import extent_of
from codeagent_lsp.tools.code.imports import ImportTargets, resolved
from codeagent_lsp.tools.code.source import SourceFile, find_one, required
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.tool import FILE_PATH, Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits

MAX_SYMBOLS = 200
_MAX_OUTLINE = 500
_MAX_FAULTS = 5
MOST = 20
BUILD_SECONDS = 300.0
Piece = dict[str, str | int | float]

NO_INDEX = "There is no code index here. Use grep and glob_file_search."


class FileParameters(Parameters):
    """Parameters of `ast_parse` and `ast_get_imports`: the file to read."""

    path: str = Field(description="File, relative to the workspace")


class AstParse(Tool[FileParameters]):
    """The tool `ast_parse`: the outline of one file by its syntax tree."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "ast_parse",
        "Outline of a file: its definitions with lines and signatures, its imports, its syntax errors.",
        "read",
        group="code",
        path_parameters=("path",),
    )
    parameters = FileParameters
    example: ClassVar[Example] = {"path": "src/cart.py"}
    forms: ClassVar[CallForms] = CallForms(
        arguments=FILE_PATH,
        ignored=("language",),
        foreign=server_calls(("documentSymbol",)),
    )
    output = dict[str, Any]  # language, symbols, imports, errors

    async def run(self, arguments: FileParameters, context: ToolContext) -> ToolOutput:
        """Return one line for each definition, indented by depth, and the first 5 syntax errors; the data has
        `language`, `symbols`, `imports` and `errors`. ToolFailed if there is no grammar for the file.
        """
        source = await read_source(context, arguments.path)
        symbols = source.parsed.outline.symbols
        errors = [f"line {source.line(node.start_byte)}" for node in source.faults[:_MAX_FAULTS]]
        lines = [f"{source.path} ({source.language})"]
        if source.imports:
            lines.append(f"imports: {', '.join(each.module for each in source.imports)}")
        lines += [_outline_line(symbol) for symbol in symbols[:_MAX_OUTLINE]]
        if len(symbols) > _MAX_OUTLINE:
            lines.append(f"({len(symbols) - _MAX_OUTLINE} more definitions)")
        if errors:
            lines.append(f"syntax errors: {', '.join(errors)}")
        data = {
            "language": source.language,
            "symbols": [described(symbol) for symbol in symbols],
            "imports": [_import_row(each, ()) for each in source.imports],
            "errors": errors,
        }
        return ToolOutput("\n".join(lines), data)


class FindSymbolsParameters(Parameters):
    """Parameters of `ast_find_symbols`: a part of their dotted names in any case, and their kind, None for any, and the
    file or folder to look in.
    """

    path: str | None = Field(None, description="File or folder; everywhere if left out")
    name: str | None = Field(None, description="Name or part of one")
    kind: SymbolKind | None = None


class AstFindSymbols(Tool[FindSymbolsParameters]):
    """The tool `ast_find_symbols`: finds definitions by a part of their name or by kind, without a pattern of text."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "ast_find_symbols",
        "Find definitions by name or kind in a file, a folder or the workspace.",
        "read",
        group="code",
        path_parameters=("path",),
    )
    parameters = FindSymbolsParameters
    example: ClassVar[Example] = {"name": "total", "kind": "method"}
    forms: ClassVar[CallForms] = CallForms(
        arguments={**FILE_PATH, "symbol_type": "kind"},
        foreign=(
            ForeignTool("list_code_definition_names", ("cline", "Roo Code")),
            ForeignTool("search_workspace_symbols", ("Copilot",), {"symbolName": "name"}),
            *server_calls(("workspaceSymbol",), {"query": "name"}, ("filePath",)),
        ),
    )
    output = list[dict[str, Any]]

    async def run(self, arguments: FindSymbolsParameters, context: ToolContext) -> ToolOutput:
        """Return one line for each definition, `path:first-last …`, exact matches of the name first, at most 200, which
        the data has as objects; none is no error.
        """
        path = context.view.roots.resolve(arguments.path) if arguments.path else None
        codebase = Codebase(context, path)
        # A single file is parsed now; the index may be a moment behind it.
        if path is not None and context.view.roots.kind(path) != "folder":
            symbols = list((await read_source(context, arguments.path or "")).parsed.outline.symbols)
        else:
            symbols = await codebase.symbols()
        found = _fitting(symbols, arguments.name or "", arguments.kind)
        lines = [f"{each.path}:{each.line_start}-{each.line_end} {_summary(each)}" for each in found[:MAX_SYMBOLS]]
        if len(found) > MAX_SYMBOLS or codebase.truncated:
            lines.append("(more exist; give a name, a kind or a path)")
        return ToolOutput("\n".join(lines) or "No such definition.", [described(each) for each in found[:MAX_SYMBOLS]])


class ExtractParameters(Parameters):
    """Parameters of `ast_extract_function`: the file and the definition: `name`, `Class.method`, or `name#2` for the
    second of a name.
    """

    path: str = Field(description="File, relative to the workspace")
    function_name: str = Field(description="name or Class.method; name#2 is the second of that name")


class AstExtractFunction(Tool[ExtractParameters]):
    """The tool `ast_extract_function`: the text of one definition, found by name."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "ast_extract_function",
        "The text of one function, method or class with line numbers, doc comment and decorators included.",
        "read",
        group="code",
        path_parameters=("path",),
        errors=(ErrorCode.EDIT_REFUSED,),
    )
    parameters = ExtractParameters
    example: ClassVar[Example] = {"path": "src/cart.py", "function_name": "Cart.total"}
    forms: ClassVar[CallForms] = CallForms(arguments=FILE_PATH)
    output = dict[str, Any]  # path, name, start_line, end_line, text

    async def run(self, arguments: ExtractParameters, context: ToolContext) -> ToolOutput:
        """Return its lines with 1-based numbers, in the format of `read_file`. EditRefused, with the candidates, if the
        name means no definition or several; ToolFailed if there is no grammar for the file.
        """
        source = await read_source(context, arguments.path)
        definition = find_one(source, arguments.function_name)
        extent = extent_of(source, definition)
        first = source.line(extent.top)
        text = source.slice(source.line_start(extent.top), source.line_end(extent.end)).replace("\r\n", "\n")
        lines = text.split("\n")
        shown = "\n".join(f"{number}|{line}" for number, line in enumerate(lines, first))
        data = {"path": source.path, "name": definition.qualified, "start_line": first, "text": text}
        return ToolOutput(shown, {**data, "end_line": first + len(lines) - 1})


class AstGetImports(Tool[FileParameters]):
    """The tool `ast_get_imports`: the imports of one file, and which files of the workspace they mean."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "ast_get_imports",
        "The imports of a file, and the files of the workspace they name.",
        "read",
        group="code",
        path_parameters=("path",),
    )
    parameters = FileParameters
    example: ClassVar[Example] = {"path": "src/cart.py"}
    forms: ClassVar[CallForms] = CallForms(arguments=FILE_PATH)
    output = list[dict[str, Any]]  # module, names, line, files

    async def run(self, arguments: FileParameters, context: ToolContext) -> ToolOutput:
        """Return one line for each import with the files it refers to, relative paths; none for installed packages.
        ToolFailed if there is no grammar for the file.
        """
        source = await read_source(context, arguments.path)
        files = await files_of(Codebase(context), context)
        found = [(each, resolved(source.language, source.path, each, files)) for each in source.imports]
        lines = []
        for each, places in found:
            names = f" ({', '.join(each.names)})" if each.names else ""
            where = f" -> {', '.join(places)}" if places else ""
            lines.append(f"{each.line}: {each.module}{names}{where}")
        text = "\n".join(lines) or f"{source.path} imports nothing."
        return ToolOutput(text, [_import_row(each, places) for each, places in found])


async def read_source(context: ToolContext, path: str) -> SourceFile:
    """Return a file of the workspace (path as a call names it) parsed, as the run sees it. ToolFailed if there is no
    grammar for it, FileRefused if it cannot be read.
    """
    absolute = context.view.roots.resolve(path)

    def read() -> SourceFile:
        return required(context.view.roots.relative(absolute), context.view.read(absolute).text)

    return await asyncio.to_thread(read)


async def files_of(codebase: Codebase, context: ToolContext) -> ImportTargets:
    """Return the files of the workspace that may be shown, at most 5,000 of known languages, for resolving imports."""
    paths = frozenset(codebase.relative(path).replace("\\", "/") for path in await codebase.files())
    # Go imports packages, so folders, by the name of the module that a `go.mod` gives them.
    folders = {path.rpartition("/")[0] for path in paths if path.endswith(".go")}
    modules = await asyncio.to_thread(_go_modules, context, folders)
    return ImportTargets(paths, modules)


def described(symbol: SymbolInfo) -> dict[str, Any]:
    """Return a definition as an object for JSON: `name` (dotted), `kind`, `path`, `line_start` and `line_end`
    (1-based), `signature`, `docstring`; `type` and `file_path` repeat its kind and path under other names.
    """
    return {
        "name": symbol.qualified,
        "kind": symbol.kind,
        "type": symbol.kind,
        "path": symbol.path,
        "file_path": symbol.path,
        "line_start": symbol.line_start,
        "line_end": symbol.line_end,
        "signature": symbol.signature,
        "docstring": symbol.docstring,
    }


class SearchParameters(Parameters):
    """Parameters of `search_semantic`: the words to search for, and how many pieces of code to return at most."""

    query: str = Field(description="Words and names that describe the code", min_length=1)
    limit: int = Field(5, ge=1, le=MOST)


class SearchSemantic(Tool[SearchParameters]):
    """The tool `search_semantic`: the pieces of code that fit some words best, by the code index."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "search_semantic",
        "Find code by a description or by names, best first; for what you cannot put into a pattern.",
        "read",
        errors=(ErrorCode.NOT_FOUND,),
    )
    parameters = SearchParameters
    example: ClassVar[Example] = {"query": "where the tax is added", "limit": 5}
    forms: ClassVar[CallForms] = CallForms(
        foreign=(
            ForeignTool("semantic_search", ("Copilot",)),
            ForeignTool("codebase_search", ("Cursor", "Roo Code"), ignored=("path", "target_directories")),
            ForeignTool("SemanticSearch", ("Cursor",), ignored=("target_directories", "num_results")),
        )
    )
    output = list[Piece]  # path, start_line and end_line (1-based, included), text, score

    async def run(self, arguments: SearchParameters, context: ToolContext) -> ToolOutput:
        """Return each piece of code below a line `path:first-last symbol (score 0.53)`, best first, which the data has
        as objects; nothing found is no error. ToolFailed if the run has no index.
        """
        found = await index_of(context).search(arguments.query, arguments.limit)
        pieces: list[Piece] = [
            {"path": chunk.path, "start_line": chunk.line_start, "end_line": chunk.line_end, "text": chunk.text,
             "score": chunk.score}
            for chunk in found
        ]  # fmt: skip
        shown = [
            f"{chunk.path}:{chunk.line_start}-{chunk.line_end}{f' {chunk.symbol}' if chunk.symbol else ''}"
            f" (score {chunk.score:.2f})\n{chunk.text}"
            for chunk in found
        ]
        return ToolOutput("\n\n".join(shown) or f"Nothing fits {arguments.query!r}.", pieces)


class BuildParameters(Parameters):
    """Parameters of `code_index_build`: the folder whose files are counted. The whole workspace is indexed in any
    case.
    """

    path: str | None = Field(None, description="Count only files in this folder")


class CodeIndexBuild(Tool[BuildParameters]):
    """The tool `code_index_build`: waits, 300 s at most, until the code index is that of the disk."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "code_index_build",
        "Bring the code index up to date now; it is also kept up to date by itself.",
        "read",
        group="code",
        timeout=BUILD_SECONDS,
        path_parameters=("path",),
    )
    parameters = BuildParameters
    example: ClassVar[Example] = {"path": "src"}
    forms: ClassVar[CallForms] = CallForms(ignored=("languages",))
    output = dict[str, object]

    async def run(self, arguments: BuildParameters, context: ToolContext) -> ToolOutput:
        """Update the index and wait for that; the data has its `state` and `files`, the number of indexed ones.
        ToolFailed if the index cannot be kept.
        """
        index, roots = index_of(context), context.view.roots
        below = roots.relative(roots.resolve(arguments.path)) if arguments.path else ""
        status = await index.refresh()
        if status.state == "failed":
            raise ToolFailed(f"The code index cannot be kept: {status.problem}.")
        files = len(await _below(index, below)) if below not in ("", ".") else status.files
        where = f" below {below}" if below else ""
        return ToolOutput(
            f"The index is {status.state}: {files} files{where}.", {"state": status.state, "files": files}
        )


def index_of(context: ToolContext) -> CodeIndex:
    """Return the index of a run. ToolFailed if there is none."""
    return context.need(CodeIndex, NO_INDEX, ErrorCode.NOT_FOUND)


def _go_modules(context: ToolContext, folders: set[str]) -> dict[str, str]:
    """Map the folder of each `go.mod`, in folders with Go files and their ancestors, to its module's name."""
    above = {folder.rsplit("/", depth)[0] for folder in folders for depth in range(folder.count("/") + 1)}
    found = {}
    for folder in {"", *folders, *above}:
        try:
            place = context.view.roots.resolve(f"{folder}/go.mod" if folder else "go.mod")
            text = context.view.read(place).text if context.view.exists(place) else ""
        except AgentError:
            continue
        name = next((line.split()[1] for line in text.splitlines() if line.startswith("module ")), "")
        if name:
            found[folder] = name.strip('"')
    return found


def _fitting(symbols: list[SymbolInfo], name: str, kind: SymbolKind | None) -> list[SymbolInfo]:
    wanted = name.casefold()
    found = [each for each in symbols if (kind is None or each.kind == kind) and wanted in each.qualified.casefold()]
    return sorted(found, key=lambda each: name not in (each.name, each.qualified)) if name else found


def _outline_line(symbol: SymbolInfo) -> str:
    depth = symbol.parent.count(".") + 1 if symbol.parent else 0
    return f"{'  ' * depth}{symbol.line_start}-{symbol.line_end} {_summary(symbol)}"


def _summary(symbol: SymbolInfo) -> str:
    signature = symbol.signature if symbol.name in symbol.signature else f"{symbol.name} {symbol.signature}"
    owner = f" [{symbol.parent}]" if symbol.parent else ""
    return f"{symbol.kind}{owner} {signature}"


def _import_row(each: Import, places: tuple[str, ...]) -> dict[str, Any]:
    return {"module": each.module, "names": list(each.names), "line": each.line, "files": list(places)}


async def _below(index: CodeIndex, folder: str) -> list[str]:
    view = await index.view()
    known = await asyncio.to_thread(view.files)
    # a call may name a file
    return [path for path in known if path == folder or path.startswith(f"{folder}/")]
