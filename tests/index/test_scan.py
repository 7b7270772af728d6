"""Single files compared with the index; scans of everything are in `test_service.py`."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.index.scan import Folders, Scan, scan_files
from codeagent_lsp.index.work import Work
from tests.index.workspaces import write


def test_single_files_are_changed_removed_or_of_no_interest(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "ws"
    write(root, {"a.py": "one = 1\n", "new.py": "", ".gitignore": "ignored.py\n", "ignored.py": ""})
    indexed = {"a.py": b"1", "gone.py": b"2", "ignored.py": b"3"}
    names = ("a.py", "new.py", "gone.py", "ignored.py", "never.py", "../outside.py")
    found = scan_files(
        Folders([str(root)]), [f"{root}/{name}" for name in names], lambda path: indexed.get(path, b""), 7
    )
    changed = (Work("a.py", f"{root}/a.py", b"1", 8), Work("new.py", f"{root}/new.py", b"", 0))
    assert found == Scan(changed, ("gone.py", "ignored.py"), 7)
