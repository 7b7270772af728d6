"""Modifiers in front of a definition (`pub`, `static`, `async`, `override`) that a reply leaves out: models give a
function with its body in mind, and write its head again from memory. They stay, unless the request is about them.

Pure functions. Not here: decorators, attributes and `export`, which are no part of the code that is replaced
(`tools/code/extent.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.tools.code.extent import extent_of
from codeagent_lsp.tools.code.source import source_of

_ACCESS = frozenset("public private protected internal fileprivate open pub".split())  # noqa: SIM905
_C = "static inline virtual explicit friend extern"
_SCRIPT = "public private protected static async override abstract"
# Not `const` and `constexpr`: what a new body may do depends on them, and only a compiler knows.
_KNOWN: Mapping[str, str] = {
    "c": _C,
    "cpp": _C,
    "csharp": "public private protected internal static async override virtual abstract sealed partial unsafe readonly",
    "java": "public private protected static final abstract synchronized native default strictfp sealed",
    "javascript": "static async",
    "kotlin": "public private protected internal open override suspend inline infix operator tailrec external abstract"
    " final sealed data inner lateinit",
    "lua": "local",
    "php": "public private protected static final abstract readonly",
    "python": "async",
    "rust": "pub async unsafe extern default",
    "scala": "private protected final override implicit lazy sealed abstract case inline",
    "swift": "public private fileprivate internal open static final override mutating required convenience lazy weak",
    "tsx": _SCRIPT,
    "typescript": _SCRIPT,
}
# What follows the modifiers of a definition in languages without a grammar here.
_DEFINING = {
    "kotlin": "fun|class|interface|object|val|var",
    "lua": "function",
    "scala": "def|class|trait|object|val|var",
    "swift": "func|class|struct|enum|protocol|actor|var|let",
}
_ENDINGS = {".kt": "kotlin", ".kts": "kotlin", ".swift": "swift", ".scala": "scala", ".sc": "scala", ".lua": "lua"}
_ABOUT = re.compile(
    r"modifier|\b(?:public|private|protected|internal|sealed|final)\b|visib|access|expos|hid(?:e|den|ing)\b|encapsul|a?synchron|sync\b|block(?:s|ing)?\b|await|instance|export"
    r"|thread.?safe|signature|declar|inherit|overrid|global|公开|公有|私有|受保护|可见|访问|导出|同步|异步|静态|实例"
    r"|修饰|签名|重写|öffentlich|sichtbar|statisch|privé|statique|pública?|privad[oa]|estátic[oa]",
    re.IGNORECASE,
)
_OWN_INSTANCE = re.compile(r"\b(?:this|self|base|super)\b")
_WAITS = re.compile(r"\bawait\b|\.await\b")


@dataclass(frozen=True, slots=True)
class _Head:
    """The modifiers of a definition, from `start` to `end` (character offsets), and its code behind them."""

    start: int
    end: int
    words: tuple[str, ...]
    code: str


def with_modifiers(path: str, before: str, after: str, request: str) -> str:
    """Return the new text of a file with the modifiers that its definitions had before and lack now, where a definition
    changed in other ways too and `request`, the user's words, is not about modifiers.
    """
    language = _language(path)
    if language not in _KNOWN or _ABOUT.search(request):
        return after
    word = _word(language)
    # Nearly always none is lost, and nothing has to be parsed.
    lost = Counter(word.findall(before)) - Counter(word.findall(after))
    if not lost or any(re.search(rf"\b{re.escape(each)}", request, re.IGNORECASE) for each in lost):
        return after
    old, new = _heads(path, before, language), _heads(path, after, language)
    places = [
        (head.start, head.end, said)
        for name, head in new.items()
        if (own := old.get(name)) is not None and (said := _restored(own, head)) is not None
    ]
    done = after
    for start, end, said in sorted(places, reverse=True):
        done = f"{done[:start]}{said}{done[end:]}"
    # Where nothing else changes, they were taken away on purpose.
    return after if done == before else done


def _restored(old: _Head, new: _Head) -> str | None:
    """Return the modifiers that a definition should have, with a blank behind; None for those that it has."""
    if set(new.words) - set(old.words) or new.code == old.code:
        return None
    kept = [each for each in old.words if each in new.words]
    for is_access in (True, False):
        group = [each for each in old.words if _is_access(each) is is_access]
        # One that has some of them chose among them.
        if group and not any(each in kept for each in group):
            kept += [each for each in group if _still_holds(each, old.code, new.code)]
    said = [each for each in old.words if each in kept]
    return "".join(f"{each} " for each in said) if tuple(said) != new.words else None


def _is_access(word: str) -> bool:
    return word.partition("(")[0].partition("[")[0] in _ACCESS


def _still_holds(word: str, old: str, new: str) -> bool:
    """Return whether what a modifier says can still be true of the new code."""
    if word in ("async", "suspend"):
        return old.partition("(")[0] == new.partition("(")[0] and (bool(_WAITS.search(new)) or not _WAITS.search(old))
    return word != "static" or len(_OWN_INSTANCE.findall(new)) <= len(_OWN_INSTANCE.findall(old))


def _heads(path: str, text: str, language: str) -> Mapping[tuple[str, int], _Head]:
    """Return the heads of the definitions by dotted name and which of the same name, where their number is known."""
    found = _by_tree(path, text, language) if language not in _DEFINING else _by_words(text, language)
    return _numbered(found)


def _numbered(found: Iterable[tuple[str, _Head]]) -> Mapping[tuple[str, int], _Head]:
    counts: Counter[str] = Counter()
    heads: dict[tuple[str, int], _Head] = {}
    for name, head in found:
        heads[name, counts[name]] = head
        counts[name] += 1
    return {(f"{name}/{counts[name]}", number): head for (name, number), head in heads.items()}


def _by_tree(path: str, text: str, language: str) -> Iterator[tuple[str, _Head]]:
    source = source_of(path, text)
    if source is None:
        return
    front = re.compile(rf"(?:{_word(language).pattern}\s+)*")
    for each in source.definitions:
        core = extent_of(source, each).core
        if each.name is None or not core <= each.name.start_byte < each.outer.end_byte:
            continue
        code = source.slice(core, each.outer.end_byte)
        match = front.match(code)
        length = match.end() if match is not None else 0
        start = len(source.slice(0, core))
        yield each.qualified, _Head(start, start + length, _words(language, code[:length]), code[length:])


def _by_words(text: str, language: str) -> Iterator[tuple[str, _Head]]:
    word = _word(language).pattern
    head = re.compile(rf"^[ \t]*((?:{word}[ \t]+)*)(?:{_DEFINING[language]})[ \t]+([\w.:]+)", re.MULTILINE)
    found = list(head.finditer(text))
    for each, after in zip(found, (*found[1:], None), strict=False):
        end = after.start() if after is not None else len(text)
        yield each[2], _Head(each.start(1), each.end(1), _words(language, each[1]), text[each.end(1) : end])


def _words(language: str, text: str) -> tuple[str, ...]:
    return tuple(" ".join(each[0].split()) for each in _word(language).finditer(text))


def _word(language: str) -> re.Pattern[str]:
    """Return what one modifier of a language looks like, with what it has in brackets or quotes."""
    words = "|".join(_KNOWN[language].split())
    return re.compile(rf'\b(?:{words})\b(?:\([\w: ]*\)(?=\s)|\[\w*\]|\s+"[^"\n]*")?')


def _language(path: str) -> str:
    grammar = grammar_of(path)
    return grammar.name if grammar is not None else _ENDINGS.get(path[path.rfind(".") :], "")
