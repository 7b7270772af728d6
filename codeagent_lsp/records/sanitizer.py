"""The sanitizer: any JSON-like value in, the same value out with secrets and identities masked.

Layers, in this order: our own keys, blocks, tokens of known formats, contexts (URLs, headers, command lines,
assignments), paths; and, for mappings, the names of keys. Never changes its argument, never raises on
cycles or odd values, and is idempotent. Not here: the layers themselves, each a module beside this one; where a secret
may be cut in two, as in the output of a command, `masking.py` has to know its beginning as well.
"""

from __future__ import annotations

import os
import re
import string
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import date, time
from decimal import Decimal
from functools import lru_cache
from pathlib import PurePath
from typing import Any
from uuid import UUID

from codeagent_lsp.records.assignments import DIGITS, mask_assignments
from codeagent_lsp.records.command_lines import mask_command_lines
from codeagent_lsp.records.fixed_forms import mask_blocks, mask_vendor_tokens
from codeagent_lsp.records.holders import mask_held
from codeagent_lsp.records.http_secrets import mask_headers, mask_urls
from codeagent_lsp.records.mark import MARK, Mark, Marker, mark_spans, mask_id
from codeagent_lsp.records.names import NameKind, kind_of
from codeagent_lsp.records.own import OwnSecrets
from codeagent_lsp.records.positions import mask_calls
from codeagent_lsp.records.values import is_no_secret, looks_generated, looks_scrambled

SHORTEST = 6  # no secret is shorter than this, with its name
CACHED_TEXT = 65_536
LONGEST_WORD = 65_536
_SIGNS_OF_WORDS = string.ascii_letters + string.digits + "_+-"
_WORD = re.compile(r"[A-Za-z0-9_+-]{0,65536}+")
_CALL_ID = re.compile(r"call_(?<![\w-]call_)(?=[0-9]*[A-Za-z])(?=(?:[A-Za-z]*[0-9]){3})[A-Za-z0-9]{10,64}(?![\w-])")
_UNSEEN = re.compile("(?<=[\\w-])[\u200b-\u200d\u2060\ufeff\u00ad](?=[\\w-])")
_WIDE = re.compile("[Ａ-Ｚａ-ｚ]")
"""Letters as wide as Chinese ones, in which a name may be typed: `ＡＰＩ＿ＫＥＹ`."""
_NARROW = {
    code: code - 0xFEE0
    for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF5B))
    if code not in range(0xFF3B, 0xFF3F)
}
_PIECES = re.compile(f"({MARK.pattern})")
DEEP = 8

_END = r"(?=[\\/\s\"'`:,;)\]}>]|$)"
_HOMES = re.compile(
    rf"/(?<![\w.~-]/)(?:home|Users|(?:var|export)/home|mnt/[a-z]/Users)/(?!Shared\b)[\w.@-]{{1,64}}+{_END}"
)
_WINDOWS_HOMES = re.compile(
    r":(?<=[A-Za-z]:)(?:\\{1,8}|/)(?:Users|Documents and Settings)(?:\\{1,8}|/)[^\\/:*?\"<>|\s]{1,64}" + _END
)
_PART = r"(?=[\w.~@…])[\w.@~…%-]{1,64}"
_LONG = re.compile(rf"/(?<![^\s\"'`=(\[{{,>~:.]/){_PART}(?:/{_PART}){{{DEEP},64}}+")
_LONG_WINDOWS = re.compile(rf":(?P<slash>\\{{1,8}}){_PART}(?:(?P=slash){_PART}){{{DEEP},64}}")
DEEPEST = 64
CYCLE, TOO_DEEP = "<cycle>", "<too deep>"

_AS_THEY_ARE = (bool, int, float, complex, Decimal, date, time, UUID, type(None))
_SCHEMA_TYPES = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
_HEADERS = frozenset(("authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key"))


