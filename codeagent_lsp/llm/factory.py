"""Construction of a ready model from the settings.

`open_model` and `describe_models` are all that the rest of the program needs. Not here: finding servers and
asking them (`survey.py`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from codeagent_lsp.config import ModelSettings, NetworkSettings
from codeagent_lsp.errors import (
    ContextOverflow,
    ModelError,
    ModelNotFound,
    ModelRejected,
    ModelReplyInvalid,
    ModelStreamBroken,
    ModelTimeout,
)
from codeagent_lsp.llm import learned_facts, weights
from codeagent_lsp.llm.calls.toolcalling import TextCallsModel, ToolCallingModel
from codeagent_lsp.llm.endpoint import SILENCE_SECONDS, Endpoint, TimeLimits, endpoint
from codeagent_lsp.llm.learned_facts import LearnedFacts, window_known
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, Reply, ToolCalling
from codeagent_lsp.llm.providers.embedded import (
    CONTEXT_WINDOW,
    EmbeddedHost,
    EmbeddedHosts,
    EmbeddedModel,
    engine_installed,
)
from codeagent_lsp.llm.providers.llamacpp import LlamaCppModel
from codeagent_lsp.llm.providers.scripted import load_script
from codeagent_lsp.llm.survey import KINDS, Survey, find_servers, key_variables, survey
from codeagent_lsp.messages import Message, ToolSpec
from codeagent_lsp.state import read_json

_ASK_SECONDS = 5.0
_MOST_DESCRIBED = 200
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


@dataclass(frozen=True)
class Surroundings:
    """The model servers and weights that the local machine offers, None for the defaults: `ports` to search for
    servers, the path of the embedded model's `weights`, and whether its engine is there (`embedded`). `network` is how
    other machines are reached. `hosts` are the running embedded models, with a slot for filling in if `fills`;
    `interactive` says that a person works with the model in an editor.
    """

    ports: Mapping[str, int] | None = None
    weights: Path | None = None
    embedded: bool | None = None
    network: NetworkSettings = NetworkSettings()
    hosts: EmbeddedHosts = field(default_factory=EmbeddedHosts)
    fills: bool = False
    interactive: bool = False


async def open_model(settings: ModelSettings, state_dir: Path, *, around: Surroundings | None = None) -> Model:
    """Return the model of `settings`, wrapped so that it calls tools; the caller closes it. May look for servers on
    this machine and probe one first, with a few requests. ModelError if there is no model, or it cannot be reached or
    is refused.
    """
    around = around or Surroundings()
    backend = await _backend(settings, around, state_dir)
    # A script says itself which calls it makes: these stay as they are, also those that fit no tool.
    if backend.info.provider == "scripted" and settings.tool_calling == "auto":
        return TextCallsModel(backend)
    try:
        mode = await _mode(settings, backend, state_dir)
    # Also when cancelled: an open backend may hold the child of the embedded model.
    except BaseException:
        await backend.close()
        raise
    untried = Untried(backend, state_dir) if mode is None else None
    return ToolCallingModel(backend, mode or "native", untried)


async def list_models(settings: ModelSettings, *, around: Surroundings | None = None) -> list[str]:
    """Return the names of the models that the settings' server, or else this machine, offers; the embedded model's
    last, if it is installed; [] if no server answers. ModelRejected if the address is not a URL.
    """
    around = around or Surroundings()
    names = [name for found in await _surveys(settings, around) for name in found.names]
    local = not home_of(settings) and has_embedded(around)
    return [*names, weights_of(around).stem] if local else names


async def models_at(settings: ModelSettings, *, around: Surroundings) -> list[str]:
    """Return the names of the models that the settings' server (`home_of`, which must not be '') lists, [] if it has no
    list. ModelError if it refuses the key or is not there.
    """
    where = endpoint_of(settings, home_of(settings), around)
    return list((await survey(where, settings.provider, _limits(settings, quick=True), named=True)).names)


async def offered_models(settings: ModelSettings, *, around: Surroundings) -> list[str]:
    """Return the names of the models as `list_models` does, but raise ModelError if the settings' server is not there
    or refuses the key, or the embedded model is not installed.
    """
    if settings.provider == "embedded":
        return [_embedded_weights(around).stem]
    if settings.provider == "scripted" or not home_of(settings):
        return await list_models(settings, around=around)
    return await models_at(settings, around=around)


async def describe_models(
    settings: ModelSettings, state_dir: Path, *, around: Surroundings | None = None
) -> list[ModelInfo]:
    """Return the models that `list_models` names, with the facts known of each, at most 200 and the embedded one; [] if
    no server answers. `state_dir` has the remembered facts.
    """
    around = around or Surroundings()
    found = await _surveys(settings, around)
    wanted = [(each, name) for each in found for name in each.names][:_MOST_DESCRIBED]
    infos = await asyncio.gather(*(each.info(name, settings, state_dir) for each, name in wanted))
    if not home_of(settings) and has_embedded(around):
        facts = window_known(CONTEXT_WINDOW)
        return [*infos, ModelInfo(weights_of(around).stem, "embedded", facts=facts)]
    return list(infos)


def home_of(settings: ModelSettings) -> str:
    """Return the address of the settings' server: as set, or the home of its kind; '' for one on this machine."""
    return settings.base_url or (KINDS[settings.provider].home if settings.provider in KINDS else "")


