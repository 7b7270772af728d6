"""The kinds of model servers: class, home address, hosts that speak it, and environment variable of the key, of each.

A class is imported when it is used. Not here: asking a server what it is (`llm/factory.py`), the classes themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from urllib.parse import urlsplit

from codeagent_lsp.llm.providers.http_model import HttpModel


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of server. `home` is where it is found when no URL is set, '' for nowhere; `hosts` are names that are
    known to speak it, with all names below them; `key` is the variable with the key for these hosts.
    """

    where: str
    home: str = ""
    hosts: tuple[str, ...] = ()
    key: str = ""

    def load(self) -> type[HttpModel]:
        """Return the class, imported now."""
        module, name = self.where.split(":")
        found: type[HttpModel] = getattr(import_module(f"codeagent_lsp.llm.providers.{module}"), name)
        return found


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "openai": Kind("openai:OpenAIModel"),
        "llamacpp": Kind("llamacpp:LlamaCppModel"),
    }
)


def kind_of(url: str) -> str:
    """Return the kind that a URL's host is known to speak; '' for other hosts."""
    host = (urlsplit(url).hostname or "").lower()
    return next((name for name, kind in KINDS.items() if any(_below(host, known) for known in kind.hosts)), "")


def _below(host: str, known: str) -> bool:
    return host == known or host.endswith(f".{known}")
