"""The tools `find_definition`, `find_references`, `call_graph` and `dependency_graph`: relations between definitions.

Where a language server answers they are exact, and say so; else they work by names and syntax, and what needs types is
marked as unsure or left out. Not here: one file alone (`reading_tools.py`).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool
from codeagent_lsp.errors import ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.language_servers.answers import CodePlace
from codeagent_lsp.tools.code import call_graph
from codeagent_lsp.tools.code.asking_servers import (
    ExactPlaces,
    exact_calls,
    exact_definition,
    exact_references,
    is_place,
    name_in,
    server_calls,
)
from codeagent_lsp.tools.code.call_graph import Edge, Graph, Node
from codeagent_lsp.tools.code.codebase import Codebase
from codeagent_lsp.tools.code.imports import resolved
from codeagent_lsp.tools.code.meaning import Site, defined, definition_site, elsewhere, references, symbol_name
from codeagent_lsp.tools.code.reading_tools import described, files_of, read_source
from codeagent_lsp.tools.code.source import Definition, SourceFile
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.tool import FILE_PATH, Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits

MAX_SITES = 200
_BY_INDEX = "(index, by name and syntax)"
Places = list[tuple[str, SourceFile, Definition]]
MAX_NODES = 150


class SymbolParameters(Parameters):
    """Parameters of `find_definition` and `find_references`: a name, or its place `line:column` in the file, and where
    to look.
    """

    symbol: str = Field(description="name or Class.method", min_length=1)
    path: str | None = Field(None, description="File or folder to look in; everywhere if left out")


class FindDefinition(Tool[SymbolParameters]):
    """The tool `find_definition`: asks the language servers if a file is given, else looks for the name in the code
    index.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "find_definition",
        "Where a function, class or other name is defined, with its signature.",
        "read",
        group="code",
        path_parameters=("path",),
    )
    parameters = SymbolParameters
    example: ClassVar[Example] = {"symbol": "Cart.total"}
    forms: ClassVar[CallForms] = CallForms(
        arguments=FILE_PATH, foreign=server_calls(("goToDefinition", "goToImplementation"), place="symbol")
    )
    output = list[dict[str, Any]]

    async def run(self, arguments: SymbolParameters, context: ToolContext) -> ToolOutput:
        """Return one line for each definition (at most 200), which the data has as objects; if the path has none, those
        elsewhere. A name that is not found is no error; ToolRetry for a place without a name.
        """
        arguments = await _with_name(arguments, context)
        exact = await exact_definition(context, arguments.symbol, arguments.path)
        if exact is not None:
            return _exact_definition(exact, context)
        codebase = _codebase(context, arguments.path)
        found = await _definitions(codebase, arguments.symbol)
        head = []
        # A wrong file is the commonest slip; the place itself answers faster than a refusal.
        if not found and arguments.path:
            found = await _definitions(Codebase(context), arguments.symbol)
            head = [f"Not defined in {arguments.path}, but in:"] if found else []
        symbols = [definition.symbol for _, _, definition in found[:MAX_SITES]]
        lines = [
            f"{each.path}:{each.line_start}-{each.line_end} {each.kind} {each.qualified}: {each.signature}"
            f"{f' - {each.docstring}' if each.docstring else ''}"
            for each in symbols
        ]
        text = "\n".join([*head, *lines, _BY_INDEX]) if lines else f"No definition of {arguments.symbol} was found."
        return ToolOutput(text, [described(each) for each in symbols])