async def _surveys(settings: ModelSettings, around: Surroundings) -> list[Survey]:
    """Return what the settings' server says, or else all servers on this machine; none of those that do not answer."""
    # These have no server: what is listed is what else there is.
    provider = "auto" if settings.provider in ("embedded", "scripted") else settings.provider
    home = home_of(settings) if provider == settings.provider else ""
    found = [] if home else await find_servers(around.ports)
    places = [endpoint_of(settings, home, around)] if home else [each.where for each in found]
    limits = _limits(settings, quick=True)
    asked = (survey(where, provider, limits) for where in places)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, ModelError):
            raise answer
    return [answer for answer in answers if isinstance(answer, Survey)]


async def _backend(settings: ModelSettings, around: Surroundings, state_dir: Path) -> Model:
    match settings.provider:
        case "scripted":
            return load_script(Path(settings.name or ""))
        case "embedded":
            return _open_embedded(settings, around)
    home = home_of(settings)
    if not home:
        return await _discover(settings, around, state_dir)
    return await _server(settings, endpoint_of(settings, home, around), state_dir, interactive=around.interactive)


def endpoint_of(settings: ModelSettings, url: str, around: Surroundings) -> Endpoint:
    """Return the server at `url` with the key, headers and parameters of the settings; without a key the one in the
    environment variables of the URL's service, if any. ModelRejected if it is not a URL.
    """
    key = settings.api_key or next((key for name in key_variables(url) if (key := os.environ.get(name))), None)
    return endpoint(url, key, headers=settings.headers, query=settings.query, network=around.network)


async def server_here(settings: ModelSettings, around: Surroundings) -> Endpoint | None:
    """Look for the server on this machine that settings without an address mean, and return it; None if none answers.
    Of several the one with the model's name is preferred.
    """
    found = await find_servers(around.ports)
    if settings.provider == "llamacpp":
        found = [server for server in found if server.is_llamacpp]
    if settings.name:  # servers that have it first
        found.sort(key=lambda server: settings.name not in server.models)
    return found[0].where if found else None


async def _discover(settings: ModelSettings, around: Surroundings, state_dir: Path) -> Model:
    """Return the model of a server on this machine, else the embedded model."""
    if (where := await server_here(settings, around)) is not None:
        return await _server(settings, where, state_dir, interactive=around.interactive)
    if settings.provider == "auto" and has_embedded(around):
        return _open_embedded(settings, around)
    raise ModelNotFound("model.not_found")


async def _server(settings: ModelSettings, where: Endpoint, state_dir: Path, *, interactive: bool) -> Model:
    found = await survey(where, settings.provider, _limits(settings, quick=True), named=bool(settings.name))
    info = await found.info(settings.name or found.chosen(), settings, state_dir)
    limits = _limits(settings)
    longest = settings.max_tokens if isinstance(settings.max_tokens, int) else None
    learn = partial(LearnedFacts(state_dir).learn, where.root, info.name)
    if found.kind == "llamacpp":
        return LlamaCppModel(where, info, api_mode=settings.api_mode, limits=limits, max_tokens=longest, learn=learn)
    kind, effort = KINDS[found.kind].load(), settings.effort
    return kind(where, info, limits=limits, max_tokens=longest, effort=effort, learn=learn, interactive=interactive)


def _embedded_weights(around: Surroundings) -> Path:
    """Return the path of the embedded model's weights. ModelNotFound if it cannot run here."""
    if not engine_installed():
        raise ModelNotFound("model.local_missing", python=sys.executable)
    path = weights_of(around)
    if not path.is_file():
        raise ModelNotFound("model.weights_missing", path=path)
    return path


def _open_embedded(settings: ModelSettings, around: Surroundings) -> EmbeddedModel:
    _embedded_weights(around)
    longest = settings.max_tokens if isinstance(settings.max_tokens, int) else None
    return EmbeddedModel(embedded_host(settings, around), limits=_limits(settings), max_tokens=longest)


