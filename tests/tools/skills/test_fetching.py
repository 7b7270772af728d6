"""Fetching: a repository on this machine, full of traps; nothing of it runs, leads out or stays behind.

What a skill can be installed from, and what is refused before anything is fetched.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from codeagent_lsp.errors import ErrorCode, ToolFailed, ToolRetry
from codeagent_lsp.tools.skills import fetching
from codeagent_lsp.tools.skills.fetching import GITHUB, SkillSource, fetch, parse

NEUTRAL = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}


def git(folder: Path, *words: str) -> None:
    own = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    environment = {**os.environ, **NEUTRAL}
    subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True, env=environment)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "origin"
    folder.mkdir()
    (folder / "SKILL.md").write_text("text\n")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / ".gitattributes").write_text("* filter=evil\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    git(folder, "branch", "other")
    return folder


def source(folder: Path, branch: str = "") -> SkillSource:
    return SkillSource(f"file://{folder}", branch=branch)


async def test_files_come_and_links_come_as_text(repository: Path, tmp_path: Path) -> None:
    await fetch(source(repository), tmp_path / "into")
    assert (tmp_path / "into" / "SKILL.md").read_text() == "text\n"
    assert not (tmp_path / "into" / "link").is_symlink()
    assert (tmp_path / "into" / "link").read_text() == "/etc/passwd"


async def test_nothing_of_the_users_settings_and_of_the_repository_runs(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    template = tmp_path / "template" / "hooks"
    template.mkdir(parents=True)
    hook = template / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    settings = tmp_path / "home" / ".gitconfig"
    settings.parent.mkdir()
    settings.write_text(
        f'[filter "evil"]\n\tsmudge = touch {mark}; cat\n[core]\n\thooksPath = {template}\n\tfsmonitor = touch {mark}\n'
    )
    monkeypatch.setenv("HOME", str(settings.parent))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(template.parent))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(template))
    await fetch(source(repository), tmp_path / "into")
    assert not mark.exists()
    assert not list((tmp_path / "into" / ".git").glob("hooks/*"))


async def test_a_branch(repository: Path, tmp_path: Path) -> None:
    await fetch(source(repository, "other"), tmp_path / "into")
    with pytest.raises(ToolFailed, match="no such branch") as caught:
        await fetch(source(repository, "missing"), tmp_path / "again")
    assert caught.value.code is ErrorCode.NETWORK_ERROR


async def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="cannot be fetched"):
        await fetch(source(tmp_path / "nothing"), tmp_path / "into")


async def test_too_large(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_LOOK_SECONDS", 0.0)
    (repository / "big").write_bytes(os.urandom(4_000_000))
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "two")
    with pytest.raises(ToolFailed, match="takes more than"):
        await fetch(source(repository), tmp_path / "into", max_bytes=2000)


def fake_git(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git that hangs and has a child; it notes its process group."""
    program, note = folder / "bin" / "git", folder / "group"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho $$ > {note}.new; mv {note}.new {note}\nsleep 60 &\nsleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return note


def gone(group: int) -> bool:
    """Whether nobody of a process group is alive; what has just been killed is given a moment."""
    for _ in range(200):
        if not any(_is_alive(place, group) for place in Path("/proc").glob("[0-9]*")):
            return True
        time.sleep(0.02)
    return False


def _is_alive(place: Path, group: int) -> bool:
    """Whether this is a process of the group that is more than a zombie."""
    try:
        state, _, number = (place / "stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return False
    return int(number) == group and state not in ("Z", "X")


async def test_a_time_limit_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = fake_git(tmp_path, monkeypatch)
    with pytest.raises(ToolFailed, match=r"longer than 0\.3 s") as caught:
        await fetch(SkillSource("file:///srv/x"), tmp_path / "into", seconds=0.3)
    assert caught.value.code is ErrorCode.TIMEOUT
    assert gone(int(note.read_text()))


async def test_cancelling_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = fake_git(tmp_path, monkeypatch)
    task = asyncio.ensure_future(fetch(SkillSource("file:///srv/x"), tmp_path / "into"))
    while not (note.exists() and note.read_text()):  # noqa: ASYNC110 - a file is no event
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone(int(note.read_text()))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]"]
)
async def test_only_public_hosts(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ToolFailed, match="no public address") as caught:
        await fetch(SkillSource(f"https://{host}/a/b"), tmp_path / "into")
    assert caught.value.code is ErrorCode.PERMISSION_DENIED


