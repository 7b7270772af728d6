"""Opens the model in use when it is first needed, keeps it while its settings are the same, and closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from codeagent_lsp.config import ModelSettings, NetworkSettings
from codeagent_lsp.direct.aptitude import Proof, ProofStore
from codeagent_lsp.errors import ModelRejected
from codeagent_lsp.llm.learned_facts import facts_data
from codeagent_lsp.llm.model import Model

if TYPE_CHECKING:
    from codeagent_lsp.llm.factory import Surroundings
    from codeagent_lsp.llm.fill.edit_formats import Rewriter
    from codeagent_lsp.llm.fill.open_filler import Found
    from codeagent_lsp.llm.providers.embedded import EmbeddedHosts
    from codeagent_lsp.server.front import SettingsLink

Wanted = tuple[ModelSettings, NetworkSettings, bool]
"""The model, the way to it, and whether an embedded one fills in too."""


class Models:
    """The model of the settings, and those that agents ask for by name, kept open until `close`. At most one of the
    former is open. `fills` says whether an embedded model gets a slot that fills in, `interactive` whether a person
    works in an editor.
    """

    def __init__(
        self,
        link: SettingsLink,
        state: Path,
        fills: Callable[[], bool] = lambda: False,
        interactive: Callable[[], bool] = lambda: False,
    ) -> None:
        self._link = link
        self._state = state
        self._fills = fills
        self._interactive = interactive
        self._hosts: EmbeddedHosts | None = None
        self._lock = asyncio.Lock()
        self._model: Model | None = None
        self._opened_with: Wanted | None = None
        self._named: dict[str, tuple[Wanted, Model]] = {}

    async def open(self) -> Model:
        """Return the model of the settings: the same one until they change, which closes it and opens another. It is
        not the caller's to close. ModelError if it cannot be opened.
        """
        async with self._lock:
            wanted = self._wanted_settings()
            # Settings are read at each run, so a change takes effect without a restart.
            if self._model is None or self._opened_with != wanted:
                # First: a local model takes much of the machine's memory, and two of them may not fit.
                await self._drop()
                self._model = await self._open(wanted)
                self._opened_with = wanted
            return self._model

    async def open_named(self, name: str) -> Model:
        """Return another model, the same one until the settings change: a name at the same server, `NAME@URL`, or
        `embedded`. It is not the caller's to close. ModelError if it cannot be opened, ModelRejected if the policy does
        not allow it.
        """
        async with self._lock:
            model, network, fills = self._wanted_settings()
            wanted = settings_for_model(model, name), network, fills
            self.check_named(model, wanted[0])
            known = self._named.get(name)
            if known is None or known[0] != wanted:
                if known is not None:
                    await self._named.pop(name)[1].close()  # also where the new one cannot be opened
                self._named[name] = known = wanted, await self._open(wanted)
            return known[1]

    def check_named(self, model: ModelSettings, other: ModelSettings) -> None:
        """Raise ModelRejected if the policy fixes the model or its server, and `other` differs from `model` in that."""
        for key, changed in (("model.name", other.name), ("model.baseUrl", other.base_url)):
            theirs = model.name if key == "model.name" else model.base_url
            if changed != theirs and (fixed := self._link.fixed(key)) is not None:
                raise ModelRejected(fixed.key, **fixed.values)

    async def open_filler(self) -> Found | None:
        """Return the model that fills in by the settings, which the caller closes; None if none does. ModelError if its
        server does not answer or refuses.
        """
        settings, network, fills = self._wanted_settings()
        other = settings_for_model(settings, settings.inline) if settings.inline else settings
        self.check_named(settings, other)
        opener = await asyncio.to_thread(import_module, "codeagent_lsp.llm.fill.open_filler")
        found: Found | None = await opener.open_filler(other, await self._around(network, fills=fills))
        return found

    async def open_rewriter(self) -> Rewriter:
        """Return the next-edit model of the settings, which the caller closes. ModelError if there is none or its
        server does not answer, ModelRejected if the policy does not allow it.
        """
        settings, network, _ = self._wanted_settings()
        other = settings_for_model(settings, settings.next_edit or "")
        self.check_named(settings, other)
        opener = await asyncio.to_thread(import_module, "codeagent_lsp.llm.fill.open_filler")
        rewriter: Rewriter = await opener.open_rewriter(other, await self._around(network))
        return rewriter

    async def names(self, *, check: bool = False) -> list[str]:
        """Return the names of the models that the server of the settings offers. If it does not answer or refuses the
        key: [], or with `check` ModelError.
        """
        model, network, _ = self._wanted_settings()
        factory = await _factory()
        listing = factory.offered_models if check else factory.list_models
        names: list[str] = await listing(model, around=await self._around(network))
        return names

    async def details(self) -> list[dict[str, Any]]:
        """Return a row of plain data for each model of the server: `name`, `provider`, `facts` (as `facts_data`), and
        `answerForms` that a probe found, None if it was never probed; [] if no server answers.
        """
        settings, network, _ = self._wanted_settings()
        factory, store = await _factory(), ProofStore(self._state)
        infos = await factory.describe_models(settings, self._state, around=await self._around(network))
        return [
            {
                "name": info.name,
                "provider": info.provider,
                "facts": facts_data(info.facts),
                "answerForms": _forms(store.named(info.name, settings.base_url or "")),
            }
            for info in infos
        ]

    async def select(self, name: str) -> dict[str, str]:
        """Use another model from the next run on, until the server ends; return `{name}`. Whether it exists is not
        looked at. SettingError if the policy fixes another.
        """
        self._link.choose("model.name", name)
        return {"name": name}

    async def close(self) -> None:
        """Close all models: their connections and child processes. Later calls open them again. Waits for a model that
        is being opened.
        """
        async with self._lock:
            await self._drop()
            while self._named:
                await self._named.popitem()[1][1].close()

    def _wanted_settings(self) -> Wanted:
        """Return the settings of the model and its way. ModelRejected if the policy cannot be followed."""
        settings = self._link.settings
        if (refused := self._link.refusal) is not None:
            raise ModelRejected(refused.key, **refused.values)
        return settings.model, settings.network, self._fills()

    async def _open(self, wanted: Wanted) -> Model:
        factory = await _factory()
        around = await self._around(wanted[1], fills=wanted[2])
        model: Model = await factory.open_model(wanted[0], self._state, around=around)
        return model

    async def _around(self, network: NetworkSettings, *, fills: bool = False) -> Surroundings:
        factory = await _factory()
        # Kept for all models, so that the agent and the completion share one child process.
        if self._hosts is None:
            self._hosts = factory.EmbeddedHosts()
        around: Surroundings = factory.Surroundings(
            network=network, hosts=self._hosts, fills=fills, interactive=self._interactive()
        )
        return around

    async def _drop(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            await model.close()


def settings_for_model(settings: ModelSettings, name: str) -> ModelSettings:
    """Return the settings of another model (a name at the same server, `NAME@URL`, or `embedded`), whose window and
    longest reply are its own. To another server neither key, headers nor query are sent: it has a key of its own, or
    none.
    """
    # `NAME@http://…`: a name may have an `@` of its own.
    name, _, url = name.partition("@http")
    if name == settings.name and not url:
        return settings
    other = replace(settings, name=name, context_window="auto", max_tokens="auto")
    if name == "embedded":
        return replace(other, provider="embedded", base_url=None, name=None)
    if not url:
        return other
    elsewhere = replace(other, provider="auto", base_url=f"http{url}", api_key=None, effort="auto")
    return replace(elsewhere, headers={}, query={})


def _forms(proof: Proof | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {"source": proof.source, **{form: [score.done, score.of] for form, score in proof.scores.items()}}


async def _factory() -> ModuleType:
    """Return the module that opens models, imported in a thread: it is heavy, and an idle server does not need it."""
    return await asyncio.to_thread(import_module, "codeagent_lsp.llm.factory")
