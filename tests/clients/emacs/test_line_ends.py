"""A real Emacs with eglot and files with CRLF, which it shows as LF: none gets another CR, open before or not.

Not here: lsp-mode, which takes every CR out of what it inserts.
"""

from __future__ import annotations

import pytest

from tests.clients.emacs.support import MARKS, Emacs, has_client
from tests.clients.neovim.support import SOURCE, edit

pytestmark = MARKS

CRLF = "a = 1\r\nb = 2\r\nc = 3\r\n"


@pytest.fixture(scope="module")
def client() -> str:
    if not has_client("eglot"):
        pytest.skip("this Emacs has no eglot; Debian: elpa-eglot")
    return "eglot"


@pytest.mark.parametrize("opened", [False, True], ids=["closed", "open"])
def test_new_lines_in_a_file_with_crlf_are_saved_like_the_others(emacs: Emacs, *, opened: bool) -> None:
    played = emacs.play(
        rf"""
        (rig-open "a.py")
        {'(rig-open "b.py")' if opened else ""}
        (codeagent-run "change it")
        (let (file)
          (rig-wait "the file" 40 (lambda ()
            (setq file (find-buffer-visiting (expand-file-name "b.py" rig-workspace)))))
          (with-current-buffer file
            (rig-has "new")
            (rig-wait "only LF" 10 (lambda () (not (string-search "\r" (rig-text)))))
            (rig-heard "Changed.")
            (rig-pass 0.8)
            (let ((text (rig-text)))
              (save-buffer)
              (codeagent-undo)
              (rig-wait "the undo" 20 (lambda () (not (string-search "new" (rig-text)))))
              (rig-heard "Undone")
              (list :text text :undone (rig-text)))))
        """,
        files={"a.py": SOURCE, "b.py": CRLF},
        script=[edit("b = 2\n", "b = 2\nnew = 4\n", "b.py"), {"text": "Changed."}],
    )
    assert played.found == {"text": "a = 1\nb = 2\nnew = 4\nc = 3\n", "undone": CRLF.replace("\r\n", "\n")}
    assert (played.workspace / "b.py").read_bytes() == b"a = 1\r\nb = 2\r\nnew = 4\r\nc = 3\r\n"
