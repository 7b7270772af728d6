"""The checks of `codeagent-lsp doctor`: what works on this machine, and what to do about what does not."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from codeagent_lsp import __version__
from codeagent_lsp.agent.limits import SMALL_WINDOW, limits_for
from codeagent_lsp.config import NetworkSettings, Settings
from codeagent_lsp.direct.aptitude import BY_SCRIPT, ProofStore
from codeagent_lsp.errors import ModelError, ModelRejected, SettingError, ToolFailed
from codeagent_lsp.index.vectors import is_installed as vectors_installed
from codeagent_lsp.llm.embeddings import BuiltinEmbedder, engine_installed
from codeagent_lsp.llm.factory import Surroundings, open_model
from codeagent_lsp.llm.learned_facts import CAPABLE_WINDOW, facts_told
from codeagent_lsp.llm.model import Model, ModelInfo
from codeagent_lsp.llm.weights import engine_problem
from codeagent_lsp.network import check, describe_settings
from codeagent_lsp.settings_files import PolicyFile, changeable, read_policy
from codeagent_lsp.settings_layers import fixed_by, refusal
from codeagent_lsp.shadow.control_group import parent_group
from codeagent_lsp.shadow.probe import Isolator
from codeagent_lsp.state import state_root
from codeagent_lsp.texts import clauses, text
from codeagent_lsp.workspace.files.git_folders import outer_folders

Verdict = Literal["ok", "warning", "failed"]
MODEL_SECONDS = 20.0
_EXTRAS = {
    "local": "xllamacpp",
    "keyring": "keyring",
    "semantic": "lancedb",
    "web": "ddgs",
    "terminal": "terminado",
    "batch": "ray",
    "mcp": "mcp",
    "acp": "acp",
}
"""The extras of our package, each with a module that comes with it."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check: its name, verdict (`ok`, `warning` or `failed`), details, and what to do if the verdict
    is not `ok` ('' for nothing); texts are in the user's language.
    """

    name: str
    verdict: Verdict
    detail: str
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON: `name`, `verdict`, `detail` and `advice`."""
        return asdict(self)


async def diagnose(settings: Settings, state: Path, language: str, folders: Sequence[str] = (".",)) -> list[Check]:
    """Run all checks and return their results, in the order a user should read them. `state` is the state folder of the
    workspace, in which the index is looked up, `folders` are those that it has open.

    Opens the model, waiting at most 20 s, tries a command in isolation or the container engine, and loads the built-in
    embedder; all are closed again. Failures are results, not raised.
    """
    return [
        Check("version", "ok", f"codeagent-lsp {__version__}, Python {platform.python_version()}"),
        *_policy(read_policy(), language),
        await asyncio.to_thread(_network, settings.network, language),
        *await _model(settings, language),
        await _container(settings, language)
        if settings.shell.container_image
        else await asyncio.to_thread(_commands, settings, language, folders),
        _program("ripgrep", "rg", "doctor.ripgrep", language),
        _program("git", "git", "doctor.git", language),
        _state(state, language),
        await asyncio.to_thread(_index, settings, state / "index.sqlite", language),
        await _semantic(settings, language),
        _doors(settings, language),
        _extras(language),
    ]


def _policy(policy: PolicyFile, language: str) -> list[Check]:
    """Return what the policy fixes, and one check for each thing that is wrong with it."""
    if policy.path is None:
        return [Check("policy", "ok", text("doctor.policy.none", language))]
    if policy.problem is not None:
        return [Check("policy", "failed", policy.problem.localized(language))]
    fixed, problems = fixed_by(policy)
    key = "doctor.policy.fixes" if fixed else "doctor.policy.nothing"
    detail = text(key, language, path=policy.path, keys=", ".join(sorted(fixed)))
    loose = changeable(policy.path)
    advice = text("doctor.policy.writable", language) if loose else ""
    shown = Check("policy", "warning" if loose else "ok", detail, advice)
    return [shown, *(Check("policy", "failed", problem.localized(language)) for problem in problems)]


def _network(network: NetworkSettings, language: str) -> Check:
    """Check that the files of certificates can be read; what a server thinks of them is the model's check."""
    try:
        check(network)
    except SettingError as error:
        return Check("network", "failed", error.localized(language))
    told = describe_settings(network)
    key = "doctor.network.more" if told else "doctor.network.system"
    return Check("network", "ok", text(key, language, settings=told))