async def test_without_git_a_folder_is_advised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"relative:{tmp_path}")
    with pytest.raises(ToolFailed, match="not installed"):
        await fetch(SkillSource("file:///srv/x"), tmp_path / "into")


@pytest.mark.parametrize(
    ("words", "source"),
    [
        ("some/repo", SkillSource(f"{GITHUB}/some/repo")),
        (" some/repo.git ", SkillSource(f"{GITHUB}/some/repo")),
        ("some/repo/skill", SkillSource(f"{GITHUB}/some/repo", skill="skill")),
        ("some/repo/skills/pdf", SkillSource(f"{GITHUB}/some/repo", skill="skills/pdf")),
        ("https://example.org/team/repo.git", SkillSource("https://example.org/team/repo.git")),
        ("https://Example.org:8443/r", SkillSource("https://example.org:8443/r")),
        (f"{GITHUB}/some/repo/", SkillSource(f"{GITHUB}/some/repo")),
        (
            f"{GITHUB}/some/repo/tree/main/skills/pdf",
            SkillSource(f"{GITHUB}/some/repo", inner="skills/pdf", branch="main"),
        ),
        (f"{GITHUB}/some/repo/blob/v1/pdf/SKILL.md", SkillSource(f"{GITHUB}/some/repo", inner="pdf", branch="v1")),
        ("https://skills.sh/some/repo", SkillSource(f"{GITHUB}/some/repo")),
        ("https://www.skills.sh/some/repo/pdf", SkillSource(f"{GITHUB}/some/repo", skill="pdf")),
        ("file:///srv/repo.git", SkillSource("file:///srv/repo.git")),
        ("/srv/skills", SkillSource(folder="/srv/skills")),
        ("./skills", SkillSource(folder="./skills")),
        ("~/skills", SkillSource(folder="~/skills")),
    ],
)
def test_sources(words: str, source: SkillSource) -> None:
    assert parse(words) == source


@pytest.mark.parametrize(
    "words",
    [
        "",
        "word",
        "-oProxyCommand=x/y",
        "--upload-pack=x",
        "a/b;rm",
        "http://example.org/r",
        "ssh://git@example.org/r",
        "git@example.org:a/b",
        "git://example.org/r",
        "ext::sh -c x",
        "https://user:word@example.org/r",
        "https://example.org",
        "https://example.org/a/../b",
        "https://example.org/a/%2e%2e/b",
        "https://example.org/a?x=1",
        "https://example.org/a#x",
        "https://example.org\\@evil.org/a",
        "https://[::1/a",
        "https://skills.sh/only",
        "https://skills.sh/a/b/c/d",
        "file://host/share",
        "a/b\u200b",
        "a/b\nc/d",
    ],
)
def test_refused(words: str) -> None:
    with pytest.raises(ToolRetry):
        parse(words)


@pytest.mark.parametrize("branch", ["-x", "a..b", "a b", "a@{1}", "--upload-pack=x", "a;b"])
def test_branches_are_names(branch: str) -> None:
    with pytest.raises(ToolRetry, match="no name of a branch"):
        parse("a/b", branch)
    assert parse("a/b", "release/1.0").branch == "release/1.0"


def test_what_is_shown_is_one_visible_line() -> None:
    assert SkillSource("https://example.org/r", inner="in", branch="b").shown == "https://example.org/r in (b)"
    assert len(SkillSource(folder="/" + "x" * 500).shown) <= 200
