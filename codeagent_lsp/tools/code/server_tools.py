"""The tools `rename_symbol`, `code_actions`, `hover` and `type_hierarchy`: what language servers know and can change.
Where no server answers, a name is renamed by the syntax trees, as far as they are sure.

Not here: definitions, references and calls, for which the code index is a second source (`graph_tools.py`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp.call_forms import CallForms, ForeignTool
from codeagent_lsp.config import Settings
from codeagent_lsp.errors import EditRefused, ErrorCode, PermissionDenied, ToolFailed, ToolRetry
from codeagent_lsp.language_servers.answers import (
    NamedItem,
    OfferedAction,
    ServerAnswer,
    Texts,
    actions,
    hover_text,
    items,
    places,
)
from codeagent_lsp.language_servers.server_edits import ServerEdit, Splice, edited_paths, server_edit
from codeagent_lsp.tools.code.asking_servers import (
    NamedPlace,
    ask,
    ask_again,
    first,
    name_in,
    no_server,
    server_calls,
    shown_places,
)
from codeagent_lsp.tools.code.codebase import Codebase
from codeagent_lsp.tools.code.reading_tools import files_of
from codeagent_lsp.tools.code.rename import Renamed, rename, rename_elsewhere
from codeagent_lsp.tools.code.source import Definition, SourceFile, source_of
from codeagent_lsp.tools.code.splices import applied
from codeagent_lsp.tools.code.uses import of_one_kind
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.diagnostics.syntax import syntax_errors
from codeagent_lsp.tools.files.edit_tools import EditFile, hunks_told
from codeagent_lsp.tools.permissions.policy import decide
from codeagent_lsp.tools.tool import FILE_PATH, Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.changes.staging import Step
from codeagent_lsp.workspace.files.file_view import FileText, StagedFile
from codeagent_lsp.workspace.text.excerpts import join_names
from codeagent_lsp.workspace.text.position import LineIndex, line_span

SECONDS = 60.0
MAX_TYPES = 100
_NAMED, _NUMBERS = 3, 20
_NAME = re.compile(r"[^\W\d][\w$?!]*|\$?[^\W\d][\w$]*")
Fits = Callable[[str, Splice], bool]
"""Returns whether a splice of a text is what was asked for."""

_MOST_TOLD = 2000


class PlaceParameters(Parameters):
    """Parameters of `hover` and `type_hierarchy`: a name in a file, by itself, by its 1-based line, or by both."""

    path: str = Field(description="File, relative to the workspace")
    symbol: str = Field("", description="name or Class.method")
    line: int | None = Field(None, ge=1, description="Line of the name, if it occurs on several")


class RenameSymbolParameters(PlaceParameters):
    """Parameters of `rename_symbol`: a name in a file, and the new one."""

    new_name: str = Field(min_length=1, description="The new name")


class RenameSymbol(Tool[RenameSymbolParameters]):
    """The tool `rename_symbol`: stages the renaming of a name in all files, by a language server, else by syntax as far
    as that is sure.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "rename_symbol",
        "Rename a function, class, variable or other name in all files at once, by the language server, else by "
        "syntax. Give symbol, or line, or both.",
        "write",
        group="code",
        timeout=SECONDS,
        path_parameters=("path",),
        hooked_as=("edit_file", "Edit"),
    )
    parameters = RenameSymbolParameters
    example: ClassVar[Example] = {"path": "src/cart.py", "symbol": "Cart.total", "new_name": "sum"}
    forms: ClassVar[CallForms] = CallForms(
        arguments=FILE_PATH,
        foreign=(ForeignTool("vscode_renameSymbol", ("Copilot",), ignored=("lineContent", "uri")),),
    )

    async def run(self, arguments: RenameSymbolParameters, context: ToolContext) -> ToolOutput:
        """Stage the renaming and report its places; a server's edit is refused if a place does not hold the old name.
        ToolRetry for an invalid name or place, ToolFailed if neither a server nor the syntax can do it, EditRefused or
        PermissionDenied; then nothing is staged.
        """
        new = arguments.new_name.strip()
        if not _NAME.fullmatch(new):
            raise ToolRetry(f"{arguments.new_name!r} is no name.")
        _require_place(arguments)
        place = await name_in(context, arguments.path, arguments.symbol, arguments.line)
        if place.name == new:
            raise ToolRetry(f"It is called {new} already.")
        at = (place.offset, place.offset)
        for answer in await ask(context, "textDocument/rename", place.path, at, {"newName": new}):
            # Before anything is staged: half a rename is worse than none.
            await _require_whole(context, answer, place)
            # Each place is checked as well: a server that is a version behind would put the new name amid other words.
            report = await stage_edit(
                context, answer, answer.result, lambda text, each: _renames(text, each, place.name, new)
            )
            return ToolOutput(report)
        return ToolOutput(await _renamed_by_syntax(context, place, new))


