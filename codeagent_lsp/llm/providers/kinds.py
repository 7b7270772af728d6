"""The kinds of model servers: class, home address and hosts that speak it, of each.

A class is imported when it is used. Not here: asking a server what it is (`llm/factory.py`), the classes themselves,
services and their keys (`llm/services.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.facts import Facts
from codeagent_lsp.llm.providers.http_model import HttpModel


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of server. `home` is where it is found when no URL is set, '' for nowhere; `hosts` are names that are
    known to speak it, with all names below them. `lists` reads the server's models, `tells` what it says of one.
    `native` servers tell truly whether a model calls tools by the API, so that it need not prove it. Models of a kind
    that `sees` are taken to see pictures unless somebody says otherwise.
    """

    where: str
    home: str = ""
    hosts: tuple[str, ...] = ()
    lists: str = "openai:model_entries"
    tells: str = ""
    native: bool = False
    sees: bool = False

    def load(self) -> type[HttpModel]:
        """Return the class, imported now."""
        found: type[HttpModel] = _named(self.where)
        return found

    async def entries(self, where: Endpoint, limits: TimeLimits) -> list[dict[str, Any]]:
        """Return the server's list of models, each with its name as `id`. Raises ModelError if it is unreachable."""
        found: list[dict[str, Any]] = await _named(self.lists)(where, limits)
        return found

    async def facts(self, where: Endpoint, name: str, limits: TimeLimits) -> Facts:
        """Return what the server says of one model besides its entry in the list."""
        found: Facts = await _named(self.tells)(where, name, limits) if self.tells else Facts()
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
    """Return the kind that a URL's host is known to speak; '' for other hosts, and for one's path `/openai`."""
    parts = urlsplit(url)
    # Google's address for the OpenAI protocol.
    host = "" if parts.path.rstrip("/").endswith("/openai") else (parts.hostname or "").lower()
    return next((name for name, kind in KINDS.items() if any(_below(host, known) for known in kind.hosts)), "")


def _named(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(f"codeagent_lsp.llm.providers.{module}"), name)


def _below(host: str, known: str) -> bool:
    return host == known or host.endswith(f".{known}")
