"""Small changes of one place each, as mutation testing makes them: what a small fault may have been before. Pure.

A comparison, an operator, a condition, a constant, a variable, the order of two arguments. Where tests decide, and of
all these changes exactly one lets them pass, that one was meant; where several of one line do, it was one of them. Not
here: which definitions are looked at (`gathering.py`), running the tests (`session/proving/trial_tests.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from tree_sitter import Node

from codeagent_lsp.direct.material import ShownFile
from codeagent_lsp.tools.code.source import Definition, SourceFile, walked
from codeagent_lsp.tools.code.splices import Splice, applied

_Change = tuple[int, int, str]
"""What a `Splice` is made of; in order, those of one weight are tried so."""

_OPERATORS: Mapping[str, tuple[str, ...]] = {
    "<": ("<=", ">", ">="),
    "<=": ("<", ">=", ">"),
    ">": (">=", "<", "<="),
    ">=": (">", "<=", "<"),
    "==": ("!=", "<=", ">="),
    "!=": ("==", "<", ">"),
    "===": ("!==",),
    "!==": ("===",),
    "is": ("is not",),
    "is not": ("is",),
    "in": ("not in",),
    "not in": ("in",),
    "and": ("or",),
    "or": ("and",),
    "&&": ("||",),
    "||": ("&&",),
    "+": ("-", "*"),
    "-": ("+",),
    "*": ("+", "/", "**"),
    "/": ("//", "*"),
    "//": ("/", "%"),
    "%": ("//", "/"),
    "**": ("*",),
    "&": ("|", "^"),
    "|": ("&", "^"),
    "^": ("&", "|"),
    "<<": (">>",),
    ">>": ("<<",),
    "+=": ("-=", "="),
    "-=": ("+=", "="),
    "*=": ("/=", "+="),
    "/=": ("*=", "//="),
    "//=": ("/=",),
    "|=": ("&=",),
    "&=": ("|=",),
    "=": ("+=", "-=", "*=", "//=", "/="),
    "break": ("continue",),
    "continue": ("break",),
}
_ONLY_PYTHON = {"//", "//=", "**", "is", "is not", "in", "not in"}
_EXPRESSIONS = re.compile(r"binary|comparison|boolean|infix|assign|operator|break|continue")
_TYPES = re.compile(r"type|generic|template|lifetime|reference")
_PAIRS = (
    ("min", "max"), ("any", "all"), ("some", "every"), ("startswith", "endswith"), ("startsWith", "endsWith"),
    ("lower", "upper"), ("lstrip", "rstrip"), ("lstrip", "strip"), ("rstrip", "strip"), ("find", "rfind"),
    ("index", "rindex"), ("indexOf", "lastIndexOf"), ("split", "rsplit"), ("partition", "rpartition"),
    ("floor", "ceil"), ("append", "extend"), ("push", "unshift"), ("pop", "shift"), ("first", "last"),
    ("issubset", "issuperset"), ("keys", "values"), ("values", "items"), ("appendleft", "append"), ("popleft", "pop"),
    ("ljust", "rjust"), ("HasPrefix", "HasSuffix"), ("bisect_left", "bisect_right"),
)  # fmt: skip
_OTHER_NAMES: dict[str, list[str]] = {}
for _one, _other in _PAIRS:
    _OTHER_NAMES.setdefault(_one, []).append(_other)
    _OTHER_NAMES.setdefault(_other, []).append(_one)
_TRUTH = {"True": "False", "False": "True", "true": "false", "false": "true"}
_WHOLE_NUMBER = re.compile(r"\d{1,9}")
_CONDITIONAL = re.compile(r"^(?:if|while|elif|conditional|ternary)")
_TURNED = re.compile(r"let_|comparison|not_|unary|^binary_expression")
_RETURN = re.compile(r"^return_(?:statement|expression)$")
_ANSWERED = re.compile(r"boolean_operator|call|comparison")
_LOGIC, _LOGICAL = ("and", "or", "&&", "||"), re.compile(r"boolean_operator|logical")
_COMPARED_TWICE = 5  # children: `a < b < c`
_SIMPLE = re.compile(r"identifier|call|attribute|member|subscript|index|selector|field|name$")
_NAME = re.compile(r"[^\W\d]\w*")
_PROSE = re.compile(
    r"comment|string|heredoc|regex|import|decorator|attribute_item|annotation|type_parameters|parameters$"
)
_UNLIKELY = 2.0
_MOST_SPLICES, _LONGEST = 20_000, 1000


@dataclass(frozen=True, slots=True)
class Variant:
    """A file with one small change: the whole new text, the 1-based number of the changed line, and that line before
    and after, without its indentation. `likely` is False for changes of which there are many, such as another variable,
    or a number that is higher or lower by one.
    """

    text: str
    line: int
    before: str
    after: str
    likely: bool


@dataclass(frozen=True, slots=True)
class Repairs:
    """The variants of a file with which the tests pass, the likeliest first, never none; so many were `tried`."""

    file: ShownFile
    changes: tuple[Variant, ...]
    tried: int

    @property
    def in_one_line(self) -> bool:
        """Whether they are all changes of the same line."""
        return len({change.line for change in self.changes}) == 1


def variants(
    source: SourceFile, definitions: Sequence[Definition], traced: Collection[int], most: int
) -> tuple[Variant, ...]:
    """Return at most `most` variants of a file, one change in one of these definitions each: likely changes first, and
    of those equally likely the ones in the `traced` lines and in the first definition.
    """
    weighed = [
        (kind >= _UNLIKELY, kind + 2.0 * rank - 1.5 * (line in traced), line, splice)
        for rank, definition in enumerate(definitions)
        for kind, line, splice in islice(_splices(source, definition), _MOST_SPLICES)
    ]
    found: dict[str, Variant] = {}
    for unlikely, _, _, place in sorted(weighed):
        if len(found) == most:
            break
        made = _variant(source, Splice(*place), likely=not unlikely)
        if made.text != source.text:
            found.setdefault(made.text, made)
    return tuple(found.values())


def _variant(source: SourceFile, splice: Splice, *, likely: bool) -> Variant:
    first, last = source.line_start(splice.start), source.line_end(splice.end)
    after = source.slice(first, splice.start) + splice.text + source.slice(splice.end, last)
    line = source.line(splice.start)
    return Variant(applied(source, [splice]), line, source.slice(first, last).strip(), after.strip(), likely)


def _splices(source: SourceFile, definition: Definition) -> Iterator[tuple[float, int, _Change]]:
    """Yield each change with its kind, the lower the likelier, and its line."""
    names = _variables(source, definition.node)
    for node in walked(definition.node, lambda node: node is definition.node or not _PROSE.search(node.type)):
        line = node.start_point.row + 1
        if _is_set_again(source, definition.node, node):
            yield from ((kind, line, splice) for kind, splice in _of_node(source, node, names))


def _of_node(source: SourceFile, node: Node, names: frozenset[str]) -> Iterator[tuple[float, _Change]]:
    text = source.slice(node.start_byte, node.end_byte) if not node.child_count or node.type in _OPERATORS else ""
    place = node.start_byte, node.end_byte
    yield from ((1.0 * (text == "="), (*place, new)) for new in _operators(node, text, source.language))
    yield from ((0.5, (*place, new)) for new in _constants(node, text))
    yield from ((1.0, (*place, new)) for new in _OTHER_NAMES.get(text, ()))
    if node.end_byte - node.start_byte <= _LONGEST:
        yield from ((0.5, splice) for splice in _without(source, node))
        yield from ((0.5, splice) for splice in _negate(source, node))
        yield from ((1.5, splice) for splice in _swap(source, node))
    yield from ((_UNLIKELY, splice) for splice in _bound(source, node, names))
    if text in names and _is_use(node):
        yield from ((_UNLIKELY, (*place, new)) for new in sorted(names) if new != text)
        if _is_counted(node):
            yield from ((_UNLIKELY, (*place, f"{text} {sign} 1")) for sign in "+-")


def _operators(node: Node, text: str, language: str) -> Iterator[str]:
    parent = node.parent
    if parent is None or text not in _OPERATORS or not _EXPRESSIONS.search(parent.type) or _TYPES.search(parent.type):
        return
    if len(parent.children) == 2 and text in ("-", "+", "*", "&", "!"):  # a sign
        return
    yield from (new for new in _OPERATORS[text] if language == "python" or new not in _ONLY_PYTHON)


def _constants(node: Node, text: str) -> Iterator[str]:
    if text in _TRUTH:
        yield _TRUTH[text]
    elif _WHOLE_NUMBER.fullmatch(text) and node.is_named and "float" not in node.type:
        number = int(text)
        yield from (str(each) for each in dict.fromkeys((number + 1, number - 1, 0, 1)) if each != number)


def _without(source: SourceFile, node: Node) -> Iterator[_Change]:
    """Yield what is left of `not x`, `-x`, `x + 1`, `a and b` without a part."""
    children = [child for child in node.children if child.type not in ("(", ")")]
    place = node.start_byte, node.end_byte
    if len(children) == 2 and re.search(r"not|unary|prefix", node.type):
        yield *place, source.slice(children[1].start_byte, children[1].end_byte)
    if len(children) == 3 and re.search(r"binary|boolean", node.type) and children[1].type in _OPERATORS:
        for kept in (children[0], children[2]):
            yield *place, source.slice(kept.start_byte, kept.end_byte)


def _bound(source: SourceFile, node: Node, names: Collection[str]) -> Iterator[_Change]:
    """Yield a slice of Python with a bound where it has none."""
    if node.type != "slice":
        return
    text = source.slice(node.start_byte, node.end_byte)
    for bound in (*sorted(names), "1", "-1"):
        if text.startswith(":"):
            yield node.start_byte, node.start_byte, bound
        if text.endswith(":"):
            yield node.end_byte, node.end_byte, bound


def _is_set_again(source: SourceFile, definition: Node, sign: Node) -> bool:
    """Return whether a `=` is none of an assignment, or of one to what the definition has named before: only that can
    have been added to, or multiplied.
    """
    target = sign.parent.child_by_field_name("left") if sign.type == "=" and sign.parent is not None else None
    if target is None:
        return True
    name = re.escape(source.slice(target.start_byte, target.end_byte))
    return re.search(rf"(?<!\w){name}(?!\w)", source.slice(definition.start_byte, target.start_byte)) is not None


def _negate(source: SourceFile, node: Node) -> Iterator[_Change]:
    """Yield what is true or false, turned round; of a choice between two values, the other way round."""
    parts = node.named_children
    if node.type == "conditional_expression" and len(parts) == 3 and source.language == "python":
        first, condition, second = (source.slice(each.start_byte, each.end_byte) for each in parts)
        yield node.start_byte, node.end_byte, f"{second} if {condition} else {first}"
        return
    for tested in _answers(node):
        # A comparison, a `not`: turned round by the operator already.
        if _TURNED.search(tested.type) and len(tested.children) < _COMPARED_TWICE:
            continue
        framed = tested.type == "parenthesized_expression"  # C and its heirs: the brackets belong to the statement
        inner = source.slice(tested.start_byte + framed, tested.end_byte - framed)
        whole = tested.named_children[0].type if framed and tested.named_children else tested.type
        sign = "not " if source.language in ("python", "lua") else "!"
        negated = f"{sign}{inner}" if _SIMPLE.search(whole) else f"{sign}({inner})"
        yield tested.start_byte + framed, tested.end_byte - framed, negated


def _answers(node: Node) -> Iterator[Node]:
    """Yield the parts of a node that are true or false: the condition of a branch or a loop, both sides of an `and` or
    an `or`, and a returned call or pair of comparisons, which may be.
    """
    parts = node.named_children
    condition = node.child_by_field_name("condition") if _CONDITIONAL.match(node.type) else None
    if condition is not None:
        yield condition
    elif len(node.children) == 3 and node.children[1].type in _LOGIC:
        yield from (part for part in parts if not _LOGICAL.search(part.type))
    elif _RETURN.match(node.type) and len(parts) == 1 and _ANSWERED.search(parts[0].type):
        yield parts[0]


def _swap(source: SourceFile, node: Node) -> Iterator[_Change]:
    """Yield a call with two neighbouring arguments in the other order, and an operation with its operands so."""
    parts: Sequence[Node] = ()
    if re.search(r"argument", node.type):
        parts = node.named_children
    elif len(node.children) == 3 and node.children[1].type in ("-", "/", "//", "%", "<<", ">>"):
        parts = (node.children[0], node.children[2])
    for one, other in pairwise(parts):
        if "comment" in one.type + other.type or "keyword" in one.type + other.type:
            continue
        first, second = (source.slice(each.start_byte, each.end_byte) for each in (one, other))
        between = source.slice(one.end_byte, other.start_byte)
        if first != second:
            yield one.start_byte, other.end_byte, f"{second}{between}{first}"


def _variables(source: SourceFile, definition: Node) -> frozenset[str]:
    """Return the names that a definition binds: parameters, targets of assignments and loops."""
    found = set()
    for node in walked(definition):
        if node.type not in ("identifier", "simple_parameter", "variable_name"):
            continue
        text, above = source.slice(node.start_byte, node.end_byte), node.parent
        for _ in range(3):
            if above is None:
                break
            if "parameter" in above.type:
                found.add(text)
            bound = above.child_by_field_name("left") or above.child_by_field_name("pattern")
            binds = re.search(r"assign|for|declarat|let|short_var", above.type)
            if bound is not None and binds and bound.start_byte <= node.start_byte < bound.end_byte and _is_use(node):
                found.add(text)
            above = above.parent
    return frozenset(name for name in found if name not in ("self", "this", "cls"))


def _is_use(node: Node) -> bool:
    """Return whether an identifier is a variable by itself: no member, no name of an argument or of a function."""
    parent = node.parent
    if parent is None or node.type != "identifier":
        return False
    return not any(
        named is not None and named.id == node.id
        for field in ("attribute", "property", "field", "name", "function", "key")
        for named in (parent.child_by_field_name(field),)
    )


def _is_counted(node: Node) -> bool:
    """Return whether a variable stands where one more or less may be meant: a bound, an index, a result."""
    parent = node.parent
    if parent is None or not re.search(r"subscript|slice|argument|return|index|range|assign", parent.type):
        return False
    # What is indexed or assigned to is no number.
    others = (parent.child_by_field_name(field) for field in ("left", "value", "object", "operand"))
    return all(other is None or other.id != node.id for other in others)
