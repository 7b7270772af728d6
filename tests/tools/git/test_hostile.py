"""Repositories that try to run a program when they are read: nothing may run, and nothing be fetched.

Every trap is checked against git itself where git falls into it, so that a trap that does not work proves nothing.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.tools.git import calls
from codeagent_lsp.tools.git.calls import Repository
from tests.children import children
from tests.tools.fakes import Bench
from tests.tools.git.models import with_writer
from tests.tools.git.repos import commit, git, start

pytestmark = pytest.mark.slow  # many repositories

Trap = Callable[[Path, str], None]


def config(root: Path, **settings: str) -> None:
    for name, value in settings.items():
        git(root, "config", name.replace("__", "."), value)


def fsmonitor(root: Path, program: str) -> None:
    config(root, core__fsmonitor=program)


def clean_filter(root: Path, program: str) -> None:
    (root / ".gitattributes").write_text("* filter=evil\n")
    config(root, filter__evil__clean=program, filter__evil__smudge=program, filter__evil__required="true")


def process_filter(root: Path, program: str) -> None:
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    config(root, filter__evil__process=program)


def textconv(root: Path, program: str) -> None:
    (root / ".gitattributes").write_text("* diff=evil\n")
    config(root, diff__evil__textconv=program, diff__evil__cachetextconv="true")


def driver(root: Path, program: str) -> None:
    (root / ".gitattributes").write_text("* diff=evil\n")
    config(root, diff__evil__command=program)


def external_diff(root: Path, program: str) -> None:
    config(root, diff__external=program)


def signature(root: Path, program: str) -> None:
    config(root, log__showSignature="true", gpg__program=program, gpg__format="openpgp", format__pretty="%G? %GK")
    content = git(root, "cat-file", "commit", "HEAD")
    head, _, message = content.partition("\n\n")
    signed = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n{message}"
    name = git(root, "hash-object", "-t", "commit", "-w", "--stdin", data=signed.encode()).strip()
    git(root, "update-ref", "HEAD", name)


def pager(root: Path, program: str) -> None:
    config(root, core__pager=program, pager__log=program, pager__diff=program)
    config(
        root, core__editor=program, sequence__editor=program, core__askPass=program, credential__helper=f"!{program}"
    )


def aliases(root: Path, program: str) -> None:
    for name in ("rev-list", "ls-files", "ls-tree", "cat-file", "rev-parse"):
        git(root, "config", f"alias.{name}", f"!{program}")


def included(root: Path, program: str) -> None:
    (root / ".git" / "more").write_text(f'[core]\n\tfsmonitor = "{program}"\n')
    git(root, "config", f"includeIf.gitdir:{root}/.path", "more")
    config(root, include__path="more")


def worktree_config(root: Path, program: str) -> None:
    config(root, core__repositoryformatversion="1", extensions__worktreeConfig="true")
    (root / ".git" / "config.worktree").write_text(f'[core]\n\tfsmonitor = "{program}"\n')


def hooks(root: Path, program: str) -> None:
    folder = root / "hooks"
    folder.mkdir()
    names = ("post-index-change", "fsmonitor-watchman", "query-watchman", "reference-transaction", "pre-auto-gc")
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\nexec {program}\n")
        (folder / name).chmod(0o755)
    config(root, core__hooksPath=str(folder), core__fsmonitor=str(folder / "fsmonitor-watchman"))


def partial_clone(root: Path, program: str) -> None:
    """An object that is missing and would be fetched by a program."""
    config(root, core__repositoryformatversion="1", extensions__partialClone="origin")
    config(root, remote__origin__url=f"ext::{program} %S", remote__origin__promisor="true")
    config(root, protocol__ext__allow="always", protocol__allow="always")
    _lose_a_blob(root)


def partial_clone_by_ssh(root: Path, program: str) -> None:
    config(root, core__repositoryformatversion="1", extensions__partialClone="origin")
    config(root, remote__origin__url="ssh://nowhere.invalid/x", remote__origin__promisor="true")
    config(root, core__sshCommand=program, remote__origin__uploadpack=program, ssh__variant="simple")
    _lose_a_blob(root)


def submodule(root: Path, program: str) -> None:
    start(root / "sub", x__py="x\n")
    config(root / "sub", core__fsmonitor=program)
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{git(root / 'sub', 'rev-parse', 'HEAD').strip()},sub")
    config(root, submodule__recurse="true", status__submoduleSummary="true", diff__submodule="diff")
    (root / "sub" / "x.py").write_text("y\n")


def _lose_a_blob(root: Path) -> None:
    name = git(root, "rev-parse", "HEAD:a.py").strip()
    (root / ".git" / "objects" / name[:2] / name[2:]).unlink()


TRAPS: tuple[Trap, ...] = (
    fsmonitor,
    clean_filter,
    process_filter,
    textconv,
    driver,
    external_diff,
    signature,
    pager,
    aliases,
    included,
    worktree_config,
    hooks,
    partial_clone,
    partial_clone_by_ssh,
    submodule,
)
GIT_FALLS_FOR = (fsmonitor, clean_filter, process_filter, textconv, driver, external_diff, signature, included,
                 worktree_config, hooks, partial_clone, partial_clone_by_ssh, submodule)  # fmt: skip


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.fixture
def program(tmp_path: Path, marker: Path) -> str:
    path = tmp_path / "program"
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> {marker}\nexit 1\n')
    path.chmod(0o755)
    return str(path)


def make_racy(root: Path) -> None:
    """Files that git must read to know whether they have changed."""
    for name in ("a.py", "b.py"):
        path = root / name
        stamp = path.stat().st_mtime_ns
        path.write_text(path.read_text().upper())
        os.utime(path, ns=(stamp, stamp))
        os.utime(root / ".git" / "index", ns=(stamp, stamp))


def forget(marker: Path) -> None:
    marker.unlink(missing_ok=True)


def traces(marker: Path) -> str:
    """What has run."""
    return marker.read_text() if marker.exists() else ""


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
async def test_nothing_runs(repo: Bench, program: str, marker: Path, trap: Trap) -> None:
    trap(repo.root, program)
    make_racy(repo.root)
    forget(marker)
    before = repo.disk()
    for arguments in ({}, {"staged": True}, {"path": "a.py"}, {"path": "sub"}):
        await repo.call("git_diff", **arguments)
    await repo.call("git_log")
    await repo.call("git_log", path="a.py")
    with_writer(repo, "Say something")
    written = await repo.call("generate_commit")
    assert written.text == "Say something"
    assert traces(marker) == ""
    assert repo.disk() == before


@pytest.mark.parametrize("trap", GIT_FALLS_FOR, ids=lambda trap: trap.__name__)
def test_the_traps_work(repo: Bench, program: str, marker: Path, trap: Trap) -> None:
    trap(repo.root, program)
    make_racy(repo.root)
    forget(marker)
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    for command in (["diff", "HEAD"], ["log", "-p"], ["status"], ["diff", "--submodule=diff"]):
        subprocess.run(["git", "-C", repo.root, *command], capture_output=True, check=False, env=environment,
                       timeout=20)  # fmt: skip
    assert traces(marker)


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
async def test_the_answer_is_right_all_the_same(repo: Bench, program: str, trap: Trap) -> None:
    trap(repo.root, program)
    repo.write("b.py", "changed\n")
    text = (await repo.call("git_diff", path="b.py")).text
    assert "-b\n+changed" in text
    assert ": Begin" in (await repo.call("git_log", limit=1)).text


async def test_the_environment_steers_nothing(repo: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = start(tmp_path / "other", secret__py="secret\n")
    variables = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_EXEC_PATH": str(tmp_path),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": f"touch {tmp_path}/ran",
        "GIT_TRACE": str(tmp_path / "trace"),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = await repo.call("git_diff", staged=True)
    assert result.text == "Nothing differs from the last commit."
    assert not (tmp_path / "ran").exists() and not (tmp_path / "trace").exists()
    monkeypatch.setenv("ANYTHING", "else")
    kept = calls.environment(Repository("/x/y"), os.environ)
    assert kept["GIT_CEILING_DIRECTORIES"] == "/x" and not {*variables, "ANYTHING"} & {*kept}


async def test_a_work_tree_elsewhere_is_not_looked_at(repo: Bench, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text("not yours\n")
    config(repo.root, core__worktree=str(other))
    repo.write("a.py", "here\n")
    text = (await repo.call("git_diff")).text
    assert "+here" in text and "not yours" not in text


@pytest.mark.parametrize("how", ["file", "link", "commondir", "inner link"])
async def test_a_git_folder_that_leads_elsewhere_is_not_read(tmp_path: Path, how: str) -> None:
    other = start(tmp_path / "other", secret__py="secret\n")
    bench = Bench(tmp_path / "work")
    marker = bench.root / ".git"
    if how == "file":
        marker.write_text(f"gitdir: {other}/.git\n")
    elif how == "link":
        marker.symlink_to(other / ".git")
    elif how == "commondir":
        marker.mkdir()
        (marker / "HEAD").write_text("ref: refs/heads/main\n")
        (marker / "commondir").write_text(f"{other}/.git\n")
    else:
        start(bench.root)
        (marker / "refs").rename(tmp_path / "refs")
        (marker / "refs").symlink_to(other / ".git" / "refs")
    for tool in ("git_diff", "git_log", "generate_commit"):
        result = await bench.call(tool)
        assert not result.ok
        assert "outside the workspace" in result.text or "No model" in result.text


async def test_an_empty_git_folder_does_not_lead_to_the_repository_around(repo: Bench) -> None:
    (repo.root / "inner" / ".git").mkdir(parents=True)
    (repo.root / "inner" / ".git" / "HEAD").write_text("")
    inner = Bench(repo.root / "inner")
    result = await inner.call("git_log")
    assert not result.ok and "does not take it for a repository" in result.text


async def test_a_file_that_never_ends_costs_the_time_limit(repo: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "SECONDS", 0.3)
    os.mkfifo(repo.root / ".git" / "pipe")
    config(repo.root, include__path="pipe")
    started = time.monotonic()
    result = await repo.call("git_diff")
    assert not result.ok and "did not answer within 0.3 s" in result.text
    assert time.monotonic() - started < 5


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the children of a process are read from /proc")
async def test_a_cancelled_call_leaves_nothing_behind(repo: Bench) -> None:
    os.mkfifo(repo.root / ".git" / "pipe")
    config(repo.root, include__path="pipe")
    others = children()
    call = asyncio.ensure_future(repo.call("git_diff"))
    for _ in range(100):
        await asyncio.sleep(0.02)
        if children() - others:
            break
    assert children() - others
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not children() - others
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_much_output_is_refused(repo: Bench) -> None:
    with pytest.raises(ToolFailed, match="more than 10 bytes"):
        await calls.call(Repository(str(repo.root)), "ls-tree", "HEAD", limit=10)


async def test_subjects_and_names_cannot_pretend(repo: Bench) -> None:
    commit(repo.root, "Nice\x1b[2J\u202e subject")
    text = (await repo.call("git_log", limit=1)).text
    assert "\x1b" not in text and "\u202e" not in text and "Nice" in text
