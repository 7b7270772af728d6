"""Addresses of model servers: every usual spelling is understood, every bad one explained."""

from __future__ import annotations

import pytest

from codeagent_lsp.errors import ModelRejected
from codeagent_lsp.llm.endpoint import endpoint


@pytest.mark.parametrize(
    ("given", "root", "api"),
    [
        ("http://h:8080", "http://h:8080", "http://h:8080/v1"),
        ("http://h:8080/", "http://h:8080", "http://h:8080/v1"),
        ("http://h:8080/v1", "http://h:8080", "http://h:8080/v1"),
        ("http://h:8080/v1/", "http://h:8080", "http://h:8080/v1"),
        ("http://h/v1/chat/completions", "http://h", "http://h/v1"),
        ("https://h/api/v1", "https://h/api", "https://h/api/v1"),
        ("https://h/openai", "https://h/openai", "https://h/openai/v1"),
        ("https://h/v1beta/openai", "https://h/v1beta/openai", "https://h/v1beta/openai"),
        ("127.0.0.1:8080", "http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("localhost:1234/v1", "http://localhost:1234", "http://localhost:1234/v1"),
        ("  http://[::1]:8080/v1 ", "http://[::1]:8080", "http://[::1]:8080/v1"),
    ],
)
def test_addresses(given: str, root: str, api: str) -> None:
    where = endpoint(given)
    assert (where.root, where.api) == (root, api)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "ftp://h",
        "example.com",
        "http://",
        "http://h:port",
        "http://h:99999",
        "http://[::1",
        "http://u:p@h/v1",
        "http://h/?a=1",
        "file:///etc",
        "http://h:0",
    ],
)
def test_bad_addresses_are_explained(given: str) -> None:
    with pytest.raises(ModelRejected, match=r"model\.baseUrl") as caught:
        endpoint(given)
    assert "u:p" not in str(caught.value)