class CodeActionsParameters(Parameters):
    """Parameters of `code_actions`: the lines of a file, 1-based and inclusive, the kinds of LSP to which actions are
    limited, and the title of the one to apply, if any.
    """

    path: str = Field(description="File, relative to the workspace")
    line_start: int = Field(1, ge=1, description="First line")
    line_end: int | None = Field(None, ge=1, description="Last line; the first one if left out")
    kinds: list[str] | None = Field(None, description="quickfix, refactor, source.organizeImports …")
    apply: str | None = Field(None, description="Title of the action to stage; nothing is changed if left out")


class CodeActions(Tool[CodeActionsParameters]):
    """The tool `code_actions`: lists the quick fixes and refactorings of language servers for some lines, or stages
    one.
    """

    traits: ClassVar[ToolTraits] = ToolTraits(
        "code_actions",
        "List the quick fixes and refactorings that language servers offer for some lines; with apply, stage one.",
        "write",
        group="code",
        timeout=SECONDS,
        path_parameters=("path",),
        hooked_as=("edit_file", "Edit"),
    )
    parameters = CodeActionsParameters
    example: ClassVar[Example] = {"path": "src/cart.py", "line_start": 3, "apply": "Add missing import"}
    forms: ClassVar[CallForms] = CallForms(arguments=FILE_PATH)
    output = list[dict[str, str]]

    async def run(self, arguments: CodeActionsParameters, context: ToolContext) -> ToolOutput:
        """Return the titles, none without a server; or stage the edit of the one in `apply` and report it. ToolRetry
        for an unknown title or if the file changed meanwhile, ToolFailed for one that is no edit but a command,
        EditRefused or PermissionDenied with nothing staged.
        """
        path = context.view.roots.resolve(arguments.path)
        text = (await asyncio.to_thread(context.view.read, path)).text
        span = _lines(text, arguments.line_start, arguments.line_end or arguments.line_start)
        more = {"context": {"diagnostics": [], **({"only": arguments.kinds} if arguments.kinds else {})}}
        answers = await ask(context, "textDocument/codeAction", path, span, more)
        offered = [(answer, action) for answer in answers for action in actions(answer)]
        if arguments.apply is None:
            lines = [f"{action.title} ({action.kind or 'action'}, {answer.server})" for answer, action in offered]
            data = [{"title": action.title, "kind": action.kind, "server": answer.server} for answer, action in offered]
            return ToolOutput("\n".join(lines) or "No code actions for these lines.", data)
        chosen = next((pair for pair in offered if pair[1].title == arguments.apply.strip()), None)
        if chosen is None:
            titles = "; ".join(action.title for _, action in offered) or "none"
            raise ToolRetry(f"There is no action {arguments.apply!r} here. Offered: {titles}.")
        edit = await _edit_of(context, *chosen, path)
        # The action was offered for the text of before, and its edit counts in lines and columns of that one.
        if (await asyncio.to_thread(context.view.read, path)).text != text:
            raise ToolRetry(f"{arguments.path} changed meanwhile. Ask again.")
        return ToolOutput(await stage_edit(context, chosen[0], edit))


