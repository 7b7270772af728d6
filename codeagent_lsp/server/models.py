"""Opens the model in use when it is first needed, keeps it while its settings are the same, and closes it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from codeagent_lsp.agent.forms.proof import Proof, ProofStore
from codeagent_lsp.config import ModelSettings
from codeagent_lsp.llm.model import Model

if TYPE_CHECKING:
    from codeagent_lsp.server.settings import SettingsLink


class Models:
    """The model of the settings, and those that agents ask for by name. At most one of the former is open."""

    def __init__(self, link: SettingsLink, state: Path) -> None:
        self._link = link
        self._state = state
        self._lock = asyncio.Lock()
        self._model: Model | None = None
        self._opened_with: ModelSettings | None = None
        self._named: dict[str, tuple[ModelSettings, Model]] = {}

    async def open(self) -> Model:
        """Return the model of the settings."""
        async with self._lock:
            wanted = self._link.settings.model
            if self._model is None or self._opened_with != wanted:
                await self._drop()
                self._model = await (await _factory()).open_model(wanted, self._state)
                self._opened_with = wanted
            return self._model

    async def open_named(self, name: str) -> Model:
        """Return another model, kept until the settings change: a name at the same server, `NAME@URL`, `embedded`."""
        async with self._lock:
            wanted = named(self._link.settings.model, name)
            known = self._named.get(name)
            if known is None or known[0] != wanted:
                if known is not None:
                    await known[1].close()
                self._named[name] = known = wanted, await (await _factory()).open_model(wanted, self._state)
            return known[1]

    async def names(self) -> list[str]:
        """Return the names of the models that the endpoint offers."""
        names: list[str] = await (await _factory()).list_models(self._link.settings.model)
        return names

    async def details(self) -> list[dict[str, Any]]:
        """Return the models with what is known of their answer forms; None for those that were never probed."""
        base = self._link.settings.model.base_url or ""
        store = ProofStore(self._state)
        return [{"name": name, "answerForms": _forms(store.named(name, base))} for name in await self.names()]

    async def select(self, name: str) -> dict[str, str]:
        """Use another model from the next run on."""
        self._link.choose("model.name", name)
        return {"name": name}

    async def close(self) -> None:
        """Close all connections and child processes of models."""
        async with self._lock:
            await self._drop()
            while self._named:
                await self._named.popitem()[1][1].close()

    async def _drop(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            await model.close()


def named(settings: ModelSettings, name: str) -> ModelSettings:
    """Return the settings of another model. At another server our key is not sent: it has its own, or none."""
    if name == "embedded":
        return replace(settings, provider="embedded", base_url=None, name=None)
    name, _, url = name.partition("@http")
    if not url:
        return replace(settings, name=name)
    return replace(settings, provider="auto", base_url=f"http{url}", name=name, api_key=None)


def _forms(proof: Proof | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {"source": proof.source, **{form: [score.done, score.of] for form, score in proof.scores.items()}}


async def _factory() -> ModuleType:
    """Return the module that opens models, imported in a thread: it is heavy, and an idle server does not need it."""
    return await asyncio.to_thread(import_module, "codeagent_lsp.llm.factory")
