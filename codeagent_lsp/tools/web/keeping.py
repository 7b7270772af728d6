"""Use of the cache by the web tools. A broken cache is reported once and then ignored.

Not here: where results are stored (`cache.py`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from codeagent_lsp.state import workspace_state
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.tool import ToolOutput
from codeagent_lsp.tools.web.cache import CacheOff, cache_of

_CACHE = "web.sqlite"


class CachedOutput:
    """The cache entry of one tool result, by its key."""

    def __init__(self, context: ToolContext, key: str) -> None:
        self._context = context
        self._key = key
        self._on = True
        folder = workspace_state(context.view.roots.folders)
        self._cache = cache_of(context.settings.web.cache_url, folder / _CACHE)

    async def get(self) -> ToolOutput | None:
        """Return the cached result with its age in minutes; None if there is none."""
        try:
            value = await self._cache.get(self._key)
        except CacheOff as error:
            self._tell(error)
            return None
        known = _object(value)
        if not isinstance(known.get("text"), str) or not isinstance(known.get("at"), int | float):
            return None
        # what another machine kept may be from a clock that is ahead
        minutes = max(0, int((time.time() - known["at"]) // 60))
        return ToolOutput(f"[kept from {minutes} minutes ago]\n{known['text']}", known.get("data"))

    async def put(self, output: ToolOutput, seconds: float) -> None:
        """Store the result, with secrets masked."""
        # a cache outlives the session, and may be on a server that others use
        hide = self._context.redaction.hide
        value = {"text": hide(output.text), "data": _without(output.data, hide), "at": time.time()}
        if self._on:
            try:
                await self._cache.put(self._key, json.dumps(value), seconds)
            except CacheOff as error:
                self._tell(error)

    def _tell(self, error: CacheOff) -> None:
        self._on = False
        self._context.note(self._context.words("web.cache_off", reason=str(error)))


def _object(value: str | None) -> dict[str, Any]:
    try:
        known = json.loads(value or "null")
    except (ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _without(data: Any, hide: Any) -> Any:
    """Return the data with `hide` applied to every text in it."""
    if isinstance(data, Mapping):
        return {key: _without(value, hide) for key, value in data.items()}
    if isinstance(data, list):
        return [_without(value, hide) for value in data]
    return hide(data) if isinstance(data, str) else data
