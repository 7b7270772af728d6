"""A rewrite learned from two examples: what both have is literal, what differs is a hole, and every hole of the new
side must be one of the old side.

It fits a place only where the place, written by the rewrite's own old form, is the very same text. Not here: renamed
names (`renamings.py`), places in files (`proposals.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from codeagent_lsp.index.grammars import text_of
from codeagent_lsp.inline.next_edit.history import Example, Pair
from codeagent_lsp.inline.next_edit.parsed_text import CALLS, ParsedText, has_above, is_bound, nodes_of, role_of
from codeagent_lsp.workspace.text.visible import cut

if TYPE_CHECKING:
    from tree_sitter import Node

KEYED = ("keyword_argument", "keyword_parameter", "default_parameter", "pair", "keyed_element")
"""Kinds of children of lists that have a name."""


@dataclass(frozen=True)
class Literal:
    """Pattern: a node that had the same text in all examples; `kind` is its type in the grammar."""

    kind: str
    text: str


@dataclass(frozen=True)
class Inner:
    """Pattern: a node of which some children differed; `kind` is its type in the grammar."""

    kind: str
    children: tuple[Pattern, ...]


@dataclass(frozen=True)
class Hole:
    """Pattern: a node that differed between the examples; any node of one of these kinds (types of the grammar) fits.
    Holes of one `number` must have the same text.
    """

    number: int
    kinds: frozenset[str]


@dataclass(frozen=True)
class Rest:
    """Pattern: any number of children of a list. If `counts` is not empty, the list must have that many children in
    all.
    """

    number: int
    counts: frozenset[int]


Pattern = Literal | Inner | Hole | Rest


def fits(pattern: Pattern, node: Node, text: ParsedText, bound: dict[int, str], guard: frozenset[str]) -> bool:
    """Return whether a node matches a pattern; the texts of the holes are put into `bound` by their numbers, also if it
    does not match in the end. A list with one of the children `guard` does not match.
    """
    match pattern:
        case Literal(kind, wanted):
            return node.type == kind and text.of(node) == wanted
        case Hole(number, kinds):
            # A hole that occurs twice has to be the same text both times.
            return node.type in kinds and bound.setdefault(number, text.of(node)) == text.of(node)
        case Inner(kind, children):
            return node.type == kind and _children_fit(children, node, text, bound, guard)
        case Rest():
            return False


def _children_fit(
    wanted: tuple[Pattern, ...], node: Node, text: ParsedText, bound: dict[int, str], guard: frozenset[str]
) -> bool:
    there = node.children
    rest = next((at for at, each in enumerate(wanted) if isinstance(each, Rest)), None)
    if guard and any(key(child) in guard for child in there):
        return False
    if rest is None:
        return len(wanted) == len(there) and all(
            fits(each, child, text, bound, guard) for each, child in zip(wanted, there, strict=True)
        )
    hole = wanted[rest]
    assert isinstance(hole, Rest)
    tail = len(wanted) - rest - 1
    if len(there) < rest + tail or (hole.counts and len(there) not in hole.counts):
        return False
    ends = [*zip(wanted[:rest], there[:rest], strict=True)]
    ends += zip(wanted[rest + 1 :], there[len(there) - tail :], strict=True)
    inner = middle(text, node, rest, tail)
    if not inner and hole.counts == frozenset():
        return False  # what is put between commas needs something before it
    return all(fits(each, child, text, bound, guard) for each, child in ends) and (
        bound.setdefault(hole.number, inner) == inner
    )


def middle_range(node: Node, head: int, tail: int) -> tuple[int, int]:
    """Return the range in bytes (half-open) of a list's children without the first `head` and the last `tail` ones; an
    empty one where they would be if none is left.
    """
    children = node.children
    inner = children[head : len(children) - tail]
    if inner:
        return inner[0].start_byte, inner[-1].end_byte
    at = children[head - 1].end_byte if head else node.start_byte
    return at, at


def middle(text: ParsedText, node: Node, head: int, tail: int) -> str:
    """Return the text of a list's children without the first `head` and the last `tail` ones, '' if none is left."""
    return text.between(*middle_range(node, head, tail))


def key(node: Node) -> str:
    """Return what identifies a child of a list: the name of a keyword argument or of a key, else its whole text."""
    first = node.children[0] if node.type in KEYED and node.children else node
    return text_of(first)


