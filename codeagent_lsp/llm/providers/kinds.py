"""The kinds of model servers, and hosted services for which users have a key.

A kind has a class, a home address and hosts that speak it; the class is imported when it is used. A service has an
address, the page where a key is made, the variables where it is found, and models to begin with. Sources: the services'
own documentation, November 2026; a list of models that a service sends counts before this one. Not here: asking a
server what it is (`llm/factory.py`), the classes themselves, the dialogue that offers services (`terminal/setup.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.learned_facts import Facts
from codeagent_lsp.llm.providers.http_model import HttpModel


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


def _load_named(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(f"codeagent_lsp.llm.providers.{module}"), name)


def _below(host: str, known: str) -> bool:
    return host == known or host.endswith(f".{known}")


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
