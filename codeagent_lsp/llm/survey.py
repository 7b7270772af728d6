"""The kinds of model servers and the hosted services for which users have a key; and surveys of servers: the kind and
the models of one by its own answers, and with the other sources the facts that are known of each.

A kind has a class, a home address and hosts that speak it; the class is imported when it is used. A service has an
address, the page where a key is made, the variables where it is found, and models to begin with. Sources: the services'
own documentation, November 2026; a list of models that a service sends counts before this one. Servers on this machine
are found on the default ports of common ones. Not here: the classes themselves and their questions (`providers/`),
opening a model (`factory.py`), the dialogue that offers services (`terminal/setup.py`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.errors import ModelNotFound, ModelRejected
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits, endpoint
from codeagent_lsp.llm.learned_facts import (
    HOSTED_WINDOW,
    LOCAL_WINDOW,
    Facts,
    KnownFacts,
    LearnedFacts,
    Prices,
    combine,
)
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.http_model import HttpModel
from codeagent_lsp.llm.providers.llamacpp import Props, read_props
from codeagent_lsp.llm.providers.ollama import is_ollama
from codeagent_lsp.llm.providers.openai import facts_of, list_models

MOST_SLOTS = 2
"""The most parallel requests that are used: more make each of them slow on a server without a GPU."""

_NOT_FOR_CHAT = ("embed", "rerank", "whisper", "tts", "moderation")
# What gateways put before a name: `models/`, `us.` (Bedrock's regions), `openrouter/`, `vertex_ai/`.
_PREFIX = re.compile(r"^(?:models/|(?:us|eu|apac|global|jp|au)\.(?=\w+\.)|openrouter/|vertex_ai/|bedrock/|azure/)")
# `anthropic/`, `meta-llama/`, `anthropic.`
_VENDOR = re.compile(r"^[\w\-]+[/.](?=[a-z])")
# `-v1:0` (Bedrock), `:free` (OpenRouter), `@20250514` (Vertex).
_ENDING = re.compile(r"(?:-v\d+:\d+|:(?:free|nitro|floor|beta|extended|thinking|online)|@\d{8}|@(?:default|latest))$")
_LOCAL = re.compile(r":(?:\d+(?:x\d+)?(?:\.\d+)?[bm]|latest)\b")
"""A tag as Ollama writes it: weights that somebody runs, whoever's name they bear."""

_DATE = re.compile(r"-(?:20\d{6}|20\d\d-\d\d-\d\d|latest|preview)$")

PORTS: Mapping[str, int] = {"llamacpp": 8080, "ollama": 11434, "lmstudio": 1234, "vllm": 8000}
# A server on this machine answers in milliseconds, or is busy loading; a start must not wait for closed ports.
PROBE_SECONDS = 0.8


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of server. `where`, `lists` and `tells` name, as `module:name`, its class, the function that reads the
    server's models, and the one that reads its facts about one. `home` is the address if no URL is set, '' for none;
    `hosts` are host names that are known to be of this kind, with all names below them.

    `native` says that the server can be believed when it says that a model calls tools by the API; models of a kind
    that `sees` are assumed to see pictures unless another source says otherwise.
    """

    where: str
    home: str = ""
    hosts: tuple[str, ...] = ()
    lists: str = "openai:model_entries"
    tells: str = ""
    native: bool = False
    sees: bool = False

    def load(self) -> type[HttpModel]:
        """Import the class of this kind's models and return it."""
        found: type[HttpModel] = _load_named(self.where)
        return found

    async def entries(self, where: Endpoint, limits: TimeLimits) -> list[dict[str, Any]]:
        """Return the server's list of models, each with its name as `id`. Raises ModelError if it is unreachable."""
        found: list[dict[str, Any]] = await _load_named(self.lists)(where, limits)
        return found

    async def facts(self, where: Endpoint, name: str, limits: TimeLimits) -> Facts:
        """Ask the server for its facts about one model, besides its entry in the list, and return them; empty if this
        kind has none or the server does not answer.
        """
        found: Facts = await _load_named(self.tells)(where, name, limits) if self.tells else Facts()
        return found


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "openai": Kind("openai:OpenAIModel", tells="openai:read_facts"),
        "llamacpp": Kind("llamacpp:LlamaCppModel"),
        "anthropic": Kind(
            "anthropic:AnthropicModel",
            home="https://api.anthropic.com",
            hosts=("anthropic.com",),
            lists="anthropic:model_entries",
            native=True,
            sees=True,
        ),
        "responses": Kind(
            "responses:ResponsesModel",
            home="https://api.openai.com/v1",
            hosts=("api.openai.com",),
            native=True,
            sees=True,
        ),
        "gemini": Kind(
            "gemini:GeminiModel",
            home="https://generativelanguage.googleapis.com",
            hosts=("generativelanguage.googleapis.com",),
            lists="gemini:model_entries",
            tells="gemini:read_facts",
            native=True,
            sees=True,
        ),
        "ollama": Kind("ollama:OllamaModel", home="http://127.0.0.1:11434", tells="ollama:read_facts"),
    }
)