class Hover(Tool[PlaceParameters]):
    """The tool `hover`: the type and documentation of a name, by a language server."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "hover",
        "The type, signature and documentation of a name in a file, by the language server.",
        "read",
        group="code",
        timeout=SECONDS,
        path_parameters=("path",),
    )
    parameters = PlaceParameters
    example: ClassVar[Example] = {"path": "src/cart.py", "symbol": "Cart.total"}
    forms: ClassVar[CallForms] = CallForms(arguments=FILE_PATH, foreign=server_calls(("hover",), place="symbol"))

    async def run(self, arguments: PlaceParameters, context: ToolContext) -> ToolOutput:
        """Ask the servers and return the text, in Markdown or plain, of the first that has one. ToolFailed if none has,
        ToolRetry if there is no such name.
        """
        _require_place(arguments)
        place = await name_in(context, arguments.path, arguments.symbol, arguments.line)
        answers = await ask(context, "textDocument/hover", place.path, (place.offset, place.offset))
        texts = [hover_text(answer) for answer in answers]
        found = next(filter(None, texts), None)
        if found is None:
            raise no_server(arguments.path)
        return ToolOutput(found)


class TypeHierarchy(Tool[PlaceParameters]):
    """The tool `type_hierarchy`: the direct supertypes and subtypes of a type, by a language server."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "type_hierarchy",
        "The types that a class or interface extends, and those that extend it, by the language server.",
        "read",
        group="code",
        timeout=SECONDS,
        path_parameters=("path",),
    )
    parameters = PlaceParameters
    example: ClassVar[Example] = {"path": "src/cart.py", "symbol": "Cart"}
    forms: ClassVar[CallForms] = CallForms(arguments=FILE_PATH)
    output = dict[str, Any]  # supertypes, subtypes

    async def run(self, arguments: PlaceParameters, context: ToolContext) -> ToolOutput:
        """Return one line for each type, one step up and one step down; the data has `supertypes` and `subtypes`.
        ToolFailed if no server answers, ToolRetry if there is no such name.
        """
        _require_place(arguments)
        place = await name_in(context, arguments.path, arguments.symbol, arguments.line)
        at = (place.offset, place.offset)
        found = await first(context, await ask(context, "textDocument/prepareTypeHierarchy", place.path, at), items)
        if found is None:
            raise no_server(arguments.path)
        answer, start = found
        data: dict[str, list[dict[str, Any]]] = {}
        lines = []
        for key, method in (("supertypes", "typeHierarchy/supertypes"), ("subtypes", "typeHierarchy/subtypes")):
            types = await _related_places(context, answer, method, place.path, start[0])
            data[key] = [{"name": each.name, **asdict(each.place)} for each in types]
            lines += [f"{key.capitalize()} of {start[0].name}: {len(types)}", *(_line(context, each) for each in types)]
        return ToolOutput("\n".join([*lines, f"(lsp: {answer.server})"]), data)


async def _related_places(
    context: ToolContext, answer: ServerAnswer, method: str, path: str, item: NamedItem
) -> list[NamedItem]:
    again = await ask_again(context, answer, method, path, {"item": item.raw})
    if again is None:
        return []
    found = await asyncio.to_thread(items, again, Texts(context.view))
    shown = set(shown_places(context, [each.place for each in found]))
    return [each for each in found if each.place in shown][:MAX_TYPES]


async def _edit_of(context: ToolContext, answer: ServerAnswer, action: OfferedAction, path: str) -> Any:
    """Return the edit of an action, which some servers make only when they are asked for it."""
    if edit := action.raw.get("edit"):
        return edit
    resolved = await ask_again(context, answer, "codeAction/resolve", path, {"item": action.raw})
    edit = resolved.result.get("edit") if resolved is not None and isinstance(resolved.result, dict) else None
    if not edit:
        raise ToolFailed(f"{action.title!r} is no edit but a command, and commands are not run.", ErrorCode.NOT_FOUND)
    return edit


def _require_place(arguments: PlaceParameters) -> None:
    if not arguments.symbol and arguments.line is None:
        raise ToolRetry("Give symbol or line.")


async def _renamed_by_syntax(context: ToolContext, place: NamedPlace, new: str) -> str:
    """Rename the definition at a place and its certain uses; return the report, which names the lines that are left."""
    codebase = Codebase(context)
    files, sources = {}, {}
    for path in {place.path: None, **dict.fromkeys(await codebase.using(place.name))}:
        files[path] = await asyncio.to_thread(context.view.read, path)
        if (source := await asyncio.to_thread(source_of, codebase.relative(path), files[path].text)) is not None:
            sources[path] = source
    if (home := sources.get(place.path)) is None:
        raise no_server(codebase.relative(place.path))
    found = [each for each in home.definitions if _is_at(home, each, place.offset)]
    if not found:
        raise ToolRetry(f"{place.name} is not defined in {home.path}. Give the file that defines it.")
    # Overloads, and the getter and setter of one property, are one name.
    same = [each for each in home.definitions if each.qualified == found[0].qualified]
    definitions = [each for each in same if of_one_kind(each, found[0], home.language)]
    targets = await files_of(codebase, context)

    def renamed() -> dict[str, Renamed]:
        return {
            path: rename(home, definitions, new)
            if path == place.path
            else rename_elsewhere(source, home, definitions, new, targets)
            for path, source in sources.items()
        }

    made = await asyncio.to_thread(renamed)
    texts = {path: applied(sources[path], each.splices) for path, each in made.items() if each.splices}
    count = sum(len(each.splices) for each in made.values())
    report = await staged_texts(context, texts, files, count, "syntax, as no language server answered")
    left = [
        f"  {sources[path].path}: {join_names(map(str, each.left), _NUMBERS)}"
        for path, each in made.items()
        if each.left
    ]
    if not left:
        return report
    head = f"{place.name} is left, as the syntax does not show that it is the same; look at these lines (as they were):"
    return "\n".join([report, head, *left])


