"""Finds the model of the settings that fills in the middle, and how its server does it.

Servers are asked what they are, never for an answer: nothing here makes a model work. Not here: the ways (`ways.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.factory import Surroundings, embedded_host, endpoint_of, has_embedded, home_of
from codeagent_lsp.llm.fill.embedded_filler import EmbeddedFiller
from codeagent_lsp.llm.fill.filler import Filler
from codeagent_lsp.llm.fill.fim_tokens import Family, family_of
from codeagent_lsp.llm.fill.http_filler import HttpFiller
from codeagent_lsp.llm.fill.ways import MISTRAL, OLLAMA, SUFFIX, Way, by_tokens, infill, ollama_by_tokens
from codeagent_lsp.llm.providers import discovery
from codeagent_lsp.llm.survey import Survey, survey

_NEVER = ("scripted", "anthropic", "responses", "gemini")
_MISTRAL_HOSTS = ("api.mistral.ai", "codestral.mistral.ai")
_ASK = TimeLimits(first=5.0, silence=5.0)


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
    found = await discovery.find_servers(around.ports)
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