def kind_of(url: str) -> str:
    """Return the kind, a key of `KINDS`, that a URL's host is known to speak; '' for other hosts, and for a path that
    ends with `/openai`, where a host offers OpenAI's API.
    """
    parts = urlsplit(url)
    # Google's address for the OpenAI protocol.
    host = "" if parts.path.rstrip("/").endswith("/openai") else (parts.hostname or "").lower()
    return next((name for name, kind in KINDS.items() if any(_below(host, known) for known in kind.hosts)), "")


@dataclass(frozen=True, slots=True)
class Service:
    """One hosted service. `url` is '' if each user has an address of their own, of the form `shape`; `variables` are
    the environment variables that may hold a key; `page` is where a key is made; `models` are proposed in this order;
    `settings` are further settings that its models need.
    """

    name: str
    title: str
    url: str = ""
    shape: str = ""
    variables: tuple[str, ...] = ()
    page: str = ""
    models: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def host(self) -> str:
        """The host of the service, at which, or below which, its users have their addresses."""
        return (urlsplit(self.url or self.shape).hostname or "").removeprefix("resource.")


def key_variables(url: str) -> tuple[str, ...]:
    """Return the names of the environment variables in which a key for this address is looked for; () for no known
    service.
    """
    host = (urlsplit(url).hostname or "").lower()
    found = (each for each in SERVICES if each.title and (host == each.host or host.endswith(f".{each.host}")))
    return next((service.variables for service in found), ())


SERVICES = (
    Service(
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com",
        variables=("ANTHROPIC_API_KEY",),
        page="https://platform.claude.com/settings/keys",
        models=("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"),
    ),
    Service(
        "openai",
        "OpenAI",
        "https://api.openai.com/v1",
        variables=("OPENAI_API_KEY",),
        page="https://platform.openai.com/api-keys",
        models=("gpt-6.2-sol", "gpt-6.2-astra", "gpt-6-luna"),
    ),
    Service(
        "gemini",
        "Google Gemini",
        "https://generativelanguage.googleapis.com",
        variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        page="https://aistudio.google.com/apikey",
        models=("gemini-4-argon", "gemini-3.8-flash"),
    ),
    Service(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        variables=("OPENROUTER_API_KEY",),
        page="https://openrouter.ai/settings/keys",
        models=("anthropic/claude-opus-5.5", "openai/gpt-6.2-sol", "deepseek/deepseek-flash"),
    ),
    Service(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com",
        variables=("DEEPSEEK_API_KEY",),
        page="https://platform.deepseek.com/api_keys",
        models=("deepseek-flash", "deepseek-v4-pro"),
    ),
    Service(
        "azure",
        "Azure OpenAI",
        shape="https://RESOURCE.openai.azure.com/openai/v1",
        variables=("AZURE_OPENAI_API_KEY",),
        page="https://portal.azure.com",
        settings=MappingProxyType({"model.provider": "openai", "model.query": {"api-version": "preview"}}),
    ),
    Service(
        "other", "", shape="https://models.example.com/v1", variables=("CODEAGENT_API_KEY",)
    ),  # any server that speaks the OpenAI protocol; its title is in the catalogue
)