class Sanitizer:
    """Masks secrets. `secrets` are this program's own keys, or the object that finds them. With `enabled=False` values
    are returned unchanged.

    With `identities`, ids, sessions and paths are shortened or masked as well, which is for records, not for a model.
    `homes` are folders to be written as `~` (None: the user's own); sanitizers that share a `marker` mask a secret by
    the same mark.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        secrets: Iterable[str] | OwnSecrets = (),
        identities: bool = True,
        homes: Iterable[str] | None = None,
        marker: Marker | None = None,
    ) -> None:
        self.enabled = enabled
        self._identities = identities
        self._mark = marker or Marker()
        self._own = secrets if isinstance(secrets, OwnSecrets) else OwnSecrets(secrets)
        self._paths = Paths([os.path.expanduser("~")] if homes is None else homes)  # noqa: PTH111 - never raises
        # By the version of our own keys too: a key that is learnt later has to be found in texts that were seen before.
        self._cached = lru_cache(maxsize=512)(lambda text, version: self._clean(text))
        self._structure = Structure(self.text, self._mark, identities=identities)

    @property
    def hold_back(self) -> int:
        """The number of characters that a stream must keep back, since one of this program's own keys may continue in
        them; 0 without keys.
        """
        return self._own.longest

    def sanitize(self, value: Any) -> Any:
        """Return a copy of `value` with secrets masked in texts, bytes, mappings and sequences, nested in any way. Sets
        become lists, other objects the name of their type. Never raises.
        """
        return self._structure.walk(value) if self.enabled else value

    def text(self, text: str) -> str:
        """Return a text with secrets masked; those of fewer than 6 characters, and all if it is not `enabled`, are
        returned as they are.
        """
        if not self.enabled or len(text) < SHORTEST:
            return text
        return self._cached(text, self._own.version) if len(text) <= CACHED_TEXT else self._clean(text)

    def for_model(self) -> Sanitizer:
        """Return a new sanitizer for what a model reads: with the same keys and the same marks for secrets, but ids and
        paths are kept.
        """
        return Sanitizer(self.enabled, secrets=self._own, identities=False, homes=(), marker=self._mark)

    def _clean(self, text: str) -> str:
        """Return a text masked, also what unseen characters in a name or a secret would hide. They stay in the text."""
        masked = self._mask(text, self._mark)
        if not text.isascii() and (_UNSEEN.search(text) or _WIDE.search(text)):
            masked = self._masked_as_read(text, masked)
        return self._shorten(masked)

    def _masked_as_read(self, text: str, masked: str) -> str:
        """Return a text with what is a secret without its unseen characters, or in letters of the usual width, masked;
        `masked` if that is not more.
        """
        told: dict[str, str] = {}

        def mark(secret: str) -> str:
            made = self._mark(secret)
            told[made] = MARK.sub(lambda match: told.get(match[0], match[0]), secret)
            return made

        plain = _UNSEEN.sub("", text).translate(_NARROW)
        found = self._mask(plain, mark)
        # Nothing more was hidden by them, so the text stays as it was written.
        if len(MARK.sub("", found)) >= len(MARK.sub("", _UNSEEN.sub("", masked))):
            return masked
        pieces = [(piece, told.get(piece, piece)) for piece in _PIECES.split(found) if piece]
        # The pieces do not make up the text, so unseen characters have no certain place: it goes without them.
        if "".join(meant for _, meant in pieces) != plain:
            return found
        return "".join(self._with_unseen(text, pieces))

    def _with_unseen(self, text: str, pieces: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Yield the pieces of a masked text with the unseen characters that `text` has: in a secret, it has them, too.
        Each is given with what it stands for in the text without these.
        """
        # Their offsets in the text without them.
        unseen = [match.start() - number for number, match in enumerate(_UNSEEN.finditer(text))]
        place = begin = 0
        for piece, meant in pieces:
            place += len(meant)
            is_mark = piece != meant
            # Those at the border belong to the text, not to the secret before it.
            end = place + (bisect_left if is_mark else bisect_right)(unseen, place)
            given = text[begin:end]
            yield self._mark(given) if is_mark else given
            begin = end

    def _mask(self, text: str, mark: Mark) -> str:
        # From the surest layer to the vaguest: what one has marked, the later ones leave as it is.
        text = self._own.mask(text, mark)
        text = mask_blocks(text, mark)
        text = mask_vendor_tokens(text, mark)
        text = mask_urls(text, mark)
        text = mask_headers(text, mark)
        text = mask_command_lines(text, mark)
        text = mask_calls(text, mark)
        text = mask_held(text, mark)
        text = mask_assignments(text, mark, sessions=self._identities)
        return _widen(text, mark) if "<secret:" in text else text

    def _shorten(self, text: str) -> str:
        if not self._identities:
            return text
        if "call_" in text:
            text = _CALL_ID.sub(lambda match: self._mark(match[0]), text)
        return self._paths.shorten(text)


def _widen(text: str, mark: Mark) -> str:
    """Return a masked text with the rest of a long secret masked, of which only a part has the form of another one."""
    spans, before = list[tuple[int, int]](), 0
    for each in MARK.finditer(text):
        start, end = each.span()
        left = text[max(before, start - LONGEST_WORD) : start]
        left = left[len(left.rstrip(_SIGNS_OF_WORDS)) :]
        right = _WORD.match(text, end)
        before = end
        start -= len(left) if looks_scrambled(left) else 0
        end += len(right[0]) if right and looks_scrambled(right[0]) else 0
        if (start, end) != each.span():
            spans.append((start, end))
    return mark_spans(text, spans, mark)