def _is_at(source: SourceFile, definition: Definition, offset: int) -> bool:
    name = definition.name
    return name is not None and source.char(name.start_byte) <= offset < source.char(name.end_byte)


async def _require_whole(context: ToolContext, answer: ServerAnswer, place: NamedPlace) -> None:
    """Raise ToolFailed if a rename leaves out a file of the workspace in which the server itself knows uses: some do
    when they have not noticed everything.
    """
    more = {"context": {"includeDeclaration": False}}
    found = await ask_again(context, answer, "textDocument/references", place.path, more, (place.offset, place.offset))
    if found is None:
        return
    used = {each.path for each in await asyncio.to_thread(places, found, Texts(context.view))}
    known = used & set(await Codebase(context).files())
    if missing := known - edited_paths(answer.result):
        names = ", ".join(sorted(map(context.view.roots.relative, missing))[:_NAMED])
        raise ToolFailed(
            f"Not made: {answer.server} would leave out {len(missing)} of {len(known)} files that use {place.name} "
            f"({names}). Use find_references and edit_file."
        )


def _renames(text: str, splice: Splice, old: str, new: str) -> bool:
    """Return whether a splice replaces the old name, or puts a text beside one (as in `{old: new}`). One over several
    lines, as of servers that write whole files, may differ in the names alone.
    """
    replaced = text[splice.start : splice.end]
    if "\n" in replaced or "\n" in splice.new:
        name = re.compile(rf"(?<!\w)(?:{re.escape(old)}|{re.escape(new)})(?!\w)")
        return old in replaced and name.split(replaced) == name.split(splice.new)
    return old in replaced or (splice.start == splice.end and _beside(text, splice.start, old))


def _beside(text: str, place: int, name: str) -> bool:
    return text.startswith(name, place) or text.endswith(name, 0, place)


def _lines(text: str, first: int, last: int) -> tuple[int, int]:
    lines = LineIndex.of(text)
    if first > len(lines):
        raise ToolRetry(f"The file has {len(lines)} lines.")
    return line_span(text, lines, first - 1)[0], line_span(text, lines, min(max(last, first), len(lines)) - 1)[1]


def _line(context: ToolContext, item: NamedItem) -> str:
    place = item.place
    name = context.view.roots.relative(place.path) if place.start >= 0 else place.path
    return f"  {item.name} {name}:{place.line}"


# Staging of what a language server wants to change: verified against the present texts and the user's rules, all or
# nothing.


async def stage_edit(
    context: ToolContext, answer: ServerAnswer, edit: Any, fits: Fits = lambda text, splice: True
) -> str:
    """Stage a WorkspaceEdit (LSP) of the server that gave `answer` as one step that can be undone; `fits` returns
    whether a change of a text is expected; return the report for the model. EditRefused or PermissionDenied, and then
    nothing is staged.
    """
    texts = Texts(context.view)
    wanted = await asyncio.to_thread(_verify, context, answer, edit, texts, fits)
    step = _commit(context, wanted.texts, wanted.moves, texts.files)
    head = _head(wanted.count, len({*wanted.texts, *wanted.moves}), f"{answer.server} (lsp)")
    report = await asyncio.to_thread(_report, context, wanted.texts, texts.files, wanted.moves)
    labels = ", ".join(wanted.to_confirm)
    confirm = f"{answer.server} wants the user to confirm: {labels}. Tell them so.\n" if labels else ""
    return f"{head} Change {step.change_id}.\n{confirm}{report}"


async def staged_texts(
    context: ToolContext, texts: Mapping[str, str], files: Mapping[str, FileText], count: int, by: str
) -> str:
    """Stage new texts of several files, by absolute path, with `count` changed places, as one step; return the report.
    EditRefused or PermissionDenied, and then nothing is staged.
    """
    _require_allowed(context, texts)
    for path, text in texts.items():
        _require_sound(context, path, files[path].text, text, by)
    step = _commit(context, texts, {}, files)
    report = await asyncio.to_thread(_report, context, texts, files, {})
    return f"{_head(count, len(texts), by)} Change {step.change_id}.\n{report}"


