"""Finds the model of the settings that fills in the middle, and how its server does it.

The ways differ in where to ask, with what body, and in the text of the answers: llama.cpp's `/infill`, Ollama's
`/api/generate`, Mistral's `/v1/fim/completions`, `/v1/completions` with a suffix or the model's own tokens. Servers are
asked what they are, never for an answer: nothing here makes a model work. Not here: the tokens (`fim_tokens.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.errors import ModelError, ModelNotFound, ModelRejected, ModelStreamBroken, ModelUnreachable
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.exchange import DONE, Clock, Exchange, json_object
from codeagent_lsp.llm.factory import Surroundings, embedded_host, endpoint_of, has_embedded, home_of
from codeagent_lsp.llm.fill.filler import Filler, FillRequest
from codeagent_lsp.llm.fill.fim_tokens import Family, family_of, harmless, prompt_of, tokens_of
from codeagent_lsp.llm.providers.embedded import FILL_SLOT, EmbeddedHost
from codeagent_lsp.llm.providers.ollama import KEEP_ALIVE, loaded_window
from codeagent_lsp.llm.survey import Survey, find_servers, survey

# Providers whose API takes a conversation only.
_NEVER = ("scripted", "anthropic", "responses", "gemini")
_MISTRAL_HOSTS = ("api.mistral.ai", "codestral.mistral.ai")
_ASK = TimeLimits(first=5.0, silence=5.0)
# Shorter than for the agent: a completion that late is of no use.
LIMITS = TimeLimits(connect=5.0, first=30.0, silence=10.0)
LONGEST = 8192
"""Most characters of an answer; a server that ignores `max_tokens` is cut there."""

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Way:
    """One way of asking: `url` of an endpoint, `body` of a request for a model, `text` of an object of the answer, and
    whether that object is the last. `keeps_model` for servers that load a model anew for another window.
    """

    name: str
    url: Callable[[Endpoint], str]
    body: Callable[[str, FillRequest], Body]
    text: Callable[[Mapping[str, Any]], tuple[str, bool]]
    keeps_model: bool = False


def infill(slot: int | None = None) -> Way:
    """Return the `Way` of llama.cpp's `/infill` endpoint, using the server's slot `slot`, or any slot for None."""

    def body(_: str, request: FillRequest) -> Body:
        pieces = [{"filename": piece.path, "text": harmless(piece.text)} for piece in request.pieces]
        return {
            "input_prefix": harmless(request.prefix),
            "input_suffix": harmless(request.suffix),
            "input_extra": pieces,
            # It would come behind the middle token, as the beginning of the answer.
            "prompt": "",
            "n_predict": request.max_tokens,
            "temperature": request.temperature,
            "cache_prompt": True,
            "stream": True,
            "stop": list(request.stop),
            **({} if slot is None else {"id_slot": slot}),
        }

    return Way("infill", lambda where: f"{where.root}/infill", body, _llamacpp_text)


def _ollama_suffix(model: str, request: FillRequest) -> Body:
    return _ollama(model, request, {"prompt": with_comments(request), "suffix": harmless(request.suffix)})


def _suffix(model: str, request: FillRequest) -> Body:
    given = {"prompt": with_comments(request), "suffix": harmless(request.suffix)}
    return {"model": model, **given, **_openai(request)}


OLLAMA = Way(
    "ollama",
    lambda where: f"{where.root}/api/generate",
    _ollama_suffix,
    lambda chunk: _ollama_text(chunk),
    keeps_model=True,
)
SUFFIX = Way("suffix", lambda where: f"{where.api}/completions", _suffix, lambda chunk: _openai_text(chunk))
MISTRAL = Way("mistral", lambda where: f"{where.api}/fim/completions", _suffix, lambda chunk: _openai_text(chunk))


def by_tokens(family: Family) -> Way:
    """Return the way of servers that complete any prompt: the model's own tokens are written into it."""

    def body(model: str, request: FillRequest) -> Body:
        stops = (*request.stop, *tokens_of(family))[:4]  # OpenAI's limit; the rest is cut from the answer
        return {"model": model, "prompt": prompt_of(family, request), **_openai(request), "stop": list(stops)}

    return Way("tokens", lambda where: f"{where.api}/completions", body, _openai_text)