async def _model(settings: Settings, language: str) -> list[Check]:
    try:
        async with asyncio.timeout(MODEL_SECONDS):
            if (refused := refusal(read_policy())) is not None:
                raise ModelRejected(refused.key, **refused.values)
            model = await open_model(settings.model, state_root(), around=Surroundings(network=settings.network))
    except ModelError as error:
        return [Check("model", "failed", error.localized(language), text("doctor.model", language))]
    except TimeoutError:
        return [Check("model", "failed", text("doctor.model_slow", language), text("doctor.model", language))]
    try:
        info = model.info
        if info.provider == "embedded" and (problem := await asyncio.to_thread(engine_problem)):
            return [Check("model", "failed", problem.localized(language), text("doctor.model", language))]
        where = text("doctor.model.at", language, url=info.url) if info.url else ""
        calls = text("doctor.model.calls", language, calling=info.tool_calling)
        edits = _edits(model, settings, language)
        whence = clauses((f"{info.provider}{where}", calls, edits), language)
        named = Check("model", "ok", f"{info.name}{text('fact.whence', language, source=whence)}")
        return [named, _facts(info, language), _room(settings, info, language)]
    finally:
        await model.close()


def _facts(info: ModelInfo, language: str) -> Check:
    """Return what is known of the model and from where; a window that is only assumed is a warning."""
    told = facts_told(info.facts, language)
    if info.facts.sources.get("context_window") != "assumed":
        return Check("facts", "ok", told)
    advice = text("fact.assumed", language, name=info.name, count=f"{info.context_window:,}")
    return Check("facts", "warning", told, advice)


def _room(settings: Settings, info: ModelInfo, language: str) -> Check:
    """Return the limits that hold for work with this model, and why."""
    limits = limits_for(settings, info)
    count = limits.messages
    key = "limits.all_messages" if count is None else "limits.messages"
    chosen = {
        "agent.maxIterations": settings.agent.max_iterations,
        "context.maxMessages": settings.context.max_messages,
        "model.maxTokens": settings.model.max_tokens,
    }
    keys = ", ".join(name for name, value in chosen.items() if value != "auto")
    why = "limits.small" if limits.window <= SMALL_WINDOW else "limits.large"
    reasons = [text(why, language, most=f"{SMALL_WINDOW:,}", window=f"{limits.window:,}")]
    reasons += [text("limits.set", language, keys=keys)] if keys else []
    told = text(
        "limits.told",
        language,
        calls=limits.iterations,
        messages=text(key, language, count=count),
        reply=f"{limits.reply_tokens:,}",
        share=f"{limits.compact_at:.0%}",
        why=clauses(reasons, language),
    )
    return Check("limits", "ok", told)


def _edits(model: Model, settings: Settings, language: str) -> str:
    """Return how the model gives changed code, and the source of that knowledge."""
    form = settings.agent.answer_form
    if form != "auto":
        return text("forms.edits", language, forms=form, source=text("forms.setting", language))
    if model.info.capable:
        return text("forms.capable", language, least=f"{CAPABLE_WINDOW:,}")
    proof = BY_SCRIPT if model.info.provider == "scripted" else ProofStore(state_root()).get(model.info)
    if proof is None:
        return text("forms.unknown", language)
    source = text(f"forms.{proof.source}", language)
    return text("forms.edits", language, forms=proof.told(), source=source)


async def _container(settings: Settings, language: str) -> Check:
    """Check that commands can run in a container of the configured image."""
    from codeagent_lsp.environments.container import ContainerAdapter  # late: few want it, and it is heavy

    adapter = ContainerAdapter(lambda: settings.shell, state_root(), state_root())
    try:
        await (await adapter.create(settings.shell, ())).close()
    except SettingError as error:
        return Check("commands", "failed", error.localized(language))
    except ToolFailed as error:
        return Check("commands", "failed", str(error))
    words = text("doctor.commands.complete", language)
    return Check("commands", "ok", f"container {settings.shell.container_image}: {words}")


