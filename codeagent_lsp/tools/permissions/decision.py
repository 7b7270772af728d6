"""What a call gets: the value that all parts of the permission decision speak in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["allow", "ask", "deny"]
Mode = Literal["ask", "acceptEdits", "readOnly", "bypass"]


@dataclass(frozen=True, slots=True)
class Decision:
    """`remember`: whether an approval may be kept for later calls; `firm`: whether it holds however well the call is
    isolated.
    """

    verdict: Verdict
    reason: str
    remember: bool = True
    firm: bool = False