def ollama_by_tokens(family: Family) -> Way:
    """Return the way of Ollama for a model whose template knows no suffix: its tokens, without the template."""

    def body(model: str, request: FillRequest) -> Body:
        return _ollama(model, request, {"prompt": prompt_of(family, request), "raw": True})

    return Way("ollama-tokens", OLLAMA.url, body, _ollama_text, keeps_model=True)


def with_comments(request: FillRequest) -> str:
    """Return the prefix with the pieces before it as lines of comment, for servers that take no other files."""
    lines = []
    for piece in request.pieces:
        lines.append(f"{request.comment} {piece.path}:")
        lines += [f"{request.comment} {line}".rstrip() for line in piece.text.splitlines()]
    return harmless("".join(f"{line}\n" for line in lines) + request.prefix)


def _ollama(model: str, request: FillRequest, given: Body) -> Body:
    options = {"num_predict": request.max_tokens, "temperature": request.temperature, "stop": list(request.stop)}
    return {"model": model, "stream": True, "options": options, **given}


def _openai(request: FillRequest) -> Body:
    stop = {"stop": list(request.stop[:4])} if request.stop else {}
    return {"max_tokens": request.max_tokens, "temperature": request.temperature, "stream": True, **stop}


def _llamacpp_text(chunk: Mapping[str, Any]) -> tuple[str, bool]:
    return _string(chunk.get("content")), bool(chunk.get("stop"))


def _ollama_text(chunk: Mapping[str, Any]) -> tuple[str, bool]:
    return _string(chunk.get("response")), bool(chunk.get("done"))


