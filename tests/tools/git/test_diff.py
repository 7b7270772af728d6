"""`git_diff`: what the user and the run have, against the last commit or the index."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.tools.git.git_tools import GitDiff, GitDiffParameters
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import Roots
from tests.tools.fakes import Bench
from tests.tools.git.repos import commit, git, start


async def diff(bench: Bench, **arguments: object) -> str:
    result = await bench.call("git_diff", **arguments)
    assert result.ok, result.text
    return result.text


async def failure(bench: Bench, **arguments: object) -> str:
    result = await bench.call("git_diff", **arguments)
    assert not result.ok
    return result.text


async def test_nothing(repo: Bench) -> None:
    assert await diff(repo) == "Nothing differs from the last commit."
    assert await diff(repo, staged=True) == "Nothing differs from the last commit."


async def test_the_disk(repo: Bench) -> None:
    repo.write("a.py", "one\n2\nthree\n")
    text = await diff(repo)
    assert text == "M a.py +1 -1\n\n--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"


async def test_unsaved_text_counts_and_not_the_disk_under_it(repo: Bench) -> None:
    repo.write("a.py", "disk\n")
    repo.open("a.py", "one\ntwo\nunsaved\n")
    text = await diff(repo)
    assert "+unsaved" in text and "disk" not in text
    repo.open("a.py", "one\ntwo\nthree\n")
    assert await diff(repo) == "Nothing differs from the last commit."


async def test_what_the_run_staged_counts_and_the_index_does_not_know_it(repo: Bench) -> None:
    repo.open("a.py", "one\ntwo\nunsaved\n")
    await repo.call("edit_file", path="a.py", old_str="two", new_str="staged")
    await repo.call("write_file", path="new.py", content="fresh\n")
    await repo.call("delete_file", path="b.py")
    text = await diff(repo)
    assert text.startswith("M a.py +2 -2\nD b.py +0 -1\nA new.py +1 -0\n")
    assert "+staged\n+unsaved" in text
    assert "--- /dev/null\n+++ b/new.py" in text and "--- a/b.py\n+++ /dev/null" in text
    assert await diff(repo, staged=True) == "Nothing differs from the last commit."


async def test_the_index_alone(repo: Bench) -> None:
    repo.write("a.py", "one\nindex\nthree\n")
    git(repo.root, "add", "a.py")
    git(repo.root, "update-index", "--chmod=+x", "b.py")
    repo.write("a.py", "one\ndisk\nthree\n")
    staged = await diff(repo, staged=True)
    assert "+index" in staged and "disk" not in staged and "mode 100644 is now 100755" in staged
    assert "+disk" in await diff(repo)


async def test_a_change_that_leaves_size_and_time_of_the_file_is_seen(repo: Bench) -> None:
    """The file was written when the index was, so its time says nothing."""
    path = repo.root / "a.py"
    git(repo.root, "update-index", "--refresh")
    info = path.stat()
    index = repo.root / ".git" / "index"
    path.write_text("one\nTWO\nthree\n")
    os.utime(path, ns=(info.st_mtime_ns, info.st_mtime_ns))
    os.utime(index, ns=(info.st_mtime_ns, info.st_mtime_ns))
    assert "+TWO" in await diff(repo)


async def test_a_touched_file_has_not_changed(repo: Bench) -> None:
    os.utime(repo.root / "a.py")
    assert await diff(repo) == "Nothing differs from the last commit."


async def test_deleted_renamed_and_untracked(repo: Bench) -> None:
    (repo.root / "a.py").rename(repo.root / "moved.py")
    (repo.root / "b.py").unlink()
    repo.write("ignored.log", "x")
    repo.write(".gitignore", "*.log\n")
    text = await diff(repo)
    assert "D a.py" in text and "D b.py" in text and "Untracked: .gitignore, moved.py" in text
    git(repo.root, "add", "-A")
    assert "R a.py -> moved.py\n" in await diff(repo)
    assert "R a.py -> moved.py\n" in await diff(repo, staged=True)


async def test_only_a_path(repo: Bench) -> None:
    repo.write("src/x.py", "x\n")
    commit(repo.root, "More")
    repo.write("src/x.py", "y\n")
    repo.write("srcx.py", "z\n")
    repo.write("a.py", "changed\n")
    text = await diff(repo, path="src")
    assert "src/x.py" in text and "a.py" not in text and "srcx" not in text
    assert "b/a.py" in await diff(repo, path="a.py")
    assert await diff(repo, path="b.py") == "Nothing differs from the last commit."


@pytest.mark.parametrize(
    "name", ["sp ace.py", "new\nline.py", "tab\t.py", ":(top)x", "*", "-x", '"q"', "ünï.py", "[a]"]
)
async def test_unusual_names(repo: Bench, name: str) -> None:
    repo.write(name, "before\n")
    commit(repo.root, "Odd")
    repo.write(name, "after\n")
    repo.write("a.py", "also\n")
    text = await diff(repo, path=f"./{name}")
    assert "-before\n+after" in text and "also" not in text
    assert text.count("\n+++ ") == 1 and len(text.splitlines()) == 7


async def test_names_that_are_no_text(repo: Bench) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    repo.write(name, "before\n")
    commit(repo.root, "Latin")
    repo.write(name, "after\n")
    text = await diff(repo)
    assert 'M "caf\\351.py" +1 -1' in text and text.encode()


async def test_before_the_first_commit(tmp_path: Path) -> None:
    bench = Bench(start(tmp_path / "empty"))
    assert await diff(bench) == "Nothing differs from the last commit."
    bench.write("a.py", "x\n")
    assert await diff(bench) == "Untracked: a.py"
    git(bench.root, "add", "a.py")
    assert "A a.py +1 -0" in await diff(bench, staged=True)
    assert "A a.py +1 -0" in await diff(bench)


async def test_a_detached_head(repo: Bench) -> None:
    repo.write("a.py", "second\n")
    commit(repo.root, "Second")
    git(repo.root, "checkout", "-q", "--detach", "HEAD~1")
    repo.write("a.py", "now\n")
    assert "-two" in await diff(repo)


async def test_a_conflict(repo: Bench) -> None:
    git(repo.root, "checkout", "-q", "-b", "side")
    repo.write("a.py", "side\n")
    commit(repo.root, "Side")
    git(repo.root, "checkout", "-q", "main")
    repo.write("a.py", "main\n")
    commit(repo.root, "Main")
    with pytest.raises(AssertionError):
        git(repo.root, "merge", "-q", "side")
    text = await diff(repo)
    assert "+<<<<<<< " in text and "+side" in text


async def test_binary_large_and_links(repo: Bench) -> None:
    repo.write("bin", b"\0\1\2")
    repo.write("big", "x\n" * 400_000)
    (repo.root / "link").symlink_to("a.py")
    commit(repo.root, "Odd kinds")
    assert await diff(repo) == "Nothing differs from the last commit."
    for name in ("bin", "big", "a.py"):
        os.utime(repo.root / name)
    assert await diff(repo) == "Nothing differs from the last commit."
    repo.write("bin", b"\0\1\3")
    repo.write("big", "y\n" * 400_000)
    (repo.root / "link").unlink()
    (repo.root / "link").symlink_to("b.py")
    text = await diff(repo)
    assert "M bin (binary" in text and "M big (too large to show)" in text
    assert "-a.py" in text and "+b.py" in text and len(text) < 500


async def test_line_ends_of_the_disk_are_no_change(repo: Bench) -> None:
    repo.write("a.py", "one\r\ntwo\r\nthree\r\n")
    assert await diff(repo) == "Nothing differs from the last commit."
    repo.write("a.py", "one\r\n2\r\nthree\r\n")
    assert "M a.py +1 -1" in await diff(repo)


async def test_what_a_filter_keeps_elsewhere_is_not_compared(repo: Bench) -> None:
    repo.write("model.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    commit(repo.root, "Pointer")
    repo.write("model.bin", b"\0\0\0")
    assert "M model.bin (kept by Git LFS, not compared)" in await diff(repo)


async def test_files_left_out_of_the_work_tree_are_not_deleted(repo: Bench) -> None:
    repo.write("deep/x.py", "x\n")
    commit(repo.root, "Deep")
    git(repo.root, "sparse-checkout", "set", "--cone", "other")
    assert not (repo.root / "deep").exists()
    assert await diff(repo) == "Nothing differs from the last commit."


async def test_a_workspace_below_the_top(repo: Bench) -> None:
    repo.write("src/x.py", "x\n")
    commit(repo.root, "More")
    inner = Bench(repo.root / "src")
    repo.write("a.py", "outside\n")
    inner.write("x.py", "y\n")
    text = await diff(inner)
    assert text.startswith("M x.py +1 -1") and "outside" not in text
    assert "outside the workspace" in await failure(inner, path="../a.py")


async def test_the_repository_that_holds_the_path(repo: Bench) -> None:
    start(repo.root / "nested", in__py="in\n")
    repo.write("nested/in.py", "changed in\n")
    repo.open("nested/in.py", "buffer in\n")
    repo.write("a.py", "changed out\n")
    outer = await diff(repo)
    assert "changed out" in outer and "buffer in" not in outer and "nested" not in outer
    inner = await diff(repo, path="nested/in.py")
    assert "+buffer in" in inner and "changed out" not in inner


async def test_a_submodule_is_another_repository(repo: Bench, tmp_path: Path) -> None:
    start(tmp_path / "lib", lib__py="lib\n")
    git(repo.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "lib"), "lib")
    commit(repo.root, "Submodule")
    repo.write("lib/lib.py", "changed\n")
    assert await diff(repo) == "Nothing differs from the last commit."
    assert "+changed" in await diff(repo, path="lib")
    opened_alone = Bench(repo.root / "lib")
    assert "+changed" in await diff(opened_alone)


async def test_a_worktree(repo: Bench, tmp_path: Path) -> None:
    git(repo.root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    tree = Bench(tmp_path / "tree")
    tree.write("a.py", "in the tree\n")
    assert "+in the tree" in await diff(tree)
    assert await diff(repo) == "Nothing differs from the last commit."


async def test_a_submodule_of_a_worktree(repo: Bench, tmp_path: Path) -> None:
    allowed = ("-c", "protocol.file.allow=always", "submodule")
    start(tmp_path / "lib", lib__py="lib\n")
    git(repo.root, *allowed, "add", "-q", str(tmp_path / "lib"), "lib")
    commit(repo.root, "Submodule")
    git(repo.root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    git(tmp_path / "tree", *allowed, "update", "-q", "--init")
    opened_alone = Bench(tmp_path / "tree" / "lib")
    opened_alone.write("lib.py", "changed\n")
    assert "+changed" in await diff(opened_alone)


async def test_data_that_are_kept_apart_are_read_once_it_is_noted_whose_they_are(tmp_path: Path) -> None:
    apart = start(tmp_path / "apart", a__py="a\n")
    git(apart, "init", "-q", "--separate-git-dir", str(tmp_path / "data"))
    bench = Bench(apart)
    bench.write("a.py", "changed\n")
    told = await failure(bench)
    assert told.endswith(f"git -C '{apart}' config core.worktree '{apart}'")
    git(apart, "config", "core.worktree", str(apart))
    assert "+changed" in await diff(bench)
    other = tmp_path / "other"
    other.mkdir()
    (other / ".git").write_text(f"gitdir: {tmp_path / 'data'}\n")
    assert "does not belong to it" in await failure(Bench(other))


async def test_outside_of_any_repository(tmp_path: Path) -> None:
    plain = Bench(tmp_path / "plain")
    assert "is not in a git repository" in await failure(plain)
    assert "is not in a git repository" in await failure(plain, path=".")


async def test_several_folders(repo: Bench, tmp_path: Path) -> None:
    """Each folder that is in a repository; those that are in none are left out."""
    other = start(tmp_path / "other", c__py="c\n")
    (tmp_path / "plain").mkdir()
    repo.write("a.py", "changed a\n")
    (other / "c.py").write_text("changed c\n")
    roots = Roots([str(repo.root), str(tmp_path / "plain"), str(other)])
    context = replace(repo.context, view=FileView(roots, repo.buffers, repo.staging))
    text = (await GitDiff().run(GitDiffParameters.model_validate({}), context)).text
    assert "M work/a.py" in text and "+changed a" in text and "M other/c.py" in text and "+changed c" in text


async def test_secrets_stay_out(repo: Bench) -> None:
    repo.write(".env", "TOKEN=old\n")
    commit(repo.root, "Careless")
    repo.write(".env", "TOKEN=new\n")
    repo.write("a.py", "changed\n")
    text = await diff(repo)
    assert "TOKEN" not in text and "left out, as reading them needs the user's approval: .env" in text
    repo.rules(deny=("read_file(a.py)",))
    text = await diff(repo)
    assert "changed" not in text and "a.py" in text
    assert "needs the user's approval" in (await failure(repo, path=".env")).lower()
    repo.asker.answers = ["Allow once"]
    assert "+TOKEN=new" in await diff(repo, path=".env")


async def test_much_is_cut_file_by_file(repo: Bench) -> None:
    for number in range(30):
        repo.write(f"f{number:02}.txt", f"{number}\n" * 300)
    git(repo.root, "add", "-A")
    repo.limits(max_output_bytes=4096)
    text = await diff(repo)
    assert len(text) < 4096 and text.count("\nA f") == 29
    assert "diffs left out; name a path to see one" in text
    assert "+7" in await diff(repo, path="f07.txt")


async def test_a_repository_of_somebody_else(repo: Bench) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(repo.root, 12345, 12345)
    os.chown(repo.root / ".git", 12345, 12345)
    text = await failure(repo)
    assert "belongs to another user" in text and f"safe.directory '{repo.root}'" in text


async def test_no_git(repo: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f".:bin:{repo.root}/none")
    repo.write("git", "#!/bin/sh\ntouch ran\n")
    (repo.root / "git").chmod(0o755)
    monkeypatch.chdir(repo.root)
    assert "git is not installed" in await failure(repo)
    assert not (repo.root / "ran").exists()


async def test_a_broken_repository(repo: Bench) -> None:
    (repo.root / ".git" / "HEAD").write_text("nonsense\n")
    assert "git does not take it for a repository" in await failure(repo)