@dataclass(frozen=True)
class Survey:
    """The answers of one server: its kind, the entries of its list, and llama.cpp's properties. `limits` are those of
    further questions.
    """

    where: Endpoint
    kind: str
    entries: tuple[Mapping[str, Any], ...]
    props: Props | None
    limits: TimeLimits

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its models, in the order in which the server lists them; () if it has no list."""
        return tuple(str(entry["id"]) for entry in self.entries)

    def chosen(self) -> str:
        """Return the name of the model to use where none is configured: the only one for chat, or the first on this
        machine; `default` for a llama.cpp server, and for one on this machine that lists none. ModelNotFound otherwise:
        the user has to choose.
        """
        able = [name for name in self.names if not any(word in name.lower() for word in _NOT_FOR_CHAT)]
        if len(able) == 1 or (able and self.where.loopback):
            return able[0]
        if self.props is not None or (not self.names and self.where.loopback):
            return "default"  # llama.cpp serves its one model under any name
        raise ModelNotFound("model.name_needed", url=self.where.root, available=", ".join(self.names[:20]) or "?")

    async def info(self, name: str, settings: ModelSettings, state_dir: Path) -> ModelInfo:
        """Return the description of one model: for each fact the first source that states it, of the settings, the
        server, what is remembered in `state_dir` and the bundled price list, else assumed. May ask the server; a
        failure leaves its facts out.
        """
        slots = min(self.props.slots, MOST_SLOTS) if self.props else 1
        facts = await self._facts(name, settings, LearnedFacts(state_dir))
        return ModelInfo(name, self.kind, url=self.where.root, facts=facts, slots=slots, local=self.where.private)

    async def _facts(self, name: str, settings: ModelSettings, learned: LearnedFacts) -> KnownFacts:
        """Return what is known: by the setting, the server, an overflow, the catalogue, else assumed. Servers of one's
        own network are not in the catalogue, whatever the name of their weights.
        """
        where, sees = self.where, KINDS[self.kind].sees or None
        set_by_user = settings.context_window if isinstance(settings.context_window, int) else None
        entry = next((facts_of(entry) for entry in self.entries if entry["id"] == name), Facts())
        return combine(
            [
                ("setting", Facts(context_window=set_by_user)),
                ("server", Facts(context_window=self.props.context_window if self.props else None)),
                ("server", await KINDS[self.kind].facts(where, name, self.limits)),
                ("server", entry),
                # After the server's own word, which may have changed since; before the price list, which knows the
                # model, not this server.
                ("overflow", await asyncio.to_thread(learned.get, where.root, name)),
                ("catalogue", Facts() if where.private else await look_up(name, where.api)),
                ("assumed", Facts(LOCAL_WINDOW if where.loopback else HOSTED_WINDOW, vision=sees)),
            ]
        )


async def survey(where: Endpoint, provider: str, limits: TimeLimits, *, named: bool = False) -> Survey:
    """Ask a server for its kind, models and properties. `provider` is the setting. ModelError if it is unreachable; if
    the model is `named`, a server that refuses to list its models counts as one without a list.
    """
    stated = stated_kind(provider, where.root)
    listing = KINDS[stated or "openai"].entries(where, limits)
    asked, entries = await asyncio.gather(_recognise(stated, where, limits), listing, return_exceptions=True)
    if isinstance(asked, BaseException):
        raise asked
    kind, props = asked
    if isinstance(entries, BaseException):
        if props is None and not (named and _keeps_its_list(entries)):
            raise entries
        entries = []
    return Survey(where, kind, tuple(entries), props, limits)


def stated_kind(provider: str, url: str) -> str:
    """Return the kind of server by the setting, else by the host in the address; '' if only the server can tell."""
    return provider if provider != "auto" else kind_of(url)


# What the price list `genai-prices` (PyPI) says of a hosted model: window and prices, under any usual spelling.


async def look_up(name: str, url: str) -> Facts:
    """Return the facts of a model in the bundled price list; empty ones if it is not there. Runs in a thread. `url` is
    the server's address, whose prices come first.
    """
    return await asyncio.to_thread(find, name, url)


def find(name: str, url: str) -> Facts:
    """Return the facts of a model in the bundled price list as `look_up` does. Blocks, and loads a large table at the
    first call.
    """
    from genai_prices.data_snapshot import get_snapshot  # late: its table of prices is large

    if _LOCAL.search(name.lower()):
        return Facts()
    snapshot = get_snapshot()
    spellings = list(dict.fromkeys(_spellings(name.strip().lower())))
    for where in (url, None):  # the prices of this address first; models are sold by others at the maker's price
        for spelling in spellings:
            try:
                _, model = snapshot.find_provider_model(spelling, None, None, where)
            except (LookupError, ValueError):
                continue
            return Facts(context_window=model.context_window, prices=_prices(model))
    return Facts()


@dataclass(frozen=True)
class FoundServer:
    """A server on this machine that answers: the kind that its port suggests, its address, its models."""

    kind: str
    where: Endpoint
    models: tuple[str, ...] = field(default=())
    is_llamacpp: bool = False


async def find_servers(ports: Mapping[str, int] | None = None) -> list[FoundServer]:
    """Probe these ports of this machine, in parallel, given by kind (None: the usual ones), and return the servers that
    answer within 0.8 s, in that order; [] for none.
    """
    wanted = PORTS if ports is None else ports
    asked = [_look(kind, endpoint(f"http://127.0.0.1:{port}")) for kind, port in wanted.items()]
    return [found for found in await asyncio.gather(*asked) if found]


def _load_named(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(f"codeagent_lsp.llm.providers.{module}"), name)


def _below(host: str, known: str) -> bool:
    return host == known or host.endswith(f".{known}")


def _keeps_its_list(error: BaseException) -> bool:
    """Return whether a server refused to list its models, as some gateways do. A wrong key is told at once."""
    return isinstance(error, ModelRejected) and (error.key != "model.unauthorized" or error.values["status"] == 403)


async def _recognise(kind: str, where: Endpoint, limits: TimeLimits) -> tuple[str, Props | None]:
    """Return the kind of a server, which is asked if it is not known, and what llama.cpp says of itself."""
    if kind not in ("", "llamacpp"):
        return kind, None
    props, ollama = await asyncio.gather(read_props(where, limits), is_ollama(where, limits))
    return kind or ("llamacpp" if props else "ollama" if ollama else "openai"), props


def _spellings(name: str) -> Iterator[str]:
    """Yield a name as it stands, then without prefix, ending, vendor and date, the nearest first."""
    yield name
    bare = _ENDING.sub("", _PREFIX.sub("", name))
    yield bare
    while (shorter := _VENDOR.sub("", bare)) != bare:
        bare = shorter
        yield bare
    yield _DATE.sub("", bare)


def _prices(model: Any) -> Prices | None:
    listed = model.get_prices(datetime.now(UTC))
    units = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    values = [_base(getattr(listed, f"{unit}_mtok", None)) for unit in units]
    if values[0] is None or values[1] is None:
        return None
    return Prices(values[0], values[1], cached=values[2], written=values[3], written_1h=values[4])


def _base(price: Any) -> float | None:
    """Return a price; of one in tiers, that of the first."""
    price = getattr(price, "base", price)
    return None if price is None else float(price)


async def _look(kind: str, where: Endpoint) -> FoundServer | None:
    limits = TimeLimits(connect=PROBE_SECONDS, first=PROBE_SECONDS, silence=PROBE_SECONDS)
    models, props = await asyncio.gather(list_models(where, limits), read_props(where, limits))
    # Something else listens there: 8000 and 8080 are anybody's.
    if not models and props is None:
        return None
    return FoundServer(kind, where, tuple(models), is_llamacpp=props is not None)
