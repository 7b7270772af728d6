"""Finds the model of the settings that fills in the middle, or rewrites lines, and how its server does it.

Servers are asked what they are, never for an answer: nothing here makes a model work. Not here: the ways (`ways.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic
from urllib.parse import urlsplit

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.errors import ModelError, ModelNotFound, ModelRejected, ModelStreamBroken, ModelUnreachable
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.exchange import DONE, Clock, Exchange
from codeagent_lsp.llm.factory import Surroundings, embedded_host, endpoint_of, has_embedded, home_of, server_here
from codeagent_lsp.llm.fill.edit_formats import EditFormat, EditRequest, Rewriter, format_of
from codeagent_lsp.llm.fill.filler import Family, Filler, FillRequest, family_of
from codeagent_lsp.llm.fill.ways import (
    MISTRAL,
    OLLAMA,
    SUFFIX,
    Body,
    Request,
    Way,
    by_tokens,
    infill,
    ollama_by_tokens,
    rewriting,
)
from codeagent_lsp.llm.providers.embedded import FILL_SLOT, EmbeddedHost
from codeagent_lsp.llm.providers.ollama import KEEP_ALIVE, loaded_window
from codeagent_lsp.llm.survey import Survey, survey
from codeagent_lsp.state import json_object

# Providers whose API takes a conversation only.
_NEVER = ("scripted", "anthropic", "responses", "gemini")
_MISTRAL_HOSTS = ("api.mistral.ai", "codestral.mistral.ai")
_ASK = TimeLimits(first=5.0, silence=5.0)
# Shorter than for the agent: a completion that late is of no use.
LIMITS = TimeLimits(connect=5.0, first=30.0, silence=10.0)
LONGEST = 8192
"""The most characters of an answer; one from a server that ignores `max_tokens` is cut there."""


@dataclass(frozen=True, slots=True)
class Found:
    """A filler, which is closed by the caller that looked for it; `at_hand` if it is on this machine and known to fill
    in, so that it is used without being configured.
    """

    filler: Filler
    at_hand: bool


async def open_filler(settings: ModelSettings, around: Surroundings) -> Found | None:
    """Return the model that fills in by these settings, whose `filler` the caller closes; None if none can. ModelError
    if a server does not answer or refuses.
    """
    if settings.provider in _NEVER:
        return None
    if settings.provider == "embedded":
        return _find_embedded(settings, around)
    where = await _where(settings, around)
    if where is not None:
        return await _at(where, settings)
    return _find_embedded(settings, around) if settings.provider == "auto" else None


@dataclass(frozen=True, slots=True)
class HttpRewriter:
    """A `Rewriter` over HTTP, with connections of its own."""

    form: EditFormat
    http: HttpFiller[EditRequest]

    def stream(self, request: EditRequest) -> AsyncGenerator[str, None]:
        """Yield the answer as it comes. ModelError if there is none; to end it early, close the generator."""
        return self.http.stream(request)

    async def close(self) -> None:
        """Close the connections."""
        await self.http.close()


async def open_rewriter(settings: ModelSettings, around: Surroundings) -> Rewriter:
    """Return the next-edit model of these settings, which the caller closes. ModelRejected for a model whose format is
    not known, or if there is no server; another ModelError if it does not answer or refuses.
    """
    where = await _where(settings, around)
    if where is None:
        raise ModelRejected("next_edit.unknown_model", name=settings.name or settings.provider)
    server = await survey(where, settings.provider, _ASK, named=bool(settings.name))
    name = settings.name or server.chosen()
    form = format_of(_all_names(name, server))
    if form is None or server.kind in _NEVER:
        raise ModelRejected("next_edit.unknown_model", name=name)
    return HttpRewriter(form, HttpFiller(where, name, [rewriting(server.kind, form)]))


def _find_embedded(settings: ModelSettings, around: Surroundings) -> Found | None:
    return Found(EmbeddedFiller(embedded_host(settings, around)), at_hand=True) if has_embedded(around) else None


async def _where(settings: ModelSettings, around: Surroundings) -> Endpoint | None:
    home = home_of(settings)
    # Without an address the one that the agent would use, too.
    return endpoint_of(settings, home, around) if home else await server_here(settings, around)


def _all_names(name: str, server: Survey) -> str:
    """Return the name of a model and, where the server tells it, that of its weights."""
    return f"{name} {server.props.model_path if server.props else ''}"


async def _at(where: Endpoint, settings: ModelSettings) -> Found | None:
    server = await survey(where, settings.provider, _ASK, named=bool(settings.name))
    if server.kind in _NEVER:
        return None
    name = settings.name or server.chosen()
    family = family_of(_all_names(name, server))
    ways = _ways(server, family)
    return Found(HttpFiller(where, name, ways), at_hand=where.loopback and family is not None)


def _ways(server: Survey, family: Family | None) -> list[Way[FillRequest]]:
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
    """A `Filler` over the embedded model's child process, started with the first request; it owns one taking of `host`,
    which `close` releases.
    """

    slow = True

    def __init__(self, host: EmbeddedHost) -> None:
        self.name = host.weights.stem
        self._host = host
        self._http: HttpFiller[FillRequest] | None = None

    async def stream(self, request: FillRequest) -> AsyncGenerator[str, None]:
        """Yield the text between prefix and suffix as it comes; starts the child if needed. ModelError if it cannot
        run; to end it early, close the generator.
        """
        http = await self._ready()
        async with aclosing(http.stream(request)) as texts:
            async for text in texts:
                yield text

    async def close(self) -> None:
        """Close the connections and release the child, which stops if nothing else uses it; call it once."""
        await self._drop()
        await self._host.release()

    async def _ready(self) -> HttpFiller[FillRequest]:
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


# Filling in, or rewriting, by a server over HTTP: its ways are tried in order, and the first that it takes is kept.


class HttpFiller(Generic[Request]):
    """A `Filler`, or the HTTP side of a `Rewriter`, at `where`. `ways` are tried in order, and one that the server
    refuses is not tried again; `slow` says that the model runs on this machine's processor.
    """

    def __init__(self, where: Endpoint, name: str, ways: Sequence[Way[Request]], *, slow: bool = False) -> None:
        self.where = where
        self.name = name
        self.slow = slow
        self._ways = tuple(ways)
        self._http = Exchange(where, LIMITS, {})

    async def stream(self, request: Request) -> AsyncGenerator[str, None]:
        """Yield the answer as it comes. A way that is refused is replaced by the next one before the first piece.
        ModelError if no way works; to end it early, close the generator: the server then stops.
        """
        fresh = False
        while True:
            way, begun = self._ways[0], False
            try:
                async with aclosing(self._ask(way, request)) as texts:
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

    def _another(self, refused: Way[Request], error: ModelError) -> bool:
        """Return whether to ask again in another way: this one was refused, by this request or another at once."""
        if self._ways[0] is not refused:
            return True
        if len(self._ways) > 1 and _is_refusal(error):
            self._ways = self._ways[1:]
            return True
        return False

    async def _ask(self, way: Way[Request], request: Request) -> AsyncGenerator[str, None]:
        body = await self._body(way, request)
        clock, length = Clock.start(LIMITS), 0
        async with (
            self._http.post(way.url(self.where), body, clock) as response,
            aclosing(self._http.objects(response, clock)) as objects,
        ):
            async for data in objects:
                if data.strip() == DONE:
                    return
                chunk = self._object(data)
                text, ended = way.text(chunk)
                length += len(text)
                if text:
                    yield text
                if way.is_cut(chunk):
                    raise ModelStreamBroken("model.stream_cut", url=self.where.root)
                if ended or length > LONGEST:
                    await self._http.drain(objects)
                    return

    async def _body(self, way: Way[Request], request: Request) -> Body:
        """Return the body of a request, on Ollama such that the model stays loaded as the agent has it."""
        body = way.body(self.name, request)
        if way.keeps_model:
            window = await loaded_window(self.where, self.name, LIMITS)
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
    return error.key in ("model.rejected", "model.unknown", "model.withheld", "model.no_endpoint", "model.stream_error")
