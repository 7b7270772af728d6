"""The command line of the sandbox server: what it refuses before anything starts."""

from __future__ import annotations

import os
from importlib import util
from pathlib import Path

import anyio
import pytest

from codeagent_lsp import cli
from codeagent_lsp.errors import UsageError
from codeagent_lsp.mcp_server.command import DEFAULT_PORT, TRIED_PORTS, opened_at, sandbox_command
from codeagent_lsp.mcp_server.stdio import MAX_MESSAGE, stdio_streams


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--workspace", "/no/such/folder"), "/no/such/folder"),
        (("--http", "192.0.2.1:80"), "192.0.2.1 is not this machine"),
        (("--ws", "example.com:80"), "example.com is not this machine"),
    ],
)
def test_what_cannot_be_served(
    capsys: pytest.CaptureFixture[str], workspace: Path, arguments: tuple[str, ...], words: str
) -> None:
    assert cli.main(["sandbox-mcp", "--workspace", str(workspace), *arguments]) == 2
    said = capsys.readouterr()
    assert words in said.err and said.out == ""


def test_a_port_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["sandbox-mcp", "--http", "127.0.0.1:http"])
    assert ended.value.code == 2 and "a port is a number" in capsys.readouterr().err


def test_the_default_port_or_the_next_free_one() -> None:
    parser = cli._parser()
    assert parser.parse_args(["sandbox-mcp", "--http", "--ws", "127.0.0.1:0"]).http == ("127.0.0.1", None)
    with opened_at(("127.0.0.1", None)) as first, opened_at(("127.0.0.1", None)) as second:
        ports = [first.getsockname()[1], second.getsockname()[1]]
        assert DEFAULT_PORT <= ports[0] < ports[1] < DEFAULT_PORT + TRIED_PORTS
        with pytest.raises(UsageError):
            opened_at(("127.0.0.1", ports[0]))


def test_without_the_library(
    capsys: pytest.CaptureFixture[str], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeagent_lsp.mcp_server.command._NEEDED", ("no_module_of_this_name",))
    assert util.find_spec("no_module_of_this_name") is None
    assert sandbox_command(str(workspace), "zh-cn", http=None, ws=None, stdio=True) == 2
    assert "codeagent-lsp[mcp]" in capsys.readouterr().err


def test_the_help_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert "sandbox-mcp" in capsys.readouterr().out


async def test_messages_come_whole_and_long_ones_do_not() -> None:
    read, there = os.pipe()
    back, write = os.pipe()
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    async with stdio_streams(read, write) as (inbox, _):
        os.write(there, ping[:10])
        os.write(there, ping[10:] + b"\n\n  \nno json\n" + ping + b"\n")
        first, wrong, second = [await inbox.receive() for _ in range(3)]
        assert first.message == second.message and isinstance(wrong, ValueError)
        os.close(there)
        with pytest.raises(anyio.EndOfStream):
            await inbox.receive()
    for descriptor in (read, back, write):
        os.close(descriptor)
    assert MAX_MESSAGE == 4 << 20
