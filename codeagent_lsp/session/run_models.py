"""The models of one run: the main one, others by name, and the small one. All of them read no secrets, are recorded,
count in one budget, and have the stand-ins of the settings.

Not here: opening models (`server/models.py`), the wrappers themselves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from codeagent_lsp import events
from codeagent_lsp.agent.budget import Budget, BudgetedModel, Limits
from codeagent_lsp.errors import ModelError
from codeagent_lsp.llm.facts import LOCAL_WINDOW
from codeagent_lsp.llm.model import Model, ModelInfo
from codeagent_lsp.llm.stand_ins import Opener, StandInModel
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import Session

MOST_STAND_INS = 3

OpenNamed = Callable[[str], Awaitable[Model]]


class RunModels:
    """Opens and wraps the models of a run. A model that is opened twice counts in the same budget."""

    def __init__(self, services: Services, output: RunOutput, session: Session, run_id: str) -> None:
        self._services = services
        self._output = output
        self._session = session
        self._run_id = run_id
        self._budget = Budget(Limits())

    def begin(self) -> None:
        """Begin with the budget of the settings, also when a run goes on after its end."""
        settings = self._services.user.settings().budget
        self._budget = Budget(Limits(settings.usd, settings.tokens))

    async def main(self) -> Model:
        """Return the model of the settings, or the first of its stand-ins that can be opened."""
        model = await self._wrapped(self._services.models.open)
        self._tell_unknown(model.info)
        return model

    async def named(self, name: str) -> Model:
        """Return another model: a name at the same server, `NAME@URL`, or `embedded`; the main one for ''."""
        opened = self._services.models.open_named
        return await self._wrapped(lambda: opened(name)) if name and opened is not None else await self.main()

    async def small(self, main: Model) -> Model:
        """Return the model for small work; the main one where none is set, or it cannot be opened."""
        name = self._services.user.settings().model.small
        if not name:
            return main
        try:
            return await self.named(name)
        except ModelError as error:
            self._say("model.small_failed", name=name, reason=self._output.explain(error))
            return main

    async def _wrapped(self, opener: Opener) -> Model:
        names = self._services.user.settings().model.fallback[:MOST_STAND_INS]
        opened, redactor = self._services.models.open_named, self._services.redactor
        others = [_opener(opened, name) for name in names] if opened is not None else []
        model: Model = await StandInModel.open([opener, *others], self._stands_in) if others else await opener()
        model = BudgetedModel(model, self._budget, self._session.session_id)
        return model if redactor is None else await redactor.before(model, self._session.session_id, self._run_id)

    def _stands_in(self, error: ModelError, info: ModelInfo) -> None:
        self._say("model.stand_in", name=info.name, reason=self._output.explain(error))

    def _tell_unknown(self, info: ModelInfo) -> None:
        """Say what is missed, once for each session: a small window that is only assumed, prices for a budget."""
        window, assumed = info.context_window or 0, info.facts.sources.get("context_window") == "assumed"
        if assumed and window <= LOCAL_WINDOW and info.name not in self._session.context.windows_told:
            self._session.context.windows_told.add(info.name)
            self._say("fact.assumed", name=info.name, count=f"{window:,}")
        local = info.provider in ("scripted", "embedded")
        if self._services.user.settings().budget.usd is not None and info.facts.prices is None and not local:
            self._say("budget.no_prices", name=info.name)

    def _say(self, key: str, **values: object) -> None:
        self._output.emit(events.StatusChanged(message=self._output.text(key, **values)))


def _opener(open_named: OpenNamed, name: str) -> Opener:
    return lambda: open_named(name)