# Shortening of paths in records: the home folder becomes `~`, a deep path keeps its ends. URLs are kept.


class Paths:
    """Shortens file paths in texts; `homes` are folders to be written as `~` besides the usual ones."""

    def __init__(self, homes: Iterable[str] = ()) -> None:
        known = sorted({home.rstrip("/\\") for home in homes if len(home.rstrip("/\\")) > 2}, key=len, reverse=True)
        self._own = [re.compile(rf"{re.escape(home)}(?<![\w.~-]{re.escape(home)}){_END}") for home in known]

    def shorten(self, text: str) -> str:
        """Return `text` with homes as `~` and deep paths as `/first/two/…/the/last/three`; a text without a path is
        returned as it is.
        """
        if "/" not in text and "\\" not in text:
            return text
        for own in self._own:
            text = own.sub("~", text)
        text = _LONG.sub(lambda match: _ends(match[0], "/"), _HOMES.sub("~", text))
        if "\\" in text or ":/" in text:
            text = _WINDOWS_HOMES.sub(":~", text)
            text = _LONG_WINDOWS.sub(lambda match: ":" + _ends(match[0][1:], match["slash"]), text)
        return text


def _ends(path: str, slash: str) -> str:
    parts = path.split(slash)[1:]
    if not any(part[:1].isalpha() for part in parts[:2]):
        return path
    return slash + slash.join((*parts[:2], "…", *parts[-3:]))


# Traversal of JSON-like values that decides by key names: mask the value, shorten an id, or sanitize the text.


