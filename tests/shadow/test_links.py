"""Links in a private copy without a sandbox: those that lead out of the workspace are not there, all others work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codeagent_lsp.shadow.shell import Command
from tests.shadow.copies import Bench
from tests.shadow.fakes import frozen, ran


@pytest.fixture
def bench(workspace: Path, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(workspace, tmp_path / "layers")
    yield made
    made.layer.close()
    assert not Path(made.folder.path).exists()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder outside of the workspace with a file that no command may print."""
    made = tmp_path / "outside"
    (made / "deep").mkdir(parents=True)
    for name in ("key", "deep/key.py"):
        (made / name).write_text("not for commands\n")
    return made


PRINTING = [
    "cat src/*.py",
    "cat src/a.py; cat file",
    "cd link && cat key",
    "cd link; cat key deep/*",
    "grep -r . .; grep -R . .",
    "find -L . -type f -exec cat {} +",
    "cat chain chain-of-folders/key relative",
    "cat ignored/link/key ignored/deep/file ignored.log node_modules/pkg/link/key",
    "cat inside-link/../link/key",
]


def _with_ways_out(bench: Bench, outside: Path) -> None:
    bench.write(".gitignore", "ignored/\nignored.log\nnode_modules/\n")
    for name in ("src/good.py", "ignored/good", "ignored/deep/good", "node_modules/pkg/good", "d/good"):
        bench.write(name, "good\n")
    links: dict[str, str | Path] = {
        "src/a.py": outside / "key",
        "file": outside / "key",
        "link": outside,
        "chain": "file",
        "chain-of-folders": "d/on",
        "d/on": outside,
        "relative": f"../{outside.name}/key",
        "inside-link": "d",
        "ignored/link": outside,
        "ignored/deep/file": outside / "key",
        "ignored.log": outside / "key",
        "node_modules/pkg/link": "../../d/on",
        "not-yet": outside / "later",
    }
    for name, target in links.items():
        bench.write(name).unlink()
        (bench.root / name).symlink_to(target)


@pytest.mark.parametrize("script", PRINTING)
def test_no_link_of_the_workspace_leads_out(bench: Bench, outside: Path, script: str) -> None:
    _with_ways_out(bench, outside)
    before = frozen(bench.root)
    bench.prepare()
    (outside / "later").write_text("not for commands\n")
    assert "not for commands" not in bench.run(f"exec 2>&1; {script}; cat not-yet")
    assert "good" in bench.run("cat inside-link/good ignored/good ignored/deep/good node_modules/pkg/good")
    assert bench.writings == {}
    bench.prepare()
    assert bench.writings == {}
    assert frozen(bench.root) == before


def test_no_working_folder_is_behind_a_link_that_leads_out(bench: Bench, outside: Path) -> None:
    _with_ways_out(bench, outside)
    bench.prepare()
    with pytest.raises(OSError, match="link"):
        ran(bench.layer.launch(Command("cat key", f"{bench.root}/link")))


def test_links_that_stay_inside_keep_working(bench: Bench, tmp_path: Path) -> None:
    bench.write(".gitignore", "ignored/\n.venv/\n")
    bench.write("d/a.txt", "a\n")
    bench.write("ignored/b.txt", "b\n")
    python = tmp_path / "opt/bin/python3.12"
    for path, text in ((python, "#!/bin/sh\necho ran\n"), (tmp_path / "opt/lib/python3.12/os.py", "")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    python.chmod(0o755)
    links: dict[str, str | Path] = {
        "to-folder": "d",
        "to-file": "to-folder/a.txt",
        "absolute": bench.root / "d" / "a.txt",
        "to-ignored": "ignored/b.txt",
        ".venv/bin/python": python,
        ".venv/bin/env": "/usr/bin/env",
        ".venv/bin/secret": tmp_path / "layers",
        "tools/python": "../.venv/bin/python",
    }
    for name, target in links.items():
        bench.write(name).unlink()
        (bench.root / name).symlink_to(target)
    bench.prepare()
    assert bench.run("cat to-folder/a.txt to-file absolute to-ignored") == "a\na\na\nb\n"
    assert bench.run(".venv/bin/python; tools/python; .venv/bin/env echo x; ls .venv/bin") == (
        "ran\nran\nx\nenv\npython\n"
    )


def test_a_link_that_begins_to_lead_out_goes(bench: Bench, outside: Path) -> None:
    bench.write("d/key", "ours\n")
    (bench.root / "link").symlink_to("d")
    bench.prepare()
    assert bench.run("cat link/key") == "ours\n"
    (bench.root / "link").unlink()
    (bench.root / "link").symlink_to(outside)
    bench.prepare()
    assert bench.run("cat link/key; ls") == "d\n"
    assert bench.writings == {}


def test_a_link_out_that_a_command_made_is_gone_before_the_next(bench: Bench, outside: Path) -> None:
    bench.write(".gitignore", "*.log\n")
    bench.write("d/key", "ours\n")
    (bench.root / "old").symlink_to("d")
    bench.prepare()
    bench.run(f"ln -s {outside} new; ln -sfn {outside} old; ln -s {outside}/key x.log; ln -s new/key later")
    assert bench.writings == {"new": "SYMLINK", "old": "SYMLINK", "later": "SYMLINK"}
    bench.prepare()
    assert bench.run("cat new/key old/key x.log later") == "ours\n"


def test_a_file_written_where_a_link_was_left_out_changes_nothing_outside(bench: Bench, outside: Path) -> None:
    (bench.root / "file").symlink_to(outside / "key")
    bench.prepare()
    bench.run("echo theirs > file")
    assert bench.writings == {"file": "theirs\n"}
    assert (outside / "key").read_text() == "not for commands\n"
