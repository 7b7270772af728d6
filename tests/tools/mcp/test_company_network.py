"""MCP servers behind private certificates and a proxy."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.tools.mcp.settings import Transport
from tests.faults.authority import Authority
from tests.faults.company_proxy import PASSWORD, company_proxy
from tests.faults.tls_gate import tls_gate
from tests.tools.mcp.rig import Rig
from tests.tools.mcp.test_transports import served

pytestmark = [
    pytest.mark.slow,  # servers in processes of their own
    pytest.mark.usefixtures("no_proxy_of_this_machine"),
]

WAYS: tuple[Transport, ...] = ("http", "sse", "websocket")


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeagent_lsp.environments.failures.FIRST_WAIT", 0.01)


async def state(folder: Path, url: str, way: Transport, network: NetworkSettings) -> tuple[str, str, str]:
    """The state of a server at `url`, and what the user is told in both languages."""
    setting = {"s": {"url": url, "transport": way, "timeoutSeconds": 10}}
    rig = Rig(folder, setting, network=network)
    try:
        await rig.start()
        told = rig.told[0] if rig.told else None
        return (await rig.row())["state"], str(told or ""), told.localized("zh-cn") if told else ""
    finally:
        await rig.servers.close()


@pytest.mark.parametrize("way", WAYS)
async def test_a_private_certificate(way: Transport, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    trusted = NetworkSettings(authority.ca_file)
    with served(way) as given, tls_gate(authority.server("localhost"), urlsplit(given["s"]["url"]).port or 0) as port:
        parts = urlsplit(given["s"]["url"])
        url = f"{parts.scheme}s://localhost:{port}{parts.path}"
        assert await state(tmp_path, url, way, trusted) == ("ready", "", "")
        kind, english, chinese = await state(tmp_path, url, way, NetworkSettings())
        assert kind == "failed"
        assert all("network.caFile" in words and "CN=localhost" in words for words in (english, chinese))
        kind, english, _ = await state(tmp_path, url, way, NetworkSettings(str(tmp_path / "missing")))
        assert kind == "failed" and "network.caFile" in english and "missing" in english


@pytest.mark.parametrize("way", WAYS)
async def test_a_proxy_with_a_password(way: Transport, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with served(way) as given:
        parts = urlsplit(given["s"]["url"])
        with tls_gate(authority.server("mcp.test"), parts.port or 0) as port:
            async with company_proxy(mcp_test=port) as proxy:
                url = f"{parts.scheme}s://mcp.test{parts.path}"
                network = NetworkSettings(authority.ca_file, proxy=proxy.url())
                kind, english, _ = await state(tmp_path, url, way, network)
                assert proxy.asked and proxy.refused == 0
                assert kind == ("ready" if way == "websocket" else "failed")  # over HTTP the library knows its own name
                assert "network." not in english
                wrong = NetworkSettings(authority.ca_file, proxy=proxy.url(PASSWORD[:-1]))
                kind, english, chinese = await state(tmp_path, url, way, wrong)
                assert kind == "failed"
                assert all("network.proxy" in words and PASSWORD[:-1] not in words for words in (english, chinese))
