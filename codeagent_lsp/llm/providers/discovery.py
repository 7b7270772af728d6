"""Discovery of model servers on this machine, on the default ports of common servers.

Not here: choosing one (`llm/factory.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits, endpoint
from codeagent_lsp.llm.providers.llamacpp import read_props
from codeagent_lsp.llm.providers.openai import list_models

PORTS: Mapping[str, int] = {"llamacpp": 8080, "ollama": 11434, "lmstudio": 1234, "vllm": 8000}
# A server on this machine answers in milliseconds, or is busy loading; a start must not wait for closed ports.
PROBE_SECONDS = 0.8


@dataclass(frozen=True)
class FoundServer:
    """A server that answers: the kind its port suggests, its address, its models."""

    kind: str
    where: Endpoint
    models: tuple[str, ...] = field(default=())
    is_llamacpp: bool = False


async def find_servers(
    ports: Mapping[str, int] | None = None, *, host: str = "127.0.0.1", key: str | None = None
) -> list[FoundServer]:
    """Return all servers that answer within `PROBE_SECONDS`, in the order of `ports`; they are probed in parallel."""
    wanted = PORTS if ports is None else ports
    asked = [_look(kind, endpoint(f"http://{host}:{port}", key)) for kind, port in wanted.items()]
    return [found for found in await asyncio.gather(*asked) if found]


async def _look(kind: str, where: Endpoint) -> FoundServer | None:
    limits = TimeLimits(connect=PROBE_SECONDS, first=PROBE_SECONDS, silence=PROBE_SECONDS)
    models, props = await asyncio.gather(list_models(where, limits), read_props(where, limits))
    # Something else listens there: 8000 and 8080 are anybody's.
    if not models and props is None:
        return None
    return FoundServer(kind, where, tuple(models), is_llamacpp=props is not None)
