"""What one command wrote, within limits: the rest is only counted."""

from __future__ import annotations

from codeagent_lsp.shadow.shell import Written
from codeagent_lsp.shadow.written_files import WrittenFiles, WrittenLimits


def test_a_file_is_there_once() -> None:
    found = WrittenFiles(WrittenLimits())
    found.add("/a", "deleted")
    found.add("/a", "text", b"late")
    assert (found.files, found.more, found.size) == ({"/a": Written("/a", "deleted")}, 0, 0)


def test_more_files_than_the_limit_are_counted() -> None:
    found = WrittenFiles(WrittenLimits(files=2))
    for name in "/a", "/b", "/c", "/d", "/a":
        found.add(name, "binary")
    assert (list(found.files), found.more) == (["/a", "/b"], 2)


def test_more_bytes_than_the_limit_are_counted_and_a_smaller_file_still_fits() -> None:
    found = WrittenFiles(WrittenLimits(total_bytes=5))
    for name, data in (("/a", b"1234"), ("/b", b"12"), ("/c", b"1")):
        found.add(name, "text", data)
    assert (list(found.files), found.more, found.size) == (["/a", "/c"], 1, 5)
