"""The command `codeagent-lsp setup`: a dialogue from no model to one that has answered, kept for every editor.

What runs on this machine comes first, then the services that one has a key for, then the embedded model. Nothing is
kept before the model has answered once. Not here: the file (`settings_files.py`), fetching weights (`model.py`).
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rich.console import Console
from rich.text import Text

from codeagent_lsp.config import Settings
from codeagent_lsp.errors import ModelError, ModelRejected, ModelUnauthorized, ModelUnreachable, UserError
from codeagent_lsp.llm import survey, weights
from codeagent_lsp.llm.factory import Surroundings, models_at, open_model
from codeagent_lsp.llm.model import Model, ModelRequest, Reply
from codeagent_lsp.llm.survey import SERVICES, Service
from codeagent_lsp.messages import Message
from codeagent_lsp.settings_files import keep_model, read_policy
from codeagent_lsp.settings_layers import catalogue, environment_layer, load
from codeagent_lsp.state import state_root
from codeagent_lsp.terminal.display import one_line, short_path, user_locale
from codeagent_lsp.terminal.model import get_engine, pull_model
from codeagent_lsp.terminal.questions import Keyboard
from codeagent_lsp.terminal.stage import console
from codeagent_lsp.terminal.summary import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE
from codeagent_lsp.texts import choose_language, text

ANSWER_TOKENS = 2000  # a model that reasons first needs more than its word
SHOWN_MODELS = 12
_QUESTION = (
    "In which programming language is this line written? Answer with its name alone.\n\nfn main() { let x = 1; }"
)
_LONGEST_ANSWER = 200
_KEYLESS = ""


class Lines(Protocol):
    """Port: where answers are entered, the keyboard or what a test types."""

    async def line(self) -> str | None:
        """Return the next line without its end; None at the end of input."""

    async def secret_line(self) -> str | None:
        """Return the next line without its end, not shown while it is typed; None at the end of input."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model's server that the user can choose: its name for the user, its settings by dotted keys, the names of its
    models, and the hosted service it is (None for a server on this machine).
    """

    title: str
    settings: Mapping[str, Any]
    models: tuple[str, ...] = ()
    service: Service | None = None


class Chosen(NamedTuple):
    """The settings of one model by their dotted keys, such as `model.name`, and its API key, '' if it needs none."""

    settings: Mapping[str, Any]
    key: str = _KEYLESS


class _Ended(Exception):
    """The input is at its end, or the user wants no more."""


def setup_command() -> int:
    """Hold the dialogue and return the exit code: 0 once a model has answered and is kept, 1 if none is, 2 without a
    terminal, 130 after Ctrl-C.
    """
    language = choose_language("auto", user_locale())
    keyboard = Keyboard()
    if not keyboard.present:
        sys.stderr.write(f"codeagent-lsp: {text('setup.no_terminal', language)}\n")
        return EXIT_USAGE
    dialogue = Dialogue(console(), keyboard, language)
    try:
        return asyncio.run(dialogue.hold())
    except UserError as error:
        sys.stderr.write(f"codeagent-lsp: {error.localized(language)}\n")
        return EXIT_FAILED
    except KeyboardInterrupt:
        dialogue.say("setup.nothing_kept")
        return EXIT_INTERRUPTED


class Dialogue:
    """The dialogue of one setup of a model; nothing is stored before a model has answered. `ports` are the ports of
    this machine to look for servers on, by the kind of server; None for the usual ones.
    """

    def __init__(self, out: Console, lines: Lines, language: str, *, ports: Mapping[str, int] | None = None) -> None:
        self._out = out
        self._lines = lines
        self._language = language
        self._ports = ports

    async def hold(self) -> int:
        """Ask until a model has answered and its settings are written, or the user ends it. Return the exit code: 0 if
        it is kept, else 1.
        """
        try:
            return await self._hold()
        except _Ended:
            self.say("setup.nothing_kept")
            return EXIT_FAILED

    def say(self, key: str, style: str = "", **values: object) -> None:
        """Print a sentence of the catalogue (`texts.py`) by its key, in a style of Rich, with values for its
        placeholders. KeyError for an unknown key.
        """
        self._out.print(Text(text(key, self._language, **values), style))

    async def _hold(self) -> int:
        self.say("setup.begin", "bold")
        self.say("setup.looking", "dim")
        candidates = [*await self._here(), *self._services(), self._embedded()]
        while True:
            candidate = await self._one_of(candidates)
            chosen = await self._complete(candidate)
            if chosen is not None and await self._answers(chosen):
                return self._keep(chosen)

    # What there is to choose.

    async def _here(self) -> list[Candidate]:
        """Return the servers that run on this machine."""
        found = await survey.find_servers(self._ports)
        names = {"llamacpp": "llama.cpp", "ollama": "Ollama", "lmstudio": "LM Studio", "vllm": "vLLM"}
        return [
            Candidate(
                text("setup.here", self._language, name=names.get(server.kind, server.kind), url=server.where.root),
                {"model.baseUrl": server.where.root},
                server.models,
            )
            for server in found
        ]

    def _services(self) -> list[Candidate]:
        other = text("setup.other", self._language)
        return [
            Candidate(
                service.title or other, {"model.baseUrl": service.url, **service.settings}, service.models, service
            )
            for service in SERVICES
        ]

    def _embedded(self) -> Candidate:
        title = text("setup.embedded", self._language, size=f"{weights.CODER.size / 1e9:.1f}")
        return Candidate(title, {"model.provider": "embedded"})

    async def _one_of(self, candidates: Sequence[Candidate]) -> Candidate:
        self._out.print()
        for number, candidate in enumerate(candidates, 1):
            more = ""
            if candidate.service and (variable := _variable(candidate.service)):
                more = text("setup.key_in", self._language, variable=variable)
            elif not candidate.service and candidate.models:
                more = one_line(", ".join(candidate.models), 60)
            self._out.print(Text.assemble((f"{number:>3}  ", "bold cyan"), candidate.title, (f"  {more}", "dim")))
        self._out.print()
        while True:
            said = await self._ask("setup.which", default="1")
            if said.isdecimal() and 1 <= int(said) <= len(candidates):
                return candidates[int(said) - 1]
            self.say("setup.number", "yellow", count=len(candidates))

    # What a choice needs besides.

    async def _complete(self, candidate: Candidate) -> Chosen | None:
        """Return the model of a choice, with all that it needs; None to choose again."""
        if candidate.settings.get("model.provider") == "embedded":
            return Chosen(candidate.settings) if self._has_embedded() else None
        settings, key = dict(candidate.settings), _KEYLESS
        service = candidate.service
        if service and not service.url:
            settings["model.baseUrl"] = await self._address(service)
        while True:
            key = await self._key(service) if service else _KEYLESS
            try:
                models = await self._list_models(Chosen(settings, key))
                break
            except ModelUnauthorized as error:
                self._tell(error)
                if not (service and key):  # nothing entered, or the one of the environment: another choice
                    return None
        if models is None:
            return None
        if not models and not candidate.models:
            self.say("setup.no_list", "yellow")
        proposed = [name for name in candidate.models if not models or name in models]
        settings["model.name"] = await self._model(models or proposed, proposed)
        return Chosen(settings, key)

    async def _address(self, service: Service) -> str:
        """Return the address of a server, asked for until there is one."""
        while not (said := await self._ask("setup.address", shape=service.shape)):
            self.say("setup.address_none", "yellow")
        return said

    def _has_embedded(self) -> bool:
        """Return whether the embedded model is here, after its engine and its weights were fetched if they were not."""
        if not get_engine(self._out, self._language):
            return False
        if weights.installed():
            return True
        try:
            return pull_model(self._out, self._language) == EXIT_DONE
        except UserError as error:
            self._out.print(Text(error.localized(self._language), "red"))
            return False

    async def _key(self, service: Service) -> str:
        """Return the key that was entered, '' for none: one of the environment stays there and is found by its name."""
        variable = _variable(service)
        if service.page and not variable:
            self.say("setup.key_page", "dim", page=service.page)
        question = "setup.key_or" if variable else "setup.key" if service.page else "setup.key_maybe"
        self._out.print(Text(text(question, self._language, variable=variable), "bold"), end=" ")
        said = await self._lines.secret_line()
        self._out.print()
        if said is None:
            raise _Ended
        return said.strip()

    async def _list_models(self, chosen: Chosen) -> list[str] | None:
        """Return the models that a server lists, none if it has no list; None if it refuses or is not there.
        ModelUnauthorized if it wants another key.
        """
        try:
            return await models_at(_model_settings(chosen).model, around=self._around())
        except ModelUnauthorized:
            raise
        except (ModelRejected, ModelUnreachable) as error:
            self._tell(error)
            return None
        except ModelError:  # it may have no list; the question that follows tells whether it answers
            return []

    async def _model(self, models: Sequence[str], proposed: Sequence[str]) -> str:
        """Return a model's name, of a list or as it is entered."""
        first = proposed[0] if proposed else models[0] if models else ""
        shown = list(dict.fromkeys([*proposed, *models]))
        for name in shown[:SHOWN_MODELS]:
            self._out.print(Text(f"     {one_line(name)}", "" if name in proposed else "dim"))
        if len(shown) > SHOWN_MODELS:
            self.say("setup.more_models", "dim", count=len(shown) - SHOWN_MODELS)
        doubted = ""
        while True:
            said = await self._ask("setup.model", default=first)
            fitting = [name for name in shown if name.startswith(said)]
            if said in shown or (said and (not models or said == doubted)):
                return said
            if said and len(fitting) == 1:
                return fitting[0]
            if said:
                doubted = said
                self.say("setup.not_listed", "yellow", name=said)

    # One true answer, and what is kept.

    async def _answers(self, chosen: Chosen) -> bool:
        """Ask the model a small question, show its answer, and return whether it gave one."""
        settings = _model_settings(chosen)
        self.say("setup.asking", "dim", name=settings.model.name or weights.CODER.name)
        began = time.monotonic()
        try:
            model = await open_model(settings.model, state_root(), around=self._around())
            try:
                reply = await _reply(model)
            finally:
                await model.close()
        except ModelError as error:
            self._tell(error)
            return False
        answer = one_line(reply.text or reply.problem, _LONGEST_ANSWER).strip()
        if not answer:
            self.say("setup.no_answer", "yellow")
            return False
        seconds, usage = time.monotonic() - began, reply.usage
        told = text(
            "setup.answered",
            self._language,
            seconds=f"{seconds:.1f}",
            prompt=usage.prompt_tokens,
            completion=usage.completion_tokens,
        )
        self._out.print(
            Text.assemble(("✓ ", "green"), f"{_QUESTION.splitlines()[-1]}  →  {answer}", (f"  {told}", "dim"))
        )
        return True

    def _keep(self, chosen: Chosen) -> int:
        path = keep_model(chosen.settings, chosen.key or None)
        self.say("setup.kept", path=short_path(path))
        if chosen.key:
            self.say("setup.key_kept", "dim", path=short_path(state_root()))
        if variables := _going_first(chosen):
            self.say("setup.outranked", "yellow", variables=", ".join(variables))
        self._out.print()
        self.say("setup.next")
        return EXIT_DONE

    def _around(self) -> Surroundings:
        network = load(environment_layer(), policy=read_policy())[0].network
        return Surroundings(ports=self._ports, network=network)

    def _tell(self, error: ModelError) -> None:
        self._out.print(Text.assemble(("✗ ", "red"), error.localized(self._language)))

    async def _ask(self, key: str, *, default: str = "", **values: object) -> str:
        shown = f"{text(key, self._language, **values)}{f' [{default}]' if default else ''}"
        self._out.print(Text(shown, "bold"), end=" ")
        said = await self._lines.line()
        if said is None or said.strip().lower() in ("q", "quit", "exit"):
            raise _Ended
        return said.strip() or default


async def _reply(model: Model) -> Reply:
    request = ModelRequest((Message("user", _QUESTION),), max_tokens=ANSWER_TOKENS)
    async with aclosing(model.stream(request)) as items:
        async for item in items:
            if isinstance(item, Reply):
                return item
    return Reply("")


def _model_settings(chosen: Chosen) -> Settings:
    """Return the settings with a choice over those of the environment. SettingError if the policy has others."""
    layer = {**chosen.settings, **({"model.apiKey": chosen.key} if chosen.key else {})}
    settings, problems = load(environment_layer(), layer, policy=read_policy())
    for problem in problems:
        if problem.key.startswith("policy."):
            raise problem
    return settings


def _going_first(chosen: Chosen) -> list[str]:
    """Return the environment variables that say something else than what was chosen, and go before it."""
    wanted = {**chosen.settings, **({"model.apiKey": chosen.key} if chosen.key else {})}
    said = environment_layer()
    return [
        setting.metadata["env"]
        for setting in catalogue()
        if setting.key in wanted and setting.key in said and said[setting.key] != wanted[setting.key]
    ]


def _variable(service: Service) -> str:
    """Return the environment variable that has a key of a service, '' if none has."""
    return next((name for name in service.variables if os.environ.get(name)), "")
