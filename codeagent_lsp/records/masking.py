"""Masking between the model and the workspace: marks in what the model reads, secrets in what it writes; and the
masking of a text that arrives in pieces, so that a secret split between two of them is found.

So a model can edit a file next to a key that it never saw. Of a text in pieces as little is held back as is safe: the
last word, or the last line while it names something that may have a secret as its value, or a private key until it
ends. Of what may have a secret in several lines, such as a document of Kubernetes, no part is given: it is cut only
where no word near looks like one. Not here: finding secrets (`sanitizer.py`), records on disk.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from codeagent_lsp.records.fixed_forms import open_block
from codeagent_lsp.records.mark import MARK, Marker
from codeagent_lsp.records.own import OwnSecrets
from codeagent_lsp.records.sanitizer import CACHED_TEXT, Sanitizer
from codeagent_lsp.records.values import may_hold_scrambled

MOST = 10_000
MOST_PASSES = 4
FEW = 50  # secrets that are looked for one by one
LEAST_REPEATED = 12  # characters of a secret that is looked for where nothing names it
LONGEST_HELD = 65_536
LONGEST_KEY = 8192  # no encoding of a key of ours is expected to be longer
MOST_NEAR = 16_384  # characters that wait for a place to cut
NEAR = 600  # characters from a secret to what names it, some lines above or below
_REST = 4096  # characters that are kept where a text has to be cut
# A line with one of these may name a secret whose value has not come yet.
_TELLING = re.compile(
    r"pass|pwd|secret|token|key|auth|cred|cookie|bearer|basic|session|sid|mnemonic|seed|kennw|\bmot\b|contrase|senha"
    r"|wachtwoord|parola|has[lł]o|пароль|パスワード|비밀번호|mdp|pw\b|call_?id|identified|\baws\b|twilio|\bset(?:env)?\b|密码|口令|密钥|令牌|://|-----"
    r"|#define|\bENV\b|--\w|curl|mysql|redis|login|hooks?\.|webhook|\"|['`].*[:=]|_id\b|\\",
    re.IGNORECASE,
)
# After such an end, the value may stand on the next line.
_OPEN_END = re.compile(
    r"(?:[=:：>\\\"']|=>|--[\w-]+|\b(?:is|ist|lautet|est|es|basic|bearer|password|token|secret|key)"
    r"|\b(?:name|key)[\"']?\s*[:=]\s*[\"']?[\w.-]+[\"',]*)\s*\Z",
    re.IGNORECASE,
)
_SPACE = re.compile(r"\s(?=\S*\Z)")
_WORD = re.compile(r"[A-Za-z0-9!@#$%^*+~/_.=-]{10,}+")
_JUDGED = 400  # characters of a word


class Masking:
    """Masks the secrets in everything that a model reads, and puts them back in what it writes. One per server, so that
    marks are the same everywhere; it remembers the last 10,000 secrets in memory only.

    `secrets` are this program's own keys, of at least 8 characters; `own` finds these; `sanitizer` masks the secrets of
    one text at a time, for texts that are stored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.marker = _Remembering()
        self.own = OwnSecrets(secrets)
        self.sanitizer = Sanitizer(secrets=self.own, identities=False, homes=(), marker=self.marker)

    def hide(self, text: str) -> str:
        """Return `text` with its secrets replaced by marks, also repetitions of a secret without a telling name beside
        them.

        Texts of at most 65,536 characters are searched again until no more secrets are found, as a mark may reveal one
        beside it; so hiding twice changes nothing.
        """
        masked = self._hidden(text)
        for _ in range(MOST_PASSES if "<secret:" in masked and len(masked) <= CACHED_TEXT else 0):
            before, masked = masked, self._hidden(masked)
            if masked == before:
                break
        return masked

    def _hidden(self, text: str) -> str:
        masked = self.sanitizer.text(text)
        if "<secret:" not in masked:
            return masked
        marks = dict.fromkeys(MARK.findall(masked))
        secrets = {secret: mark for mark in marks if len(secret := self.marker.known.get(mark, "")) >= LEAST_REPEATED}
        return _with_marks(masked, secrets)

    def clean(self, value: Any) -> Any:
        """Return a copy of any value, nested in any way, with its secrets replaced by marks; ids and paths are kept,
        sets become lists, other objects the name of their type. Never raises.
        """
        return self.sanitizer.sanitize(value)

    def reveal(self, value: Any) -> Any:
        """Return a copy of the value, nested in mappings, lists and tuples, with marks replaced by the secrets. Marks
        whose secret is not known stay.
        """
        if isinstance(value, str):
            return (
                MARK.sub(lambda match: self.marker.known.get(match[0], match[0]), value)
                if "<secret:" in value
                else value
            )
        if isinstance(value, Mapping):
            return {key: self.reveal(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.reveal(item) for item in value)
        return value

    def lost(self, value: Any) -> tuple[str, ...]:
        """Return the marks in a value, nested in mappings, lists and tuples, whose secrets this process does not know,
        such as those of an earlier process; () for none.
        """
        if isinstance(value, str):
            marks = MARK.findall(value) if "<secret:" in value else []
            return tuple(mark for mark in marks if mark not in self.marker.known)
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, list | tuple):
            return tuple(mark for item in value for mark in self.lost(item))
        return ()


