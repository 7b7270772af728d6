"""Finds the rename that the words of a task ask for, and makes the new texts by the syntax tree, without a model.

Only where the words are explicit, one definition is meant, and every use is shown to be of it; otherwise there is no
result and the model does it. Not here: uses in one text (`tools/code/uses.py`), which files are looked at
(`session/solving/solver_workspace.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.code.imports import ImportTargets
from codeagent_lsp.tools.code.meaning import defined, is_member, is_prescribed, symbol_name
from codeagent_lsp.tools.code.rename import Renamed, rename, rename_elsewhere
from codeagent_lsp.tools.code.source import Definition, SourceFile
from codeagent_lsp.tools.code.splices import applied, problem
from codeagent_lsp.tools.code.uses import Uses, of_one_kind

READ = 2000

# A name, plain or dotted (`a.b`, `A::b`, `A#b`), in quotation marks of any kind or with `()` behind it.
_NAME = r"(?<![\w$.])[`'\"“‘「]?({0}[A-Za-z_$][\w$]*(?:(?:\.|::|#)[A-Za-z_$][\w$]*)*)(?:\(\))?[`'\"”’」]?"
_OLD, _NEW = _NAME.replace("{0}", "?P<old>"), _NAME.replace("{0}", "?P<new>")
_BEFORE = r"(?:(?:the|this|our|my|all|every|uses?|occurrences?|of|from|called|named) )*"
_SORTS = (
    r"(?:(?:class|function|method|parameter|argument|variable|constant|exception|error|attribute|field|property|type"
    r"|struct|enum|interface|trait|macro|symbol|name|identifier)(?:es|s)? (?:called |named )?)*"
)
_TO = r"(?: (?:to|into|as)| ?(?:->|=>|→)) (?:the name )?"
_SHALL_BE = r" (?:should|shall|must|has to|needs to|ought to|is to) (?:now )?be (?:called|named|renamed(?: to)?) "
_FORMS = tuple(
    re.compile(form, re.IGNORECASE | re.ASCII)
    for form in (
        rf"\brenam(?:e|ing) {_BEFORE}{_SORTS}{_OLD}[^!?\n]{{0,80}}?{_TO}{_NEW}",
        rf"{_OLD}{_SHALL_BE}{_NEW}",
        rf"\bchange the name of {_BEFORE}{_SORTS}{_OLD}[^!?\n]{{0,60}}?{_TO}{_NEW}",
        rf"{_OLD} ?(?:的名[字称])?(?:重命名|改名|更名|改)(?:为|成|叫做|叫|到) ?{_NEW}",
        rf"(?:重命名|改名) ?{_OLD} ?(?:为|成|到) ?{_NEW}",
    )
)
# Words that the forms take for a name: "rename it to …", "rename all the …".
_NO_NAMES = frozenset(
    ("a", "an", "the", "it", "its", "be", "to", "in", "on", "for", "and", "of", "across", "everywhere", "something",
     "what", "match", "this", "that", "all", "file", "files")
)  # fmt: skip
_PAIR = r"(?:,|;|\band|、|和) ?[`'\"]?[A-Za-z_$][\w$.]*[`'\"]? ?(?:to|into|as|->|=>|→|(?:改名|重命名)?为) ?[`'\"]?\w"
# A second rename (`, b to c`), another piece of work, or a condition (`but`, `only`): then it is more than a rename.
_MORE = re.compile(
    rf"{_PAIR}|\b(?:add|fix|repair|remove|delete|make|write|implement|move|split|extract|also|then|create|document|replace"
    r"|convert|refactor|let|give|return|change (?!the name))\b|\bupdate (?!(?:all|every|its|the) (?:\w+ )?(?:uses?"
    r"|callers?|calls|references|files?|imports?|tests?|places)\b)|\b(?:keep\w*|leave|alias\w*|deprecat\w*|but|except"
    r"|without|not|don't|only|unless|instead)\b|添加|增加|修复|删除|然后|同时|实现|创建|移动|另外|保留|别名|除了|只|不要|但",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Rename:
    """A requested rename. `old` may be dotted, `new` is a plain name; `alone` says that the task asks for nothing
    else.
    """

    old: str
    new: str
    alone: bool = True

    @property
    def word(self) -> str:
        """The last part of the old name, after its last dot, as it occurs in texts."""
        return symbol_name(self.old)


@dataclass(frozen=True, slots=True)
class Home:
    """The one file that defines the renamed name, by its path relative to the workspace, with its definitions, which
    share one dotted name.
    """

    path: str
    source: SourceFile
    definitions: tuple[Definition, ...]


def rename_in(words: str) -> Rename | None:
    """Return the rename that the first 2,000 characters of a task ask for; None if they ask for none, or for
    several.
    """
    read = words[:READ]
    found = {(match["old"], symbol_name(match["new"])): match for form in _FORMS for match in form.finditer(read)}
    pairs = [pair for pair in found if {each.casefold() for each in pair}.isdisjoint(_NO_NAMES)]
    if len(pairs) != 1 or symbol_name(pairs[0][0]) == pairs[0][1]:
        return None
    match = found[pairs[0]]
    rest = f"{read[: match.start()]}\n{read[match.end() :]}"
    # Words that were not read may ask for anything.
    return Rename(*pairs[0], alone=len(read) == len(words) and not _MORE.search(rest))


def home_of(asked: Rename, sources: Mapping[str, SourceFile], named: Collection[str]) -> Home | None:
    """Return the file that defines the old name, with the definitions. None if there is none; if several files define
    it and not exactly one of them is in `named`; or if the name means things of several kinds.
    """
    found = {path: definitions for path, source in sources.items() if (definitions := _find_meant(asked, source))}
    every = [(each, sources[path].language) for path, definitions in found.items() for each in definitions]
    if not all(of_one_kind(every[0][0], each, language) for each, language in every):
        return None  # such as a type and a function
    if len(found) > 1:
        found = {path: definitions for path, definitions in found.items() if path in named}
    if len(found) != 1:
        return None
    ((path, definitions),) = found.items()
    return Home(path, sources[path], definitions) if len({each.qualified for each in definitions}) == 1 else None


def renames(asked: Rename, home: Home, sources: Mapping[str, SourceFile], files: ImportTargets) -> dict[str, Renamed]:
    """Return the changes by path relative to the workspace, only of files that change. Comments and strings stay as
    they are.

    {} if the new name cannot be used, if a use may mean the definition or something else, or if a base class or an
    interface may prescribe the name.
    """
    if is_prescribed(home.source, home.definitions, sources.values()):
        return {}
    try:
        found = {path: _uses(asked, home, path, source, files) for path, source in sources.items()}
    except EditRefused:
        return {}
    # One use that cannot be shown to be of this definition, and nothing is renamed: a half would break what works.
    if any(each.doubtful for each in found.values()):
        return {}
    changed = {path: each for path, each in found.items() if each.splices}
    # A new name may be a word of the language; which ones are, its grammar knows.
    broken = any(problem(sources[path], applied(sources[path], each.splices)) for path, each in changed.items())
    return {} if broken else changed


def still_used(asked: Rename, home: Home, sources: Mapping[str, SourceFile], files: ImportTargets) -> tuple[str, ...]:
    """Return the relative paths of the files that still define or surely use the old name. `home` is from before the
    rename.
    """
    return tuple(path for path, source in sources.items() if _has(asked, home, path, source, files))


def _find_meant(asked: Rename, source: SourceFile) -> tuple[Definition, ...]:
    """Return the definitions of the old name in a text that other files can use, too."""
    uses = Uses(source)
    # A local variable of the name in another function is none of the task's business.
    return tuple(each for each in defined(source, asked.old) if is_member(source, each) or uses.home(each) is None)


def _has(asked: Rename, home: Home, path: str, source: SourceFile, files: ImportTargets) -> bool:
    if path != home.path:
        return bool(rename_elsewhere(source, home.source, home.definitions, asked.new, files).splices)
    return bool(_find_meant(asked, source))


def _uses(asked: Rename, home: Home, path: str, source: SourceFile, files: ImportTargets) -> Renamed:
    if path == home.path:
        return rename(home.source, home.definitions, asked.new)
    return rename_elsewhere(source, home.source, home.definitions, asked.new, files)
