"""Opens the model in use when it is first needed, keeps it while its settings are the same, and closes it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from codeagent_lsp.agent.forms.proof import Proof, ProofStore
from codeagent_lsp.config import ModelSettings, NetworkSettings
from codeagent_lsp.errors import ModelRejected
from codeagent_lsp.llm.model import Model

if TYPE_CHECKING:
    from codeagent_lsp.server.settings import SettingsLink

Wanted = tuple[ModelSettings, NetworkSettings]


class Models:
    """The model of the settings, and those that agents ask for by name. At most one of the former is open."""

    def __init__(self, link: SettingsLink, state: Path) -> None:
        self._link = link
        self._state = state
        self._lock = asyncio.Lock()
        self._model: Model | None = None
        self._opened_with: Wanted | None = None
        self._named: dict[Wanted, Model] = {}

    async def open(self) -> Model:
        """Return the model of the settings."""
        async with self._lock:
            wanted = self._wanted()
            if self._model is None or self._opened_with != wanted:
                await self._drop()
                self._model = await self._open(wanted)
                self._opened_with = wanted
            return self._model

    async def open_named(self, name: str) -> Model:
        """Return another model of the same endpoint, for an agent that asks for it; closed with the server."""
        async with self._lock:
            model, network = self._wanted()
            wanted = replace(model, name=name), network
            if name != model.name and (fixed := self._link.fixed("model.name")) is not None:
                raise ModelRejected(fixed.key, **fixed.values)
            if wanted not in self._named:
                self._named[wanted] = await self._open(wanted)
            return self._named[wanted]

    async def names(self) -> list[str]:
        """Return the names of the models that the endpoint offers."""
        model, network = self._wanted()
        factory = await _factory()
        names: list[str] = await factory.list_models(model, around=factory.Surroundings(network=network))
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
                await self._named.popitem()[1].close()

    def _wanted(self) -> Wanted:
        """Return the settings of the model and its way. ModelRejected if the policy cannot be followed."""
        settings = self._link.settings
        if (refused := self._link.refusal) is not None:
            raise ModelRejected(refused.key, **refused.values)
        return settings.model, settings.network

    async def _open(self, wanted: Wanted) -> Model:
        factory = await _factory()
        around = factory.Surroundings(network=wanted[1])
        model: Model = await factory.open_model(wanted[0], self._state, around=around)
        return model

    async def _drop(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            await model.close()


def _forms(proof: Proof | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {"source": proof.source, **{form: [score.done, score.of] for form, score in proof.scores.items()}}


async def _factory() -> ModuleType:
    """Return the module that opens models, imported in a thread: it is heavy, and an idle server does not need it."""
    return await asyncio.to_thread(import_module, "codeagent_lsp.llm.factory")
