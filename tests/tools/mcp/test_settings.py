"""The setting `mcp.servers`: shapes, defaults, what is refused and how it is said, and nothing secret in it shown."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.tools.mcp.settings import MAX_SERVERS, ServerSettings, Transport, read_servers, secrets_in


def one(entry: Any, name: str = "s", **environ: str) -> ServerSettings:
    servers, problems = read_servers({name: entry}, environ)
    assert not problems, problems
    return servers[0]


def problem(entry: Any, name: str = "s", **environ: str) -> str:
    servers, problems = read_servers({name: entry}, environ)
    assert not servers
    (told,) = problems.values()
    return str(told)


def test_a_program() -> None:
    given = {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}, "cwd": "sub", "timeoutSeconds": 5}
    server = one({**given, "autoApprove": ["look"], "disabled": True})
    assert (server.transport, server.command, server.args, server.cwd) == ("stdio", "npx", ("-y", "x"), "sub")
    assert (server.env, server.seconds, server.disabled, server.where) == ({"A": "b"}, 5.0, True, "npx")
    assert server.approves("look") and not server.approves("write")
    assert one({"command": "x", "autoApprove": ["*"]}).approves("anything")
    assert (one({"command": "x"}).seconds, one({"command": "x"}).auto_approve) == (60.0, ())


@pytest.mark.parametrize(
    ("url", "stated", "expected"),
    [
        ("http://h/mcp", None, "http"),
        ("https://h/mcp", "streamable-http", "http"),
        ("https://h/mcp", "http", "http"),
        ("http://h/sse", "sse", "sse"),
        ("ws://h/", None, "websocket"),
        ("wss://h/", "ws", "websocket"),
    ],
)
def test_an_address(url: str, stated: str | None, expected: Transport) -> None:
    assert one({"url": url, **({"transport": stated} if stated else {})}).transport == expected
    assert one({"url": url, **({"type": stated} if stated else {})}).transport == expected


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "either command or url"),
        ({"command": "x", "url": "http://h"}, "not both"),
        ("npx server", "is not allowed"),
        ({"command": 3}, "command is not allowed"),
        ({"command": "a\0b"}, "command is not allowed"),
        ({"command": "x", "args": "a b"}, "args is not allowed"),
        ({"command": "x", "args": ["a", 1]}, "args is not allowed"),
        ({"command": "x", "env": {"A": 1}}, "env is not allowed"),
        ({"command": "x", "env": ["A=1"]}, "env is not allowed"),
        ({"url": "http://h", "headers": {"A": "b\r\nC: d"}}, "headers is not allowed"),
        ({"url": "http://h", "oauth": {"clientSecret": "x"}}, "oauth is not allowed"),
        ({"url": "http://h", "oauth": {"clientId": "x", "scope": "y"}}, "oauth is not allowed"),
        ({"url": "http://h", "oauth": "x"}, "oauth is not allowed"),
        ({"command": "x", "disabled": "yes"}, "disabled is not allowed"),
        ({"command": "x", "timeoutSeconds": 0}, "timeoutSeconds is not allowed"),
        ({"command": "x", "timeoutSeconds": True}, "timeoutSeconds is not allowed"),
        ({"command": "x", "timeoutSeconds": 1e9}, "timeoutSeconds is not allowed"),
        ({"command": "x", "autoAprove": []}, "there is no key autoAprove"),
        ({"command": "x", "transport": "sse"}, "transport is not allowed"),
        ({"url": "http://h", "transport": "stdio"}, "transport is not allowed"),
        ({"url": "ws://h", "transport": "sse"}, "transport is not allowed"),
        ({"url": "http://h", "transport": "pigeon"}, "transport is not allowed"),
        ({"url": "file:///etc/passwd"}, "url is not allowed"),
        ({"url": "http://user:word@h/"}, "url is not allowed"),
        ({"url": "http://h\\@evil/"}, "url is not allowed"),
        ({"url": "http:///path"}, "url is not allowed"),
        ({"url": "http://h:99999/"}, "url is not allowed"),
        ({"url": "http://[::1"}, "url is not allowed"),
        ({"command": "x", "env": {"A": "${env:GONE}"}}, "environment variable GONE is not set"),
    ],
)
def test_what_is_refused_is_named(entry: Any, words: str) -> None:
    assert words in problem(entry)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "a/b", "-a", "ä", "x" * 33, "a\nb"])
def test_names(name: str) -> None:
    assert "a name has" in problem({"command": "x"}, name)


def test_one_bad_entry_takes_nothing_from_the_others() -> None:
    servers, problems = read_servers({"bad": {}, "good": {"command": "x"}}, {})
    assert [server.name for server in servers] == ["good"] and list(problems) == ["bad"]
    many = {f"s{number}": {"command": "x"} for number in range(100)}
    assert len(read_servers(many, {})[0]) == MAX_SERVERS


def test_variables_of_the_environment_are_filled_in() -> None:
    value = os.urandom(8).hex()
    server = one(
        {"url": "http://h/${env:PART}", "headers": {"Authorization": "Bearer ${env:KEY}"}}, KEY=value, PART="mcp"
    )
    assert server.headers == {"Authorization": f"Bearer {value}"} and server.url == "http://h/mcp"
    assert one({"command": "x", "args": ["${env:KEY}"]}).args == ("${env:KEY}",)  # others can see arguments


def test_secrets_are_not_shown_and_are_known() -> None:
    key, word = os.urandom(12).hex(), os.urandom(12).hex()
    given = {
        "a": {"url": f"https://h/mcp?key={word}", "headers": {"Authorization": f"Bearer {key}", "X": "short"}},
        "b": {"command": "x", "env": {"API_KEY": word, "LANGUAGE": "a-long-and-plain-value"}},
    }
    servers, _ = read_servers(given, {})
    assert key not in repr(servers) and word not in repr(servers)
    assert servers[0].where == "https://h/mcp"
    assert set(secrets_in(given, {})) == {f"Bearer {key}", key, word}


def test_who_we_are_for_a_login() -> None:
    secret = os.urandom(12).hex()
    given = {"url": "https://h/mcp", "oauth": {"clientId": "me", "clientSecret": "${env:WORD}"}}
    server = one(given, WORD=secret)
    assert server.oauth == {"clientId": "me", "clientSecret": secret}
    assert secret not in repr(server)
    assert secrets_in({"s": given}, {"WORD": secret}) == (secret,)
    assert server.identity != one({"url": "https://h/mcp"}).identity
    assert not server.authorized
    assert one({"url": "https://h/mcp", "headers": {"AUTHORIZATION": "x"}}).authorized


def test_what_makes_a_server_the_same() -> None:
    base = {"command": "x", "args": ["a"]}
    assert one(base).identity == one({**base, "timeoutSeconds": 9, "autoApprove": ["*"], "env": {"A": "b"}}).identity
    assert one(base).identity != one({**base, "args": ["b"]}).identity
    assert one({"url": "http://h/a"}).identity != one({"url": "http://h/b"}).identity
    assert one(base).same(one(base)) and not one(base).same(one({**base, "env": {"A": "b"}}))


SANDBOX = ["-m", "codeagent_lsp.cli", "sandbox-mcp", "--workspace", "."]


def test_our_own_sandbox_is_known_by_the_program_that_runs() -> None:
    script = Path(sys.executable).with_name("codeagent-lsp")
    assert one({"command": sys.executable, "args": SANDBOX}).own
    assert one({"command": str(script), "args": SANDBOX[2:]}).own
    assert one({"command": "codeagent-lsp", "args": SANDBOX[2:], "env": {"PATH": str(script.parent)}}).own


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "codeagent-lsp", "args": SANDBOX[2:], "env": {"PATH": "/nowhere"}},
        {"command": "/bin/sh", "args": SANDBOX[2:]},
        {"command": "/bin/sh", "args": SANDBOX},
        {"command": sys.executable, "args": SANDBOX, "env": {"PYTHONPATH": "/tmp"}},
        {"command": sys.executable, "args": SANDBOX, "env": {"LD_PRELOAD": "/tmp/x.so"}},
        {"command": sys.executable, "args": ["-m", "codeagent_lsp.cli", "batch"]},
        {"command": sys.executable, "args": ["other.py", *SANDBOX[2:]]},
        {"url": "http://127.0.0.1:8765/mcp"},
    ],
)
def test_whatever_else_may_run_other_code_is_not(entry: dict[str, Any]) -> None:
    assert not one(entry).own
