"""A machine's own public addresses are never fetched, and no login leads to them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from codeagent_lsp.tools.mcp.login import leads_here
from codeagent_lsp.tools.web.dialing import Dialer
from codeagent_lsp.tools.web.urls import WebRefused, own_addresses

OWN = frozenset(("8.8.4.4", "2606:4700:4700::1111"))
TRIE = """Local:
  +-- 0.0.0.0/0 3 0 5
     |-- 8.8.4.4
        /32 host LOCAL
     |-- 8.8.4.255
        /32 link BROADCAST
"""


async def resolve(host: str, port: int) -> Sequence[str]:
    return {"here.example": ["1.1.1.1", "8.8.4.4"], "there.example": ["1.1.1.1"]}[host]


@pytest.mark.parametrize("host", ["8.8.4.4", "2606:4700:4700:0:0:0:0:1111", "2606:4700:4700::1111", "here.example"])
async def test_an_own_public_address_is_refused(host: str) -> None:
    with pytest.raises(WebRefused):
        await Dialer(resolve, own=lambda: OWN).places(host, 80)


@pytest.mark.parametrize("host", ["1.1.1.1", "there.example"])
async def test_others_are_not(host: str) -> None:
    assert await Dialer(resolve, own=lambda: OWN).places(host, 80) == (("1.1.1.1", 80),)


def test_the_addresses_come_from_the_kernels_tables(tmp_path: Path) -> None:
    routes, interfaces = tmp_path / "fib_trie", tmp_path / "if_inet6"
    routes.write_text(TRIE)
    interfaces.write_text("26064700470000000000000000001111 02 40 00 80 eth0\n")
    found = own_addresses(routes, interfaces)
    assert found >= OWN and "8.8.4.255" not in found
    assert own_addresses(tmp_path / "none", tmp_path / "none") is not None


@pytest.mark.skipif(not Path("/proc/net/fib_trie").exists(), reason="Linux only")
def test_loopback_is_known() -> None:
    assert "127.0.0.1" in own_addresses()


@pytest.mark.parametrize(
    ("host", "addresses", "here"),
    [
        ("login.example", ["1.1.1.1"], False),
        ("login.example", ["1.1.1.1", "127.0.0.1"], True),
        ("login.example", ["169.254.169.254"], True),
        ("127.0.0.1", [], True),
        ("", [], True),
    ],
)
async def test_a_login_that_leads_here_is_known(host: str, addresses: list[str], here: bool) -> None:
    async def found(name: str, port: int) -> Sequence[str]:
        return addresses

    assert await leads_here(host, found) is here


async def test_a_login_at_a_name_of_this_machine_is_known() -> None:
    async def unknown(name: str, port: int) -> Sequence[str]:
        raise socket.gaierror

    assert not await leads_here("nobody.example", unknown)
    for address in await asyncio.to_thread(own_addresses):
        assert await leads_here(address, unknown)