class Structure:
    """Sanitizes nested values by the names of their keys. `text` sanitizes a text, `mark` replaces a whole secret
    value.
    """

    def __init__(self, text: Callable[[str], str], mark: Mark, *, identities: bool) -> None:
        self._text = text
        self._mark = mark
        self._identities = identities

    def walk(self, value: Any) -> Any:
        """Return a sanitized copy of `value`; what holds itself or is nested deeper than 64 levels is replaced by a
        note.
        """
        return self._any(value, ())

    def _any(self, value: Any, above: tuple[int, ...]) -> Any:
        if isinstance(value, str):
            return self._text(str(value))
        if isinstance(value, _AS_THEY_ARE):
            return value
        if isinstance(value, bytes | bytearray | memoryview):
            return self._text(bytes(value).decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        # By identity, as a value that holds itself has no end to compare by.
        if id(value) in above:
            return CYCLE
        if len(above) >= DEEPEST:
            return TOO_DEEP
        return self._container(value, (*above, id(value)))

    def _container(self, value: Any, above: tuple[int, ...]) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value, above)
        if isinstance(value, Sequence):
            items = self._sequence(list(value), above)
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, Set):
            return [self._any(item, above) for item in value]
        if isinstance(value, PurePath):
            return self._text(str(value))
        if isinstance(value, BaseException):
            return f"{type(value).__name__}: {' '.join(str(self._any(item, above)) for item in value.args)}"
        return f"<{type(value).__name__}>"

    def _mapping(self, value: Mapping[Any, Any], above: tuple[int, ...]) -> dict[Any, Any]:
        items = list(value.items())
        if value.get("kind") == "Secret":  # of Kubernetes: all of its data are secrets
            held = {key: self._replace(value[key], above) for key in ("data", "stringData") if key in value}
            items = [(key, held.get(key, item)) for key, item in items]
        # `{"name": "API_KEY", "value": "…"}`: the name of the value stands beside it, not above it.
        named = _named_value(value)
        return {
            self._key(key): self._under(named if named and key in ("value", "Value") else str(key), item, above)
            for key, item in items
        }

    def _key(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._text(str(key))
        return key if isinstance(key, int | float | bool | type(None)) else self._text(str(key))

    def _under(self, name: str, value: Any, above: tuple[int, ...]) -> Any:
        """Return the sanitized value of a key called `name`."""
        kind = kind_of(name)
        if isinstance(value, str | int) and is_no_secret(name, str(value)):
            return self._any(value, above)
        if kind is NameKind.SECRET or (
            kind is NameKind.PERHAPS and (isinstance(value, str) or name.lower().startswith("cred"))
        ):
            return self._replace(value, above)
        if kind is NameKind.LOOKS and isinstance(value, str) and looks_generated(value):
            return self._mark(value)
        if kind is NameKind.LOOKS and isinstance(value, list | tuple | Mapping):
            items = value.items() if isinstance(value, Mapping) else enumerate(value)
            made = {key: self._under(name, item, above) if isinstance(item, str) else item for key, item in items}
            value = made if isinstance(value, Mapping) else [*made.values()]
        if kind is NameKind.PERHAPS and _is_number_token(name, value):
            return self._mark(str(value))
        if kind is NameKind.SESSION and self._identities:
            return self._replace(value, above)
        if kind is NameKind.IDENTITY and self._identities and _is_leaf(value):
            return mask_id(str(value))
        return self._any(value, above)

    def _replace(self, value: Any, above: tuple[int, ...]) -> Any:
        """Mask every text and number in a value whose name says that it is secret."""
        if value is None or isinstance(value, bool) or value == "" or value == b"":
            return value
        if isinstance(value, bytes | bytearray | memoryview):
            return self._mark(bytes(value).decode("utf-8", "surrogateescape")).encode()
        if isinstance(value, Mapping):
            return self._replace_within(value, above)
        if isinstance(value, Sequence | Set) and not isinstance(value, str):
            return self._guard(value, above, lambda items, here: [self._replace(item, here) for item in items])
        return self._mark(str(value)) if isinstance(value, str | int | float) else self._any(value, above)

    def _replace_within(self, value: Mapping[Any, Any], above: tuple[int, ...]) -> Any:
        if str(value.get("type")) in _SCHEMA_TYPES or _is_schema(value):  # it names a secret; it holds none
            return self._any(value, above)
        return self._guard(
            value.items(), above, lambda items, here: {self._key(key): self._replace(item, here) for key, item in items}
        )

    def _guard(
        self, items: Iterable[Any], above: tuple[int, ...], make: Callable[[list[Any], tuple[int, ...]], Any]
    ) -> Any:
        if len(above) >= DEEPEST:
            return TOO_DEEP
        return make(list(items), (*above, id(items)))

    def _sequence(self, items: list[Any], above: tuple[int, ...]) -> list[Any]:
        """Sanitize the items of a list.

        An item after `--password`, or after a header's name in a pair, is its value.
        """
        if len(items) > 1 and all(isinstance(item, str) for item in items):
            items = self._together(self._together(items, " "), "\n")
        found: list[Any] = []
        for number, item in enumerate(items):
            # Arguments of a command are a list, in which the option and its value are neighbours.
            before = items[number - 1] if number else None
            if isinstance(item, str) and isinstance(before, str) and _announces(before, item, len(items)):
                found.append(self._mark(item))
            else:
                found.append(self._any(item, above))
        return found

    def _together(self, items: list[str], between: str) -> list[str]:
        """Return texts masked as the words of a command, or the lines of a file, which say of each other what they
        are; as they are where they are no such.
        """
        joined = between.join(items)
        if len(joined) > CACHED_TEXT or joined.count(between) != len(items) - 1:
            return items
        masked = self._text(joined).split(between)
        return masked if len(masked) == len(items) else items


def _is_schema(value: Mapping[Any, Any]) -> bool:
    """Return whether a mapping is a JSON schema by a keyword that no other mapping has."""
    more, reference = value.get("additionalProperties"), value.get("$ref")
    choices = (value.get(word) for word in ("anyOf", "oneOf", "allOf"))
    refers = isinstance(reference, str) and reference.startswith("#/")
    return isinstance(more, bool | Mapping) or refers or any(isinstance(each, list) for each in choices)


def _is_number_token(name: str, value: Any) -> bool:
    """Return whether a number is long enough for a token rather than a count."""
    number = isinstance(value, int) and not isinstance(value, bool)
    return number and len(str(abs(value))) >= DIGITS and name.lower().endswith("token")


def _announces(before: str, item: str, count: int) -> bool:
    if before.startswith("--") and "=" not in before:
        kind = kind_of(before.lstrip("-"))
        telling = kind is NameKind.SECRET or (kind is NameKind.PERHAPS and "token" in before.lower())
        return telling and not item.startswith("-") and bool(item)
    if count != 2 or not item:
        return False
    return before.lower() in _HEADERS or (kind_of(before) is NameKind.SECRET and looks_scrambled(item))


def _named_value(value: Mapping[Any, Any]) -> str:
    """Return the name in `{"name": "api_key", "value": "…"}`, as used for headers and variables, or ''."""
    if "value" not in value and "Value" not in value:
        return ""
    name = next((value[word] for word in ("name", "key", "Name", "Key") if word in value), "")
    return name if isinstance(name, str) else ""


def _is_leaf(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""