class FindReferences(Tool[SymbolParameters]):
    """The tool `find_references`: the definitions and uses of a name, from the language servers, else by name and
    syntax.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "find_references",
        "Where a name is defined and used in code, not in strings and comments; local variables of the same name "
        "are left out.",
        "read",
        group="code",
        path_parameters=("path",),
    )
    parameters = SymbolParameters
    example: ClassVar[Example] = {"symbol": "Cart", "path": "src"}
    forms: ClassVar[CallForms] = CallForms(
        arguments=FILE_PATH,
        foreign=(
            ForeignTool("list_code_usages", ("Copilot",), {"symbolName": "symbol"}, ignored=("filePaths",)),
            ForeignTool("vscode_listCodeUsages", ("Copilot",), ignored=("lineContent", "uri")),
            *server_calls(("findReferences",), place="symbol"),
        ),
    )
    output = dict[str, Any]  # definitions, references, text_matches, left_out

    async def run(self, arguments: SymbolParameters, context: ToolContext) -> ToolOutput:
        """Return the definitions, then each use with its line, 200 at most; those that may mean something else are
        marked. A name that is not found is no error; ToolRetry for a place without a name.
        """
        arguments = await _with_name(arguments, context)
        codebase = _codebase(context, arguments.path)
        # `path` limits where the uses are sought; the definition may be anywhere.
        targets = await _definitions(Codebase(context) if arguments.path else codebase, arguments.symbol)
        exact = await exact_references(context, arguments.symbol, [source.path for _, source, _ in targets])
        if exact is not None:
            return _exact_report(arguments, context, exact, targets)
        meant = elsewhere([(source, definition) for _, source, definition in targets])
        sites: list[Site] = []
        left_out = 0
        for path in await codebase.using(symbol_name(arguments.symbol)):
            source = await codebase.source(path)
            if source is not None:
                found = references(source, arguments.symbol, meant)
                sites += found.sites
                left_out += found.left_out
        plain = await _plain(codebase, context, arguments)
        return _report(arguments.symbol, targets, sites, plain, left_out, more=codebase.truncated)


class CallGraphParameters(Parameters):
    """Parameters of `call_graph`: the function at the centre, and how many calls to follow from it in both
    directions.
    """

    function_name: str = Field(description="name or Class.method", min_length=1)
    path: str | None = Field(None, description="File that defines it, if several do")
    depth: int = Field(2, ge=1, le=5, description="Steps in each direction")


class CallGraph(Tool[CallGraphParameters]):
    """The tool `call_graph`: the callers and callees of a function, from a language server, else by name."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "call_graph",
        "What a function calls and what calls it, some steps deep.",
        "read",
        group="code",
        path_parameters=("path",),
        errors=(ErrorCode.NOT_FOUND,),
    )
    parameters = CallGraphParameters
    example: ClassVar[Example] = {"function_name": "Cart.total", "depth": 2}
    forms: ClassVar[CallForms] = CallForms(
        arguments=FILE_PATH,
        foreign=server_calls(("prepareCallHierarchy", "incomingCalls", "outgoingCalls"), place="function_name"),
    )
    output = dict[str, Any]  # nodes, edges, mermaid

    async def run(self, arguments: CallGraphParameters, context: ToolContext) -> ToolOutput:
        """Return the graph as one line for each caller with its callees; the data has `nodes`, `edges` and `mermaid`.
        ToolFailed if the function is not found, ToolRetry for a place without a name.
        """
        if is_place(arguments.function_name):
            name = await _name_at(arguments.path, arguments.function_name, context)
            arguments = arguments.model_copy(update={"function_name": name, "path": None})
        found = await _definitions(_codebase(context, arguments.path), arguments.function_name)
        if not found:
            where = f" in {arguments.path}" if arguments.path else ""
            raise ToolFailed(f"No definition of {arguments.function_name} was found{where}.", ErrorCode.NOT_FOUND)
        # A server is asked about one place, and which of several was meant it cannot say.
        if len(found) == 1:
            exact = await exact_calls(context, arguments.function_name, found[0][1].path, arguments.depth)
            if exact is not None:
                return _draw(exact[1], [f"(lsp: {exact[0]})"])
        starts = [call_graph.DefinitionPlace(*each) for each in found]
        graph = await call_graph.CallGraph(Codebase(context)).of(starts, arguments.depth)
        note = "(index, by name: calls on objects of unknown type count where only one definition fits)"
        return _draw(graph, [note])


class DependencyGraphParameters(Parameters):
    """Parameters of `dependency_graph`: the part of the workspace to look at."""

    path: str | None = Field(None, description="File, or folder; the whole workspace if left out")


