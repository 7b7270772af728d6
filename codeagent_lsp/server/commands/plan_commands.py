"""The commands of `codeagent.plan.*`. Not here: how a plan is carried out (`session/plan`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codeagent_lsp.server.commands.arguments import Arguments, Later, Table
from codeagent_lsp.session.plan.orders import retry_step, skip_step

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend


class PlanCommands:
    """The handlers of these commands; `later` runs work after the answer."""

    def __init__(self, backend: Backend, later: Later) -> None:
        self._backend = backend
        self._later = later

    def table(self) -> Table:
        """Return the handlers by command name."""
        return {
            "codeagent.plan.show": self._show,
            "codeagent.plan.retryStep": self._retry,
            "codeagent.plan.skipStep": self._skip,
            "codeagent.plan.rollback": self._roll_back,
        }

    def _show(self, given: Arguments) -> dict[str, str]:
        markdown = self._backend.plans.put(given["runId"])
        self._later(self._backend.plans.show(given["runId"]))
        return {"runId": given["runId"], "markdown": markdown}

    def _retry(self, given: Arguments) -> dict[str, str]:
        retry_step(self._backend.manager, given["runId"], given["stepId"])
        return {"runId": given["runId"]}

    def _skip(self, given: Arguments) -> dict[str, str]:
        skip_step(self._backend.manager, given["runId"], given["stepId"])
        return {"runId": given["runId"]}

    def _roll_back(self, given: Arguments) -> dict[str, str]:
        run = self._backend.manager.runs.get(given["runId"])
        run.steering.check(given["stepId"])
        self._later(self._backend.reviews.roll_back(run, given["stepId"]))
        return {"runId": given["runId"]}
