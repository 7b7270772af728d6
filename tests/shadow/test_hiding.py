"""What commands may read of a home: toolchains and workspaces yes, credentials never."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from codeagent_lsp.shadow.hiding import Hidden, hide
from codeagent_lsp.workspace.files.paths import within
from tests.shadow.rig import needs_overlay, rig, told

SECRETS = (".ssh/id_rsa", ".aws/credentials", ".netrc", ".git-credentials", ".npmrc", ".docker/config.json")
MORE_SECRETS = (".gnupg/ring", ".config/gh/hosts.yml", ".bash_history", ".cargo/credentials.toml", ".m2/settings.xml")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with toolchains and secrets."""
    made = tmp_path / "home"
    for name in (*SECRETS, *MORE_SECRETS):
        _file(made / name, "hidden-" + "word")
    _file(made / ".cargo/bin/tool", "#!/bin/sh\necho ran\n").chmod(0o755)
    _file(made / ".bashrc", "x")
    _file(made / "notes/diary.txt", "x")
    return made


def hidden(home: Path, *, path: str = "/usr/bin", folders: Sequence[str] = (), **more: object) -> Hidden:
    readable = more.get("readable", ())
    environ = more.get("environ", {})
    assert isinstance(readable, tuple) and isinstance(environ, Mapping)
    return hide(str(home), environ={"PATH": path, **environ}, folders=folders, readable=readable, private=())


def test_a_home_is_hidden_but_for_its_toolchains(home: Path) -> None:
    found = hidden(home)
    assert str(home) in found.areas
    assert found.visible == (f"{home}/.cargo", f"{home}/.m2")
    assert {f"{home}/.cargo/credentials.toml", f"{home}/.m2/settings.xml"} <= set(found.masked)


def test_what_the_path_reaches_is_visible_with_what_it_links_to(home: Path) -> None:
    _file(home / "opt/node/bin/node", "x")
    _file(home / "tools/ruff/bin/ruff", "x")
    _file(home / "scripts/mine", "x")
    (home / "scripts/ruff").symlink_to(home / "tools/ruff/bin/ruff")
    (home / ".local/bin").mkdir(parents=True)
    found = hidden(home, path=f"{home}/opt/node/bin:{home}/scripts:{home}/.local/bin:relative:")
    wanted = {f"{home}/{name}" for name in (".cargo", ".m2", "opt/node", "scripts", "tools/ruff", ".local/bin")}
    assert set(found.visible) == wanted


@pytest.mark.parametrize("entry", ["", "/bin", "/.ssh", "/.ssh/bin", "/.."])
def test_a_path_never_shows_a_home_or_a_credential(home: Path, entry: str) -> None:
    (home / "bin").mkdir()
    (home / ".ssh/bin").mkdir()
    found = hidden(home, path=f"{home}{entry}", environ={"GOPATH": str(home), "CARGO_HOME": f"{home}/.ssh"})
    assert set(found.visible) <= {f"{home}/.cargo", f"{home}/.m2", f"{home}/bin"}


def test_variables_and_environments_lead_to_interpreters(home: Path, workspace: Path) -> None:
    _python(home / "python/3.12")
    _file(home / "go-sdk/bin/go", "x")
    _environment(workspace / ".venv", home / "python/3.12/bin/python3")
    found = hidden(home, folders=[str(workspace)], environ={"GOROOT": f"{home}/go-sdk"})
    assert {f"{home}/python/3.12/bin", f"{home}/python/3.12/lib", f"{home}/go-sdk"} <= set(found.visible)


LAYOUTS = {
    "pyenv": ".pyenv/versions/3.12.4",
    "uv": ".local/share/uv/python/cpython-3.12.4-linux-x86_64-gnu",
    "conda": "conda-here/envs/work",
    "asdf": ".asdf/installs/python/3.12.4",
    "an own prefix": "opt/python",
}


