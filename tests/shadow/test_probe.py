"""Which level is chosen on which machine, why not a better one, and what dead servers leave behind."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.errors import SettingError
from codeagent_lsp.shadow.folder import LayerFolder, private_folder, remove_tree, sweep
from codeagent_lsp.shadow.mounts import fails, nested_mounts
from codeagent_lsp.shadow.overlay import OVERLAY
from codeagent_lsp.shadow.probe import SWITCH, Isolator, explain_failure, find_programs, places
from codeagent_lsp.shadow.shell import Command, Launch
from tests.shadow.rig import needs_overlay


def isolator(tmp_path: Path, **environ: str) -> Isolator:
    return Isolator(str(tmp_path / "state"), environ={"PATH": "/usr/bin:/bin", **environ})


@pytest.mark.slow
@needs_overlay
def test_the_best_level_is_chosen_and_works(tmp_path: Path, workspace: Path) -> None:
    made = isolator(tmp_path)
    assert made.isolation(ShellSettings()) == OVERLAY
    with closing(made.open(ShellSettings(), [str(workspace)])) as layer:
        assert layer.isolation == made.isolation(ShellSettings(), [str(workspace)])
        layer.prepare({})
        assert _run(layer.launch(Command("pwd", str(workspace)))) == f"{workspace}\n"
    assert list((tmp_path / "state" / "layers").iterdir()) == []


@pytest.mark.slow
@needs_overlay
@pytest.mark.parametrize("isolation", ["overlay", "copy"])
def test_the_state_may_lie_where_nothing_else_is_hidden(workspace: Path, isolation: Literal["overlay", "copy"]) -> None:
    state = Path(tempfile.mkdtemp(dir="/var/tmp"))
    settings = ShellSettings(isolation=isolation)
    try:
        with closing(Isolator(str(state), environ={"PATH": "/usr/bin:/bin"}).open(settings, [str(workspace)])) as layer:
            layer.prepare({})
            assert layer.isolation.level == isolation
            assert _run(layer.launch(Command(f"pwd; ls {state}", str(workspace)))) == f"{workspace}\n"
    finally:
        remove_tree(str(state))


@needs_overlay
def test_a_copy_can_be_chosen_and_is_still_closed(tmp_path: Path, workspace: Path) -> None:
    (workspace / "a").write_text("x")
    settings = ShellSettings(isolation="copy")
    made = isolator(tmp_path)
    with closing(made.open(settings, [str(workspace)])) as layer:
        assert layer.isolation.level == "copy" and layer.isolation.complete
        layer.prepare({})
        script = f"cat a; echo y > a; echo $HOME; touch {Path.home()}/x-{os.getpid()}; pwd"
        assert _run(layer.launch(Command(script, str(workspace)))) == f"x{Path.home()}\n{workspace}\n"
        assert [(item.path, item.data) for item in layer.writings().files] == [(str(workspace / "a"), b"y\n")]
    assert (workspace / "a").read_text() == "x" and not (Path.home() / f"x-{os.getpid()}").exists()


def test_without_namespaces_it_is_a_copy_that_says_so(tmp_path: Path, workspace: Path) -> None:
    made = isolator(tmp_path, **{SWITCH: "1"})
    found = made.isolation(ShellSettings())
    assert found.level == "copy" and not found.complete and SWITCH in found.reason
    with closing(made.open(ShellSettings(), [str(workspace)])) as layer:
        assert layer.isolation == found


def test_what_was_asked_for_is_never_silently_weaker(tmp_path: Path, workspace: Path) -> None:
    made = isolator(tmp_path, **{SWITCH: "1"})
    settings = ShellSettings(isolation="overlay")
    with pytest.raises(SettingError, match=SWITCH):
        made.isolation(settings)
    with pytest.raises(SettingError, match=r"shell\.isolation"):
        made.open(settings, [str(workspace)])


def test_direct_only_when_it_was_chosen(tmp_path: Path, workspace: Path) -> None:
    settings = ShellSettings(isolation="direct")
    made = isolator(tmp_path)
    assert made.isolation(settings).level == "direct"
    with closing(made.open(settings, [str(workspace)])) as layer:
        assert layer.isolation.level == "direct" and not layer.isolation.confined


def test_the_whole_file_system_is_no_workspace_for_an_overlay(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="whole file system"):
        isolator(tmp_path).isolation(ShellSettings(isolation="overlay"), ["/"])


@pytest.mark.slow
@needs_overlay
def test_a_layer_never_lies_in_its_own_workspace(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path / "runtime")}
    made = Isolator(str(tmp_path / "ws" / "state"), environ=environ)
    (tmp_path / "ws").mkdir()
    with closing(made.open(ShellSettings(), [str(tmp_path / "ws")])) as layer:
        assert layer.isolation == OVERLAY
        assert not (tmp_path / "ws" / "state").exists()


@needs_overlay
def test_trying_is_done_once(tmp_path: Path) -> None:
    made = isolator(tmp_path)
    began = time.perf_counter()
    made.isolation(ShellSettings())
    first = time.perf_counter() - began
    for _ in range(20):
        made.isolation(ShellSettings())
    assert time.perf_counter() - began < 2 * first, "twenty more cost as much as the one that tries"


def test_a_missing_program_is_named_with_its_package(tmp_path: Path) -> None:
    assert "apt-get install bubblewrap" in str(find_programs(str(tmp_path)))


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces="),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor"),
        ("kernel/other", "1", "In a container"),
    ],
)
def test_what_forbids_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, remedy: str
) -> None:
    monkeypatch.setattr("codeagent_lsp.shadow.probe.is_privileged", lambda: False)
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(f"{value}\n")
    said = explain_failure(["no way", "no way"], str(tmp_path))
    assert remedy in said and said.count("no way") == 1


def test_places_begin_with_the_state_folder() -> None:
    found = places("/state", {"XDG_RUNTIME_DIR": "/run/user/7"})
    assert found[0] == "/state/layers" and found[1].startswith("/run/user/7/") and len(found) >= 4
    assert all(place.startswith("/") for place in places("/state", {"XDG_RUNTIME_DIR": "relative"}))


def test_why_a_command_fails() -> None:
    assert fails(["true"], 5) is None
    assert fails(["sh", "-c", "echo first >&2; echo second >&2; exit 3"], 5) == "first"
    assert fails(["sh", "-c", "exit 3"], 5) == "exit code 3"
    assert "no answer" in str(fails(["sleep", "9"], 0.1))
    assert "No such file" in str(fails(["/no/such/program"], 5))


def test_mounts_inside_the_workspace() -> None:
    table = b"".join(
        b"1 2 0:1 / " + point + b" rw - tmpfs t rw\n"
        for point in (rb"/w", rb"/w/a\040b", rb"/w/a\040b/c\134d", rb"/ww/x", rb"/", rb"/w/a\040b")
    )
    assert nested_mounts(["/w"], table) == ("/w/a b", "/w/a b/c\\d")
    assert nested_mounts(["/other"], table) == ()


def test_layers_of_dead_servers_are_swept_and_no_others(tmp_path: Path) -> None:
    alive = LayerFolder(str(tmp_path / "layers"))
    script = (
        "import os, sys; from codeagent_lsp.shadow.folder import LayerFolder;"
        "print(LayerFolder(sys.argv[1]).path, flush=True); os._exit(0)"
    )
    dead = subprocess.run(
        (sys.executable, "-c", script, str(tmp_path / "layers")), capture_output=True, text=True, check=True
    ).stdout.strip()
    young = LayerFolder(str(tmp_path / "layers"))
    fcntl.flock(young._lock, fcntl.LOCK_UN)
    for path in (alive.path, dead):
        os.utime(path, (1, 1))
    assert sweep(str(tmp_path / "layers")) == 1
    assert not Path(dead).exists() and Path(alive.path).exists() and Path(young.path).exists()
    assert sweep(str(tmp_path / "missing")) == 0
    alive.close()
    alive.close()
    young.close()
    assert list((tmp_path / "layers").iterdir()) == []


def test_a_private_folder_is_private(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    private_folder(str(tmp_path / "open"))
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "open")
    with pytest.raises(OSError):
        private_folder(str(tmp_path / "link"))


@pytest.mark.slow
def test_a_tree_is_removed_whatever_it_is(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    tree = tmp_path / "tree"
    before = Path.cwd()
    here = tree
    for _ in range(1200):
        here.mkdir()
        os.chdir(here)
        here = Path("n")
    os.chdir(before)
    (tree / "link").symlink_to(kept)
    (tree / "locked").mkdir()
    (tree / "locked" / "f").touch()
    (tree / "locked").chmod(0)
    assert remove_tree(str(tree)) and not tree.exists() and kept.exists()
    assert remove_tree(str(tree))


def _run(launch: Launch) -> str:
    done = subprocess.run(
        launch.argv, cwd=launch.cwd, env=dict(launch.environment), stdin=subprocess.DEVNULL, capture_output=True
    )
    return done.stdout.decode()


def test_a_folder_is_removed_where_the_path_has_no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "layer"
    (place / "a" / "b").mkdir(parents=True)
    for number in range(200):
        (place / "a" / "b" / str(number)).write_text("x")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert remove_tree(str(place)) and not place.exists()
