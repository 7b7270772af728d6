"""The text of the profile for macOS: what a command may read, write and reach, by the rule that counts last."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codeagent_lsp.shadow.copying import PROGRAM, CopyLayer, Seatbelt
from codeagent_lsp.shadow.folder import LayerFolder
from codeagent_lsp.shadow.hiding import Hidden
from codeagent_lsp.shadow.shell import Command
from codeagent_lsp.workspace.files.paths import within

HOME = "/Users/ann"
PRIVATE = f"{HOME}/Library/Application Support/codeagent-lsp/layers/layer-1"
HIDDEN = Hidden(("/Users", HOME), (f"{HOME}/.cargo",), (f"{HOME}/.cargo/credentials.toml", f"{HOME}/ws/.netrc"))
BELT = Seatbelt(PRIVATE, (f"{HOME}/ws",), HIDDEN)
RULE = re.compile(r'\((allow|deny) ([a-z*\- ]+?)((?: \((?:subpath|literal) "(?:[^"\\]|\\.)*"\))*)\)')
PATH = re.compile(r'\((subpath|literal) "((?:[^"\\]|\\.)*)"\)')


def verdict(operation: str, path: str, profile: str) -> bool:
    """What Seatbelt decides, by our reading of its rules: the last one that fits counts."""
    allowed = False
    for line in profile.splitlines():
        found = RULE.fullmatch(line)
        if found is None or not any(_fits(name, operation) for name in found[2].split()):
            continue
        places = [(kind, re.sub(r"\\(.)", r"\1", text)) for kind, text in PATH.findall(found[3])]
        if not places or any(path == text or (kind == "subpath" and within(path, [text])) for kind, text in places):
            allowed = found[1] == "allow"
    return allowed


def _fits(name: str, operation: str) -> bool:
    return operation.startswith(name[:-1]) if name.endswith("*") else operation == name


@pytest.mark.parametrize(
    ("operation", "path", "allowed"),
    [
        ("file-read-data", "/usr/lib/libc.dylib", True),
        ("file-read-data", f"{HOME}/.ssh/id_ed25519", False),
        ("file-read-data", f"{HOME}/notes.txt", False),
        ("file-read-data", "/Users/bob/notes.txt", False),
        ("file-read-metadata", f"{HOME}/notes.txt", True),
        ("file-read-data", f"{HOME}/.cargo/bin/cargo", True),
        ("file-read-data", f"{HOME}/.cargo/credentials.toml", False),
        ("file-read-data", f"{HOME}/ws/node_modules/a.js", True),
        ("file-read-data", f"{HOME}/ws/.netrc", False),
        ("file-read-data", "/private/var/folders/x/other", False),
        ("file-read-data", f"{PRIVATE}/copies/0/a.py", True),
        ("file-write-data", f"{PRIVATE}/copies/0/a.py", True),
        ("file-write-create", f"{PRIVATE}/tmp/x", True),
        ("file-write-data", f"{PRIVATE}-other/x", False),
        ("file-write-data", f"{HOME}/ws/a.py", False),
        ("file-write-data", f"{HOME}/.cargo/bin/cargo", False),
        ("file-write-unlink", "/usr/local/bin/x", False),
        ("file-write-data", "/private/tmp/x", False),
        ("file-write-data", "/dev/null", True),
        ("file-write-data", "/dev/disk0", False),
        ("network-outbound", "", False),
        ("network-bind", "", False),
        ("mach-register", "", False),
        ("process-exec", "/bin/ls", True),
    ],
)
def test_what_a_command_may_do(operation: str, path: str, allowed: bool) -> None:
    assert verdict(operation, path, BELT.profile(network=False)) is allowed


def test_the_network_is_there_only_where_it_was_allowed() -> None:
    assert verdict("network-outbound", "", BELT.profile(network=True))
    without = BELT.profile(network=False).splitlines()
    assert not [line for line in without if "network" in line and not line.startswith(";")]


def test_a_path_is_no_rule(operation: str = "file-write-data") -> None:
    named = Seatbelt('/x") (allow file-write* (subpath "/', ('/w\\"',), Hidden())
    profile = named.profile(network=False)
    assert not verdict(operation, "/etc/passwd", profile)
    assert all(line.startswith(";") or line.count("(") >= 1 for line in profile.splitlines())
    assert '(allow file-read* (subpath "/w\\\\\\""))' in profile


def test_everything_is_denied_first_and_each_rule_has_its_reason() -> None:
    lines = BELT.profile(network=False).splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert sum(line.startswith(";") for line in lines) >= 8
    assert all(line.count("(") == line.count(")") for line in lines if not line.startswith(";"))


def test_the_command_comes_after_the_profile() -> None:
    assert BELT.argv(("ls", "-l"), network=False) == (PROGRAM, "-p", BELT.profile(network=False), "ls", "-l")


def test_a_command_in_the_copy_is_put_behind_it(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    folder = LayerFolder(str(tmp_path / "layers"))
    belt = Seatbelt(folder.path, (str(tmp_path / "ws"),), Hidden())
    layer = CopyLayer([str(tmp_path / "ws")], folder, None, environment={}, home=str(tmp_path), seatbelt=belt)
    try:
        layer.prepare({})
        launch = layer.launch(Command("ls", str(tmp_path / "ws")))
        assert launch.argv == belt.argv(("bash", "-c", "ls"), network=False)
        assert launch.environment["TMPDIR"] == f"{folder.path}/tmp"
        assert not layer.isolation.confined  # nobody has tried it there: each command asks
    finally:
        layer.close()
