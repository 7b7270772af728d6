"""Construction of a ready model from the settings.

`open_model` is all that the rest of the program needs. Not here: finding
servers (`providers/discovery.py`), probing (`probe.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codeagent_lsp.config import ModelSettings, NetworkSettings
from codeagent_lsp.errors import ModelNotFound
from codeagent_lsp.llm import probe, weights
from codeagent_lsp.llm.calls.toolcalling import ToolCallingModel
from codeagent_lsp.llm.endpoint import SILENCE_SECONDS, Endpoint, TimeLimits, endpoint
from codeagent_lsp.llm.facts import HOSTED_WINDOW, LOCAL_WINDOW, Facts, combine
from codeagent_lsp.llm.model import Model, ModelInfo, ToolCalling
from codeagent_lsp.llm.providers import discovery
from codeagent_lsp.llm.providers.embedded import CONTEXT_WINDOW, EmbeddedModel, engine_installed
from codeagent_lsp.llm.providers.kinds import KINDS, kind_of
from codeagent_lsp.llm.providers.llamacpp import LlamaCppModel, Props, read_props
from codeagent_lsp.llm.providers.openai import list_models as names_at
from codeagent_lsp.llm.providers.openai import model_entries
from codeagent_lsp.llm.providers.scripted import load_script

MOST_SLOTS = 2
"""Parallel requests that are used at most: more make each of them slow on a server without a GPU."""

_ASK_SECONDS = 5.0
_WINDOW_KEYS = ("max_model_len", "context_window", "context_length", "max_context_length", "n_ctx")
_NOT_FOR_CHAT = ("embed", "rerank", "whisper", "tts", "moderation")


@dataclass(frozen=True)
class Surroundings:
    """What the local machine offers: ports to look at, weights, embedded engine, None for the defaults; and how other
    machines are reached.
    """

    ports: Mapping[str, int] | None = None
    weights: Path | None = None
    embedded: bool | None = None
    network: NetworkSettings = NetworkSettings()


async def open_model(settings: ModelSettings, state_dir: Path, *, around: Surroundings | None = None) -> Model:
    """Return the model of `settings`, wrapped so that it calls tools. Raises ModelError if something is missing."""
    around = around or Surroundings()
    backend = await _backend(settings, around)
    if backend.info.provider == "scripted":
        return backend
    try:
        mode = await _mode(settings, backend, state_dir)
    except BaseException:
        await backend.close()
        raise
    return ToolCallingModel(backend, mode)


async def list_models(settings: ModelSettings, *, around: Surroundings | None = None) -> list[str]:
    """Return the names of the models that the settings' server, or else this machine, offers."""
    around = around or Surroundings()
    if settings.base_url:
        where = _endpoint(settings, settings.base_url, settings.api_key, around)
        return await names_at(where, _limits(settings, quick=True))
    found = await discovery.find_servers(around.ports)
    names = [name for server in found for name in server.models]
    return [*names, _weights(around).stem] if _has_embedded(around) else names


async def _backend(settings: ModelSettings, around: Surroundings) -> Model:
    match settings.provider:
        case "scripted":
            return load_script(Path(settings.name or ""))
        case "embedded":
            return _embedded(settings, around)
    home = settings.base_url or (KINDS[settings.provider].home if settings.provider in KINDS else "")
    if not home:
        return await _discovered(settings, around)
    return await _server(settings, _endpoint(settings, home, settings.api_key or _vendor_key(home), around))


def _endpoint(settings: ModelSettings, url: str, key: str | None, around: Surroundings) -> Endpoint:
    return endpoint(url, key, headers=settings.headers, query=settings.query, network=around.network)


def _vendor_key(url: str) -> str | None:
    """Return the key that the environment has for a vendor's own address."""
    kind = KINDS.get(kind_of(url))
    return os.environ.get(kind.key) if kind and kind.key else None


async def _discovered(settings: ModelSettings, around: Surroundings) -> Model:
    """Return the model of a server on this machine, else the embedded model."""
    found = await discovery.find_servers(around.ports)
    if settings.provider == "llamacpp":
        found = [server for server in found if server.is_llamacpp]
    if settings.name:  # servers that have it first
        found.sort(key=lambda server: settings.name not in server.models)
    if found:
        return await _server(settings, found[0].where)
    if settings.provider == "auto" and _has_embedded(around):
        return _embedded(settings, around)
    raise ModelNotFound("model.not_found")


