"""What OpenAI-compatible servers say of a model in their lists, each in its own words.

vLLM, OpenRouter, Groq, Mistral and Together in `/v1/models`, LM Studio in `/api/v0/models`. Pure functions. Not here:
llama.cpp (`providers/llamacpp.py`), asking (`factory.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from codeagent_lsp.llm.facts import Facts, Prices

_WINDOW = (
    "max_model_len",
    "loaded_context_length",
    "context_window",
    "context_length",
    "max_context_length",
    "max_input_tokens",
    "n_ctx",
)
_REPLY = ("max_completion_tokens", "max_output_tokens", "max_output_length", "max_tokens")


def facts_of(entry: Mapping[str, Any]) -> Facts:
    """Return what one entry of a list of models says."""
    # OpenRouter tells limits under `top_provider`, llama.cpp under `meta`.
    places = [entry, *(value for key in ("top_provider", "meta") if isinstance(value := entry.get(key), Mapping))]
    return Facts(
        context_window=_number(places, _WINDOW),
        longest_reply=_number(places, _REPLY),
        prices=_prices(entry.get("pricing")),
        reasoning=_listed(entry.get("supported_parameters"), "reasoning"),
        vision=_vision(entry),
        native_tools=_tools(entry),
    )


def _number(places: list[Mapping[str, Any]], keys: tuple[str, ...]) -> int | None:
    found = (place[key] for place in places for key in keys if type(place.get(key)) is int and place[key] > 0)
    return next(found, None)


def _prices(pricing: Any) -> Prices | None:
    """Return the prices: OpenRouter writes USD per token as text, Together USD per million as numbers."""
    if not isinstance(pricing, Mapping):
        return None
    if isinstance(pricing.get("prompt"), str):
        scale, keys = 1_000_000, ("prompt", "completion", "input_cache_read", "input_cache_write")
    else:
        scale, keys = 1, ("input", "output", "cached_input", "")
    given, reply, cached, written = (_price(pricing.get(key), scale) for key in keys)
    return None if given is None or reply is None else Prices(given, reply, cached, written)


def _price(value: Any, scale: int) -> float | None:
    try:
        price = float(value) * scale
    except (TypeError, ValueError):
        return None
    return round(price, 9) if math.isfinite(price) and price >= 0 else None  # -1 stands for a price that varies


def _listed(values: Any, wanted: str) -> bool | None:
    return wanted in values if isinstance(values, list) else None


def _vision(entry: Mapping[str, Any]) -> bool | None:
    architecture, abilities = entry.get("architecture"), entry.get("capabilities")
    if isinstance(architecture, Mapping) and isinstance(architecture.get("input_modalities"), list):
        return "image" in architecture["input_modalities"]
    if isinstance(abilities, Mapping) and isinstance(abilities.get("vision"), bool):
        return bool(abilities["vision"])
    # LM Studio.
    return entry["type"] == "vlm" if entry.get("type") in ("vlm", "llm") else None


def _tools(entry: Mapping[str, Any]) -> bool | None:
    abilities = entry.get("capabilities")
    if isinstance(abilities, Mapping) and isinstance(abilities.get("function_calling"), bool):
        return bool(abilities["function_calling"])
    if isinstance(abilities, list):
        return "tool_use" in abilities
    return _listed(entry.get("supported_parameters"), "tools")
