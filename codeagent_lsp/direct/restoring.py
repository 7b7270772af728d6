"""Puts back what a reply leaves out though nobody asked for it: of the head of a definition its modifiers, default
values, annotations and type parameters, above it attributes and documentation, and comments between lines that stay.

Models give a function with its body in mind, and write its head again from memory. What is left out stays, unless the
request is about it, it follows from the new body, or the reply puts something else in its place. Pure functions. Not
here: members and entries (`definitions.py`, `entries.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from codeagent_lsp.direct.surroundings import begins_definition, lines_above
from codeagent_lsp.index.comments import comment_of, is_comment_in, is_document
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.index.literals import language_of, literals
from codeagent_lsp.index.other_texts import is_sentence
from codeagent_lsp.index.placeholders import filled_lines
from codeagent_lsp.index.symbols import CALLABLE
from codeagent_lsp.tools.code.extent import extent_of, first_alone, indentation, statement_of
from codeagent_lsp.tools.code.source import Definition, SourceFile, source_of
from codeagent_lsp.tools.code.splices import Splice, applied, docstring_of
from codeagent_lsp.workspace.edits.line_matching import likeness, runs_of
from codeagent_lsp.workspace.text.position import split_lines, with_newlines

if TYPE_CHECKING:
    from tree_sitter import Node

T = TypeVar("T")
# Modifiers, and what follows them, in languages without a grammar here.
_MODIFIERS = {
    "kotlin": "public private protected internal open override suspend inline infix operator tailrec external abstract"
    " final sealed data inner lateinit",
    "lua": "local",
    "scala": "private protected final override implicit lazy sealed abstract case inline",
    "swift": "public private fileprivate internal open static final override mutating required convenience lazy weak",
}
_DEFINING = {
    "kotlin": "fun|class|interface|object|val|var",
    "lua": "function",
    "scala": "def|class|trait|object|val|var",
    "swift": "func|class|struct|enum|protocol|actor|var|let",
}
_ENDINGS = {".kt": "kotlin", ".kts": "kotlin", ".swift": "swift", ".scala": "scala", ".sc": "scala", ".lua": "lua"}
_ABOUT = re.compile(
    r"modifier|\b(?:public|private|protected|internal|sealed|final)\b|visib|access|expos|hid(?:e|den|ing)\b|encapsul"
    r"|a?synchron|sync\b|block(?:s|ing)?\b|await|instance|export|thread.?safe|signature|declar|inherit|overrid|global"
    r"|warn|lint\b|suppress|default|annotat|attribut|decorat|generic|type|param|argument|return|hint"
    r"|公开|公有|私有|受保护|可见|访问|导出|同步|异步|静态|实例|修饰|签名|重写|默认|注解|装饰|泛型|类型|参数|返回|öffentlich|sichtbar|statisch|typ\b|privé|statique"
    r"|pública?|privad[oa]|estátic[oa]",
    re.IGNORECASE,
)
_ABOUT_DOCS = re.compile(r"comment|doc|descri|explain|javadoc|注释|文档|说明|kommentar|beschreib", re.IGNORECASE)
_ABOUT_COMMENTS = re.compile(
    r"comment|remark|\bdocs?\b|document|todo|fixme|clean|tidy|strip|short|simpl|concise|minif|注释|简化|清理|kommentar"
    r"|aufräum|coment|commentaire",
    re.IGNORECASE,
)
_OPEN = re.compile(r"\b(?:TODO|FIX[M]E|X{3}|HACK|BUG|WIP)\b|待办")
_MOST_LINES = 20_000
_MOST_SAID = 20  # comments of a reply
_ALIKE = 0.5
_DIRECTIVE = re.compile(r"#\s*(?:if|ifdef|ifndef|else|elif|endif|pragma|include|define|undef|(?:end)?region|error)\b")
# What follows from the body, or is chosen with it.
_FOLLOWS = frozenset(
    "mut unsafe noexcept synchronized final lazy weak mutating suspend tailrec data open case volatile restrict"  # noqa: SIM905
    " const constexpr consteval reified".split()
)
_MUTABLE = re.compile(r"=\s*(?:\[\]|\{\}|set\(\)|list\(\)|dict\(\)|nil\b)")
_OWN_INSTANCE = re.compile(r"\b(?:this|self|base|super)\b")
_WAITS = re.compile(r"\bawait\b|\.await\b")
_WORDS = re.compile(r"\w+")
# Nodes whose parts are compared one by one; of others only the whole counts, as in a type.
_TAKEN_APART = ("parameter", "declarator", "modifiers")
_WRAPPERS = ("decorated_definition", "export_statement", "template_declaration")
_RESULTS = ("return_type", "result", "type")
_MOST_HEADS = 400
_BEGIN = ("@", "#[", "[", '"""', "'''", ")", "where", "->", ":")
_MODIFIED = re.compile(
    r"(?:pub|async|static|local|export|abstract|virtual|inline|unsafe|final|template|const|var|let)\b"
)