def _commands(settings: Settings, language: str, folders: Sequence[str]) -> Check:
    """Check by a trial how commands are isolated, and say why it is not better."""
    try:
        isolation = Isolator(str(state_root())).isolation(settings.shell)
    except SettingError as error:
        return Check("commands", "failed", error.localized(language))
    kind = "complete" if isolation.complete else isolation.level
    words = text(f"doctor.commands.{kind}", language)
    parts = [text("doctor.commands.level", language, level=isolation.level, words=words), _limits(language)]
    # Two folders of one repository have the same around them.
    if around := dict.fromkeys(path for folder in folders for path in outer_folders(os.path.realpath(folder))):
        parts.append(text("doctor.commands.around", language, paths=", ".join(around)))
    detail = clauses(parts, language)
    if isolation.level == "overlay":
        return Check("commands", "ok", detail)
    return Check("commands", "warning", detail, isolation.reason)


def _limits(language: str) -> str:
    """Say who limits the memory of commands."""
    path = parent_group()
    return text("doctor.limits.kernel", language, path=path) if path else text("doctor.limits.watched", language)


def _program(name: str, command: str, advice: str, language: str) -> Check:
    found = shutil.which(command)
    if found:
        return Check(name, "ok", found)
    return Check(name, "warning", text("doctor.missing", language, name=name), text(advice, language))


def _index(settings: Settings, path: Path, language: str) -> Check:
    """Check the code index on disk; a running server may know more files already."""
    import sqlite3  # late: only the doctor wants it here

    if not settings.index.enabled:
        return Check("index", "ok", text("doctor.index.off", language))
    try:
        # Some builds of SQLite lack FTS5.
        with closing(sqlite3.connect(":memory:")) as memory:
            memory.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
    except sqlite3.Error:
        words = text("doctor.index.no_search", language)
        return Check("index", "failed", words, text("doctor.index.no_search.advice", language))
    if not path.exists():
        return Check("index", "ok", text("doctor.index.new", language), text("doctor.index.new.advice", language))
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1.0)) as index:
            (files,) = index.execute("SELECT count(*) FROM files").fetchone()
    except sqlite3.Error as error:
        words = text("doctor.index.damaged", language, reason=error)
        return Check("index", "warning", words, text("doctor.index.damaged.advice", language))
    return Check("index", "ok", text("doctor.index.files", language, files=files, path=path))


async def _semantic(settings: Settings, language: str) -> Check:
    """Check what makes the vectors of the code search, the built-in embedder by a trial."""
    name, url = "vectors", settings.index.embeddings_base_url
    if not settings.index.enabled or settings.index.semantic is False:
        return Check(name, "ok", text("doctor.vectors.off", language))
    if not vectors_installed() or not (url or engine_installed()):
        asked = url or settings.index.semantic is True
        key = "doctor.vectors.none" if vectors_installed() else "doctor.vectors.no_extra"
        return Check(name, "warning" if asked else "ok", text(key, language))
    if url:
        return Check(name, "ok", text("doctor.vectors.server", language, url=url))
    embedder = BuiltinEmbedder()
    try:
        return Check(name, "ok", text("doctor.vectors.builtin", language, model=await embedder.model()))
    except ModelError as error:
        return Check(name, "warning", error.localized(language))
    finally:
        await embedder.close()


def _doors(settings: Settings, language: str) -> Check:
    """Tell by which commands other programs reach the agent or the editor, and which of them lack an extra."""
    lacking = [name for name in ("acp", "mcp") if not _is_installed(_EXTRAS[name])]
    lend = text(f"doctor.doors.{settings.lend.editor}", language)
    if not lacking:
        return Check("doors", "ok", text("doctor.doors", language, lend=lend))
    return Check("doors", "ok", text("doctor.doors.lacking", language, lend=lend, extras=",".join(lacking)))


def _extras(language: str) -> Check:
    """Tell which extras of the package are installed; none is needed for the agent itself."""
    found = [name for name, module in _EXTRAS.items() if _is_installed(module)]
    missing = [name for name in _EXTRAS if name not in found]
    detail = text("doctor.extras.found", language, names=", ".join(found)) if found else ""
    if missing:
        more = text("doctor.extras.missing", language, names=",".join(missing))
        detail = f"{detail}; {more}" if detail else more
    return Check("extras", "ok", detail)


def _is_installed(module: str) -> bool:
    return find_spec(module) is not None


def _state(state: Path, language: str) -> Check:
    # It is made at the first need, so the doctor makes none.
    nearest = next((folder for folder in (state, *state.parents) if folder.exists()), Path("/"))
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        return Check("state", "ok", str(state))
    return Check("state", "warning", str(state), text("doctor.state", language))
