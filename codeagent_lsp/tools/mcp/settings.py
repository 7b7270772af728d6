"""The setting `mcp.servers` as values, with the problems of invalid entries.

Not here: starting and reaching servers (`connection.py`), which tools they have (`server.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from codeagent_lsp.call_forms import MCP_PREFIX
from codeagent_lsp.shadow.environment import is_secret
from codeagent_lsp.tools.mcp.errors import McpProblem

Transport = Literal["stdio", "http", "sse", "websocket"]

SECONDS = 60.0
MAX_SECONDS = 3600.0
MAX_SERVERS = 32
LEAST_SECRET = 8

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_REPLACING = re.compile(r"PYTHON|LD_|DYLD_")
"""Variables by which a program can be made to run other code."""
_VARIABLE = re.compile(r"\$\{env:([^}]*)\}")
_TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "sse": "sse",
    "ws": "websocket",
    "websocket": "websocket",
}
_SCHEMES: Mapping[str, tuple[Transport, ...]] = {
    "http": ("http", "sse"),
    "https": ("http", "sse"),
    "ws": ("websocket",),
    "wss": ("websocket",),
}
_STATED = (
    *("command", "args", "env", "cwd", "url", "headers", "oauth", "transport", "disabled", "autoApprove"),
    "timeoutSeconds",
)
_KEYS = frozenset((*_STATED, "type"))
_OAUTH = ("clientId", "clientSecret")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """One server. `command` with `args` for stdio, else `url`; `seconds` is the limit of a start and of a call.

    `env`, `headers` and `oauth` may hold secrets: they are never shown. `auto_approve` names tools, or all of them by
    `*`; `oauth` is a fixed client registration: `clientId` and perhaps `clientSecret`.
    """

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    disabled: bool = False
    auto_approve: tuple[str, ...] = ()
    seconds: float = SECONDS
    oauth: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def where(self) -> str:
        """Its address for display: the program's name, or the URL without its query and fragment."""
        if self.transport == "stdio":
            return self.command
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    @property
    def group(self) -> str:
        """The group of its tools, `mcp.<server>`, with which their names begin."""
        return f"{MCP_PREFIX}{self.name}"

    @property
    def origin(self) -> str:
        """The words that say where its tools are from, for their descriptions."""
        return f"MCP server {self.name}"

    @property
    def authorized(self) -> bool:
        """Whether the settings contain an Authorization header; then no login is tried."""
        return any(name.lower() == "authorization" for name in self.headers)

    @property
    def identity(self) -> str:
        """A SHA-256 hash, in hexadecimal, of what the server is: transport, command and arguments, folder, address,
        OAuth client; limits, approvals and secrets do not change it.
        """
        told = [self.transport, self.command, self.args, self.cwd, self.where if self.url else ""]
        told += [self.oauth["clientId"]] if self.oauth else []
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    @property
    def own(self) -> bool:
        """Whether it is this program's sandbox server (`sandbox-mcp`), started as this installation has it, so that it
        runs the same code: its tools do what their annotations say.
        """
        words = self.args[2:] if self.args[:2] == ("-m", "codeagent_lsp.cli") else self.args
        if self.transport != "stdio" or words[:1] != ("sandbox-mcp",) or any(map(_REPLACING.match, self.env)):
            return False
        python = Path(sys.executable)
        found = shutil.which(os.path.expanduser(self.command), path=self.env.get("PATH"))  # noqa: PTH111
        if found is None:
            return False
        if words is not self.args:  # not resolved: a virtual environment's Python is a link to the system's
            return Path(found).absolute() == python
        script = python.with_name("codeagent-lsp")
        return script.exists() and script.samefile(found)

    def approves(self, tool: str) -> bool:
        """Return whether the settings approve this tool, by its own name at the server, without asking."""
        return tool in self.auto_approve or "*" in self.auto_approve

    def same(self, other: ServerSettings) -> bool:
        """Return whether all settings are equal, secrets included; a server with other settings has to be started
        again.
        """
        return asdict(self) == asdict(other)


