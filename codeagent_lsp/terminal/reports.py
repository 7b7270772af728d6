"""The command `codeagent-lsp doctor`: the checks of this installation with advice, as a list or as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from codeagent_lsp.doctor import Check, diagnose
from codeagent_lsp.errors import UsageError
from codeagent_lsp.settings_files import read_policy, read_user_settings
from codeagent_lsp.settings_layers import environment_layer, load
from codeagent_lsp.state import workspace_state
from codeagent_lsp.terminal.display import user_locale, visible
from codeagent_lsp.terminal.stage import console
from codeagent_lsp.terminal.summary import EXIT_DONE, EXIT_FAILED, EXIT_USAGE
from codeagent_lsp.texts import choose_language

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "red")}


def print_doctor(workspace: str, *, as_json: bool) -> int:
    """Run all checks, print them and return the exit code: 1 if something required fails, 2 for a bad folder."""
    settings, problems = load(environment_layer(), policy=read_policy(), user=read_user_settings())
    language = choose_language(settings.language, user_locale())
    folder = Path(workspace).absolute()
    if not folder.is_dir():
        sys.stderr.write(UsageError("terminal.folder", folder=workspace).localized(language) + "\n")
        return EXIT_USAGE
    told = [problem for problem in problems if not problem.key.startswith("policy.") or problem.key == "policy.fixed"]
    bad = [Check("settings", "warning", problem.localized(language)) for problem in told]
    state = workspace_state([str(folder.resolve())])
    checks = [*bad, *asyncio.run(diagnose(settings, state, language))]
    if as_json:
        print(json.dumps([check.to_dict() for check in checks], ensure_ascii=False, indent=2))
    else:
        show_checks(checks, console())
    return EXIT_FAILED if any(check.verdict == "failed" for check in checks) else EXIT_DONE


def show_checks(checks: Sequence[Check], out: Console) -> None:
    """Print one line for each check, with advice below if it is not ok."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        mark, colour = _MARKS[check.verdict]
        finding = Text(visible(check.detail))
        if check.verdict != "ok" and check.advice:
            finding.append("\n").append("→ ", colour).append(visible(check.advice))
        table.add_row(Text(mark, colour), Text(check.name, "bold"), finding)
    out.print(table)
