"""Parsing of the sources from which a skill can be installed. Pure functions.

Allowed are `https` repositories, `file` URLs of repositories on this machine, and folders. Not here: fetching.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.workspace.text.visible import one_line, visible

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
        """Return the source for display."""
        place = self.url or self.folder
        details = "".join(f" {part}" for part in (self.inner, self.branch and f"({self.branch})") if part)
        return one_line(place + details, 200)


def parse(words: str, branch: str = "") -> SkillSource:
    """Parse a source. ToolRetry, with the allowed forms, if it is none of them."""
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
