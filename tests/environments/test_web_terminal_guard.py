"""Who gets something from the serving program, request by request."""

from __future__ import annotations

import pytest

guard = pytest.importorskip("codeagent_lsp.environments.serving_page", reason="the extra `terminal` is not installed")

TOKEN = "s3cret-token"
HERE = {"Host": "127.0.0.1:7681"}


@pytest.mark.parametrize("path", [f"/{TOKEN}/", f"/{TOKEN}/page.js", f"/{TOKEN}/socket", f"/{TOKEN}"])
@pytest.mark.parametrize("host", ["127.0.0.1:7681", "localhost:7681", "localhost:40001", "LOCALHOST", "127.0.0.1"])
def test_who_is_let_in(path: str, host: str) -> None:
    assert guard.refusal(path, {"Host": host}, TOKEN) is None
    assert guard.refusal(path, {"Host": host, "Origin": f"http://{host}"}, TOKEN) is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "//",
        "/page.js",
        f"/{TOKEN}x/",
        f"/{TOKEN[:-1]}/",
        f"//{TOKEN}/",
        f"/x/{TOKEN}/",
        f"{TOKEN}/",
        f"/?{TOKEN}",
        f"/{TOKEN.upper()}/",
        f"/%73{TOKEN[1:]}/",
        "/é/",
        f"/{TOKEN};x/",
    ],
)
def test_without_the_token(path: str) -> None:
    assert guard.refusal(path, HERE, TOKEN) == 403


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:7681",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "127.0.0.2:7681",
        "0.0.0.0",
        "user@evil.example",
        "[::1]:7681",
        "[",
        "localhost@evil.example:7681",
    ],
)
def test_another_name(host: str) -> None:
    assert guard.refusal(f"/{TOKEN}/", {"Host": host}, TOKEN) == 421


def test_no_name() -> None:
    assert guard.refusal(f"/{TOKEN}/", {}, TOKEN) == 421


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:80",
        "http://127.0.0.1:3000",
        "https://127.0.0.1:7681",
        "http://localhost:7681",
        "http://127.0.0.1:7681.evil.example",
        "file://",
        "vscode-webview://x",
    ],
)
def test_another_page(origin: str) -> None:
    assert guard.refusal(f"/{TOKEN}/socket", {**HERE, "Origin": origin}, TOKEN) == 403
