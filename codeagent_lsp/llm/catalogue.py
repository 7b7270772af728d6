"""What the price list `genai-prices` (PyPI) says of a hosted model: window and prices, under any usual spelling.

The list comes with the package and is never fetched; it takes a quarter of a second to load, so it is loaded late and
in a thread. Not here: servers on this machine, which have no prices (`factory.py`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from codeagent_lsp.llm.facts import Facts, Prices

_PREFIX = re.compile(r"^(?:models/|(?:us|eu|apac|global|jp|au)\.(?=\w+\.)|openrouter/|vertex_ai/|bedrock/|azure/)")
_VENDOR = re.compile(r"^[\w\-]+[/.](?=[a-z])")
_ENDING = re.compile(r"(?:-v\d+:\d+|:(?:free|nitro|floor|beta|extended|thinking|online)|@\d{8}|@(?:default|latest))$")
_LOCAL = re.compile(r":(?:\d+(?:x\d+)?(?:\.\d+)?[bm]|latest)\b")
"""A tag as Ollama writes it: weights that somebody runs, whoever's name they bear."""

_DATE = re.compile(r"-(?:20\d{6}|20\d\d-\d\d-\d\d|latest|preview)$")


async def look_up(name: str, url: str) -> Facts:
    """Return the facts of a model at an address; empty ones when the list does not know it."""
    return await asyncio.to_thread(find, name, url)


def find(name: str, url: str) -> Facts:
    """Return what `look_up` returns. Blocking."""
    from genai_prices.data_snapshot import get_snapshot  # late: see above

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
