r"""Paths and URIs as Windows and macOS read them: drives, devices, other machines, streams, names that are none."""

from __future__ import annotations

from pathlib import PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.workspace.files import uris

NAMES = st.text("abcXYZ09 ._-é中~", min_size=1, max_size=12)


@pytest.mark.parametrize(
    "path",
    ["a.txt", "src/a.py", r"src\a.py", r"C:\ws\a.py", "c:/ws/a.py", "..\\a.py", ".gitignore", "console.log", "com.txt",
     "nullable.py", "a b.txt", "auxiliary/x", "COM10", r"\ws\a.py"],
)  # fmt: skip
def test_a_plain_name_is_one(path: str) -> None:
    assert uris.windows_problem(path) is None


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (r"\\?\C:\ws\a.py", "device"),
        (r"\\.\PhysicalDrive0", "device"),
        ("//?/C:/ws/a.py", "device"),
        (r"\??\C:\ws", "device"),
        (r"\\server\share\a.py", "another machine"),
        ("//server/share", "another machine"),
        (r"\\wsl$\Debian\etc", "another machine"),
        ("C:a.py", "current folder of a drive"),
        ("a.txt:stream", "stream"),
        ("a.txt::$DATA", "stream"),
        (r"C:\ws\a.py:Zone.Identifier", "stream"),
        ("CON", "is a device"),
        ("src/nul", "is a device"),
        (r"src\Aux.py", "is a device"),
        ("COM1.txt", "is a device"),
        ("lpt9", "is a device"),
        ("COM\u00b9", "is a device"),
        ("nul .txt", "is a device"),
        ("CONOUT$", "is a device"),
        ("a.py.", "dot or a blank"),
        ("a.py ", "dot or a blank"),
        ("src./a.py", "dot or a blank"),
        (".. /a.py", "dot or a blank"),
        ("what?.py", "characters"),
        ("a\n.py", "characters"),
    ],
)
def test_what_leads_elsewhere_is_refused(path: str, why: str) -> None:
    assert why in str(uris.windows_problem(path))


@given(st.lists(NAMES, min_size=1, max_size=4), st.sampled_from(["", "C:\\", "d:/"]), st.sampled_from("\\/"))
def test_what_is_accepted_is_what_the_system_reads(names: list[str], drive: str, slash: str) -> None:
    path = drive + slash.join(names)
    if uris.windows_problem(path) is None:
        read = PureWindowsPath(path)
        assert not read.is_reserved()
        assert [part for part in names if part != "."] == [*read.parts[bool(drive) :]]
        if drive:
            assert PureWindowsPath(uris.to_path(uris.from_path(path, "win32"), "win32") or "") == read


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///C:/ws/a.py", "C:/ws/a.py"),
        ("file:///c%3A/ws/a.py", "C:/ws/a.py"),
        ("file:///c:/ws/%C3%A9.py", "C:/ws/é.py"),
        ("file:///C%3a", "C:"),
        ("file://localhost/c:/a", "C:/a"),
        ("file://server/share/a", "//server/share/a"),
        ("file:////./C:/a", "//./C:/a"),
        ("file:////%3F/C:/a", "//?/C:/a"),
        ("file:///ws/a", "/ws/a"),
    ],
)
def test_uris_of_windows(uri: str, path: str) -> None:
    assert uris.to_path(uri, "win32") == path


@pytest.mark.parametrize("uri", ["file://server/share/a", "file:////./C:/a", "file:////%3F/C:/a", "file:///C:/a.txt:s"])
def test_a_uri_of_a_device_or_of_another_machine_is_refused(uri: str) -> None:
    assert uris.windows_problem(uris.to_path(uri, "win32") or "") is not None


def test_spellings_of_one_uri_are_equal_where_they_are_one_file() -> None:
    drive = ["file:///C:/Ws/A.py", "file:///c%3A/ws/a.py", "file:///c:/WS/a.PY"]
    assert len({uris.spelling(uri, "win32") for uri in drive}) == 1
    composed = ["file:///ws/%C3%A9.py", "file:///ws/e%CC%81.py"]
    assert [len({uris.spelling(uri, system) for uri in composed}) for system in ("darwin", "linux")] == [1, 2]
    assert uris.spelling("file:///ws/A", "linux") != uris.spelling("file:///ws/a", "linux")