@pytest.mark.parametrize("prefix", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("name", [".venv", "venv", "env"])
def test_true_interpreters_are_shown_with_their_libraries(home: Path, workspace: Path, prefix: str, name: str) -> None:
    _python(home / prefix)
    (home / "current").symlink_to(prefix)
    _environment(workspace / name, home / "current/bin/python3")
    visible = hidden(home, folders=[str(workspace)]).visible
    for path in (home / prefix, home / "current"):
        assert within(f"{path}/lib/python3.12/os.py", visible) and within(f"{path}/bin/python3", visible)


def test_a_link_to_an_interpreter_is_shown_without_what_lies_beside_it(home: Path, workspace: Path) -> None:
    _python(home / "opt/python")
    _file(home / "opt/python/notes.txt", "x")
    (home / "notes/python").symlink_to(home / "opt/python/bin/python3")
    _environment(workspace / ".venv", home / "notes/python")
    visible = set(hidden(home, folders=[str(workspace)]).visible)
    assert visible - {f"{home}/.cargo", f"{home}/.m2"} == {
        f"{home}/{path}" for path in ("notes/python", "opt/python/bin", "opt/python/lib")
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["notes", ".config", "other-project", ".ssh", "Documents", "."])
@pytest.mark.parametrize("contents", ["text", "script", "folder", "missing", "prefix"])
@pytest.mark.parametrize("path", ["", "{workspace}/.venv/bin"])
def test_a_link_of_the_repository_shows_nothing_of_the_home(
    home: Path, workspace: Path, name: str, contents: str, path: str
) -> None:
    """Nor does one that the user's PATH has, nor one in a chain of links."""
    place = home / name / "python"
    if contents in {"text", "script"}:
        _file(place, "#!/bin/sh\n" if contents == "script" else "x").chmod(0o755)
    elif contents == "folder":
        place.mkdir(parents=True, exist_ok=True)
    elif contents == "prefix":
        (home / name).mkdir(exist_ok=True)
        place = _python(home / name / "p") if name in {"notes", "other-project"} else _python(home / name)
        (place.parent.parent / "lib/python3.12/os.py").unlink()
    (workspace / "also").symlink_to(place)
    _environment(workspace / ".venv", workspace / "also")
    (workspace / ".venv/bin/tool").symlink_to(place)
    found = hidden(home, path=f"/usr/bin:{path.format(workspace=workspace)}", folders=[str(workspace)])
    assert set(found.visible) <= {f"{home}/.cargo", f"{home}/.m2"}


def test_a_program_of_the_user_that_is_a_link_of_the_repository_shows_nothing(home: Path, workspace: Path) -> None:
    _file(home / "Documents/tool", "x")
    (workspace / "tool").symlink_to(home / "Documents/tool")
    (home / "scripts").mkdir()
    (home / "scripts/tool").symlink_to(workspace / "tool")
    found = hidden(home, path=f"{home}/scripts", folders=[str(workspace)])
    assert set(found.visible) == {f"{home}/.cargo", f"{home}/.m2", f"{home}/scripts"}


@pytest.mark.parametrize("prefix", [".", "Documents", ".config", ".local"])
def test_a_prefix_that_people_keep_other_things_in_is_not_shown(home: Path, workspace: Path, prefix: str) -> None:
    _environment(workspace / ".venv", _python(home / prefix))
    shown = {f"{home}/.cargo", f"{home}/.m2", f"{home}/.local/bin", f"{home}/.local/lib"}
    assert set(hidden(home, folders=[str(workspace)]).visible) <= shown


def test_a_library_that_is_a_link_out_of_the_prefix_is_not_shown(home: Path, workspace: Path) -> None:
    python = _python(home / "opt/python")
    (home / "opt/python/share").symlink_to(home / "notes")
    _environment(workspace / ".venv", python)
    assert not within(f"{home}/opt/python/share", hidden(home, folders=[str(workspace)]).visible)


@pytest.mark.parametrize("readable", ["~", "~/", "/", "~/.", "~/.ssh", "~/.config", "~/../home"])
def test_the_setting_never_shows_credentials(home: Path, readable: str) -> None:
    found = hidden(home, readable=(readable,))
    for name in (*SECRETS, *MORE_SECRETS):
        path = f"{home}/{name}"
        assert not within(path, found.visible) or within(path, found.masked), path


def test_the_setting_shows_what_it_names(home: Path) -> None:
    assert f"{home}/notes" in hidden(home, readable=("~/notes", "relative", "~/missing")).visible


def test_a_credential_that_is_a_link_is_masked_where_it_is(home: Path) -> None:
    _file(home / "notes/keys/id", "x")
    (home / ".ssh/id_rsa").unlink()
    (home / ".ssh").rmdir()
    (home / ".ssh").symlink_to(home / "notes/keys")
    assert f"{home}/notes/keys" in hidden(home, readable=("~/notes",)).masked


def test_the_home_as_workspace_keeps_its_credentials(home: Path) -> None:
    found = hidden(home, folders=[str(home)])
    assert {f"{home}/.ssh", f"{home}/.netrc", f"{home}/.bash_history"} <= set(found.masked)
    assert str(home) not in found.masked


def test_our_own_state_is_nobodys_business(home: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "layers").mkdir(parents=True)
    private = [str(state), str(state / "layers")]
    found = hide(str(home), environ={}, folders=[str(tmp_path)], readable=(), private=private)
    assert str(state) in found.masked and str(state / "layers") not in found.masked  # once: in it nothing can be made


def test_within_goes_by_whole_parts() -> None:
    assert within("/a/b", ["/a"]) and within("/a", ["/a"]) and within("/a", ["/"])
    assert not within("/ab", ["/a"]) and not within("/", ["/a"])


@pytest.mark.slow
@needs_overlay
@pytest.mark.parametrize("readable", [(), ("~",)])
def test_a_command_runs_tools_and_finds_no_secret(
    home: Path, workspace: Path, tmp_path: Path, readable: tuple[str, ...]
) -> None:
    environ = {"PATH": f"{home}/.cargo/bin:/usr/bin:/bin"}
    made = rig([workspace], tmp_path / "state", home=home, readable=readable, environ=environ)
    try:
        made.layer.prepare({})
        assert made.run("tool; echo $HOME").out == f"ran\n{home}\n"
        assert made.run(f"grep -rs hidden-word {home} /proc/self/environ").out == ""
        assert (made.run("cat ~/notes/diary.txt").code == 0) == bool(readable)
        assert made.run("echo x > ~/.cargo/bin/tool").code != 0
        assert made.run(f"ls {tmp_path}/state/*").code != 0
        if os.geteuid() == 0:
            assert made.run("cat /etc/shadow").out == ""
    finally:
        made.layer.close()


@pytest.fixture
def apart() -> Iterator[Path]:
    """A folder in the one for temporary files, outside of any home of these tests."""
    with tempfile.TemporaryDirectory(prefix="apart-", dir="/tmp") as made:
        yield Path(made)


def test_of_a_folder_in_tmp_only_what_belongs_to_a_toolchain_is_shown(home: Path, workspace: Path, apart: Path) -> None:
    _environment(apart / "env", _python(apart / "python"))
    _file(apart / "env/bin/ruff", "x")
    _file(apart / "env/.env", "x")
    _file(apart / "env/notes/diary.txt", "x")
    _file(apart / "sdk/go/pkg/tool/asm", "x")
    (apart / "sdk/go/bin").mkdir()
    found = hidden(home, path=f"{apart}/env/bin:{apart}/sdk/go/bin:/tmp:{apart}/none", folders=[str(workspace)])
    wanted = ("env/bin", "env/pyvenv.cfg", "python/bin", "python/lib", "sdk/go")
    assert {path for path in found.visible if within(path, [str(apart)])} == {f"{apart}/{name}" for name in wanted}
    assert "/tmp" not in found.visible


def test_a_program_of_the_system_that_is_a_link_leads_to_its_toolchain(home: Path, apart: Path) -> None:
    _file(home / "tools/ruff/bin/ruff", "x")
    (apart / "bin").mkdir()
    (apart / "bin/ruff").symlink_to(home / "tools/ruff/bin/ruff")
    assert f"{home}/tools/ruff" in hidden(home, path=f"{apart}/bin").visible


@pytest.mark.parametrize("entry", ["/tmp", "/tmp/", "/run", "/run/user", "/run/user/1000", "/var/tmp"])
def test_a_folder_of_the_system_is_never_shown_as_a_whole(home: Path, entry: str) -> None:
    found = hidden(home, path=f"{entry}:{entry}/bin", environ={"VIRTUAL_ENV": entry, "GOPATH": entry})
    assert not {"/tmp", "/run", "/run/user", "/run/user/1000", "/var/tmp"} & set(found.visible)


def test_a_toolchain_that_holds_the_workspace_or_our_state_is_not_shown(home: Path, apart: Path) -> None:
    for name in ("ws/bin", "ws/pkg/tool", "ws/app", "ours/bin", "ours/pkg/tool", "ours/state"):
        (apart / name).mkdir(parents=True)
    folders, state = [f"{apart}/ws/app"], [f"{apart}/ours/state"]
    path = f"{apart}/ws/bin:{apart}/ours/bin"
    found = hide(str(home), environ={"PATH": path}, folders=folders, readable=(), private=state)
    assert {item for item in found.visible if within(item, [str(apart)])} == {f"{apart}/ws/bin", f"{apart}/ours/bin"}


@pytest.mark.slow
@needs_overlay
def test_a_tool_of_an_environment_in_tmp_runs_and_is_read_only(
    home: Path, workspace: Path, tmp_path: Path, apart: Path
) -> None:
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", apart / "env"), check=True)
    tool = _file(apart / "env/bin/tool", f"#!{apart}/env/bin/python\nimport sys; print(sys.prefix)\n")
    tool.chmod(0o755)
    _file(apart / "env/.env", "hidden-" + "word")
    _file(apart / "other.txt", "hidden-" + "word")
    environ = {"PATH": f"{apart}/env/bin:/usr/bin:/bin"}
    made = rig([workspace], tmp_path / "state", home=home, environ=environ)
    try:
        made.layer.prepare({})
        assert made.run("tool").out == f"{apart}/env\n"
        assert "hidden-word" not in made.run(f"cat {apart}/env/.env {apart}/other.txt; grep -rs hidden-word /tmp").out
        assert made.run(f"echo x > {apart}/env/bin/tool").code != 0
        assert made.run(f"echo x > {apart}/env/lib/x.py").code != 0
    finally:
        made.layer.close()
    assert tool.read_text().startswith("#!")


def git(folder: Path, *words: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(("git", *who, *words), cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    git(folder, "init", "-q")
    _file(folder / "packages/shop/main.js", "require('hoisted')")
    _file(folder / "lib/tax.py", "RATE = 2")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    _file(folder / "node_modules/hoisted/index.js", "hoisted")
    _file(folder / ".env", "hidden-" + "word")
    return folder


@pytest.mark.slow
@needs_overlay
@pytest.mark.parametrize("kind", ["package", "worktree", "submodule", "borrowing"])
def test_git_and_what_lies_above_the_workspace(home: Path, tmp_path: Path, kind: str) -> None:
    top = repository(home / "src/mono")
    folder = top / "packages/shop"
    if kind == "worktree":
        folder = home / "src/other"
        git(top, "worktree", "add", "-q", str(folder))
    elif kind == "submodule":
        outer = repository(home / "src/outer")
        git(outer, "submodule", "add", "-q", str(top), "vendor/mono")
        folder = outer / "vendor/mono"
    elif kind == "borrowing":
        for source, name in ((top, "between"), (home / "src/between", "last")):
            git(source, "clone", "-q", "--shared", str(source), str(home / "src" / name))
        folder = home / "src/last"
    made = rig([folder], tmp_path / "state", home=home)
    try:
        made.layer.prepare({})
        assert made.run("git log --format=%s").out == "first\n"
        assert made.run("git status --short -- .").code == 0
        if kind == "package":
            assert made.run("cat ../../node_modules/hoisted/index.js ../../lib/tax.py").out == "hoistedRATE = 2"
            assert made.run("echo x > ../../lib/tax.py").code != 0
        assert "hidden-word" not in made.run(f"cat ../../.env; grep -rs hidden-word {home}").out
    finally:
        made.layer.close()


@pytest.mark.slow
@needs_overlay
def test_what_tools_have_built_is_there_and_what_they_build_stays_ours(home: Path, tmp_path: Path) -> None:
    built = _file(home / ".cache/go-build/00/built", "built")
    _file(home / ".cache/other/page", "hidden-" + "word")
    folder = tmp_path / "w"
    folder.mkdir()
    made = rig([folder], tmp_path / "state", home=home)
    try:
        made.layer.prepare({})
        assert made.run("cat ~/.cache/go-build/00/built && echo new > ~/.cache/go-build/00/more").out == "built"
        assert told(made.layer.writings(), str(folder)) == {}
        made.layer.prepare({})
        assert made.run("cat ~/.cache/go-build/00/more; rm ~/.cache/go-build/00/built").out == "new\n"
        assert [path.name for path in built.parent.iterdir()] == ["built"]
        assert "hidden-word" not in made.run("grep -rs hidden-word ~").out
    finally:
        made.layer.close()


def test_a_git_file_shows_no_repository_that_is_not_its_own(home: Path) -> None:
    other = repository(home / "private")
    folder = home / "src/found"
    _file(folder / ".git", f"gitdir: {other}/.git\n")
    assert set(hidden(home, folders=[str(folder)]).visible) == {f"{home}/.cargo", f"{home}/.m2"}


def test_a_home_that_is_a_repository_is_not_shown(home: Path) -> None:
    git(home, "init", "-q")
    (home / "src/app").mkdir(parents=True)
    found = hidden(home, folders=[f"{home}/src/app"])
    assert str(home) not in found.visible
    assert set(found.visible) <= {f"{home}/.cargo", f"{home}/.m2"}


@pytest.mark.slow
@needs_overlay
@pytest.mark.parametrize("in_path", [False, True])
def test_commands_run_an_interpreter_and_read_nothing_else_behind_a_link(
    home: Path, workspace: Path, tmp_path: Path, in_path: bool
) -> None:
    python = _python(home / "opt/python")
    python.write_text("#!/bin/sh\necho ran\n")
    _file(home / "Documents/python", "hidden-" + "word").chmod(0o755)
    _environment(workspace / ".venv", home / "opt/python/bin/python3")
    _environment(workspace / "venv", home / "Documents/python")
    environ = {"PATH": f"{workspace}/venv/bin:/usr/bin:/bin" if in_path else "/usr/bin:/bin"}
    made = rig([workspace], tmp_path / "state", home=home, environ=environ)
    try:
        made.layer.prepare({})
        assert made.run(".venv/bin/python").out == "ran\n"
        assert "hidden-word" not in made.run("cat venv/bin/python ~/Documents/*; grep -rs hidden-word ~").out
    finally:
        made.layer.close()


def _python(prefix: Path) -> Path:
    """An interpreter with its library."""
    _file(prefix / "lib/python3.12/os.py", "")
    program = _file(prefix / "bin/python3.12", "\x7fELF")
    program.chmod(0o755)
    (prefix / "bin/python3").symlink_to("python3.12")
    return program


def _environment(place: Path, python: Path) -> None:
    (place / "bin").mkdir(parents=True)
    (place / "pyvenv.cfg").write_text(f"home = {python.parent}\n")
    (place / "bin/python").symlink_to("python3")
    (place / "bin/python3").symlink_to(python)


def _file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
