"""An agent for Harbor (PyPI `harbor`), so that its task sets run with codeagent-lsp unchanged.

    harbor run --agent codeagent_lsp.harbor:CodeAgent --model openai/gpt-6.2-sol --dataset …

Harbor installs it into the task's container and reads tokens and cost from what `run --json` printed. Only Harbor
imports this module. Not here: anything about a task, its container or its verdict.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template

from codeagent_lsp import __version__

HOME = "/installed-agent/codeagent-lsp"
EVENTS, LOG = "events.jsonl", "codeagent-lsp.log"

# Debian's Python has `venv`, but may lack `ensurepip`, without which that fails.
_USABLE = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"
_SERVERS: Mapping[str, tuple[str, str]] = {
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "gemini": ("https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
}
"""By the provider before the slash of Harbor's model name: the address, and the variable with the key."""


class CodeAgent(BaseInstalledAgent):  # type: ignore[misc]  # Harbor needs a newer Python than we do
    """codeagent-lsp in the container of one Harbor task. `package` is what pip installs: a requirement, or the path of
    a wheel on this machine. `settings` are settings of ours as `key=value`, separated by blanks.

    Variables that begin with `CODEAGENT_` are passed on; a model without a known provider before its slash is taken
    from the server in `CODEAGENT_BASE_URL`.
    """

    def __init__(self, *args: Any, package: str = "codeagent-lsp", settings: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._package = package
        self._settings = shlex.split(settings)

    @staticmethod
    def name() -> str:
        """Return `codeagent-lsp`, the name that Harbor's results show for this agent."""
        return "codeagent-lsp"

    def version(self) -> str:
        """Return the version of this package, such as `1.2.0`, for Harbor's results; it need not be the one installed
        in the container.
        """
        return __version__

    async def install(self, environment: Any) -> None:
        """Install the program in the container as root, in a virtual environment of its own; with a Python of its own
        if the image's is too old. An error of a command fails the task.
        """
        await self.ensure_system_dependencies(environment, ("python3", "python_pip", "git"))
        package = self._package
        if Path(package).is_file():  # noqa: ASYNC240 - one look, before anything runs
            package = f"/installed-agent/{Path(package).name}"
            await environment.upload_file(self._package, package)
        make = (
            f"if python3 -c {shlex.quote(_USABLE)}; then python3 -m venv {HOME}; "
            "else PIP_BREAK_SYSTEM_PACKAGES=1 pip3 install --quiet uv "
            f"&& uv venv --quiet --seed --python 3.12 {HOME}; fi"
        )
        install = f"{HOME}/bin/python -m pip install --quiet {shlex.quote(package)}"
        await self.exec_as_root(environment, command=f"set -e; {make}; {install}; chmod -R a+rX {HOME}")

    @with_prompt_template  # type: ignore[untyped-decorator]  # as above
    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        """Run the task in the container's working folder until it ends, and keep its events (JSON Lines) and log in the
        task's logs. Harbor's error for a failed command if the run failed or ended without `run_completed`.
        """
        logs = str(self.environment_logs_dir)
        words = [f"{HOME}/bin/codeagent-lsp", "run", "--yes", "--json", "--mode", "direct", "--workspace", "."]
        words += [word for setting in self._settings for word in ("--set", setting)]
        command = " ".join(map(shlex.quote, [*words, "--", instruction]))
        last = f"tail -n 1 {logs}/{EVENTS}"
        # A run that failed ends with `run_completed` too.
        ended = f'{last} | grep -q run_completed && ! {last} | grep -q \'"status": "failed"\''
        await self.exec_as_agent(
            environment,
            command=f"mkdir -p {logs}; {command} > {logs}/{EVENTS} 2> {logs}/{LOG} < /dev/null; {ended}",
            env=self._variables(),
        )

    def populate_context_post_run(self, context: Any) -> None:
        """Set the numbers of input, cached and output tokens and the cost in US dollars of `context`, Harbor's, summed
        over the recorded events; the cost is None if no price is known.
        """
        calls = [event for event in _events(self.logs_dir / EVENTS) if event.get("type") == "usage"]
        context.n_input_tokens = sum(call.get("prompt_tokens", 0) for call in calls)
        context.n_cache_tokens = sum(call.get("cached_tokens", 0) for call in calls)
        context.n_output_tokens = sum(call.get("completion_tokens", 0) for call in calls)
        costs = [call["cost"] for call in calls if call.get("cost") is not None]
        context.cost_usd = sum(costs) if costs else None

    def _variables(self) -> dict[str, str]:
        """Return the variables that say which model to use, and where."""
        found = {**os.environ, **self._extra_env}
        variables = {name: value for name, value in found.items() if name.startswith("CODEAGENT_")}
        provider, slash, name = (self.model_name or "").partition("/")
        if slash and provider in _SERVERS and "CODEAGENT_BASE_URL" not in variables:
            url, key = _SERVERS[provider]
            model = {"CODEAGENT_BASE_URL": url, "CODEAGENT_MODEL": name, "CODEAGENT_API_KEY": found.get(key, "")}
            return {**variables, **model}
        if self.model_name:
            variables.setdefault("CODEAGENT_MODEL", self.model_name)
        return variables


def _events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a run; lines that are none, such as one that was cut off, are left out."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            found.append(event)
    return found
