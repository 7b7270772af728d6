"""The level `copy`: a private copy that is kept in step, and what a command leaves in it."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeagent_lsp.shadow import private_copy
from codeagent_lsp.shadow.copying import CopyLayer
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command
from tests.shadow.copies import Bench
from tests.shadow.fakes import frozen, ran


@pytest.fixture
def bench(workspace: Path, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(workspace, tmp_path / "layers")
    yield made
    made.layer.close()
    assert not Path(made.folder.path).exists()


def test_files_links_modes_and_times_are_copied(bench: Bench) -> None:
    script = bench.write("bin/run.sh", "#!/bin/sh\necho it runs\n")
    script.chmod(0o755)
    bench.write("data.bin", b"\0\xff\n")
    (bench.root / "link").symlink_to("bin/run.sh")
    (bench.root / "broken").symlink_to("nowhere")
    (bench.root / "empty").mkdir()
    bench.prepare()
    assert bench.run("./bin/run.sh; readlink link broken; ls -d empty") == "it runs\nbin/run.sh\nnowhere\nempty\n"
    assert (bench.copy / "data.bin").read_bytes() == b"\0\xff\n"
    assert (bench.copy / "bin/run.sh").stat().st_mtime_ns == script.stat().st_mtime_ns
    assert bench.writings == {}


def test_what_is_wanted_stands_over_the_disk(bench: Bench) -> None:
    for name in ("a.py", "b.py", "c.py"):
        bench.write(name)
    bench.prepare({"a.py": "unsaved\n", "b.py": None, "new/d.py": "created\n"})
    assert bench.files == {"a.py": "unsaved\n", "c.py": "text\n", "new/d.py": "created\n"}
    assert bench.writings == {}
    bench.prepare({"a.py": "typed on\n"})
    assert bench.files == {"a.py": "typed on\n", "b.py": "text\n", "c.py": "text\n"}
    bench.prepare()
    assert bench.files == {"a.py": "text\n", "b.py": "text\n", "c.py": "text\n"}


def test_a_wanted_file_keeps_the_mode_of_the_one_below(bench: Bench) -> None:
    bench.write("run.sh").chmod(0o755)
    bench.prepare({"run.sh": "#!/bin/sh\necho staged\n"})
    assert bench.run("./run.sh") == "staged\n"


def test_the_copy_follows_the_disk(bench: Bench) -> None:
    changed, gone = bench.write("changed.txt", "1\n"), bench.write("d/gone.txt")
    bench.prepare()
    changed.write_text("2\n")
    gone.unlink()
    gone.parent.rmdir()
    bench.write("new/file.txt", "n\n")
    bench.prepare()
    assert bench.files == {"changed.txt": "2\n", "new/file.txt": "n\n"}
    assert not (bench.copy / "d").exists()


def test_only_what_changed_is_copied_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        bench.write(f"{number}.txt")
    bench.prepare()
    copied: list[str] = []
    real = private_copy.copy_file

    def counted(source: str, target: str) -> bool:
        copied.append(Path(source).name)
        return real(source, target)

    monkeypatch.setattr("codeagent_lsp.shadow.private_copy.copy_file", counted)
    bench.write("7.txt", "changed\n")
    bench.run("echo x > 9.txt")
    bench.prepare()
    assert sorted(copied) == ["7.txt", "9.txt"]
    copied.clear()
    bench.prepare()
    assert copied == []


def test_a_change_that_keeps_size_and_time_is_seen(bench: Bench) -> None:
    path = bench.write("a.txt", "one\n")
    before = path.stat()
    bench.prepare()
    path.write_text("two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    bench.prepare()
    assert bench.files == {"a.txt": "two\n"}
    bench.run("cp -p a.txt b.txt; printf 'six\\n' > a.txt; touch -r b.txt a.txt; rm b.txt")
    assert bench.writings == {"a.txt": "six\n"}


def test_a_command_without_rights_for_its_folder_stops_no_later_one(bench: Bench) -> None:
    bench.write("a.txt")
    for script in ("chmod 000 .", "chmod 500 .", "mkdir d; chmod 000 d ."):
        bench.prepare()
        bench.run(script)
        bench.prepare()
        assert bench.run("cat a.txt; echo y > new") == "text\n"
    assert bench.writings["new"] == "y\n"


# --- what a command leaves


KINDS = [
    ("echo new > a.txt", {"a.txt": "new\n"}),
    ("rm a.txt", {"a.txt": "DELETED"}),
    ("mv a.txt b.txt", {"a.txt": "DELETED", "b.txt": "text\n"}),
    ("mkdir -p x/y; echo z > x/y/z", {"x/y/z": "z\n"}),
    ("mv d e", {"d/one": "DELETED", "d/two": "DELETED", "e/one": "text\n", "e/two": "text\n"}),
    ("rm -r d; echo f > d", {"d": "f\n", "d/one": "DELETED", "d/two": "DELETED"}),
    ("rm a.txt; mkdir a.txt; echo x > a.txt/x", {"a.txt": "DELETED", "a.txt/x": "x\n"}),
    ("chmod +x a.txt", {"a.txt": "MODE"}),
    ("touch a.txt; cp -p a.txt t; mv t a.txt", {}),
    ("ln -s a.txt link", {"link": "SYMLINK"}),
    ("rm old-link", {"old-link": "SYMLINK"}),
    ("ln -sfn elsewhere old-link", {"old-link": "SYMLINK"}),
    ("ln a.txt twin", {"twin": "text\n"}),
    ("printf 'a\\0b' > bin", {"bin": "BINARY"}),
    ("head -c 2000000 /dev/zero | tr '\\0' x > large.txt", {"large.txt": "LARGE"}),
    ("mkfifo pipe", {"pipe": "SPECIAL"}),
    ("echo x > hidden.log; mkdir -p target; echo y > target/out", {}),
    ("mkdir empty", {}),
    ("chmod 000 a.txt d", {"a.txt": "MODE"}),
    ("mkdir .git; echo x > .git/config", {".git": "GIT"}),
    ("printf 'x' > $'odd\\nname'", {"odd\nname": "x"}),
]


@pytest.mark.parametrize(("script", "expected"), KINDS, ids=[script[:30] for script, _ in KINDS])
def test_what_a_command_leaves(bench: Bench, script: str, expected: dict[str, str]) -> None:
    bench.write(".gitignore", "*.log\ntarget/\n")
    for name in ("a.txt", "d/one", "d/two"):
        bench.write(name)
    (bench.root / "old-link").symlink_to("a.txt")
    before = frozen(bench.root)
    bench.prepare()
    bench.run(script)
    assert bench.writings == expected
    assert frozen(bench.root) == before


def test_text_that_nobody_wants_is_taken_back(bench: Bench) -> None:
    for name in ("a.txt", "b.txt", "d/c.txt"):
        bench.write(name)
    bench.prepare()
    bench.run("echo new > a.txt; rm -r b.txt d; mkdir x; echo y > x/y; echo z > z")
    bench.prepare()
    assert bench.files == {"a.txt": "text\n", "b.txt": "text\n", "d/c.txt": "text\n"}
    assert not (bench.copy / "x").exists()
    assert bench.writings == {}


def test_what_became_staged_stays_and_is_told_once(bench: Bench) -> None:
    bench.write("a.txt")
    bench.prepare()
    bench.run("echo new > a.txt; mkdir x; echo y > x/y")
    wanted = dict(bench.writings)
    bench.prepare(wanted)
    assert bench.files == {"a.txt": "new\n", "x/y": "y\n"}
    assert bench.writings == {}


def test_ignored_output_and_what_is_no_edit_stays(bench: Bench) -> None:
    bench.write(".gitignore", "*.log\ntarget/\n")
    bench.write("logo.png", b"\0png")
    bench.write("run.sh")
    bench.prepare()
    bench.run("echo l > x.log; mkdir target; echo o > target/o; printf '\\0' > new.bin; rm logo.png; chmod +x run.sh")
    assert bench.writings == {"logo.png": "DELETED", "new.bin": "BINARY", "run.sh": "MODE"}
    bench.prepare()
    assert bench.writings == {}
    assert bench.run("cat x.log target/o; ls new.bin logo.png; test -x run.sh && echo runs") == "l\no\nnew.bin\nruns\n"


def test_the_disk_wins_where_it_changed_too(bench: Bench) -> None:
    path = bench.write("logo.png", b"\0one")
    bench.prepare()
    bench.run("printf '\\0two' > logo.png")
    path.write_bytes(b"\0three")
    bench.prepare()
    assert (bench.copy / "logo.png").read_bytes() == b"\0three"


def test_links_that_a_command_made_are_never_followed(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("theirs\n")
    bench.write("d/a.txt")
    bench.prepare()
    bench.run(f"rm -r d; ln -s {outside} d; rm -r e; ln -s {outside} e")
    assert bench.writings == {"d": "SYMLINK", "d/a.txt": "DELETED", "e": "SYMLINK"}
    bench.prepare({"d/a.txt": "ours\n", "e/a.txt": "ours\n"})
    assert bench.files == {"d/a.txt": "ours\n", "e/a.txt": "ours\n"}
    assert (outside / "a.txt").read_text() == "theirs\n"


def test_a_hard_link_in_the_copy_does_not_carry_what_is_wanted(bench: Bench) -> None:
    bench.write("a.txt")
    bench.prepare()
    bench.run("ln a.txt b.txt")
    bench.prepare({"b.txt": "text\n", "a.txt": "changed\n"})
    assert bench.files == {"a.txt": "changed\n", "b.txt": "text\n"}


def test_ignored_folders_can_be_read_and_outputs_start_empty(bench: Bench) -> None:
    bench.write(".gitignore", "vendored/\nbuild/\n")
    bench.write("node_modules/pkg/index.js", "module\n")
    bench.write("vendored/lib.txt", "lib\n")
    bench.write("build/old.o", "old\n")
    bench.prepare()
    assert bench.run("cat node_modules/pkg/index.js vendored/lib.txt; ls -d build") == "module\nlib\n"
    bench.run("mkdir build; echo new > build/new.o")
    bench.prepare({"node_modules/pkg/index.js": "unsaved\n"})  # a linked folder is never written
    assert bench.writings == {}
    assert bench.run("cat build/*") == "new\n"
    assert (bench.root / "node_modules/pkg/index.js").read_text() == "module\n"


def test_there_is_no_repository_without_a_sandbox(bench: Bench) -> None:
    bench.write(".git/config", "[core]\n")
    bench.write("a.txt")
    bench.prepare()
    assert bench.run("ls -A; git status 2>&1 | head -c 10") == "a.txt\nfatal: not"


def test_special_files_and_unreadable_folders_do_no_harm(bench: Bench) -> None:
    bench.write("a.txt")
    os.mkfifo(bench.root / "pipe")
    bench.prepare()
    assert bench.files == {"a.txt": "text\n"}
    bench.run("mkdir x; echo y > x/y; chmod 000 x a.txt")
    assert bench.writings["x/y"] == "y\n"


def test_several_folders_and_one_inside_another(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (workspace / "inner").mkdir()
    bench = Bench(workspace, tmp_path / "layers", other, workspace / "inner")
    bench.write("inner/a.txt")
    bench.layer.prepare({f"{other}/o.txt": b"o\n", "/elsewhere/x": b"x", str(workspace): b"no"})
    bench.run("echo 1 > inner/b.txt")
    assert ran(bench.layer.launch(Command("cat o.txt; echo p > p.txt", str(other)))) == "o\n"
    ran(bench.layer.launch(Command("echo 2 > c.txt", str(workspace / "inner"))))
    assert bench.writings == {"inner/b.txt": "1\n", "inner/c.txt": "2\n", "../other/p.txt": "p\n"}
    assert not (other / "p.txt").exists()
    bench.layer.close()


def test_reports_and_environment(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "value")
    bench.prepare()
    command = Command(
        f'echo r > "${REPORT_VARIABLE}/r.xml"; echo "$SOME_TOKEN$OURS"', str(bench.root), environment={"OURS": "x"}
    )
    launch = CopyLayer([str(bench.root)], bench.folder, None).launch(command)
    assert ran(launch) == "x\n"
    assert (Path(launch.reports) / "r.xml").read_text() == "r\n"
    assert list(Path(bench.layer.launch(command).reports).iterdir()) == []


def test_too_many_files_are_counted(bench: Bench) -> None:
    bench.prepare()
    bench.run("for i in $(seq 510); do echo $i > $i.txt; done")
    found = bench.layer.writings()
    assert (len(found.files), found.more) == (500, 10)


def test_without_a_sandbox_nothing_is_promised(bench: Bench) -> None:
    isolation = bench.layer.isolation
    assert (isolation.level, isolation.confined, isolation.offline, isolation.hidden) == ("copy", False, False, False)


def test_copying_a_single_file(tmp_path: Path) -> None:
    source = tmp_path / "a"
    source.write_bytes(b"x" * 3_000_000)
    source.chmod(0o4755)
    assert private_copy.copy_file(str(source), str(tmp_path / "b"))
    assert (tmp_path / "b").read_bytes() == source.read_bytes()
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o755  # no set-user-id in a copy
    assert private_copy.same_bytes(str(source), str(tmp_path / "b"))
    assert not private_copy.copy_file(str(tmp_path / "none"), str(tmp_path / "c"))
    assert not private_copy.copy_file(str(tmp_path), str(tmp_path / "c"))


@pytest.mark.slow
def test_a_large_tree_is_copied_once_and_then_only_looked_at(bench: Bench) -> None:
    for number in range(5000):
        bench.write(f"d{number % 50}/f{number}.txt", "line\n" * 100)
    bench.prepare()
    started = time.perf_counter()
    bench.prepare()
    again = time.perf_counter() - started
    started = time.perf_counter()
    assert bench.writings == {}
    looked = time.perf_counter() - started
    print(f"5,000 files: in step again in {again * 1000:.0f} ms, writings in {looked * 1000:.0f} ms")
    assert again < 2
    assert looked < 1