class _Head(NamedTuple):
    """The modifiers of a definition, from `start` to `end` (character offsets)."""

    start: int
    end: int
    words: tuple[str, ...]


def restored(path: str, before: str, after: str, request: str) -> str:
    """Return the new text of a file with what a reply left out of its heads and comments though `request`, the user's
    words, is not about that.
    """
    return with_comments(path, before, with_heads(path, before, after, request), request)


def with_heads(path: str, before: str, after: str, request: str) -> str:
    """Return the new text of a file with what the heads of its definitions had before and lack now, where a definition
    changed in other ways too, nothing else came into its head, and `request`, the user's words, is not about it.
    """
    gone = Counter(filled_lines(before)) - Counter(filled_lines(after))
    # Most changes touch bodies alone, and finding the definitions of a long file takes longer than all else.
    if not any(map(_may_be_of_head, gone)):
        return after
    language = _ENDINGS.get(path[path.rfind(".") :], "")
    if grammar_of(path) is None and not language:
        return after
    if language:
        done = after if _ABOUT.search(request) else _with_modifiers(before, after, request, language)
    else:
        done = _with_heads(path, before, after, request)
    # Where nothing else changes, it was taken away on purpose.
    return after if done.split() == before.split() else done


def with_comments(path: str, before: str, after: str, request: str) -> str:
    """Return the new text of a file with the comments, sentences on lines of their own, that stood between lines which
    are kept; as it is if nothing else has changed, or `request`, the user's words, is about comments.
    """
    if is_document(path) or _ABOUT_COMMENTS.search(request):
        return after
    rows, fresh = split_lines(before), split_lines(after)
    if len(rows) + len(fresh) > _MOST_LINES or not any(is_comment_in(path, row.strip()) for row in rows):
        return after
    there = {row.strip() for row in fresh}
    known = {row.strip() for row in rows}
    said = [row for row in sorted(there - known) if is_comment_in(path, row)][:_MOST_SAID]
    added: dict[int, list[str]] = {}
    places: dict[int, range] = {}
    for run in runs_of(rows, fresh):
        gone = [row.strip() for row in rows[run.old_start : run.old_end]]
        stays = run.new_start == run.new_end < len(fresh) and not there.intersection(gone)
        if not stays or not fresh[run.new_end].strip() or any(map(_DIRECTIVE.match, gone)) or not _is_said(gone):
            continue
        # One that was moved and said in other words is there.
        again = any(likeness(row, each) >= _ALIKE for row in gone for each in said)
        if not again and all(is_comment_in(path, row) for row in gone):
            added[run.new_end] = rows[run.old_start : run.old_end]
            places[run.new_end] = range(run.old_start, run.old_end)
    if not added:
        return after
    # What looks like a comment in a string is its content.
    inside = {line for each in literals(before, language_of(path, before)) for line in range(each.first, each.last + 1)}
    added = {at: lines for at, lines in added.items() if not inside.intersection(places[at])}
    done = "".join("".join((*added.get(at, ()), row)) for at, row in enumerate(fresh))
    # Where nothing else changes, they were taken away on purpose.
    return after if done.split() == before.split() else done