class DependencyGraph(Tool[DependencyGraphParameters]):
    """The tool `dependency_graph`: the imports between files of the workspace, by syntax and file names."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "dependency_graph",
        "Which files import which: around one file, or in a folder.",
        "read",
        group="code",
        path_parameters=("path",),
    )
    parameters = DependencyGraphParameters
    example: ClassVar[Example] = {"path": "src/cart.py"}
    forms: ClassVar[CallForms] = CallForms(arguments=FILE_PATH)
    output = dict[str, Any]  # nodes, edges, mermaid

    async def run(self, arguments: DependencyGraphParameters, context: ToolContext) -> ToolOutput:
        """Return one line for each file with the files that it imports; the data has `nodes`, `edges` and `mermaid`.
        Above 150 files, folders represent them.
        """
        focus = ""
        path = context.view.roots.resolve(arguments.path) if arguments.path else None
        if path is not None and context.view.roots.kind(path) != "folder":
            focus, path = (await read_source(context, arguments.path or "")).path, None
        everything = Codebase(context)
        # All files, even for a part: what a file of the part imports can lie outside.
        files = await files_of(everything, context)
        part = Codebase(context, path)
        imports: dict[str, list[str]] = {}
        for name, found in await part.imports():
            language = grammar_of(name)
            places = (resolved(language.name, name, each, files) for each in found) if language else ()
            imports[name] = [place for each in places for place in each]
        return _draw(dependency_graph(imports, focus), [])


async def _with_name(arguments: SymbolParameters, context: ToolContext) -> SymbolParameters:
    """Return the arguments with the name that stands at their place, to be looked for everywhere."""
    if not is_place(arguments.symbol):
        return arguments
    name = await _name_at(arguments.path, arguments.symbol, context)
    return arguments.model_copy(update={"symbol": name, "path": None})


async def _name_at(path: str | None, place: str, context: ToolContext) -> str:
    """Return the name at a place of a file. ToolRetry if no file is given."""
    if path is None:
        raise ToolRetry("Give the name, or the file as path.")
    return (await name_in(context, path, place)).name


def _codebase(context: ToolContext, path: str | None) -> Codebase:
    return Codebase(context, context.view.roots.resolve(path) if path else None)


async def _definitions(codebase: Codebase, symbol: str) -> Places:
    """Return the definitions that a name refers to, in every file."""
    found: Places = []
    for path in await codebase.defining(symbol_name(symbol)):
        source = await codebase.source(path)
        if source is not None:
            found += [(path, source, definition) for definition in defined(source, symbol)]
    return found


async def _plain(codebase: Codebase, context: ToolContext, arguments: SymbolParameters) -> list[tuple[str, int, str]]:
    matches = await codebase.plain(symbol_name(arguments.symbol))
    return [(context.view.roots.relative(match.path), match.line, match.text.strip()) for match in matches]


def _report(
    symbol: str, targets: Places, sites: list[Site], plain: list[tuple[str, int, str]], left_out: int, *, more: bool
) -> ToolOutput:
    definitions = [definition_site(source, definition) for _, source, definition in targets[:MAX_SITES]]
    shown = sites[:MAX_SITES]
    lines = [f"Definitions of {symbol}: {len(targets) or 'none found'}", *map(_line, definitions)]
    files = len({site.path for site in sites})
    lines += [f"References: {len(sites)}" + (f" in {files} files" if files > 1 else ""), *map(_line, shown)]
    if plain:
        lines += [
            "In files of unknown languages, by text alone:",
            *(f"{path}:{at}: {text}" for path, at, text in plain),
        ]
    if left_out:
        lines.append(f"({left_out} uses left out: local variables, or members of other classes)")
    if any(site.kind == "member" or site.within for site in sites) and len({d.qualified for *_, d in targets}) > 1:
        lines.append("(several definitions have this name; a use after a dot may mean any of them)")
    if more or len(sites) > len(shown):
        lines.append("(more exist; give a path)")
    lines.append(_BY_INDEX)
    data = {
        "definitions": [asdict(site) for site in definitions],
        "references": [asdict(site) for site in shown],
        "text_matches": [{"path": path, "line": at, "text": text} for path, at, text in plain],
        "left_out": left_out,
    }
    return ToolOutput("\n".join(lines), data)


def _exact_definition(exact: ExactPlaces, context: ToolContext) -> ToolOutput:
    lines = [f"{_place_name(place, context)}:{place.line} {place.text}".rstrip() for place in exact.places]
    data = [{"path": _place_name(place, context), "line_start": place.line} for place in exact.places]
    return ToolOutput("\n".join([*lines, f"(lsp: {exact.server})"]), data)


def _exact_report(arguments: SymbolParameters, context: ToolContext, exact: ExactPlaces, targets: Places) -> ToolOutput:
    """Return the references that a server knows, in the same form as those of the index."""
    below = context.view.roots.resolve(arguments.path) if arguments.path else None
    sites = [
        Site(_place_name(place, context), place.line, place.column, "use", place.text)
        for place in exact.places
        if below is None or place.path == below or place.path.startswith(f"{below}/")
    ]
    definitions = [definition_site(source, definition) for _, source, definition in targets[:MAX_SITES]]
    # Most servers count the definition among the references; by line alone, as its column may be that of the keyword.
    at = {(site.path, site.line) for site in definitions}
    uses = [site for site in sites if (site.path, site.line) not in at]
    shown = uses[:MAX_SITES]
    files = len({site.path for site in uses})
    lines = [f"Definitions of {arguments.symbol}: {len(definitions)}", *map(_line, definitions)]
    lines += [f"References: {len(uses)}" + (f" in {files} files" if files > 1 else ""), *map(_line, shown)]
    lines += ["(more exist; give a path)"] if len(uses) > len(shown) else []
    lines += [f"({exact.hidden} in files that may not be shown)"] if exact.hidden else []
    data = {
        "definitions": [asdict(site) for site in definitions],
        "references": [asdict(site) for site in shown],
        "text_matches": [],
        "left_out": exact.hidden,
    }
    return ToolOutput("\n".join([*lines, f"(lsp: {exact.server})"]), data)


def _place_name(place: CodePlace, context: ToolContext) -> str:
    # Without a start it is a place outside of the workspace, as in a library.
    return context.view.roots.relative(place.path) if place.start >= 0 else place.path


def _line(site: Site) -> str:
    where = f" in {site.within}" if site.within else ""
    return f"{site.path}:{site.line}:{site.column} {site.kind}{where}: {site.text}"


def _draw(graph: call_graph.Graph, notes: Sequence[str]) -> ToolOutput:
    text = call_graph.listing(graph) or "Nothing leads from here to another file of the workspace."
    data = {
        "nodes": [asdict(node) for node in graph.nodes],
        "edges": [asdict(edge) for edge in graph.edges],
        "mermaid": call_graph.to_mermaid(graph),
    }
    return ToolOutput("\n".join([text, *notes]), data)


# The dependency graph of files, by imports of files of the workspace.


def dependency_graph(imports: Mapping[str, Iterable[str]], focus: str = "") -> Graph:
    """Return the graph of files by their imports (for each relative path those that it imports); `focus` restricts it
    to one file, its importers and two steps of imports. Above 150 files, their folders represent them.
    """
    edges = {
        (unit(path), unit(target)): None
        for path, targets in sorted(imports.items())
        for target in targets
        if unit(path) != unit(target)
    }
    if focus:
        return _graph(_near(list(edges), unit(focus)), [unit(focus)])
    names = dict.fromkeys(name for edge in edges for name in edge)
    if len(names) > MAX_NODES:
        return _graph(_fold_edges(list(edges)), [])
    return _graph(list(edges), [])


def unit(path: str) -> str:
    """Return the node that represents a file (relative path) in the graph: the file itself, or for Go its folder with a
    `/` at the end.
    """
    return f"{posixpath.dirname(path) or '.'}/" if path.endswith(".go") else path


def _near(edges: list[tuple[str, str]], focus: str) -> list[tuple[str, str]]:
    # Two steps down, one up: what the file needs is needed to understand it, what needs its importers is not.
    direct = {target for source, target in edges if source == focus}
    return [edge for edge in edges if focus in edge or edge[0] in direct]


def _fold_edges(edges: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the edges between folders, at the greatest depth with few enough nodes."""
    for depth in range(8, 0, -1):
        folded = {(_folder(source, depth), _folder(target, depth)): None for source, target in edges}
        kept = [edge for edge in folded if edge[0] != edge[1]]
        if len({name for edge in kept for name in edge}) <= MAX_NODES:
            return kept
    return kept


def _folder(path: str, depth: int) -> str:
    parts = path.rstrip("/").split("/")
    inner = parts if path.endswith("/") else parts[:-1]
    return "/".join(inner[:depth]) + "/" if inner else "./"


def _graph(edges: list[tuple[str, str]], always: list[str]) -> Graph:
    names = list(dict.fromkeys([*always, *(name for edge in edges for name in edge)]))
    kept = set(names[:MAX_NODES])
    nodes = tuple(Node(name, name, "" if name.endswith("/") else name) for name in names[:MAX_NODES])
    return Graph(
        nodes,
        tuple(Edge(source, target) for source, target in edges if source in kept and target in kept),
        len(names) > MAX_NODES,
    )