class StreamSanitizer:
    """Sanitizes one stream of text. The results of `feed` and `close`, joined, are the sanitized text. `clean` masks a
    text; `hold_back` is the number of characters kept because one of this program's own keys may continue in them.

    Memory is bounded by one piece and 65,536 characters.
    """

    def __init__(self, clean: Callable[[str], str], hold_back: int = LONGEST_KEY) -> None:
        self._clean = clean
        self._hold_back = hold_back
        self._held = ""
        self._line_held = False  # nothing is emitted before the line ends
        self._like_secrets: list[int] = []  # where words stand in the held text that look like one
        self._judged = 0  # up to here such words were looked for
        self._never = 0  # up to here there is no place to cut

    def feed(self, chunk: str) -> str:
        """Take a piece and return the part of the text held so far that is safe to emit, masked; often ''."""
        self._held += chunk
        # Or every piece of a long line would be searched from its beginning.
        if self._line_held and "\n" not in chunk and len(self._held) <= LONGEST_HELD:
            return ""
        until = self._safe_until()
        self._line_held = until == 0 and bool(_TELLING.search(self._held, self._held.rfind("\n") + 1))
        return self._give(until)

    def close(self) -> str:
        """Return the rest of the text, masked; '' if nothing is held. To be called once, at the end of the stream."""
        return self._give(len(self._held))

    def _give(self, until: int) -> str:
        given, self._held = self._held[:until], self._held[until:]
        self._like_secrets = [place - until for place in self._like_secrets if place >= until]
        self._judged, self._never = max(0, self._judged - until), max(0, self._never - until)
        return self._clean(given) if given else ""

    def _safe_until(self) -> int:
        held = self._held
        block = open_block(held)
        if block >= 0:
            held = held[: held.rfind("\n", 0, block) + 1]
        until = self._safe_lines(held)
        return until if len(self._held) - until <= LONGEST_HELD else self._cut(until)

    def _safe_lines(self, held: str) -> int:
        line = held.rfind("\n") + 1
        if not _TELLING.search(held, line):
            space = _SPACE.search(held, max(line, len(held) - 4096))
            line = space.end() if space and len(held) - space.end() <= 4096 else line
        while line > 0 and _OPEN_END.search(held[max(0, line - 160) : line]):
            line = held.rfind("\n", 0, line - 1) + 1
        return self._before_own_keys(line)

    def _before_own_keys(self, until: int) -> int:
        """Return an offset before which no key of ours can begin; such keys may contain spaces."""
        return until if len(self._held) - until >= self._hold_back else self._line_before(until)

    def _line_before(self, until: int) -> int:
        limit = max(0, len(self._held) - self._hold_back)
        if limit >= until:
            return until
        # Where all lines have words that look like secrets, as a list of hashes, it is cut anywhere.
        quiet = self._quiet_line(limit)
        return quiet if quiet or limit <= MOST_NEAR else self._held.rfind("\n", 0, limit) + 1

    def _quiet_line(self, limit: int) -> int:
        """Return the offset of the last line up to a limit with nothing near that looks like a secret, and no name on
        the line above of which it may have the value; 0 if there is none.
        """
        held = self._held
        for word in _WORD.finditer(held, self._judged):
            if word.end() == len(held):  # it may go on
                break
            if may_hold_scrambled(word[0][:_JUDGED]):
                self._like_secrets.append(word.start())
            self._judged = word.end()
        place = held.rfind("\n", self._never, limit) + 1
        while place > self._never:
            near = bisect_left(self._like_secrets, place - NEAR)
            quiet = near == len(self._like_secrets) or self._like_secrets[near] > place + NEAR
            if quiet and not _OPEN_END.search(held, max(0, place - 160), place):
                return place
            # In one leap before the words that are near.
            last = (
                place if quiet else min(place, self._like_secrets[near] - NEAR if near < len(self._like_secrets) else 0)
            )
            place = held.rfind("\n", self._never, max(self._never, last - 1)) + 1
        self._never = max(self._never, held.rfind("\n", 0, limit) + 1)
        return 0

    def _cut(self, least: int) -> int:
        """Return a place to cut between two words when too much is held after `least`."""
        limit = len(self._held) - max(_REST, self._hold_back)
        for separator in ("\n", " ", ",", '"'):
            place = self._held.rfind(separator, max(least, limit - LONGEST_HELD // 2), limit)
            if place >= 0:
                return place + 1
        return limit


def _with_marks(text: str, secrets: Mapping[str, str]) -> str:
    """Return a text with secrets, each with its mark, replaced wherever they stand; the longest at a place.

    In one pass by their beginnings: a file of settings may have thousands, and a search for each would take a time of
    its square.
    """
    if len(secrets) <= FEW and not any(secret in text for secret in secrets):
        return text
    begin: dict[str, list[str]] = {}
    for secret in sorted(secrets, key=len, reverse=True):
        begin.setdefault(secret[:LEAST_REPEATED], []).append(secret)
    pieces, end = [], 0
    for at in range(len(text) - LEAST_REPEATED + 1):
        if (word := text[at : at + LEAST_REPEATED]) in begin and at >= end:
            found = next((secret for secret in begin[word] if text.startswith(secret, at)), None)
            if found is not None:
                pieces += [text[end:at], secrets[found]]
                end = at + len(found)
    return "".join((*pieces, text[end:]))


class _Remembering(Marker):
    """A marker that remembers the secrets of its marks.

    In memory only, the oldest of more than `MOST` are forgotten.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, str] = {}

    def __call__(self, secret: str) -> str:
        """Return the mark of `secret`, in which a part may be marked already; never that of another secret."""
        if MARK.fullmatch(secret):
            return secret
        # Parts that are marked already are put back first, so that a secret has one mark, whichever layer found it.
        whole = MARK.sub(lambda match: self.known.get(match[0], match[0]), secret)
        mark, again = super().__call__(whole), whole
        while self.known.setdefault(mark, whole) != whole:  # six digits: two secrets may have the same ones
            again += "\0"
            mark = super().__call__(again)
        while len(self.known) > MOST:
            del self.known[next(iter(self.known))]
        return mark