_PROSE = re.compile(r"comment|string|template|char_literal|text\b|heredoc")
_LISTS = re.compile(r"argument|parameter|list|tuple|array|elements|import_specifiers|named_imports|literal_value")
_BLOCKS = re.compile(r"block|body|suite|compound_statement|program|module$|source_file")
_NAMES = re.compile(r"identifier|name|constant")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_EVERYWHERE = frozenset(("self", "cls", "this", "super", "None", "str", "int", "bool", "string", "error", "err", "nil"))


Form = tuple[str | int, ...]
"""Texts, and numbers of the holes between them."""


@dataclass(frozen=True)
class Rewrite:
    """A rewrite learned from two examples: from `pattern`, written as `old`, to `new`. `words` are names that a text
    must contain; a list that has one of the children `guard` was rewritten already.

    `brings` are names that only the new side uses, `takes` those that only the old one uses.
    """

    language: str
    pattern: Pattern
    old: Form
    new: Form
    words: tuple[str, ...]
    guard: frozenset[str] = frozenset()
    brings: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The rewrite on one line for the user, with dots for holes, each side at most 48 characters."""
        return f"{_render_form(self.old)} → {_render_form(self.new)}"

    def places(self, text: ParsedText) -> Iterator[tuple[Node, str]]:
        """Yield pairs of a node of a text that it fits and its new text, in order; none in another language."""
        if text.language != self.language:
            return
        kind = self.pattern.kind if isinstance(self.pattern, Literal | Inner) else ""
        for node in nodes_of(text.root):
            if node.type == kind and (new := self.applied(text, node)) is not None and self._are_known(text, node):
                yield node, new

    def _are_known(self, text: ParsedText, node: Node) -> bool:
        """Return whether the names that the rewrite brings are bound at a node, in its function or in the file, and an
        import that it takes away is not used.
        """
        if "import" in node.type and any(_is_used(text, node, name) for name in self.takes):
            return False
        return all(is_bound(text, node, name) for name in self.brings)

    def applied(self, text: ParsedText, node: Node) -> str | None:
        """Return the new text of a node; None if the rewrite does not fit it exactly."""
        bound: dict[int, str] = {}
        # The tree knows nothing of blanks and comments between nodes: writing over them would lose them.
        if not fits(self.pattern, node, text, bound, self.guard) or _instantiate(self.old, bound) != text.of(node):
            return None
        return _instantiate(self.new, bound)


def learn_rewrite(one: Example, other: Example) -> Rewrite | None:
    """Return the rewrite that two examples have in common, by the smallest nodes that show where it applies; None if
    they have none.
    """
    if one.after.language != other.after.language:
        return None
    bare = False
    for mine, theirs in _levels(one, other):
        if _PROSE.search(mine.old.type):
            return None
        # These tell nothing of what is meant: the node around them does.
        if _LISTS.search(mine.old.type) or _BLOCKS.search(mine.old.type) or not mine.old.child_count:
            continue
        sources = (one.before, other.before), (one.after, other.after)
        found = _Learning(*sources).learn((mine.old, theirs.old), (mine.new, theirs.new))
        if found is None or _rewrites_itself(found, one, mine.new):
            continue
        if bare or isinstance(found.pattern, Inner) or _at_top(mine.old):
            return found
        bare = True  # the same words both times: what is around them tells where they are meant
    return None


def _at_top(node: Node) -> bool:
    return node.parent is not None and node.parent.parent is None


def _levels(one: Example, other: Example) -> Iterator[tuple[Pair, Pair]]:
    """Yield the pairs of both examples that are of the same kinds, each range once, the smallest first."""
    seen = (0, 0)
    for mine in one.pairs:
        for theirs in other.pairs:
            if mine.old.type == theirs.old.type and mine.new.type == theirs.new.type:
                here = (mine.old.start_byte, mine.old.end_byte)
                if here != seen:
                    yield mine, theirs
                seen = here
                break


def _rewrites_itself(found: Rewrite, example: Example, new: Node) -> bool:
    """Return whether the rewrite fits its own result, so that it would be due there again."""
    return any(found.applied(example.after, node) is not None for node in nodes_of(new))


@dataclass
class _Learning:
    """Two examples side by side; `texts` are of the holes, in both."""

    before: tuple[ParsedText, ParsedText]
    after: tuple[ParsedText, ParsedText]
    texts: dict[tuple[str, ...], int] = field(default_factory=dict)
    guard: set[str] = field(default_factory=set)
    words: list[str] = field(default_factory=list)
    members: set[str] = field(default_factory=set)

    def learn(self, olds: tuple[Node, Node], news: tuple[Node, Node]) -> Rewrite | None:
        """Return the rewrite of these nodes, if they are one and it tells where it is due."""
        old_spans: list[tuple[int, int, int]] = []
        new_spans: list[tuple[int, int, int]] = []
        self.guard = self._added_keys(olds[0], news[0]) & self._added_keys(olds[1], news[1])
        pattern = self._old(olds, old_spans)
        if not isinstance(pattern, Literal | Inner) or not self._new(news, new_spans):
            return None
        old = _form(self.before[0], olds[0], old_spans)
        new = _form(self.after[0], news[0], new_spans)
        words = tuple(dict.fromkeys(self.words))
        # Too few names for its holes: it would fit nearly anything of this shape.
        vague = all(word in self.members for word in words) and len(words) < max(1, len(self.texts))
        if vague or old == new or _outgrows(old, new) or _breaks(old) or _breaks(new):
            return None
        brings = tuple(sorted(_plain_names(news[0]) - _plain_names(olds[0])))
        takes = tuple(sorted(set(_all_names(olds[0]) - _all_names(news[0]))))
        return Rewrite(self.before[0].language, pattern, old, new, words, frozenset(self.guard), brings, takes)

    def _added_keys(self, old: Node, new: Node) -> set[str]:
        """Return the keys of what the new side has in lists and the old side has not."""
        had = {key(node) for node in nodes_of(old)}
        return {name for node in nodes_of(new) if node.type in KEYED and (name := key(node)) not in had}

    def _old(self, nodes: Sequence[Node], spans: list[tuple[int, int, int]]) -> Pattern | None:
        kinds, texts = {node.type for node in nodes}, self._texts(self.before, nodes)
        if len(kinds) == 1 and len(set(texts)) == 1:
            self._take_names(nodes[0])
            return Literal(nodes[0].type, texts[0])
        # Bodies that differ are other code, and what holds for the one need not hold for the other.
        if any(_BLOCKS.search(kind) for kind in kinds):
            return None
        counts = {node.child_count for node in nodes}
        if len(kinds) == 1 and len(counts) == 1 and nodes[0].child_count and not _PROSE.search(nodes[0].type):
            children = [self._old(each, spans) for each in zip(*(node.children for node in nodes), strict=True)]
            return None if None in children else Inner(nodes[0].type, tuple(children))  # type: ignore[arg-type]
        if len(kinds) == 1 and 0 not in counts and _LISTS.search(nodes[0].type):
            return self._list(nodes, spans)
        # An operator or a keyword (an unnamed node) that differs is another meaning.
        if not all(node.is_named for node in nodes) or any(_must_be_known(node) for node in nodes):
            return None
        number = self.texts.setdefault(texts, len(self.texts))
        spans.append((nodes[0].start_byte, nodes[0].end_byte, number))
        return Hole(number, frozenset(kinds))

    def _take_names(self, node: Node) -> None:
        """Note the names in a node; those of members say less, as other things have such, too."""
        for leaf in _names_in(node):
            name = self.before[0].of(leaf)
            self.words.append(name)
            if role_of(leaf) == "member":
                self.members.add(name)

    def _list(self, nodes: Sequence[Node], spans: list[tuple[int, int, int]]) -> Pattern:
        head, tail = self._same_ends(self.before, nodes)
        texts = tuple(middle(text, node, head, tail) for text, node in zip(self.before, nodes, strict=True))
        number = self.texts.setdefault(texts, len(self.texts))
        spans.append((*middle_range(nodes[0], head, tail), number))
        first = [Literal(child.type, self.before[0].of(child)) for child in nodes[0].children[:head]]
        last = [Literal(child.type, self.before[0].of(child)) for child in nodes[0].children[-tail:]] if tail else []
        for child in (*nodes[0].children[:head], *(nodes[0].children[-tail:] if tail else ())):
            self._take_names(child)
        # With a guard, what was rewritten already is known by what it has; else only by how many children there are.
        counts = frozenset() if self.guard else frozenset(node.child_count for node in nodes)
        return Inner(nodes[0].type, (*first, Rest(number, counts), *last))

    def _new(self, nodes: Sequence[Node], spans: list[tuple[int, int, int]]) -> bool:
        """Return whether the new nodes are made of literals and holes of the old side alone."""
        texts = self._texts(self.after, nodes)
        number = self.texts.get(texts)
        if number is not None:
            spans.append((nodes[0].start_byte, nodes[0].end_byte, number))
            return True
        if len(set(texts)) == 1:
            return True
        if len({node.type for node in nodes}) > 1 or not nodes[0].child_count:
            return False
        if len({node.child_count for node in nodes}) == 1:
            return all(self._new(each, spans) for each in zip(*(node.children for node in nodes), strict=True))
        return self._new_list(nodes, spans)

    def _new_list(self, nodes: Sequence[Node], spans: list[tuple[int, int, int]]) -> bool:
        """Return whether lists of different lengths are the same but for a hole of the old side."""
        most = self._same_ends(self.after, nodes)
        shortest = min(node.child_count for node in nodes)
        # The longest ends that are alike first, then shorter ones, until what is between them is a hole of the old
        # side.
        for head in range(most[0], -1, -1):
            for tail in range(min(self._same_tail(nodes), shortest - head), -1, -1):
                middles = tuple(middle(text, node, head, tail) for text, node in zip(self.after, nodes, strict=True))
                if (number := self.texts.get(middles)) is not None:
                    spans.append((*middle_range(nodes[0], head, tail), number))
                    return True
        return False

    def _same_tail(self, nodes: Sequence[Node]) -> int:
        pairs = zip(*(reversed(node.children) for node in nodes), strict=False)
        return sum(1 for _ in takewhile(lambda pair: len(set(self._texts(self.after, pair))) == 1, pairs))

    def _same_ends(self, sources: tuple[ParsedText, ParsedText], nodes: Sequence[Node]) -> tuple[int, int]:
        """Return how many children at both ends of lists are the same in both."""
        texts = [[source.of(child) for child in node.children] for source, node in zip(sources, nodes, strict=True)]
        shortest = min(map(len, texts))
        head = next((n for n in range(shortest) if texts[0][n] != texts[1][n]), shortest)
        tail = next((n for n in range(shortest - head) if texts[0][-1 - n] != texts[1][-1 - n]), shortest - head)
        return head, tail

    def _texts(self, sources: tuple[ParsedText, ParsedText], nodes: Sequence[Node]) -> tuple[str, ...]:
        return tuple(source.of(node) for source, node in zip(sources, nodes, strict=True))


def _form(text: ParsedText, node: Node, spans: list[tuple[int, int, int]]) -> Form:
    parts: list[str | int] = []
    at = node.start_byte
    for start, end, number in sorted(spans):
        parts += [text.between(at, start), number]
        at = end
    return (*parts, text.between(at, node.end_byte))


def _must_be_known(node: Node) -> bool:
    """Return whether a node says what is meant, so that another in its place is another thing: what is called, or any
    part of an import.
    """
    parent = node.parent
    if parent is not None and parent.type in CALLS and parent.child_by_field_name("function") == node:
        return True
    return has_above(node, ("import", "use_declaration", "include", "export_clause"), 8)


def _breaks(form: Form) -> bool:
    """Return whether a form goes over lines: their indentation is not the same everywhere."""
    return any(isinstance(part, str) and "\n" in part for part in form)


def _outgrows(old: Form, new: Form) -> bool:
    """Return whether the new side has so much more than the old one that the old one can hardly mean it."""
    before, after = (len(_TOKEN.findall(" ".join(p for p in form if isinstance(p, str)))) for form in (old, new))
    return after > 2 * before + 3


def _instantiate(form: Form, bound: Mapping[int, str]) -> str:
    return "".join(bound.get(part, "") if isinstance(part, int) else part for part in form)


def _render_form(form: Form) -> str:
    return cut(" ".join("".join("…" if isinstance(part, int) else part for part in form).split()), 48)


def _names_in(node: Node) -> list[Node]:
    """Return the names in a node that tell where a rewrite is due: not short ones, and none that every text has."""
    leaves = (each for each in nodes_of(node) if not each.child_count and _NAMES.search(each.type))
    texts = ((leaf, text_of(leaf)) for leaf in leaves)
    return [leaf for leaf, name in texts if len(name) > 2 and name not in _EVERYWHERE]


def _plain_names(node: Node) -> set[str]:
    """Return the names in a node that have to be bound outside of it: no members, no keywords."""
    leaves = (each for each in nodes_of(node) if not each.child_count and _NAMES.search(each.type))
    free = (leaf for leaf in leaves if role_of(leaf) in ("plain", "called", "type"))
    return {text_of(leaf) for leaf in free}


def _all_names(node: Node) -> Counter[str]:
    leaves = (each for each in nodes_of(node) if not each.child_count and _NAMES.search(each.type))
    return Counter(text_of(leaf) for leaf in leaves)


def _is_used(text: ParsedText, place: Node, name: str) -> bool:
    """Return whether a name is used outside of a place."""
    wanted = name.encode()
    found = (each for each in nodes_of(text.root) if not each.child_count and each.text == wanted)
    return any(not place.start_byte <= each.start_byte < place.end_byte for each in found)