def docstring_splice(old: SourceFile, own: Definition, new: SourceFile, other: Definition) -> Splice | None:
    """Return what puts the docstring of a definition of Python, `own` of the text `old`, into the body of `other` of
    the text `new`; None if that has one, or stands in the line of its head.
    """
    if old.language != "python" or own.body is None or other.body is None:
        return None
    had = docstring_of(own.body)
    if had is None or docstring_of(other.body) is not None or not first_alone(new, other.body.start_byte):
        return None
    was, now = indentation(old, had.start_byte), indentation(new, other.body.start_byte)
    first, *rest = old.slice(had.start_byte, had.end_byte).split("\n")
    text = "\n".join((first, *(now + line.removeprefix(was) if line.startswith(was) else line for line in rest)))
    behind = with_newlines(old.slice(had.end_byte, old.line_after(old.line_after(had.end_byte))), "\n")
    blank = "\n" if behind.split("\n")[1:2] == [""] else ""
    place = new.line_after(_head_end(_bare(other.outer), other))
    return Splice(place, place, f"{now}{text}\n{blank}")


def _may_be_of_head(line: str) -> bool:
    return (
        begins_definition(line)
        or line.startswith(_BEGIN)
        or line.endswith((",", "("))
        or comment_of(line) is not None
        or _MODIFIED.match(line) is not None
    )


def _with_heads(path: str, before: str, after: str, request: str) -> str:
    old, new = source_of(path, before), source_of(path, after)
    if old is None or new is None or new.faults:
        return after
    known, found = _numbered(_definitions(old)), _numbered(_definitions(new))
    pairs = [(known[key], each) for key, each in found.items() if key in known][:_MOST_HEADS]
    splices: list[Splice] = []
    for own, other in pairs:
        was, now = (_code(source, each) for source, each in ((old, own), (new, other)))
        if was == now:
            continue
        heads = list(_head_splices(old, own, new, other, request))
        splices += heads
        splices += _above_splices(old, own, new, other, request, with_head=bool(heads))
        if not _ABOUT_DOCS.search(request) and (docstring := docstring_splice(old, own, new, other)) is not None:
            splices.append(docstring)
    return applied(new, splices) if splices else after


def _definitions(source: SourceFile) -> Iterator[tuple[str, Definition]]:
    for each in source.definitions:
        yield f"{each.symbol.kind} {each.qualified}", each


class _Key(NamedTuple):
    """A name, how many have it, and which of these is meant."""

    name: str
    among: int
    number: int


def _numbered(found: Iterable[tuple[str, T]]) -> Mapping[_Key, T]:
    """Return things by their names and which of the same name they are."""
    counts: Counter[str] = Counter()
    numbered: list[tuple[str, int, T]] = []
    for name, each in found:
        numbered.append((name, counts[name], each))
        counts[name] += 1
    return {_Key(name, counts[name], number): each for name, number, each in numbered}


def _code(source: SourceFile, definition: Definition) -> str:
    return source.slice(definition.outer.start_byte, definition.outer.end_byte)


def _head_splices(
    old: SourceFile, own: Definition, new: SourceFile, other: Definition, request: str
) -> Iterator[Splice]:
    """Yield what puts the head back that a definition had, if the new one has only less of it."""
    if own.body is None or other.body is None or own.symbol.kind != other.symbol.kind:
        return
    left, right = _bare(statement_of(own.outer)), _bare(statement_of(other.outer))
    head, said = (_head_of(source, node, each) for source, node, each in ((old, left, own), (new, right, other)))
    if not head or not said or "".join(head.split()) == "".join(said.split()) or _ABOUT.search(request):
        return
    bodies = [source.slice(each.body.start_byte, each.body.end_byte) for source, each in ((old, own), (new, other))]  # type: ignore[union-attr]
    lost = Counter(_WORDS.findall(head)) - Counter(_WORDS.findall(said))
    if any(re.search(rf"\b{re.escape(word)}\b", request, re.IGNORECASE) for word in lost):
        return
    if bodies[0].split() == bodies[1].split() or not _is_thinner(
        left, right, own.body, other.body, _ends_alike(*bodies)
    ):
        return
    if not all(_still_holds(word, head, *bodies) for word in lost) or _FOLLOWS.intersection(lost):
        return
    # Of a type, what it is derived from is chosen; and a list as a default value is a fault.
    if (own.symbol.kind not in CALLABLE and not head.endswith(said)) or (
        old.language in ("python", "ruby") and _MUTABLE.search(head)
    ):
        return
    # A head of several lines stands as deep as it did.
    if "\n" in head and indentation(old, left.start_byte) != indentation(new, right.start_byte):
        return
    yield Splice(right.start_byte, _head_end(right, other), head)


