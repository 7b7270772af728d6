"""Probing of how a model can call tools, with the result remembered in a file.

Not here: calling tools in that way (`calls/toolcalling.py`).
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

from codeagent_lsp.errors import ContextOverflow, ModelRejected, ModelReplyInvalid, ModelStreamBroken, ModelTimeout
from codeagent_lsp.llm import remembered
from codeagent_lsp.llm.calls.toolcalling import ToolCallingModel
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, Reply, ToolCalling
from codeagent_lsp.messages import Message, ToolSpec

FILE = "tool_calling.json"

_MODES: tuple[ToolCalling, ...] = ("native", "constrained", "text")
_SECONDS = 120.0
PROBE_TOKENS = 600
"""The most tokens of a probe's reply: models that reason first need more than the call itself."""

_TOOL: ToolSpec = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
_QUESTION = (
    Message("system", "You answer questions by calling tools."),
    Message("user", "What is the weather in Paris? Call get_weather."),
)


async def best_mode(model: Model, state_dir: Path) -> ToolCalling:
    """Return the mode that works for this model: as remembered, else the first that passes a probe.

    Connection failures are raised. Nothing is remembered of them, nor where a mode failed in a way that may pass.
    """
    if (known := known_mode(model.info, state_dir)) is not None:
        return known
    found, sure = await _find(model)
    if sure:
        remembered.remember(state_dir / FILE, _key(model.info), found)
    return found


class Untried:
    """What is to be done about a model that is taken to call tools by the API without having been asked: it proves
    itself at work, or is asked in the end.
    """

    def __init__(self, model: Model, state_dir: Path) -> None:
        self._model = model
        self._state_dir = state_dir

    async def worked(self) -> None:
        """Remember that the model called tools by the API."""
        await asyncio.to_thread(remembered.remember, self._state_dir / FILE, _key(self._model.info), "native")

    async def asked(self) -> ToolCalling:
        """Return the mode that a probe finds."""
        return await best_mode(self._model, self._state_dir)


def known_mode(info: ModelInfo, state_dir: Path) -> ToolCalling | None:
    """Return the remembered mode of a model; None for one that was never seen to call tools."""
    known = remembered.read(state_dir / FILE).get(_key(info))
    return known if known in _MODES else None


async def _find(model: Model) -> tuple[ToolCalling, bool]:
    """Return the first mode that passes, and whether all modes before it are known not to work."""
    sure = True
    for mode in ("native", "constrained"):
        works = await _works(model, mode)
        if works:
            return mode, sure
        sure = sure and works is not None
    return "text", sure


async def _works(model: Model, mode: ToolCalling) -> bool | None:
    """Return whether a small question results in the expected call, in the mode's own format; None where that is not
    known, as the reply broke off or was an error of any kind.
    """
    asked = ModelRequest(_QUESTION, tools=(_TOOL,), max_tokens=PROBE_TOKENS)
    source = model if mode == "native" else ToolCallingModel(model, mode)
    try:
        async with asyncio.timeout(_SECONDS), aclosing(source.stream(asked)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    return any(
                        call.name == "get_weather" and isinstance(call.arguments.get("city"), str)
                        for call in item.tool_calls
                    )
    except TimeoutError as error:
        raise ModelTimeout("model.timeout_first", url=model.info.url, seconds=f"{_SECONDS:g}") from error
    except ModelRejected as error:
        if error.key not in ("model.rejected", "model.no_tools"):
            raise  # a wrong key or no credit is not about tools
    except ModelReplyInvalid as error:
        return False if error.key == "model.server_parse" else None
    except ContextOverflow:
        return False
    except ModelStreamBroken:
        return None  # some servers without tool support fail in this way, too
    return False


def _key(info: ModelInfo) -> str:
    return f"{info.url} {info.name}"
