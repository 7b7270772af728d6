"""The permission mode of a run, which may be stricter than the user's.

Not here: what a mode allows (`tools/permissions`).
"""

from __future__ import annotations

from collections.abc import Callable

from codeagent_lsp.session.plan.run_planner import RunPlanner
from codeagent_lsp.session.request import ANSWERS
from codeagent_lsp.tools.permissions.decision import Mode


class RunMode:
    """The permission mode of one run. `user` returns the user's present mode; `reading` is True while the loop may
    only read, as when it replans.
    """

    def __init__(self, kind: str, planner: RunPlanner, user: Callable[[], Mode]) -> None:
        self.reading = False
        self._kind = kind
        self._planner = planner
        self._user = user

    def offered(self) -> Mode:
        """Return the mode by which tools are offered; `readOnly` for a run that only answers, whatever the model
        tries.
        """
        return "readOnly" if self._kind in ANSWERS else self._user()

    def now(self) -> Mode:
        """Return the present mode; `readOnly` also until a plan document is approved, and while `reading`."""
        return "readOnly" if self.reading or self._planner.reading_only else self.offered()
