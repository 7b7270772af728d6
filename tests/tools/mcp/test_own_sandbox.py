"""Our own sandbox server as a server of the agent: what asks, and the codes of what fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.shadow.rig import needs_overlay
from tests.tools.mcp.rig import running

pytestmark = [pytest.mark.slow, needs_overlay]  # a whole server, and commands that run


async def test_reading_does_not_ask_and_failures_keep_their_codes(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("hello\n")
    (tmp_path / "work/.env").write_text("A=b\n")
    arguments = ["-m", "codeagent_lsp.cli", "sandbox-mcp", "--workspace", str(tmp_path / "work")]
    async with running(tmp_path, {"box": {"command": sys.executable, "args": arguments, "timeoutSeconds": 30}}) as rig:
        read = await rig.call("mcp.box.read", file_path="a.txt", offset=0, limit=1)
        assert read.ok and "1|hello" in read.text and not rig.bench.asker.asked
        codes = {}
        for path in ("nowhere.txt", ".env", "/etc/passwd"):
            result = await rig.call("mcp.box.read", file_path=path)
            assert result.text.startswith("[MCP Error] ") and result.error is not None
            codes[path] = (result.error.code, result.error.type)
        unfit = await rig.call("mcp.box.read", limit="many")
        assert unfit.error is not None and unfit.error.type == "param_error"
        assert not rig.bench.asker.asked
        assert (await rig.call("mcp.box.write", file_path="b.txt", content="x")).status == "denied"
        assert len(rig.bench.asker.asked) == 1
        rig.bench.rules(allow=("mcp.box.*",))
        late = await rig.call("mcp.box.bash", command="sleep 60", timeout=0.5)
        both = await rig.call("mcp.box.bash", command="echo out; echo err >&2")
    assert codes == {
        "nowhere.txt": ("PARAMETER_ERROR", "param_error"),
        ".env": ("PERMISSION_ERROR", "permission_error"),
        "/etc/passwd": ("PERMISSION_ERROR", "permission_error"),
    }
    assert late.error is not None and (late.error.code, late.error.retry) == ("TIMEOUT_ERROR", True)
    assert (both.data["data"]["stdout"], both.data["data"]["stderr"]) == ("out\n", "err\n")
