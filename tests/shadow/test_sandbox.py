"""The arguments of bubblewrap: what is shown, in which order, and what never gets in."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.hiding import Hidden
from codeagent_lsp.shadow.sandbox import REPORTS, Bind, Sandbox, listening, named_pipes, services, write_options
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command

HIDDEN = Hidden(areas=("/home", "/home/me"), visible=("/home/me/.cargo",), masked=("/etc", "/etc/passwd"))


def sandbox(**more: object) -> Sandbox:
    locked = more.get("locked", True)
    return Sandbox("/usr/bin/bwrap", "/layer", "/home/me", HIDDEN, uid=7, gid=8, locked=bool(locked))


def options(
    binds: Iterable[Bind] = (),
    *,
    network: bool = False,
    environment: Mapping[str, str] | None = None,
    sockets: Iterable[str] = (),
) -> list[str]:
    made = sandbox().options(binds, cwd="/w", network=network, environment=environment or {}, sockets=sockets)
    return list(made)


def at(words: list[str], *run: str) -> int:
    """Where a run of words begins; fails when it is not there."""
    for place in range(len(words)):
        if tuple(words[place : place + len(run)]) == run:
            return place
    raise AssertionError(f"{run} is not in {words}")


def test_the_command_has_namespaces_no_rights_and_its_own_user() -> None:
    words = options()
    for name in ("user", "pid", "ipc", "uts", "cgroup-try", "net"):
        assert f"--unshare-{name}" in words
    at(words, "--uid", "7", "--gid", "8")
    at(words, "--cap-drop", "ALL")
    assert {"--new-session", "--die-with-parent", "--disable-userns"} <= set(words)
    assert "--unshare-net" not in options(network=True)


def test_an_old_bubblewrap_is_not_asked_for_what_it_cannot() -> None:
    assert "--disable-userns" not in sandbox(locked=False).options((), cwd="/", network=False, environment={})


def test_everything_is_read_only_first_and_shown_or_masked_later() -> None:
    words = options([Bind("/v/1", "/home/me/w/in"), Bind("/v/0", "/home/me/w")])
    order = [
        at(words, "--ro-bind", "/", "/"),
        at(words, "--dev", "/dev", "--size", str(1 << 30), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),
        at(words, "--proc", "/proc"),
        at(words, "--ro-bind-try", "/proc/sys", "/proc/sys"),
        at(words, "--tmpfs", "/run"),
        at(words, "--bind", "/layer/tmp", "/tmp"),
        at(words, "--tmpfs", "/home"),
        at(words, "--bind", "/layer/home", "/home/me"),
        at(words, "--ro-bind-try", "/home/me/.cargo", "/home/me/.cargo"),
        at(words, "--bind", "/v/0", "/home/me/w"),
        at(words, "--bind", "/v/1", "/home/me/w/in"),
        at(words, "--tmpfs", "/etc", "--remount-ro", "/etc"),
        at(words, "--dev-bind", "/dev/null", "/etc/passwd"),
        at(words, "--bind", "/layer/reports", REPORTS),
        at(words, "--clearenv"),
    ]
    assert order == sorted(order)


def test_every_file_system_in_memory_has_a_size_where_bubblewrap_can_do_that() -> None:
    words = options()
    writable = [place for place, word in enumerate(words) if word == "--tmpfs" and words[place + 2] != "--remount-ro"]
    assert writable[:2] and all(words[place - 2] == "--size" for place in writable)
    assert "--size" not in sandbox(locked=False).options((), cwd="/", network=False, environment={})


def test_a_bind_can_be_read_only() -> None:
    at(options([Bind("/m", "/w/m", writable=False)]), "--ro-bind", "/m", "/w/m")


def test_names_are_resolved_only_where_the_network_is() -> None:
    assert "/run/systemd/resolve" not in options()
    at(options(network=True), "--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve")
    assert not any("docker" in word or "podman" in word for word in options(network=True))


def test_the_environment_is_what_was_given_and_leads_nowhere() -> None:
    given = {"LANG": "C", "SSH_AUTH_SOCK": "/s", "BASH_ENV": "/b", "HOME": "/elsewhere", "TMPDIR": "/t"}
    words = options(environment=given)
    set_to = {words[place + 1]: words[place + 2] for place, word in enumerate(words) if word == "--setenv"}
    assert set_to == {
        "LANG": "C",
        "HOME": "/home/me",
        "TMPDIR": "/tmp",
        REPORT_VARIABLE: REPORTS,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",
    }


def test_sockets_that_would_show_are_covered() -> None:
    binds = [Bind("/w/real", "/w/real", writable=False), Bind("/v/0", "/w")]
    sockets = ("/opt/s", "/run/s", "/w/s", "/home/other/s", "/home/me/.cargo/s", "/w/real/s")
    words = options(binds, sockets=sockets)
    covered = [words[place + 2] for place, word in enumerate(words) if words[place + 1 : place + 2] == ["/dev/null"]]
    assert covered == ["/etc/passwd", "/home/me/.cargo/s", "/opt/s", "/w/real/s"]


@pytest.mark.parametrize(
    ("views", "left"),
    [
        ((), ["/home/me/.cargo/s", "/opt/s", "/w/real/s"]),
        (("/opt",), ["/home/me/.cargo/s", "/w/real/s"]),
        (("/home/me",), ["/opt/s", "/w/real/s"]),
        (("/home/me/.cargo", "/w"), ["/opt/s", "/w/real/s"]),  # what is bound over a view is what is seen
        (("/op", "/home/me/.cargo/s/x"), ["/home/me/.cargo/s", "/opt/s", "/w/real/s"]),
    ],
)
def test_a_socket_that_shows_through_an_overlay_leads_nowhere(views: tuple[str, ...], left: list[str]) -> None:
    binds = [Bind("/w/real", "/w/real", writable=False), Bind("/v/0", "/w")]
    sockets = ("/opt/s", "/w/s", "/home/me/.cargo/s", "/w/real/s")
    shown = {root: f"/p{root}" for root in views}
    words = list(sandbox().options(binds, cwd="/w", network=False, environment={}, sockets=sockets, views=shown))
    covered = [words[place + 2] for place, word in enumerate(words) if words[place + 1 : place + 2] == ["/dev/null"]]
    assert sorted(set(covered) - {"/etc/passwd"}) == left


def test_the_sockets_of_the_system(tmp_path: Path) -> None:
    path = tmp_path / "a socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert str(path) in listening()
        head = "Num       RefCount Protocol Flags    Type St Inode Path\n"
        row = "0000000000000000: 00000002 00000000 00010000 0001 01 1234"
        too_long = f"{tmp_path}/{'x' * 300}"  # as a folder of somebody else's: looking there is an error
        told = f"{head}{row} {path}\n{row}\n{row} @abstract\n{row} {tmp_path}/gone\n{row} {too_long}\n"
        assert listening(told) == (str(path),)


def test_the_named_pipes_of_the_system(tmp_path: Path) -> None:
    pipe = tmp_path / "a pipe"
    os.mkfifo(pipe)
    assert str(pipe) not in named_pipes()
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert str(pipe) in set(named_pipes())
        pipe.unlink()
        assert str(pipe) not in set(services())
    finally:
        os.close(reader)


START = ("/usr/bin/bwrap", "--json-status-fd", "7", "--args", "9", "--")


def test_a_script_runs_in_bash_and_words_as_they_are() -> None:
    assert sandbox().start(Command("a | b", "/w")) == (*START, "bash", "-c", "a | b")
    assert sandbox().start(Command(("a", "-b"), "/w")) == (*START, "a", "-b")
    assert sandbox().argv("/o", Command(("a",), "/w"))[-len(START) - 2 :] == ("/o", *START, "a")


def test_a_command_too_long_for_the_system_is_refused() -> None:
    with pytest.raises(ToolFailed, match="too long"):
        sandbox().start(Command("é" * 70_000, "/w"))


def test_options_are_written_for_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "options"
    write_options(str(path), ("--setenv", "A", os.fsdecode(b"\xff\n")))
    assert path.read_bytes() == b"--setenv\0A\0\xff\n\0" and path.stat().st_mode & 0o777 == 0o600
