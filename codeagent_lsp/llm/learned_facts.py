"""The facts about a model and their sources (window, longest reply, prices, reasoning, vision, native tool calls), as
data and in words, and the facts that are remembered of endpoints in the state folder.

Remembered are, for each endpoint and model, mainly those that an error has stated: the window when a prompt was too
long, the longest reply when a longer one was asked for. Not here: reading facts from servers and price lists, and which
source comes first (`factory.py`); which errors are overflows (`failures.py`), what a run does then
(`agent/context/window.py`).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from codeagent_lsp.messages import Usage
from codeagent_lsp.state import read_json, replace_json
from codeagent_lsp.texts import clauses, text
from codeagent_lsp.workspace.text.numbers import whole_number

FILE = "windows.json"
REPLY = "reply"
LEAST_REPLY = 256
LEAST, MOST = 1024, 20_000_000
"""Limits in tokens: smaller and larger numbers in an error are something else."""

_REPLY = re.compile(
    r"max_?(?:completion_|output_|new_)?tokens|(?:completion|output) tokens|maximum tokens", re.IGNORECASE
)
_NUMBER = r"(\d[\d,_.]*\d|\d)\s*(k\b)?"
_TOLD = tuple(
    re.compile(pattern.replace("N", _NUMBER), re.IGNORECASE)
    for pattern in (
        r"maximum (?:context|model|sequence|input) (?:length|window|size)[^\d.]{0,20}N",
        r"context (?:length|window|size)[^\d.]{0,20}N",
        r"> N maximum",
        r"context limit: \d+ \+ \d+ > N",
        r"\"?n_ctx\"?\s*[:=]\s*N",
        r"maximum number of tokens allowed[^\d.]{0,5}N",
        r"token limit[^\d.]{0,10}N",
        r"tokens`? \+ [`\w]+ must be <= N",
        r"\bN maximum context length",
        r"range of input length should be \[\d+, ?N\]",
    )
)
"""The wordings of OpenAI and its likes, Anthropic, llama.cpp, vLLM, Gemini, Moonshot, TGI, LM Studio and Qwen."""
Source = Literal["setting", "server", "overflow", "catalogue", "assumed"]

LOCAL_WINDOW = 8192
"""Tokens assumed for a server on this machine that does not tell its window."""

HOSTED_WINDOW = 128_000
"""Tokens assumed for any other server that does not tell its window."""


CAPABLE_WINDOW = 32_000
"""The least window in tokens with which a model that calls tools by the API counts as capable."""


def window_in(error: str) -> int | None:
    """Return the window in tokens that the text of an overflow error states; None if it states none that is
    plausible.
    """
    found = (_value(match) for pattern in _TOLD for match in pattern.finditer(error))
    return next((value for value in found if value is not None), None)


def reply_in(error: str, asked: int) -> int | None:
    """Return the longest reply in tokens that the text of a refusal of `asked` tokens states; None if it is about other
    things. It is the largest number below `asked` next to a word for the length of replies, as in `[1, 8192]` or `at
    most 16384`.
    """
    if not _REPLY.search(error):
        return None
    numbers = (whole_number(re.sub(r"[,_.]", "", digits)) for digits in re.findall(r"\d[\d,_]*\d", error))
    return max((number for number in numbers if number and LEAST_REPLY <= number < asked), default=None)


class LearnedFacts:
    """The facts that errors of servers revealed about models, in one file of a state folder. Methods block; a file that
    cannot be read counts as empty.
    """

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FILE

    def get(self, url: str, name: str) -> Facts:
        """Return the window and the longest reply, in tokens, that this endpoint once stated for this model, None for
        each that is unknown.
        """
        known = read_json(self._path)
        window, reply = known.get(f"{url} {name}"), known.get(f"{url} {name} {REPLY}")
        return Facts(
            context_window=window if type(window) is int and LEAST <= window <= MOST else None,
            longest_reply=reply if type(reply) is int and LEAST_REPLY <= reply <= MOST else None,
        )

    def learn(self, url: str, name: str, learned: Facts) -> None:
        """Store the window and the longest reply, in tokens, that the server at `url` named for the model `name`, as
        far as known. Blocks; errors of the disk are ignored.
        """
        if learned.context_window is not None:
            remember(self._path, f"{url} {name}", learned.context_window)
        if learned.longest_reply is not None:
            remember(self._path, f"{url} {name} {REPLY}", learned.longest_reply)


def _value(match: re.Match[str]) -> int | None:
    digits = re.sub(r"[,_.]", "", match[1])
    # More digits are an id or a time.
    value = int(digits) * (1024 if match[2] else 1) if len(digits) < 12 else 0
    return value if LEAST <= value <= MOST else None


# A JSON file of facts about models, by key. A damaged or missing file counts as an empty object.


def remember(path: Path, key: str, value: object) -> None:
    """Store one fact, a JSON value, in the file at `path`, which is replaced atomically. Blocks; errors of the file
    system are ignored.
    """
    with contextlib.suppress(OSError):
        # Read again right before: other processes learn, too.
        replace_json(path, {**read_json(path), key: value})


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens: of the prompt, of its parts read from a cache and written to one, and of the completion.
    If the source has no such price (None), reads and writes cost as the prompt does. If only short writes have a price,
    those for an hour cost twice what the prompt does, as with Anthropic.
    """

    input: float
    output: float
    cached: float | None = None
    written: float | None = None
    written_1h: float | None = None

    def cost(self, usage: Usage) -> float:
        """Return what this usage costs, in USD, with its parts read from and written to a cache at their own prices."""
        cached = self.input if self.cached is None else self.cached
        # `prompt_tokens` is all of the prompt, whatever its source; some servers count the parts inconsistently.
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens - usage.written_tokens)
        hour = min(usage.written_1h_tokens, usage.written_tokens)
        written = (usage.written_tokens - hour) * self._write_price + hour * self._hour
        prompt = fresh * self.input + usage.cached_tokens * cached + written
        return (prompt + usage.completion_tokens * self.output) / 1_000_000

    def at_most(self, prompt: int, lasting: int = 0) -> float:
        """Return the most that a prompt of `prompt` tokens can cost, in USD: if all of it is written to a cache, and
        `lasting` tokens of it for an hour.
        """
        dear = max(self.input, self._write_price)
        return ((prompt - lasting) * dear + lasting * max(dear, self._hour)) / 1_000_000

    @property
    def _write_price(self) -> float:
        return self.input if self.written is None else self.written

    @property
    def _hour(self) -> float:
        if self.written_1h is not None:
            return self.written_1h
        return self.input if self.written is None else 2 * self.input


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that one source states about a model; None for those that it does not state. Window and reply are in
    tokens.
    """

    context_window: int | None = None
    longest_reply: int | None = None
    prices: Prices | None = None
    reasoning: bool | None = None
    vision: bool | None = None
    native_tools: bool | None = None


@dataclass(frozen=True, slots=True)
class KnownFacts(Facts):
    """The facts of several sources together; `sources` names for each known fact, by its field's name, the one that
    said it.
    """

    sources: Mapping[str, Source] = field(default_factory=lambda: MappingProxyType({}))

    def learned(self, told: Facts) -> KnownFacts:
        """Return the facts after an error stated a window or a longest reply. Such a window does not replace one from
        the user or the server's lists; such a reply always counts.
        """
        known = self
        if told.context_window is not None and self.sources.get("context_window") not in ("setting", "server"):
            sources = MappingProxyType({**known.sources, "context_window": "overflow"})
            known = replace(known, context_window=told.context_window, sources=sources)
        if told.longest_reply is not None:
            sources = MappingProxyType({**known.sources, "longest_reply": "overflow"})
            known = replace(known, longest_reply=told.longest_reply, sources=sources)
        return known


def combine(said: Iterable[tuple[Source, Facts]]) -> KnownFacts:
    """Return the facts of all sources together: each fact from the first source that states it; a fact that none states
    stays None.
    """
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for source, facts in said:
        for item in fields(Facts):
            value = getattr(facts, item.name)
            if value is not None and item.name not in values:
                values[item.name], sources[item.name] = value, source
    return KnownFacts(**values, sources=MappingProxyType(sources))


def window_known(tokens: int | None) -> KnownFacts:
    """Return facts that consist of a window in tokens alone, as the server says, or of nothing for None."""
    return combine([("server", Facts(context_window=tokens))])


_PUBLIC_NAMES = {
    "context_window": "contextWindow",
    "longest_reply": "longestReply",
    "prices": "prices",
    "reasoning": "reasoning",
    "vision": "vision",
    "native_tools": "nativeTools",
}


def facts_data(facts: KnownFacts) -> dict[str, Any]:
    """Return the known facts as JSON data by their public names (`contextWindow`, …), each as `{value, source}`; prices
    in USD per million tokens.
    """
    return {
        _PUBLIC_NAMES[item.name]: {"value": _plain(value), "source": facts.sources.get(item.name)}
        for item in fields(Facts)
        if (value := getattr(facts, item.name)) is not None
    }


def facts_told(facts: KnownFacts, language: str) -> str:
    """Return all facts in one line in the user's language (`en`, `zh-cn`), unknown ones included."""
    return clauses((_fact_line(item.name, facts, language) for item in fields(Facts)), language)


def _fact_line(name: str, facts: KnownFacts, language: str) -> str:
    value = getattr(facts, name)
    label = text(f"fact.{name}", language)
    if value is None:
        return f"{label} {text('fact.unknown', language)}"
    source = facts.sources.get(name)
    whence = text("fact.whence", language, source=text(f"fact.from.{source}", language)) if source else ""
    return f"{label} {_words(value, language)}{whence}"


def _words(value: Any, language: str) -> str:
    if isinstance(value, bool):
        return text("fact.yes" if value else "fact.no", language)
    if isinstance(value, Prices):
        cached = value.input if value.cached is None else value.cached
        told = {"input": value.input, "cached": cached, "output": value.output}
        return text("fact.dollars", language, **{name: f"{price:g}" for name, price in told.items()})
    return text("fact.tokens", language, count=f"{value:,}")


def _plain(value: Any) -> Any:
    if not isinstance(value, Prices):
        return value
    return {name: price for name, price in asdict(value).items() if price is not None}
