"""The command `codeagent-lsp model list|probe|pull|serve`. Not here: fetching, serving, probing."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.text import Text

from codeagent_lsp.config import NetworkSettings, Settings
from codeagent_lsp.direct import AnswerForm
from codeagent_lsp.direct.aptitude import Proof, ProofStore, Score
from codeagent_lsp.errors import UserError
from codeagent_lsp.llm import weights
from codeagent_lsp.llm.providers.embedded import engine_installed
from codeagent_lsp.settings_files import read_policy, read_user_settings
from codeagent_lsp.settings_layers import environment_layer, load, refusal
from codeagent_lsp.state import state_root
from codeagent_lsp.terminal.display import user_locale
from codeagent_lsp.terminal.options import settings_of
from codeagent_lsp.terminal.stage import console
from codeagent_lsp.terminal.summary import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED
from codeagent_lsp.texts import choose_language, text

DEFAULT_PORT = 8080
ENGINE = "xllamacpp>=2026.1"
"""The extra `local`, by the name of its package: this program itself may be installed from anywhere."""
KEY_VARIABLE = "CODEAGENT_SERVE_KEY"

Pull = Callable[..., Path]


def model_command(action: str, port: int, assignments: Iterable[str] = (), slots: int = 1) -> int:
    """Perform one action (`list`, `probe`, `pull` or `serve`) and return the exit code: 0 done, 1 failed, 130
    interrupted. `serve` answers `slots` requests at a time on `port` until interrupted; `assignments` are settings as
    `KEY=VALUE`.
    """
    language = choose_language("auto", user_locale())
    out = console()
    logging.basicConfig(handlers=[logging.NullHandler()])  # what is tried again is no line for the user
    try:
        match action:
            case "pull":
                get_engine(out, language)
                return pull_model(out, language, network=_settings(assignments).network)
            case "serve":
                return _serve(out, port or DEFAULT_PORT, slots, language)
            case "probe":
                return asyncio.run(probe_model(out, language, _settings(assignments)))
        list_models(out, language)
        return EXIT_DONE
    except UserError as error:
        sys.stderr.write(f"{error.localized(language)}\n")
        return EXIT_FAILED


def list_models(out: Console, language: str) -> None:
    """Print on `out` the embedded model, whether it is installed, and the answer forms of models that were probed here.
    Reads the disk only.
    """
    here = weights.installed()
    size = f"{weights.CODER.size / 2**30:.1f} GiB"
    line = text("model.line", language, name=weights.CODER.name, size=size)
    out.print(Text.assemble(("✓ ", "green") if here else ("· ", "yellow"), (line, "bold")))
    state = text("model.here", language, path=weights.weights_path()) if here else text("model.not_here", language)
    out.print(Text(f"  {state}"), soft_wrap=True)
    if not engine_installed():
        out.print(Text(f"  {text('model.engine_missing', language)}", style="yellow"), soft_wrap=True)
    for key, proof in ProofStore(state_root()).entries():
        out.print(Text(f"  {told_forms(key, proof, language)}"), soft_wrap=True)


def told_forms(name: str, proof: Proof, language: str) -> str:
    """Return a line, in `language`, about the answer forms that a model has proved, and whether that was probed or
    shipped.
    """
    source = text(f"forms.{proof.source}", language)
    return text("forms.line", language, name=name, forms=proof.told(), source=source)


async def probe_model(out: Console, language: str, settings: Settings) -> int:
    """Try the configured model on tiny edits in each answer form, print the results, store them for later runs, and
    return the exit code 0. UserError if the model cannot be opened or asked.
    """
    from codeagent_lsp.direct.form_probe import probe  # late: it loads the loop, the tools and the parsers
    from codeagent_lsp.llm.factory import Surroundings, open_model  # late: it loads what opens models

    def told(form: AnswerForm, score: Score) -> None:
        mark = ("✓ ", "green") if Proof({form: score}).has(form) else ("· ", "yellow")
        tokens = text("terminal.tokens", language, prompt=score.prompt_tokens, completion=score.completion_tokens)
        row = f"{form:<9} {score.done}/{score.of}   {score.seconds:.1f} s · {tokens}"
        out.print(Text.assemble(mark, row), soft_wrap=True)

    model = await open_model(settings.model, state_root(), around=Surroundings(network=settings.network))
    try:
        out.print(Text(text("solve.probing", language, name=model.info.name), "bold"), soft_wrap=True)
        found = await probe(model, told)
        ProofStore(state_root()).keep(model.info, found)
    finally:
        await model.close()
    chosen = text("forms.tools" if found.calls_tools else "forms.direct", language)
    out.print(Text(chosen), soft_wrap=True)
    return EXIT_DONE


def _settings(assignments: Iterable[str]) -> Settings:
    """Return the settings of the environment, of `--set KEY=VALUE` and of the policy.

    UsageError if one is invalid, SettingError if the policy cannot be followed.
    """
    policy = read_policy()
    if (refused := refusal(policy)) is not None:
        raise refused
    return load(environment_layer(), dict(settings_of(assignments)), policy=policy, user=read_user_settings())[0]


def pull_model(out: Console, language: str, pull: Pull = weights.pull, network: NetworkSettings | None = None) -> int:
    """Download the weights with a progress bar, which takes minutes, and return 0, or 130 after Ctrl-C; the downloaded
    part is kept then. UserError if the download fails.
    """
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    # Not KeyboardInterrupt: the download ends between two pieces, so that what is there can be gone on with.
    before = signal.signal(signal.SIGINT, stop)
    try:
        with _bar(out) as bar:
            task = bar.add_task(weights.CODER.name, total=weights.CODER.size)
            path = pull(
                report=_percents(out, language)
                if bar.disable
                else lambda done, total: bar.update(task, completed=done, total=total),
                cancelled=stopped.is_set,
                **({"network": network} if network else {}),
            )
    except weights.Cancelled:
        out.print(Text(text("model.paused", language), style="yellow"))
        return EXIT_INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, before)
    out.print(Text.assemble(("✓ ", "green"), text("model.pulled", language, path=path)), soft_wrap=True)
    return EXIT_DONE


def get_engine(
    out: Console,
    language: str,
    *,
    installed: Callable[[], bool] = engine_installed,
    run: Callable[[list[str]], object] = subprocess.call,
) -> bool:
    """Return whether the engine of the embedded model is installed. If not, and this program is in an environment of
    its own, it is installed by pip first; if that does not help, how to do it by hand is printed.
    """
    if not installed() and sys.prefix != sys.base_prefix:
        out.print(Text(text("model.getting_engine", language), style="dim"))
        out.file.flush()
        run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", ENGINE])
        importlib.invalidate_caches()
    if installed():
        return True
    out.print(Text(text("model.local_missing", language, python=sys.executable), style="yellow"))
    return False


def _percents(out: Console, language: str) -> weights.Report:
    """Return what prints each new percent on a line, for programs that read the output."""
    told = -1

    def report(done: int, total: int) -> None:
        nonlocal told
        percent = 100 * done // max(1, total)
        if percent > told:
            told = percent
            sizes = {"done": done // 1_000_000, "total": total // 1_000_000}
            out.print(Text(text("model.pulling", language, percent=percent, **sizes)), soft_wrap=True)
            out.file.flush()  # a pipe keeps kilobytes back

    return report


def _serve(out: Console, port: int, slots: int, language: str) -> int:
    url = f"http://127.0.0.1:{port}/v1"
    key = os.environ.get(KEY_VARIABLE) or secrets.token_urlsafe(24)
    if engine_installed() and weights.installed():
        out.print(Text(text("model.serving", language, name=weights.CODER.name, url=url)), soft_wrap=True)
        if not os.environ.get(KEY_VARIABLE):
            out.print(Text(text("model.serving_key", language, key=key, variable=KEY_VARIABLE)), soft_wrap=True)
    weights.serve(port, key, slots)
    return EXIT_DONE


def _bar(out: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=out,
        disable=not out.is_terminal,
    )