def _bare(node: Node) -> Node:
    """Return the definition without its decorators and `export`, which are no part of the code that is replaced."""
    while node.type in _WRAPPERS:
        inner = next((child for child in reversed(node.named_children) if "comment" not in child.type), None)
        if inner is None:
            break
        node = inner
    return node


def _head_end(node: Node, definition: Definition) -> int:
    """Return the byte offset behind the last thing in front of the body."""
    body, end, place = definition.body, node.start_byte, node
    assert body is not None
    while place.id != body.id:
        inner = next((each for each in place.children if each.start_byte <= body.start_byte < each.end_byte), None)
        before = [each for each in place.children if each.end_byte <= body.start_byte and "comment" not in each.type]
        end = before[-1].end_byte if before else end
        if inner is None:
            break
        place = inner
    return end


def _head_of(source: SourceFile, node: Node, definition: Definition) -> str:
    return source.slice(node.start_byte, _head_end(node, definition))


def _is_thinner(old: Node, new: Node, body: Node, other: Node, ends_alike: bool) -> bool:
    """Return whether a node has nothing that the old one had not, in its order, apart from the bodies."""
    if old.id == body.id or new.id == other.id:
        return old.id == body.id and new.id == other.id
    if old.text == new.text:
        return True
    holds_body = old.start_byte <= body.start_byte and body.end_byte <= old.end_byte
    apart = holds_body or any(word in old.type for word in _TAKEN_APART)
    if not apart:
        return False
    before = [child for child in old.children if "comment" not in child.type]
    # A parameter with a type and a default value is a node of its own, and one without them a name.
    alike = new.type == old.type or ("parameter" in old.type and "parameter" in new.type and new.children)
    after = [child for child in new.children if "comment" not in child.type] if alike else [new]
    if "parameters" in old.type or old.type.endswith("parameter_list"):
        if old.type != new.type or old.named_child_count != new.named_child_count:
            return False
    elif not alike and (holds_body or not before):
        return False
    at = 0
    for child in after:
        while at < len(before) and not _is_thinner(before[at], child, body, other, ends_alike):
            # What a function throws, and in part what it returns, follows from its body.
            if before[at].type == "throws" or (not ends_alike and _field(old, before[at]) in _RESULTS):
                return False
            at += 1
        if at == len(before):
            return False
        at += 1
    return True


def _field(node: Node, child: Node) -> str:
    number = next((at for at, each in enumerate(node.children) if each.id == child.id), 0)
    return node.field_name_for_child(number) or ""


def _ends_alike(old: str, new: str) -> bool:
    """Return whether two bodies end with the same statement, so that they return the same kind of value."""
    ends = [[line.strip() for line in body.split("\n") if any(map(str.isalnum, line))][-1:] for body in (old, new)]
    return ends[0] == ends[1]


def _still_holds(word: str, head: str, old: str, new: str) -> bool:
    """Return whether what a modifier says can still be true of the new code."""
    if word in ("async", "suspend"):
        return bool(_WAITS.search(new)) or not _WAITS.search(old)
    return word != "static" or len(_OWN_INSTANCE.findall(new)) <= len(_OWN_INSTANCE.findall(old))


def _above_splices(
    old: SourceFile, own: Definition, new: SourceFile, other: Definition, request: str, *, with_head: bool
) -> Iterator[Splice]:
    """Yield what puts the comments, decorators and attributes back that stood above a definition, if it has none of
    them any more. Those that are a part of its head are there `with_head`.
    """
    had, has = extent_of(old, own), extent_of(new, other)
    node = statement_of(own.outer)
    inner, words = _bare(node), ""
    places = [part.start for part in had.parts] + [max(had.core, node.start_byte)]
    lines: list[tuple[str, str]] = []
    for at, part in enumerate(had.parts):
        about = _ABOUT_DOCS if part.kind == "comment" else _ABOUT
        text = old.slice(part.start, places[at + 1]).rstrip()
        if has.has(part.kind) or about.search(request) or (with_head and part.start >= inner.start_byte):
            continue
        # Where it stands in another place now, it belongs to what is there.
        if part.kind != "word" and new.text.count(text) >= old.text.count(text):
            continue
        if part.kind == "word":
            words += f"{text} " if text in ("export", "default", "declare") else ""
            continue
        # Of attributes, only what has a line of its own can be put back as one.
        if "\n" not in old.slice(part.start, places[at + 1])[len(text) :]:
            continue
        if any(word in request for word in _WORDS.findall(text) if len(word) > 3) and part.kind == "attribute":
            continue
        # One whose import has gone, too, went with it.
        name = next(iter(_WORDS.findall(text)), "")
        if part.kind == "attribute" and name and old.text.count(name) > old.text.count(text) and name not in new.text:
            continue
        lines.append((text, part.kind))
    margin = indentation(new, has.top)
    if margin != indentation(old, had.top):
        return
    # Attributes stand below the comments.
    core = statement_of(other.outer).start_byte
    for kind, place in (("comment", has.top), ("attribute", core)):
        if text := "".join(f"{line}\n{margin}" for line, of in lines if of == kind):
            yield Splice(place, place, text)
    if words:
        yield Splice(core, core, words)


