"""The sources from which a skill can be installed, and cloning them such that their contents can do nothing.

What is cloned cannot run, escape the folder or fill the disk. Not here: looking into it, and installing
(`skill_tools.py`).
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ErrorCode, SettingError, ToolFailed, ToolRetry
from codeagent_lsp.network import DEFAULTS, bundle, proxy_for
from codeagent_lsp.tools.git.calls import git_program
from codeagent_lsp.tools.web.urls import is_public
from codeagent_lsp.workspace.process_group import end_group, read_head, start_group
from codeagent_lsp.workspace.text.visible import one_line, visible

SECONDS = 60.0
MAX_BYTES = 64 << 20
_LOOK_SECONDS = 0.2
_MAX_COMPLAINT = 4096

# A repository is data of a stranger: nothing in it, and no setting of the user, may have git run a program, follow a
# link, ask for a password or go to another place.
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "core.attributesFile=/dev/null",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.askPass=false",
    "core.sshCommand=false",
    "credential.helper=",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "http.followRedirects=false",
    # Only the scheme that was asked for is opened again (`_options`).
    "protocol.allow=never",
    "init.templateDir=",
    "gc.auto=0",
    "maintenance.auto=false",
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "LC_ALL": "C",
}
_PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
_KEPT = ("PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "no_proxy", "NO_PROXY", *_PROXIES)

GITHUB = "https://github.com"
HELP = "Give owner/repo, the https URL of a repository, a skills.sh URL, or a local folder."

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_SHORT = re.compile(rf"({_PART})/({_PART})(?:/({_PART}(?:/{_PART})*))?")
_PATH_PART = re.compile(r"[A-Za-z0-9._~-]{1,200}")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")


@dataclass(frozen=True, slots=True)
class SkillSource:
    """A source of skills. Exactly one of `url` (a repository) and `folder` (on this machine) is set.

    `inner` is a folder in it, `skill` the name that the source itself asks for, `branch` '' for the default.
    """

    url: str = ""
    folder: str = ""
    inner: str = ""
    skill: str = ""
    branch: str = ""

    @property
    def shown(self) -> str:
        """The source for display: its URL or folder, the inner folder and the branch, on one line of at most 200
        characters.
        """
        place = self.url or self.folder
        details = "".join(f" {part}" for part in (self.inner, self.branch and f"({self.branch})") if part)
        return one_line(place + details, 200)


def parse(words: str, branch: str = "") -> SkillSource:
    """Return the source that these words name: `owner/repo`, perhaps with `/skill` behind it, an https URL, or a local
    folder; nothing is fetched. ToolRetry, with the allowed forms, if it is none of them.
    """
    words = words.strip()
    if not words or visible(words) != words or "\n" in words:
        raise ToolRetry(f"The source is empty or holds characters that cannot be seen. {HELP}")
    if branch and (not _BRANCH.fullmatch(branch) or ".." in branch or "@{" in branch):
        raise ToolRetry(f"{branch!r} is no name of a branch.")
    if words.startswith(("/", "./", "../", "~/")) or words in (".", "~"):
        return SkillSource(folder=words)
    if "://" in words:
        found = _from_url(words)
    elif match := _SHORT.fullmatch(words):
        found = SkillSource(f"{GITHUB}/{match[1]}/{match[2].removesuffix('.git')}", skill=(match[3] or ""))
    else:
        raise ToolRetry(f"{one_line(words, 80)!r} is no source of a skill. {HELP}")
    return replace(found, branch=branch or found.branch)


def _from_url(words: str) -> SkillSource:
    try:
        url = urlsplit(words)
        host, port = (url.hostname or "").lower(), url.port
    except ValueError:
        raise ToolRetry(f"This URL cannot be read. {HELP}") from None
    # a password would be shown in questions, and a query may carry a key
    if url.username is not None or url.password is not None or "\\" in words or url.query or url.fragment:
        raise ToolRetry("The URL must have no user, password, query or fragment.")
    parts = [part for part in url.path.split("/") if part]
    if any(part in (".", "..") or not _PATH_PART.fullmatch(part) for part in map(unquote, parts)):
        raise ToolRetry(f"The path of this URL cannot be used. {HELP}")
    if url.scheme == "file" and not host:
        return SkillSource("file:///" + "/".join(parts))
    if url.scheme != "https" or not host or not parts:
        raise ToolRetry(f"Only https URLs of repositories can be fetched. {HELP}")
    if host in ("skills.sh", "www.skills.sh"):
        return _from_index(parts)
    if host == "github.com" and len(parts) > 3 and parts[2] in ("tree", "blob"):
        # where a branch has a slash, the URL does not show where it ends: `branch` is for those
        inner = "/".join(parts[4:]).removesuffix("/SKILL.md").removesuffix("SKILL.md")
        return SkillSource(f"{GITHUB}/{parts[0]}/{parts[1]}", inner=inner, branch=parts[3])
    place = host if port is None else f"{host}:{port}"
    return SkillSource(f"https://{place}/" + "/".join(parts))


def _from_index(parts: list[str]) -> SkillSource:
    """Return the source for `skills.sh/owner/repo` or `skills.sh/owner/repo/skill`, which lists GitHub repositories."""
    if len(parts) not in (2, 3):
        raise ToolRetry("A skills.sh URL names an owner, a repository and maybe a skill.")
    return SkillSource(f"{GITHUB}/{parts[0]}/{parts[1]}", skill=parts[2] if len(parts) == 3 else "")


async def fetch(
    source: SkillSource,
    into: Path,
    *,
    seconds: float = SECONDS,
    max_bytes: int = MAX_BYTES,
    network: NetworkSettings = DEFAULTS,
) -> None:
    """Clone a repository into the empty folder `into`, with git. ToolFailed, with advice, if that fails, its host is
    not public, it takes longer than `seconds`, or if it has more than `max_bytes`.
    """
    scheme = urlsplit(source.url).scheme
    # As with pages of the web: a name in a source must not reach what only this machine can.
    if scheme == "https" and not network.proxy:
        await _require_public(source.url)
    command = [_git(), *_options(scheme), "clone", "--quiet", "--depth=1", "--single-branch", "--no-tags"]
    # Copied even from this machine: links of files would let a later change of the source change what was approved.
    command += ["--no-recurse-submodules", "--no-local", "--no-hardlinks", "--template="]
    command += [f"--branch={source.branch}"] if source.branch else []
    command += ["--", source.url, str(into)]
    variables = await asyncio.to_thread(_variables, source.url, into, network)
    try:
        async with asyncio.timeout(seconds):
            code, complaint = await _run(command, into, max_bytes, variables)
    except TimeoutError:
        raise ToolFailed(f"Fetching {source.shown} took longer than {seconds:g} s.", ErrorCode.TIMEOUT) from None
    if code != 0:
        raise ToolFailed(f"{source.shown} cannot be fetched: {_reason(complaint)}", ErrorCode.NETWORK_ERROR)


def _options(scheme: str) -> list[str]:
    settings = (*_SETTINGS, f"protocol.{scheme}.allow=always")
    return [word for setting in settings for word in ("-c", setting)]


def _git() -> str:
    if (program := git_program()) is None:
        raise ToolFailed("git is not installed here; give a local folder instead.", ErrorCode.NOT_FOUND)
    return program


async def _require_public(url: str) -> None:
    """Check that every address of the host is public (ToolFailed if not), unless a proxy is configured, which
    decides.
    """
    if any(os.environ.get(name) for name in _PROXIES):
        return
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, parts.port or 443, type=socket.SOCK_STREAM)
    except OSError:
        message = f"{host} cannot be reached from here. Check the network, or give a local folder."
        raise ToolFailed(message, ErrorCode.NETWORK_ERROR) from None
    if not all(is_public(str(address[4][0])) for address in found):
        raise ToolFailed(f"{host} is no public address, so nothing is fetched from it.", ErrorCode.PERMISSION_DENIED)


def _variables(url: str, into: Path, network: NetworkSettings) -> dict[str, str]:
    """Return the variables that tell git our network, with files beside `into`. ToolFailed if a setting is unusable."""
    try:
        trusted = bundle(network, into.parent)
        proxy = proxy_for(url, network) if network.proxy else ""
    except SettingError as error:
        raise ToolFailed(str(error), ErrorCode.NETWORK_ERROR) from error
    ours = os.path.expanduser(network.client_cert or "")  # noqa: PTH111 - a text for git
    given = {"GIT_SSL_CAINFO": trusted, "GIT_SSL_CERT": ours, "GIT_SSL_KEY": ours, "https_proxy": proxy}
    return {name: str(value) for name, value in given.items() if value}


async def _run(command: list[str], into: Path, max_bytes: int, variables: Mapping[str, str]) -> tuple[int, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    process = await start_group(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        # A home without `.netrc`, from which passwords would be sent.
        env={**kept, **variables, **_ENVIRONMENT, "HOME": str(into.parent)},
        cwd=into.parent,
    )
    assert process.stderr is not None
    complaining = asyncio.ensure_future(read_head(process.stderr, _MAX_COMPLAINT))
    watching = asyncio.ensure_future(_outgrown(into, max_bytes))
    waiting = asyncio.ensure_future(process.wait())
    try:
        await asyncio.wait((waiting, watching), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            raise ToolFailed(f"The repository takes more than {max_bytes >> 20} MiB; clone it and give the folder.")
        return await waiting, (await complaining).decode("utf-8", "replace")
    finally:
        watching.cancel()
        end_group(process)
        # Also if this is cancelled: nothing of the process may be left when the folder is removed.
        await asyncio.shield(process.wait())
        complaining.cancel()


async def _outgrown(folder: Path, limit: int) -> None:
    """Wait until the folder holds more than `limit` bytes."""
    while await asyncio.to_thread(_size, folder) <= limit:  # noqa: ASYNC110 - no event reports that a folder grows
        await asyncio.sleep(_LOOK_SECONDS)


def _size(folder: Path) -> int:
    total = 0
    for above, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(above, name)).st_size  # noqa: PTH118 - many files
            except OSError:  # gone meanwhile
                continue
    return total


def _reason(complaint: str) -> str:
    if "Could not resolve host" in complaint or "unable to access" in complaint.lower():
        return "it cannot be reached from here (no network, or no such repository)."
    if "terminal prompts disabled" in complaint or "Authentication failed" in complaint:
        return "there is no such repository, or it is not public."
    if "Remote branch" in complaint:
        return "there is no such branch."
    lines = [line for line in complaint.splitlines() if line.startswith(("fatal:", "error:"))]
    return one_line(lines[0] if lines else "git gave no reason", 300)
