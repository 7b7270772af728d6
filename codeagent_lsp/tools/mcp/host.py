"""The client's side of a connection, as MCP servers may see it. Light to import, unlike the connection itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.tools.mcp.logins import Logins


@dataclass(frozen=True, slots=True)
class Host:
    """The client's side as servers may see it: the workspace's folders and the environment. `changed` is called when a
    list of tools changes, `waits` when waiting for the user begins (True) or ends; `logins` is None where no login is
    possible; `network` is how other machines are reached.
    """

    folders: Callable[[], Sequence[str]]
    environ: Mapping[str, str]
    changed: Callable[[], None]
    logins: Logins | None = None
    waits: Callable[[bool], None] = lambda waiting: None
    network: NetworkSettings = NetworkSettings()