def read_servers(
    given: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[tuple[ServerSettings, ...], dict[str, McpProblem]]:
    """Return the valid servers of the setting, of its first 32 entries, and the problems of the invalid ones by name;
    later entries are ignored. Never raises. `environ` fills in the variables that values refer to.
    """
    servers: list[ServerSettings] = []
    problems: dict[str, McpProblem] = {}
    for name, entry in list(given.items())[:MAX_SERVERS]:
        try:
            servers.append(_server(str(name), entry, environ))
        except McpProblem as problem:
            problems[str(name)[:40]] = problem
    return tuple(servers), problems


def secrets_in(given: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secret values of the setting, as `read_servers` reads it, of 8 characters or more: headers, client
    secrets, and variables that look secret.
    """
    servers, _ = read_servers(given, environ)
    found = [value for server in servers for name, value in server.env.items() if is_secret(name, value)]
    for server in servers:
        found += [server.oauth.get("clientSecret", "")]
        for value in server.headers.values():
            found += [value, value.rpartition(" ")[2]]  # the token after `Bearer`
    return tuple(dict.fromkeys(value for value in found if len(value) >= LEAST_SECRET))


def names_server(tool: str) -> bool:
    """Return whether a name in a list of tools means a whole server: `mcp.<server>`, not `mcp.<server>.<tool>`."""
    return tool.startswith(MCP_PREFIX) and "." not in tool.removeprefix(MCP_PREFIX)


def _server(name: str, entry: Any, environ: Mapping[str, str]) -> ServerSettings:
    if not _NAME.fullmatch(name):
        # The name becomes part of the names of its tools, which all model APIs have to accept.
        raise McpProblem("mcp.bad_name", name=name[:40])
    if not isinstance(entry, Mapping):
        raise McpProblem("mcp.bad_value", name=name, key="", allowed="{…}")
    # A misspelt `disabled` or `autoApprove` must not be taken for one that is not set.
    if unknown := [str(key) for key in entry if key not in _KEYS]:
        raise McpProblem("mcp.bad_key", name=name, key=unknown[0][:40], known=", ".join(_STATED))
    reader = _ServerEntryReader(name, entry, environ)
    command, url = reader.word("command"), reader.word("url", expand=True)
    if bool(command) == bool(url):
        raise McpProblem("mcp.no_target", name=name)
    return ServerSettings(
        name,
        reader.transport(url),
        command,
        reader.words("args"),
        reader.table("env"),
        reader.word("cwd"),
        url,
        reader.table("headers"),
        reader.flag("disabled"),
        reader.words("autoApprove"),
        reader.seconds("timeoutSeconds"),
        reader.oauth(),
    )


@dataclass(frozen=True, slots=True)
class _ServerEntryReader:
    """Typed access to the values of one entry; McpProblem names the key whose value is invalid."""

    name: str
    entry: Mapping[str, Any]
    environ: Mapping[str, str]

    def word(self, key: str, *, expand: bool = False) -> str:
        value = self.entry.get(key) or ""
        if not isinstance(value, str) or "\0" in value:
            raise self._bad(key, "text")
        return self._expand(value) if expand else value

    def words(self, key: str) -> tuple[str, ...]:
        value = self.entry.get(key) or ()
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) and "\0" not in item for item in value):
            raise self._bad(key, '["…", …]')
        return tuple(value)

    def table(self, key: str) -> dict[str, str]:
        value = self.entry.get(key) or {}
        if not isinstance(value, Mapping):
            raise self._bad(key, '{"…": "…"}')
        for name, item in value.items():
            # A line end in a header would begin another one.
            if not isinstance(name, str) or not isinstance(item, str) or re.search(r"[\0\r\n]", name + item):
                raise self._bad(key, '{"…": "…"}')
        return {name: self._expand(item) for name, item in value.items()}

    def oauth(self) -> dict[str, str]:
        given = self.table("oauth")
        if given and (not given.get("clientId") or set(given) - set(_OAUTH)):
            raise self._bad("oauth", '{"clientId": "…", "clientSecret": "…"}')
        return given

    def flag(self, key: str) -> bool:
        value = self.entry.get(key, False)
        if not isinstance(value, bool):
            raise self._bad(key, "true | false")
        return value

    def seconds(self, key: str) -> float:
        value = self.entry.get(key, SECONDS)
        # True is an int.
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_SECONDS:
            raise self._bad(key, f"0 … {MAX_SECONDS:g}")
        return float(value)

    def transport(self, url: str) -> Transport:
        stated = self.word("transport") or self.word("type")
        chosen = _TRANSPORTS.get(stated) if stated else None
        if stated and chosen is None:
            raise self._bad("transport", " | ".join(sorted(set(_TRANSPORTS.values()))))
        if not url:
            if chosen not in (None, "stdio"):
                raise self._bad("transport", "stdio")
            return "stdio"
        fitting = _SCHEMES.get(_scheme(url), ())
        if not fitting:
            raise self._bad("url", "http://… | https://… | ws://… | wss://…")
        if chosen not in (None, *fitting):
            raise self._bad("transport", " | ".join(fitting))
        return chosen or fitting[0]

    def _expand(self, value: str) -> str:
        def variable(match: re.Match[str]) -> str:
            if match[1] not in self.environ:
                raise McpProblem("mcp.no_variable", name=self.name, variable=match[1][:60])
            return self.environ[match[1]]

        return _VARIABLE.sub(variable, value)

    def _bad(self, key: str, allowed: str) -> McpProblem:
        return McpProblem("mcp.bad_value", name=self.name, key=key, allowed=allowed)


def _scheme(url: str) -> str:
    """Return the scheme of a usable address; '' if it is malformed or contains a user."""
    # Programs differ in where a host ends at these, so a check of it would say nothing.
    if re.search(r"[\s\\\0]", url):
        return ""
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        return ""
    return parts.scheme if usable else ""
