"""The mode `readOnly` starts no language server: it may be a program of the workspace, or run some of its."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from codeagent_lsp.config import PermissionsSettings, Settings
from codeagent_lsp.server.run_services import language_servers
from tests.tools.fakes import Bench


def make_executable(path: str) -> None:
    Path(path).chmod(0o755)


@pytest.mark.parametrize(("mode", "count"), [("ask", 1), ("readOnly", 0), ("bypass", 1)])
async def test_none_of_the_workspace_is_started(tmp_path: Path, mode: Any, count: int) -> None:
    bench = Bench(tmp_path, [])
    program = bench.write("node_modules/.bin/typescript-language-server", "#!/bin/sh\n")
    make_executable(program)
    bench.write("a.ts", "let a = 1\n")
    chosen = replace(Settings(), permissions=PermissionsSettings(mode=mode))
    pool = language_servers(cast("Any", SimpleNamespace(settings=lambda: chosen)))
    found = pool.of("s").installed(bench.view, bench.path("a.ts"))
    assert [each.program for each in found] == [program] * count
    await pool.close()