def _openai_text(chunk: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the text of a completion's choice, of a stream's `delta` or of a whole `message`, as Mistral has them."""
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}
    inner = choice.get("delta") or choice.get("message") or {}
    inner_text = inner.get("content") if isinstance(inner, Mapping) else None
    return _string(choice.get("text")) or _string(inner_text), bool(choice.get("finish_reason"))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Found:
    """A filler, and whether it is on this machine and known to fill in: such a one is used without being asked for."""

    filler: Filler
    at_hand: bool


async def open_filler(settings: ModelSettings, around: Surroundings) -> Found | None:
    """Return what fills in by these settings; None if nothing can. Raises ModelError, as for a server that is away."""
    if settings.provider in _NEVER:
        return None
    if settings.provider == "embedded":
        return _embedded(settings, around)
    home = home_of(settings)
    where = endpoint_of(settings, home, around) if home else await _discovered(settings, around)
    if where is not None:
        return await _at(where, settings)
    return _embedded(settings, around) if settings.provider == "auto" else None


def _embedded(settings: ModelSettings, around: Surroundings) -> Found | None:
    return Found(EmbeddedFiller(embedded_host(settings, around)), at_hand=True) if has_embedded(around) else None


async def _discovered(settings: ModelSettings, around: Surroundings) -> Endpoint | None:
    """Return the server on this machine that the agent would use, too."""
    found = await find_servers(around.ports)
    if settings.provider == "llamacpp":
        found = [server for server in found if server.is_llamacpp]
    if settings.name:
        found.sort(key=lambda server: settings.name not in server.models)
    return found[0].where if found else None


async def _at(where: Endpoint, settings: ModelSettings) -> Found | None:
    server = await survey(where, settings.provider, _ASK, named=bool(settings.name))
    if server.kind in _NEVER:
        return None
    name = settings.name or server.chosen()
    family = family_of(f"{name} {server.props.model_path if server.props else ''}")
    ways = _ways(server, family)
    return Found(HttpFiller(where, name, ways), at_hand=where.loopback and family is not None)


def _ways(server: Survey, family: Family | None) -> list[Way]:
    """Return the ways to try, in the order of the server's own first."""
    if server.kind == "llamacpp":
        return [infill()]
    if server.kind == "ollama":
        return [OLLAMA, *([ollama_by_tokens(family)] if family else [])]
    if (urlsplit(server.where.root).hostname or "") in _MISTRAL_HOSTS:
        return [MISTRAL]
    return [SUFFIX, *([by_tokens(family)] if family else [])]


# Filling in by the embedded model, in a slot of its own, so that the agent's prompt stays in the cache of the other.


class EmbeddedFiller:
    """A `Filler` over a child process, started with the first request; `host` is taken for it, and released by it."""

    slow = True

    def __init__(self, host: EmbeddedHost) -> None:
        self.name = host.weights.stem
        self._host = host
        self._http: HttpFiller | None = None

    async def stream(self, request: FillRequest) -> AsyncGenerator[str, None]:
        """See `Filler`."""
        http = await self._ready()
        async with aclosing(http.stream(request)) as texts:
            async for text in texts:
                yield text

    async def close(self) -> None:
        """Close the connections and release the child."""
        await self._drop()
        await self._host.release()

    async def _ready(self) -> HttpFiller:
        where = await self._host.ready()
        # The child was started anew, at another port and with another key.
        if self._http is None or self._http.where is not where:
            await self._drop()
            self._http = HttpFiller(where, self.name, [infill(FILL_SLOT if self._host.fills else None)], slow=True)
        return self._http

    async def _drop(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.close()


# Filling in by a server over HTTP: tries the ways of the server in order, and stays with the first that it takes.


class HttpFiller:
    """A `Filler` at `where`. `ways` are tried in order: one that the server refuses is never asked again."""

    def __init__(
        self, where: Endpoint, name: str, ways: Sequence[Way], *, slow: bool = False, limits: TimeLimits = LIMITS
    ) -> None:
        self.where = where
        self.name = name
        self.slow = slow
        self._ways = tuple(ways)
        self._limits = limits
        self._http = Exchange(where, limits, {})

    @property
    def way(self) -> str:
        """The name of the way that is used, for people."""
        return self._ways[0].name

    async def stream(self, request: FillRequest) -> AsyncGenerator[str, None]:
        """See `Filler`."""
        fresh = False
        while True:
            way, begun = self._ways[0], False
            try:
                async with aclosing(self._asked(way, request)) as texts:
                    async for text in texts:
                        begun = True
                        yield text
                return
            except ModelUnreachable as error:
                if begun or fresh or error.key != "model.reset":
                    raise
                fresh = True  # the server closed a kept connection just when it was used
            except (ModelRejected, ModelNotFound, ModelStreamBroken) as error:
                if begun or not self._another(way, error):
                    raise

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _another(self, refused: Way, error: ModelError) -> bool:
        """Return whether to ask again in another way: this one was refused, by this request or another at once."""
        if self._ways[0] is not refused:
            return True
        if len(self._ways) > 1 and _is_refusal(error):
            self._ways = self._ways[1:]
            return True
        return False

    async def _asked(self, way: Way, request: FillRequest) -> AsyncGenerator[str, None]:
        body = await self._body(way, request)
        clock, length = Clock.start(self._limits), 0
        async with (
            self._http.post(way.url(self.where), body, clock) as response,
            aclosing(self._http.objects(response, clock)) as objects,
        ):
            async for data in objects:
                if data.strip() == DONE:
                    return
                text, ended = way.text(self._object(data))
                length += len(text)
                if text:
                    yield text
                if ended or length > LONGEST:
                    await self._http.drain(objects)
                    return

    async def _body(self, way: Way, request: FillRequest) -> Body:
        """Return the body of a request, on Ollama such that the model stays loaded as the agent has it."""
        body = way.body(self.name, request)
        if way.keeps_model:
            window = await loaded_window(self.where, self.name, self._limits)
            body = {**body, "keep_alive": KEEP_ALIVE, "options": {**body["options"], "num_ctx": window}}
        return body

    def _object(self, data: str) -> dict[str, object]:
        value = json_object(data) or {}
        if value.get("error"):
            reason = self.where.redact(str(value["error"]))[:300]
            raise ModelStreamBroken("model.stream_error", url=self.where.root, reason=reason)
        return value


def _is_refusal(error: ModelError) -> bool:
    """Return whether a server does not know this way, or not with this model: anything but trouble that passes."""
    return error.key in ("model.rejected", "model.unknown", "model.no_endpoint", "model.stream_error")
