"""A login by the browser: the whole way, what is kept of it, and every way it can go wrong."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.server.mcp_servers import Memory
from codeagent_lsp.texts import text
from codeagent_lsp.tools.mcp import login
from codeagent_lsp.tools.mcp.host import Step
from codeagent_lsp.tools.mcp.login import is_local
from codeagent_lsp.tools.variables.variables import Vault
from tests.bench.mcp_conformance import obedient
from tests.tools.mcp.issuer import Issuer, issuing
from tests.tools.mcp.rig import Rig, running

pytestmark = pytest.mark.slow  # servers, browsers and waits

Browser = Callable[[str], Awaitable[Any]]


async def closed(url: str) -> None:
    """A browser whose window is closed at once."""


class User:
    """The `Logins` of somebody who agrees, or not; `asked` has the addresses, `steps` what is written down."""

    def __init__(self, browser: Browser | None = obedient, vault: Vault | None = None) -> None:
        self.asked: list[str] = []
        self.steps: list[str] = []
        self.reasons: list[str] = []
        self.learnt: set[str] = set()
        self.kept = vault or Memory()
        self.opened = 0
        self._browser = browser
        self._going: list[asyncio.Task[Any]] = []

    async def browse(self, server: str, where: str, url: str) -> bool:
        self.asked.append(url)
        if self._browser is None:
            return False
        self._going.append(asyncio.ensure_future(self._browser(url)))
        return True

    async def vault(self) -> Vault:
        self.opened += 1
        return self.kept

    async def learn(self, secrets: Iterable[str]) -> None:
        self.learnt.update(secrets)

    async def record(self, server: str, where: str, step: Step, reason: str = "") -> None:
        assert (server, where.startswith("http://127.0.0.1:")) == ("s", True)
        self.steps.append(step)
        self.reasons.append(reason)

    def words(self, key: str, /, **values: object) -> str:
        return text(key, "en", **values)


def given(issuer: Issuer, **more: Any) -> dict[str, Any]:
    return {"s": {"url": issuer.url, "autoApprove": ["work"], "timeoutSeconds": 10, **more}}


async def after(rig: Rig) -> dict[str, Any]:
    """The state of the server once the user has done what they do."""
    async with asyncio.timeout(20):
        while (await rig.row())["state"] in ("starting", "login"):  # noqa: ASYNC110 - a state is no event
            await asyncio.sleep(0.02)
    return await rig.row()  # its tools, too, are plugged in by now


async def works(rig: Rig) -> bool:
    await after(rig)
    return (await rig.call("mcp.s.work")).text.endswith("done")


def written_below(folder: Path) -> str:
    return "".join(path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file())


def everything(vault: Vault) -> str:
    assert isinstance(vault, Memory)
    return json.dumps(vault._values)


async def test_the_whole_way(tmp_path: Path) -> None:
    user = User()
    async with issuing() as issuer, running(tmp_path, given(issuer), logins=user) as rig:
        assert (await after(rig))["state"] == "ready"
        assert await works(rig)
        wanted = ["refused", "resource", "metadata", "register", "authorize", "authorization_code"]
        assert list(dict.fromkeys(step for step in issuer.steps if step in wanted)) == wanted
        assert len(user.asked) == 1
        assert "code_challenge_method=S256" in user.asked[0]
        assert (user.steps, user.reasons) == (["started", "granted"], ["", ""])
        assert set(issuer.secrets) <= user.learnt


async def test_the_next_start_needs_no_login(tmp_path: Path) -> None:
    user = User()
    async with issuing() as issuer:
        async with running(tmp_path, given(issuer), logins=user) as rig:
            await after(rig)
        async with running(tmp_path, given(issuer), logins=user) as rig:
            assert await works(rig)
        assert issuer.steps.count("register") == issuer.steps.count("authorize") == len(user.asked) == 1
        assert user.steps == ["started", "granted"]


@pytest.mark.parametrize("restart", [False, True])
async def test_a_token_that_ran_out_is_renewed_where_it_came_from(
    tmp_path: Path, restart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = User()
    async with issuing(lifetime=60) as issuer:
        async with running(tmp_path, given(issuer), logins=user) as rig:
            assert await works(rig)
            monkeypatch.setattr(time, "time", lambda now=time.time: now() + 3600)
            issuer.forget_tokens()
            if not restart:
                assert await works(rig)
        if restart:
            async with running(tmp_path, given(issuer), logins=user) as rig:
                assert await works(rig)
        assert issuer.steps.count("refresh_token") >= 1
        assert len(user.asked) == 1
        assert user.steps[:2] == ["started", "granted"] and set(user.steps[2:]) == {"renewed"}
        assert set(issuer.secrets) <= user.learnt


async def test_what_cannot_be_renewed_is_a_new_login(tmp_path: Path) -> None:
    user = User()
    async with issuing() as issuer:
        async with running(tmp_path, given(issuer), logins=user) as rig:
            await after(rig)
        issuer.forget_tokens()
        issuer.refreshes.clear()
        async with running(tmp_path, given(issuer), logins=user) as rig:
            assert await works(rig)
        assert len(user.asked) == 2
        assert issuer.steps.count("register") == 1


@pytest.mark.parametrize("good", [True, False])
async def test_a_lost_port_is_registered_anew_when_a_login_is_needed(tmp_path: Path, good: bool) -> None:
    user = User()
    async with issuing() as issuer:
        async with running(tmp_path, given(issuer), logins=user) as rig:
            await after(rig)
        (port,) = {int(uris[0].split(":")[2].split("/")[0]) for uris in issuer.clients.values()}
        if not good:
            issuer.forget_tokens()
        taken = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", port)
        async with taken, running(tmp_path, given(issuer), logins=user) as rig:
            assert await works(rig)
        assert issuer.steps.count("register") == len(user.asked) == (1 if good else 2)


@pytest.mark.parametrize(
    ("browser", "faults", "words"),
    [
        (None, [], "the login page was not opened"),
        (obedient, ["denied"], "the login was refused (access_denied not today)"),
        (closed, [], "none was completed within 0.3 s"),
        (obedient, ["forged"], "none was completed within 0.3 s"),
        (obedient, ["broken"], "the login did not work"),
        (obedient, ["unregistered"], "the login did not work"),
        (obedient, ["pretender"], "the login did not work"),
        (obedient, ["silent"], "Set an Authorization header"),
        (obedient, ["elsewhere"], "http://203.0.113.7, which is not encrypted"),
    ],
)
async def test_a_login_that_does_not_come_about(
    tmp_path: Path, browser: Browser | None, faults: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "none was completed" in words:
        monkeypatch.setattr(login, "SECONDS", 0.3)
    user = User(browser)
    async with issuing(*faults) as issuer, running(tmp_path, given(issuer), logins=user) as rig:
        row = await after(rig)
        assert row["state"] == "failed"
        assert words in str(row["error"]), row
        assert row["error"].code == "MCP_EXECUTION_ERROR"
        assert len(rig.told) == 1
        result = await rig.call("mcp.s.work")
        assert result.error is not None and words in result.text
        assert len(user.asked) <= 1  # nobody is asked again before a reload
        assert user.steps == (["started", "refused"] if user.asked else [])
        assert not user.asked or words in user.reasons[1]


async def test_a_reload_asks_again(tmp_path: Path) -> None:
    user = User(None)
    async with issuing() as issuer, running(tmp_path, given(issuer), logins=user) as rig:
        await after(rig)
        await rig.servers.reload()
        await after(rig)
        assert len(user.asked) == 2


async def test_while_the_user_thinks_a_call_is_told_so_and_no_clock_runs(tmp_path: Path) -> None:
    may = asyncio.Event()

    async def slow(url: str) -> None:
        await may.wait()
        await obedient(url)

    user = User(slow)
    async with issuing() as issuer:
        async with running(tmp_path, given(issuer), logins=user) as rig:  # the tools are known from now on
            may.set()
            await after(rig)
        user.kept = Memory()
        may.clear()
        async with running(tmp_path, given(issuer, timeoutSeconds=2), logins=user) as rig:
            assert (await rig.row())["state"] == "login"
            told = await rig.call("mcp.s.work")
            assert "waits for the user to log in" in told.text
            await asyncio.sleep(2.5)
            assert (await rig.row())["state"] == "login"
            may.set()
            assert await works(rig)


async def test_closing_while_the_user_thinks_leaves_nothing(tmp_path: Path) -> None:
    user = User(closed)
    async with issuing() as issuer:
        async with running(tmp_path, given(issuer), logins=user) as rig:
            assert (await rig.row())["state"] == "login"
        assert user.steps == ["started", "abandoned"]
        port = int(next(iter(issuer.clients.values()))[0].split(":")[2].split("/")[0])
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_no_secret_of_a_login_is_in_a_log_a_status_or_a_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    user = User()
    async with issuing() as issuer, running(tmp_path, given(issuer), logins=user) as rig:
        assert await works(rig)
        await rig.servers.status()
        told = caplog.text + repr(await rig.row()) + repr(rig.told) + " ".join(rig.notes)
        written = written_below(tmp_path)
        assert issuer.secrets
        for secret in issuer.secrets:
            assert secret not in told + written
        kept = everything(user.kept)
        assert any(secret in kept for secret in issuer.secrets)


@pytest.mark.parametrize("more", [{"headers": {"authorization": "Bearer mine"}}, {}])
async def test_who_brings_a_token_or_needs_none_is_not_asked(tmp_path: Path, more: dict[str, Any]) -> None:
    user = User()
    async with issuing() as issuer:
        issuer.valid.add("mine" if more else "")
        async with running(tmp_path, given(issuer, **more), logins=user) as rig:
            assert await works(rig)
        assert (user.asked, user.opened) == ([], 0)
        assert "refused" not in issuer.steps


async def test_who_the_user_says_that_we_are_is_not_registered(tmp_path: Path) -> None:
    user = User()
    async with issuing("unregistered") as issuer:
        issuer.known = "mine"
        async with running(tmp_path, given(issuer, oauth={"clientId": "mine"}), logins=user) as rig:
            assert await works(rig)
        assert "client_id=mine" in user.asked[0]
        oauth = {"clientId": "mine", "clientSecret": "a word that is told"}
        async with running(tmp_path, given(issuer, oauth=oauth), logins=user) as rig:
            assert await works(rig)
        assert len(user.asked) == 1
        assert "a word that is told" in user.learnt


async def test_a_vault_that_holds_rubbish_is_a_new_login(tmp_path: Path) -> None:
    class Rubbish(Memory):
        def get(self, name: str) -> str | None:
            return '["no"]' if name.endswith("tokens") else "{"

    user = User(vault=Rubbish())
    async with issuing() as issuer, running(tmp_path, given(issuer), logins=user) as rig:
        assert await works(rig)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True), ("127.0.0.1", True), ("::1", True), ("x.localhost", True), ("169.254.169.254", True),
        ("0.0.0.0", True), ("", True), ("example.com", False), ("203.0.113.7", False),
    ],
)  # fmt: skip
def test_local_addresses(host: str, local: bool) -> None:
    assert is_local(host) == local