def _head(count: int, files: int, by: str) -> str:
    places = "1 place" if count == 1 else f"{count} places"
    return f"Staged for the user's decision: {places} in {files} file{'' if files == 1 else 's'}, by {by}."


def _verify(context: ToolContext, answer: ServerAnswer, edit: Any, texts: Texts, fits: Fits) -> ServerEdit:
    wanted = server_edit(answer, edit, texts)
    if not wanted.texts and not wanted.moves:
        raise EditRefused("empty", f"{answer.server} changes nothing.")
    _require_allowed(context, {*wanted.texts, *wanted.moves, *wanted.moves.values()})
    if wanted.to_confirm and _is_applied_unseen(context.settings):
        labels = ", ".join(wanted.to_confirm)
        raise PermissionDenied(
            f"Not made: {answer.server} wants the user to confirm it ({labels}), and changes are applied without a "
            "question here. Make it by edit_file, where it is meant."
        )
    for path, splices in wanted.splices.items():
        before, after, name = _before(texts, path), wanted.texts[path] or "", context.view.roots.relative(path)
        if not all(fits(before, splice) for splice in splices):
            raise EditRefused(
                "not_found", f"{answer.server} would change other text in {name} than what was asked for."
            )
        _require_sound(context, path, before, after, answer.server)
    return wanted


def _require_sound(context: ToolContext, path: str, before: str, after: str, by: str) -> None:
    if len(syntax_errors(path, after) or ()) > len(syntax_errors(path, before) or ()):
        name = context.view.roots.relative(path)
        raise EditRefused("not_found", f"The edit of {by} would break the syntax of {name}.")


def _is_applied_unseen(settings: Settings) -> bool:
    return settings.edits.apply != "review" or settings.permissions.mode in ("acceptEdits", "bypass")


def _before(texts: Texts, path: str) -> str:
    """Return the text of a file as it was read; '' for a new one, though there may be one by now."""
    file = texts.files.get(path)
    return "" if file is None else file.text


def _require_allowed(context: ToolContext, paths: Iterable[str]) -> None:
    """Raise PermissionDenied unless the user's rules let every file be edited without a question of its own, and none
    is named by `.codeagentignore`: who made the edit does not know that file.
    """
    settings, roots = context.settings.permissions, context.view.roots
    for path in sorted(paths):
        if context.view.is_named_for_agents(path):
            raise PermissionDenied(
                f"Not made: it would change {roots.relative(path)}, which .codeagentignore names. Nothing was changed; "
                "leave that file to the user, and change the others by edit_file."
            )
        decision = decide(EditFile.traits, {"path": path}, settings, roots, names=EditFile.forms.names)
        if decision.verdict != "allow":
            name = roots.relative(path)
            raise PermissionDenied(f"Not made: it would change {name}, which may not be edited so ({decision.reason}).")


def _commit(
    context: ToolContext, texts: Mapping[str, str | None], moves: Mapping[str, str], files: Mapping[str, FileText]
) -> Step:
    """Stage the edit on the files as they were read. EditRefused if one of them is another by now: a new file that the
    user has made meanwhile, or one of which the staged state has changed.
    """
    for path in (*texts, *moves):
        if not _is_as_read(context, path, files.get(path)):
            name = context.view.roots.relative(path)
            raise EditRefused("not_found", f"{name} has changed while its edit was made. Ask for it again.")
    moved = {new: files[old] for old, new in moves.items()}
    placed = {moves.get(path, path): text for path, text in texts.items()}
    return context.staging.stage(placed, moved, [files[path] for path in texts if path in files])


def _is_as_read(context: ToolContext, path: str, file: FileText | None) -> bool:
    """Return whether a file is still new, or has the same staged text as when it was read. What the user types into it
    does not count: that is merged.
    """
    if file is None:
        return not context.view.exists(path)
    now = context.staging.lookup(path)
    return now == (StagedFile(file.text) if file.source == "staged" else None)


def _report(
    context: ToolContext, texts: Mapping[str, str | None], files: Mapping[str, FileText], moves: Mapping[str, str]
) -> str:
    name = context.view.roots.relative
    before = {path: file.text if (file := files.get(path)) else "" for path in texts}
    told = [hunks_told(name(path), before[path], text or "") for path, text in texts.items()]
    whole = "\n".join([*told, *(f"moved {name(old)} to {name(new)}" for old, new in moves.items())])
    if len(whole) <= _MOST_TOLD:
        return whole
    return f"{whole[:_MOST_TOLD]}\n(and more; files: {', '.join(map(name, texts))})"
