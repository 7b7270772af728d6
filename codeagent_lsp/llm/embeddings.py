"""Embedding vectors of texts from any server with an OpenAI-compatible `/v1/embeddings`.

One request at a time, without retries: the caller can do without. Not here: vectors without a server
(`builtin_embeddings.py`), which texts are embedded, and storing the vectors (`index/semantic.py`).
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from typing import Any

from codeagent_lsp.errors import ModelReplyInvalid, ModelTimeout
from codeagent_lsp.llm.endpoint import TROUBLE, Endpoint, TimeLimits, open_client
from codeagent_lsp.llm.exchange import read_body
from codeagent_lsp.llm.failures import from_exception, from_response
from codeagent_lsp.llm.providers.openai import model_entries

LIMITS = TimeLimits(connect=5.0, first=120.0)
MAX_REPLY = 64 << 20  # bytes

Vector = tuple[float, ...]


class Embedder:
    """A client of the embedding server at `where`. With `model` '' it takes the one whose name suggests embeddings."""

    def __init__(self, where: Endpoint, model: str = "", limits: TimeLimits = LIMITS) -> None:
        self.where = where
        self._model = model
        self._limits = limits

    async def model(self) -> str:
        """Return the name of the model: vectors of different models are not comparable.

        Raises ModelError as `embed`.
        """
        if not self._model:
            names = [str(entry["id"]) for entry in await model_entries(self.where, self._limits)]
            self._model = next((name for name in names if "embed" in name.lower()), names[0] if names else "default")
        return self._model

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, all of the same dimension.

        Raises ModelError, as ContextOverflow where a text is too long.
        """
        if not texts:
            return []
        # Stated, as some servers send base64 else.
        body = {"model": await self.model(), "input": list(texts), "encoding_format": "float"}
        return _vectors(await self._post(body), len(texts), self.where)

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a query: the API has no other way for it. Raises ModelError as `embed`."""
        (vector,) = await self.embed([text])
        return vector

    async def close(self) -> None:
        """Do nothing: every request has a connection of its own."""

    async def _post(self, body: dict[str, Any]) -> bytes:
        try:
            async with (
                asyncio.timeout(self._limits.first),
                open_client(self.where, self._limits) as client,
                client.stream("POST", f"{self.where.api}/embeddings", json=body) as response,
            ):
                reply = await read_body(response, self.where, self._limits, MAX_REPLY)
        except TimeoutError:
            seconds = f"{self._limits.first:g}"
            raise ModelTimeout("model.timeout_first", url=self.where.root, seconds=seconds) from None
        except TROUBLE as error:
            raise from_exception(error, self.where, self._limits) from error
        if response.status_code != 200:
            raise from_response(response.status_code, response.headers, reply, self.where)
        return reply


def _vectors(reply: bytes, count: int, where: Endpoint) -> list[Vector]:
    """Return the vectors in the order of the texts. Raises ModelReplyInvalid for malformed replies."""
    try:
        entries = json.loads(reply)["data"]
        # Servers that batch may answer in another order.
        placed = {int(entry.get("index", at)): entry["embedding"] for at, entry in enumerate(entries)}
        vectors = [tuple(float(number) for number in placed[at]) for at in range(count)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _odd(where, f"{type(error).__name__}: {error}") from error
    if not vectors[0] or any(len(vector) != len(vectors[0]) for vector in vectors):
        raise _odd(where, "the vectors have different lengths")
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise _odd(where, "a vector holds what is no number")
    return vectors


def _odd(where: Endpoint, reason: str) -> ModelReplyInvalid:
    return ModelReplyInvalid("model.embeddings_odd", url=where.root, reason=reason[:200])