async def _server(settings: ModelSettings, where: Endpoint) -> Model:
    quick = _limits(settings, quick=True)
    props, entries = await asyncio.gather(read_props(where, quick), model_entries(where, quick), return_exceptions=True)
    kind = settings.provider if settings.provider != "auto" else kind_of(where.root)
    if isinstance(props, BaseException) or kind not in ("", "llamacpp"):
        props = None
    if isinstance(entries, BaseException):
        if props is None:
            raise entries
        entries = []
    kind = kind or ("llamacpp" if props else "openai")
    info = _info(settings, kind, where, props, entries)
    limits = _limits(settings)
    longest = settings.max_tokens if isinstance(settings.max_tokens, int) else None
    if kind == "llamacpp":
        return LlamaCppModel(where, info, api_mode=settings.api_mode, limits=limits, max_tokens=longest)
    return KINDS[kind].load()(where, info, limits=limits, max_tokens=longest, effort=settings.effort)


def _info(
    settings: ModelSettings, kind: str, where: Endpoint, props: Props | None, entries: list[dict[str, Any]]
) -> ModelInfo:
    name = settings.name or _choose(where, props, entries)
    entry = next((entry for entry in entries if entry["id"] == name), {})
    set_by_user = settings.context_window if isinstance(settings.context_window, int) else None
    facts = combine(
        [
            ("setting", Facts(context_window=set_by_user)),
            ("server", Facts(context_window=props.context_window if props else _window(entry))),
            ("assumed", Facts(context_window=LOCAL_WINDOW if where.loopback else HOSTED_WINDOW)),
        ]
    )
    slots = min(props.slots, MOST_SLOTS) if props else 1
    return ModelInfo(name, kind, url=where.root, facts=facts, slots=slots)


def _choose(where: Endpoint, props: Props | None, entries: list[dict[str, Any]]) -> str:
    """Return the only model, or on this machine the first chat model; for hosted servers the user has to choose."""
    names = [str(entry["id"]) for entry in entries]
    able = [name for name in names if not any(word in name.lower() for word in _NOT_FOR_CHAT)]
    if len(able) == 1 or (able and where.loopback):
        return able[0]
    if props is not None or (not names and where.loopback):
        return "default"  # llama.cpp serves its one model under any name
    raise ModelNotFound("model.name_needed", url=where.root, available=", ".join(names[:20]) or "?")


def _window(entry: Mapping[str, Any]) -> int | None:
    meta = entry.get("meta")
    for source in (entry, meta if isinstance(meta, Mapping) else {}):
        for key in _WINDOW_KEYS:
            if type(source.get(key)) is int and source[key] > 0:
                return int(source[key])
    return None


def _embedded(settings: ModelSettings, around: Surroundings) -> EmbeddedModel:
    if not engine_installed():
        raise ModelNotFound("model.local_missing")
    path = _weights(around)
    if not path.is_file():
        raise ModelNotFound("model.weights_missing", path=path)
    window = settings.context_window if isinstance(settings.context_window, int) else CONTEXT_WINDOW
    longest = settings.max_tokens if isinstance(settings.max_tokens, int) else None
    return EmbeddedModel(path, context_window=window, limits=_limits(settings), max_tokens=longest)


def _has_embedded(around: Surroundings) -> bool:
    present = around.weights.is_file() if around.weights else weights.installed()
    return (engine_installed() and present) if around.embedded is None else around.embedded


def _weights(around: Surroundings) -> Path:
    return around.weights or weights.weights_path()


async def _mode(settings: ModelSettings, backend: Model, state_dir: Path) -> ToolCalling:
    """Return the mode of the settings; that of the embedded model is known; others are probed once."""
    raw = settings.api_mode == "completion"
    if settings.tool_calling != "auto":
        return "text" if raw and settings.tool_calling == "native" else settings.tool_calling
    if backend.info.provider == "embedded" or (raw and backend.info.provider == "llamacpp"):
        return "constrained"
    return await probe.best_mode(backend, state_dir)


def _limits(settings: ModelSettings, *, quick: bool = False) -> TimeLimits:
    if quick:
        return TimeLimits(first=_ASK_SECONDS, silence=_ASK_SECONDS)
    return replace(TimeLimits(), first=float(settings.timeout_seconds), silence=SILENCE_SECONDS)
