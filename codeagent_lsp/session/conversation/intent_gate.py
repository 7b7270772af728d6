"""Decides by its intent whether a request is planned: by rules over its words, by the model only where they are unsure.

It can only switch planning off; an explicit request for a planned run is kept. Not here: the rules (`agent/intent.py`),
when the mode is sent (`../run_output.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from codeagent_lsp import events
from codeagent_lsp.agent.intent import Intent, classify, classify_with_model
from codeagent_lsp.agent.limits import DEFAULT_WINDOW, window_of
from codeagent_lsp.config import AgentSettings
from codeagent_lsp.llm.model import Model
from codeagent_lsp.session.request import Planning, RunRequest

UNPLANNED = ("CAPABILITY_QUERY", "GENERAL_CHAT")


class IntentGate:
    """The planning decision for one request. `planning` says whether it may (`auto`), must (`always`) or must not
    (`never`) be planned, as far as is known, and `wanted` what the user has said of it; `intent` is None if the request
    was not classified.
    """

    def __init__(self, request: RunRequest, settings: AgentSettings) -> None:
        self.wanted: Planning = request.planning or settings.planning
        self.planning: Planning = self.wanted
        self.intent: Intent | None = None
        self._request = request
        self._free = request.planning is None
        if request.kind == "run" and settings.intent_gate:
            self._take(classify(request.task, has_selection=_has_selection(request)))

    @property
    def event(self) -> events.IntentClassified | None:
        """Return the event with the classification; None if the request was not classified."""
        if self.intent is None:
            return None
        return events.IntentClassified(
            intent=self.intent.label, confidence=self.intent.confidence, reason=self.intent.reason
        )

    async def ask(self, model: Model, emit: Callable[[events.Event], None]) -> None:
        """Classify the request with the model, if the rules were unsure, planning is `auto` by the settings, and the
        model is cheap. `emit` receives usage events.
        """
        unsure = self.intent is not None and not self.intent.sure
        if unsure and self._free and self.planning == "auto" and cheap(model):
            self._take(await classify_with_model(model, self._request.task, emit))

    def _take(self, intent: Intent) -> None:
        self.intent = intent
        if self._free and intent.label in UNPLANNED:
            self.planning = "never"


def cheap(model: Model) -> bool:
    """Return whether a short question to the model costs little. It does not for a small window (such models are slow,
    and the question evicts the conversation from their cache), nor for a scripted model, which has no replies to spare.
    """
    info = model.info
    return info.provider != "scripted" and window_of(info) > DEFAULT_WINDOW


def _has_selection(request: RunRequest) -> bool:
    return request.target is not None and request.target.end > request.target.start