def embedded_host(settings: ModelSettings, around: Surroundings) -> EmbeddedHost:
    """Return the host of the embedded model as the settings want it, taken once: the caller has to release it. Nothing
    is started, and the weights need not be there.
    """
    window = settings.context_window if isinstance(settings.context_window, int) else CONTEXT_WINDOW
    return around.hosts.take(weights_of(around), window, fills=around.fills)


def has_embedded(around: Surroundings) -> bool:
    """Return whether the embedded model can run here: its engine and its weights are installed; `around.embedded`
    overrides that. Blocks for looking at the disk.
    """
    present = around.weights.is_file() if around.weights else weights.installed()
    return (engine_installed() and present) if around.embedded is None else around.embedded


def weights_of(around: Surroundings) -> Path:
    """Return the path of the embedded model's weights, which need not be there."""
    return around.weights or weights.weights_path()


async def _mode(settings: ModelSettings, backend: Model, state_dir: Path) -> ToolCalling | None:
    """Return the mode of the settings; that of the embedded model is known. None for a model that is taken to be
    capable without a trial; all others are probed once.
    """
    raw = settings.api_mode == "completion"
    if settings.tool_calling != "auto":
        # Raw completions have no place for tools.
        return "text" if raw and settings.tool_calling == "native" else settings.tool_calling
    if (
        (kind := KINDS.get(backend.info.provider))
        and kind.native
        and (backend.info.facts.native_tools or not kind.tells)
    ):
        return "native"
    if backend.info.provider == "embedded" or (raw and backend.info.provider == "llamacpp"):
        return "constrained"
    info = replace(backend.info, tool_calling="native")
    if info.capable and info.facts.native_tools is not False and not (kind and kind.native):
        return await asyncio.to_thread(known_mode, info, state_dir)
    return await best_mode(backend, state_dir)


def _limits(settings: ModelSettings, *, quick: bool = False) -> TimeLimits:
    if quick:
        return TimeLimits(first=_ASK_SECONDS, silence=_ASK_SECONDS)
    seconds = float(settings.timeout_seconds)  # some servers send nothing while they reason or write a call
    return replace(TimeLimits(), first=seconds, silence=max(SILENCE_SECONDS, seconds))


# Probing of how a model can call tools, with the result remembered in a file.


async def best_mode(model: Model, state_dir: Path) -> ToolCalling:
    """Return the mode in which this model calls tools: as remembered, else the first of `native` and `constrained` that
    passes a probe of a few requests, else `text`; what is found is remembered in the folder `state_dir` unless failures
    may have been temporary. ModelError if the model cannot be reached.
    """
    if (known := known_mode(model.info, state_dir)) is not None:
        return known
    found, sure = await _find(model)
    if sure:
        learned_facts.remember(state_dir / FILE, _key(model.info), found)
    return found


class Untried:
    """The unproved assumption that a model calls tools by the API: it is confirmed by a call, or replaced by what a
    probe finds.
    """

    def __init__(self, model: Model, state_dir: Path) -> None:
        self._model = model
        self._state_dir = state_dir

    async def worked(self) -> None:
        """Remember that the model called tools by the API, in a file of the state folder, written in a thread."""
        await asyncio.to_thread(learned_facts.remember, self._state_dir / FILE, _key(self._model.info), "native")

    async def asked(self) -> ToolCalling:
        """Return the mode in which the model calls tools: the remembered one, else what a probe finds, which asks the
        model several questions.
        """
        return await best_mode(self._model, self._state_dir)


def known_mode(info: ModelInfo, state_dir: Path) -> ToolCalling | None:
    """Return the remembered mode of a model; None if no mode is remembered. Blocks for reading a file in
    `state_dir`.
    """
    known = read_json(state_dir / FILE).get(_key(info))
    return known if known in _MODES else None


async def _find(model: Model) -> tuple[ToolCalling, bool]:
    """Return the first mode that passes, and whether all modes before it are known not to work."""
    sure = True
    for mode in ("native", "constrained"):
        works = await _works(model, mode)
        if works:
            return mode, sure
        # A mode that could not be judged may work another time: then the lesser one is used, but not remembered.
        sure = sure and works is not None
    return "text", sure


async def _works(model: Model, mode: ToolCalling) -> bool | None:
    """Return whether a small question results in the expected call, in the mode's own format; None where that is not
    known, as the reply broke off or was an error of any kind.
    """
    asked = ModelRequest(_QUESTION, tools=(_TOOL,), max_tokens=PROBE_TOKENS)
    # Without the wrapper, which would find a call in the text too: here the API has to give it.
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
    # The question is a few lines: a model without room for them cannot be worked with in that way.
    except ContextOverflow:
        return False
    except ModelStreamBroken:
        return None  # some servers without tool support fail in this way, too
    return False


def _key(info: ModelInfo) -> str:
    return f"{info.url} {info.name}"
