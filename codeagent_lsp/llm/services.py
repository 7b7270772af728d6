"""The hosted services that people have a key for: address, where the key is made and found, models to begin with.

Sources: the services' own documentation, November 2026; a list of models that a service sends counts before this one.
Not here: how their servers speak (`providers/kinds.py`), the dialogue that offers them (`terminal/setup.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Service:
    """One service. `url` is '' where each user has an address of their own, of the form `shape`; `variables` are those
    of the environment in which a key of it is looked for; `page` is where one is made; `models` are proposed in this
    order; `settings` are further settings that its models need.
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
        """The host at which its users are, or below which they have one of their own."""
        return (urlsplit(self.url or self.shape).hostname or "").removeprefix("resource.")


def key_variables(url: str) -> tuple[str, ...]:
    """Return the environment variables in which a key for this address is looked for: those of the service there."""
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
