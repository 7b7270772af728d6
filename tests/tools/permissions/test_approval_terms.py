"""An approval that is kept holds only where commands are confined in the same way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import Settings, ShellSettings
from codeagent_lsp.shadow.shell import Isolation
from codeagent_lsp.tools.commands.command_tools import RunCmd
from codeagent_lsp.tools.permissions.approvals import StandingApprovals
from tests.tools.fakes import Bench
from tests.tools.shells import FakeShell

CONFINED = Isolation("copy", confined=True, offline=True, hidden=True)


def bench_with(folder: Path, isolation: Isolation, **shell: Any) -> Bench:
    bench = Bench(folder / "work", [RunCmd()])
    return terms(bench, isolation, **shell)


def terms(bench: Bench, isolation: Isolation, **shell: Any) -> Bench:
    bench.shell = FakeShell(isolation=isolation, staging=bench.staging)
    bench.configure(replace(Settings(), shell=replace(ShellSettings(), confirm="always", **shell)))
    return bench


@pytest.mark.parametrize("kept", ["Allow exactly this for the session", "Always allow exactly this"])
@pytest.mark.parametrize(
    ("isolation", "shell"),
    [
        (replace(CONFINED, confined=False, offline=False, hidden=False), {}),  # bubblewrap is gone
        (replace(CONFINED, confined=False), {}),
        (replace(CONFINED, offline=False), {}),
        (replace(CONFINED, hidden=False), {}),
        (replace(CONFINED, level="overlay"), {}),
        (CONFINED, {"allow_network": True}),
        (CONFINED, {"readable": (".ssh",)}),
    ],
)
async def test_a_kept_approval_is_asked_for_again_when_the_confinement_changed(
    tmp_path: Path, isolation: Isolation, shell: dict[str, Any], kept: str
) -> None:
    bench = bench_with(tmp_path, CONFINED)
    bench.approvals.standing = StandingApprovals(tmp_path / "approvals.json")
    bench.asker.answers = [kept]
    assert (await bench.call("run_cmd", command="make")).ok
    terms(bench, replace(CONFINED, reason="said otherwise"))
    assert (await bench.call("run_cmd", command="make")).ok, "the same terms"
    terms(bench, isolation, **shell)
    assert (await bench.call("run_cmd", command="make")).status == "denied"
    assert len(bench.asker.asked) == 2
