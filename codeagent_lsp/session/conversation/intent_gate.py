"""Tells questions from tasks before a request is planned: words first, the model only where they do not tell.

It only ever switches planning off. What the user asked for in so many words (a planned run) stays as it is. Not here:
the rules (`agent/intent.py`), when the mode is told (`../run_output.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from codeagent_lsp import events
from codeagent_lsp.agent.intent import Intent, classify, classify_with_model
from codeagent_lsp.agent.loop import DEFAULT_WINDOW
from codeagent_lsp.config import AgentSettings
from codeagent_lsp.llm.model import Model
from codeagent_lsp.session.request import Planning, RunRequest

UNPLANNED = ("CAPABILITY_QUERY", "GENERAL_CHAT")


class IntentGate:
    """For one request. `planning` is whether it may, must or must not be planned, by what is known so far."""

    def __init__(self, request: RunRequest, settings: AgentSettings) -> None:
        self.planning: Planning = request.planning or settings.planning
        self.intent: Intent | None = None
        self._request = request
        self._free = request.planning is None
        if request.kind == "run" and settings.intent_gate:
            self._take(classify(request.task, has_selection=_has_selection(request)))

    @property
    def event(self) -> events.IntentClassified | None:
        """What is told about it; None where nobody asked."""
        if self.intent is None:
            return None
        return events.IntentClassified(
            intent=self.intent.label, confidence=self.intent.confidence, reason=self.intent.reason
        )

    async def ask(self, model: Model, emit: Callable[[events.Event], None]) -> None:
        """Let the model say what it takes the request for, where that matters, nothing is told yet and it is cheap;
        `emit` is told what it took.
        """
        unsure = self.intent is not None and not self.intent.sure
        if unsure and self._free and self.planning == "auto" and cheap(model):
            self._take(await classify_with_model(model, self._request.task, emit))

    def _take(self, intent: Intent) -> None:
        self.intent = intent
        if self._free and intent.label in UNPLANNED:
            self.planning = "never"


def cheap(model: Model) -> bool:
    """Whether a short question costs next to nothing. A model with a small window is a slow one, and loses the
    conversation from its cache by it; a script has no answer to spare.
    """
    info = model.info
    return info.provider != "scripted" and (info.context_window or DEFAULT_WINDOW) > DEFAULT_WINDOW


def _has_selection(request: RunRequest) -> bool:
    return request.target is not None and request.target.end > request.target.start
