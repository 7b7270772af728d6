"""The web tools behind a company's proxy and its certificates: addresses are still checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.tools.skills.fetching import SkillSource, fetch
from codeagent_lsp.tools.web.child import CheckingProxy
from codeagent_lsp.tools.web.dialing import Dialer
from codeagent_lsp.tools.web.http import Fetcher, PageLimits
from codeagent_lsp.tools.web.urls import WebRefused, parse_url
from tests.faults.authority import Authority
from tests.faults.company_proxy import PASSWORD, company_proxy
from tests.tools.web.net import PUBLIC, Net, answer, pages, server
from tests.tools.web.test_proxy import knock, said

pytestmark = pytest.mark.usefixtures("no_proxy_of_this_machine")

HOST = "docs.example.org"
QUICK = PageLimits(seconds=5)


def fetcher(net: Net, network: NetworkSettings) -> Fetcher:
    return Fetcher(Dialer(net.resolve, net.route, network=network), QUICK)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_page_over_the_proxy(scheme: str, known: bool, tmp_path: Path) -> None:
    """A public name, and one that only the proxy knows."""
    authority, net = Authority(tmp_path), Net({HOST: [[PUBLIC]]} if known else {})
    trust = authority.server(HOST) if scheme == "https" else None
    async with (
        server(pages({"/x": answer("hello")}), net, (PUBLIC, 1), trust=trust),
        company_proxy(docs_example_org=net.servers[PUBLIC, 1]) as proxy,
    ):
        network = NetworkSettings(authority.ca_file, proxy=proxy.url())
        page = await fetcher(net, network).get(parse_url(f"{scheme}://{HOST}/x"))
    assert page.body == b"hello"
    assert (len(proxy.asked), proxy.refused) == (1, 0)


@pytest.mark.parametrize("inside", ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1"])
async def test_a_name_that_leads_inside_is_not_given_to_the_proxy(inside: str) -> None:
    net = Net({HOST: [[PUBLIC, inside]]})
    async with company_proxy() as proxy:
        with pytest.raises(WebRefused):
            await fetcher(net, NetworkSettings(proxy=proxy.url())).get(parse_url(f"https://{HOST}/"))
        async with CheckingProxy(Dialer(net.resolve, net.route, network=NetworkSettings(proxy=proxy.url()))) as own:
            assert b"403" in await said(own, knock(own, f"CONNECT {HOST}:443 HTTP/1.1"))
    assert proxy.asked == []


async def test_a_redirect_inside_is_not_given_to_the_proxy() -> None:
    net = Net({HOST: [[PUBLIC], ["10.0.0.1"]]})
    page = answer("", "302 Found", Location=f"http://{HOST}/inside")
    async with (
        server(pages({"/": page}), net, (PUBLIC, 1)),
        company_proxy(docs_example_org=net.servers[PUBLIC, 1]) as proxy,
    ):
        with pytest.raises(WebRefused):
            await fetcher(net, NetworkSettings(proxy=proxy.url())).get(parse_url(f"http://{HOST}/"))
    assert len(proxy.asked) == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_wrong_password(scheme: str) -> None:
    async with company_proxy(docs_example_org=1) as proxy:
        network = NetworkSettings(proxy=proxy.url(PASSWORD[:-1]))
        with pytest.raises(ToolFailed, match=r"network\.proxy") as caught:
            await fetcher(Net(), network).get(parse_url(f"{scheme}://{HOST}/"))
        async with CheckingProxy(Dialer(Net().resolve, network=network)) as own:
            refused = await said(own, knock(own, f"CONNECT {HOST}:443 HTTP/1.1"))
    assert b"network.proxy" in refused
    assert PASSWORD[:-1] not in str(caught.value) and PASSWORD[:-1].encode() not in refused


async def test_helper_programs_go_over_the_proxy_too() -> None:
    net = Net({HOST: [[PUBLIC]]})
    async with (
        server(pages({"/": answer("hello")}), net, (PUBLIC, 1)),
        company_proxy(docs_example_org=net.servers[PUBLIC, 1]) as proxy,
    ):
        dialer = Dialer(net.resolve, net.route, network=NetworkSettings(proxy=proxy.url()))
        async with CheckingProxy(dialer) as own:
            got = await said(own, knock(own, f"GET http://{HOST}/ HTTP/1.1", f"Host: {HOST}"))
    assert got.endswith(b"hello") and proxy.asked == [f"CONNECT {HOST}:80 HTTP/1.1"]


async def test_a_private_certificate_is_explained(tmp_path: Path) -> None:
    authority, net = Authority(tmp_path), Net({HOST: [[PUBLIC]]})
    async with server(pages({"/": answer("x")}), net, (PUBLIC, 443), trust=authority.server(HOST)):
        with pytest.raises(ToolFailed, match=rf"(?s)CN={HOST}.*network\.caFile"):
            await fetcher(net, NetworkSettings()).get(parse_url(f"https://{HOST}/"))
        page = await fetcher(net, NetworkSettings(authority.ca_file)).get(parse_url(f"https://{HOST}/"))
        with pytest.raises(ToolFailed, match=r"network\.caFile"):
            await fetcher(net, NetworkSettings(str(tmp_path / "missing"))).get(parse_url(f"https://{HOST}/"))
    assert page.body == b"x"


@pytest.mark.slow
@pytest.mark.parametrize("trusted", [True, False])
async def test_a_skill_is_fetched_over_the_proxy(trusted: bool, tmp_path: Path) -> None:
    """As far as git goes: to the server's answer with the file of authorities, not even there without."""
    authority, net = Authority(tmp_path), Net()
    async with (
        server(pages({}), net, (PUBLIC, 1), trust=authority.server(HOST)) as asked,
        company_proxy(docs_example_org=net.servers[PUBLIC, 1]) as proxy,
    ):
        network = NetworkSettings(authority.ca_file if trusted else None, proxy=proxy.url())
        (tmp_path / "into").mkdir()
        with pytest.raises(ToolFailed):
            await fetch(SkillSource(f"https://{HOST}/a/b"), tmp_path / "into", network=network)
    assert proxy.asked and len(asked) == int(trusted)
