"""The table of mounts: names with blanks and marks of the table stay what they are."""

from __future__ import annotations

from codeagent_lsp.shadow.mounts import Over, mount_table, nested_mounts


def test_each_folder_has_an_overlay() -> None:
    lines = mount_table("/p", [Over("read0", "/var")]).splitlines()
    assert lines[0].startswith("empty /p/empty tmpfs ")
    assert lines[1:] == ["overlay /p/read0/view overlay userxattr,lowerdir=/var:empty 0 0"]


def test_odd_names_are_escaped_as_the_kernel_does() -> None:
    name = "/my disk\tx\n#1\\2"
    fields = mount_table("/p q", [Over("read0", name)]).splitlines()[1].split(" ")
    assert len(fields) == 6 and fields[1] == "/p\\040q/read0/view"
    below = fields[3].removeprefix("userxattr,lowerdir=").removesuffix(":empty")
    assert nested_mounts(["/"], f"1 1 0:1 / {below} rw - ext4 x rw\n".encode()) == (name,)