def _with_modifiers(before: str, after: str, request: str, language: str) -> str:
    """Return a text in a language without a grammar with the modifiers, and the comments and annotations above them,
    that its definitions lack now.
    """
    old, new = (_numbered(_by_words(text, language)) for text in (before, after))
    done = after
    for key, head in sorted(new.items(), key=lambda item: item[1].start, reverse=True):
        own = old.get(key)
        # Of several with one name, which is which is not known.
        if own is None or key.among > 1 or set(head.words) - set(own.words):
            continue
        lost = [each for each in own.words if each not in head.words]
        # Without a grammar the scope is only known by the margin; and what follows from the body is chosen.
        same_place = _margin(before, own.start) == _margin(after, head.start)
        lost = [each for each in lost if same_place and each not in _FOLLOWS]
        asked = any(re.search(rf"\b{re.escape(each)}", request, re.IGNORECASE) for each in lost)
        kept = [
            each for each in own.words if each in head.words or (each in lost and _still_holds(each, "", before, after))
        ]
        if lost and not asked:
            done = f"{done[: head.start]}{''.join(f'{each} ' for each in kept)}{done[head.end :]}"
        (place, has), (_, had) = _above_line(after, head.start), _above_line(before, own.start)
        missing = [line for line in had if _is_comment(line) not in set(map(_is_comment, has))]
        missing = [line for line in missing if done.count(line.strip()) < before.count(line.strip())]
        if _ABOUT_DOCS.search(request):
            missing = [line for line in missing if not _is_comment(line)]
        begin = done.rfind("\n", 0, head.start) + 1
        above, below = (
            "".join(each for each in missing if _is_comment(each) is is_comment) for is_comment in (True, False)
        )
        done = f"{done[:place]}{above}{done[place:begin]}{below}{done[begin:]}"
    return done


def _margin(text: str, start: int) -> str:
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _above_line(text: str, start: int) -> tuple[int, list[str]]:
    """Return the lines directly above the line of an offset that are comments or annotations, and where they begin."""
    return lines_above(
        text, text.rfind("\n", 0, start) + 1, lambda line: _is_comment(line) or line.strip().startswith("@")
    )


def _is_comment(line: str) -> bool:
    return comment_of(line.strip()) is not None


def _by_words(text: str, language: str) -> Iterator[tuple[str, _Head]]:
    word, name = _word(language).pattern, r"(?:<[^<>\n]*>[ \t]*)?([\w.:]+)"
    head = re.compile(rf"^[ \t]*((?:{word}[ \t]+)*)(?:{_DEFINING[language]})[ \t]+{name}", re.MULTILINE)
    for each in head.finditer(text):
        words = tuple(match[0] for match in _word(language).finditer(each[1]))
        yield each[2], _Head(each.start(1), each.end(1), words)


def _word(language: str) -> re.Pattern[str]:
    """Return what one modifier of a language looks like, with what it has in brackets."""
    return re.compile(rf"\b(?:{'|'.join(_MODIFIERS[language].split())})\b(?:\[\w*\])?")


def _is_said(lines: Sequence[str]) -> bool:
    """Return whether comments hold sentences that may still be true, no code that was put aside or work to be done."""
    said = [comment.said.strip() for line in lines if (comment := comment_of(line)) is not None]
    filled = [each for each in said if any(map(str.isalnum, each))]
    return bool(filled) and all(is_sentence(each) and not _OPEN.search(each) for each in filled)
