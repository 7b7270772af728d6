"""The permission decision about a tool call, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["allow", "ask", "deny"]
Mode = Literal["ask", "acceptEdits", "readOnly", "bypass"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict about one call with its reason in English. `remember`: an approval may be kept for later calls;
    `firm`: the verdict holds whatever the isolation; `guarded`: a deny rule may cover the call unseen, so that it asks
    in every mode.
    """

    verdict: Verdict
    reason: str
    remember: bool = True
    firm: bool = False
    guarded: bool = False
