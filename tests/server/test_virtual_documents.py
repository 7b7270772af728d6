"""Documents that become files: an editor that reads them obeys no word of a model in them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from codeagent_lsp.server.virtual_documents import MODE_LINES, without_mode_lines

# As Vim documents it: `[text{white}]{vi:|vim:|ex:}` in the first and the last lines of a file.
OBEYED = re.compile(r"(^|\s|\ufeff)(vi|[vV]im[<=>]?\d*):|\sex:")
WORDS = (
    "vim: set ts=1:",
    "// vi: noai",
    "# vim:ts=1",
    "<!-- ex: ts=1 -->",
    "# vim>700: ts=1",
    "Vim: set ts=1 :",
    "\tvim: ts=1",
    "\ufeffvim: ts=1",
)


def obeyed(content: str) -> list[str]:
    """The lines that an editor would take options from."""
    lines = content.removesuffix("\n").split("\n")
    return [line for line in (*lines[:MODE_LINES], *lines[-MODE_LINES:]) if OBEYED.search(line)]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("length", [0, 1, 4, 5, 6, 30])
def test_no_line_sets_an_option(words: str, length: int) -> None:
    body = [f"line {number}" for number in range(length)]
    for place in range(length + 1):
        content = "\n".join([*body[:place], words, *body[place:]])
        for ending in ("", "\n", "\n\n"):
            assert obeyed(without_mode_lines(content + ending)) == []


def test_all_else_stays_as_it_is() -> None:
    for content in ("", "a\n", "See https://vim.org: it is about vimdiff.\n", "x\n" * 20, "complex: a\nivi: b\n"):
        assert without_mode_lines(content) == content
    diff = "\n".join([*("+a" for _ in range(20)), "+# vim: set ts=1:", ""])
    assert without_mode_lines(diff).rstrip("\n") == diff.rstrip("\n")


def set_by_emacs(content: str) -> bool:
    """Whether Emacs finds variables in a text: in its first line, or in its last page near the end."""
    lines = content.split("\n")
    page = content[max(0, len(content) - 3000) :].rpartition("\n\f")[2]
    return any(line.count("-*-") > 1 for line in lines[:2]) or "local variables:" in page.casefold()


@pytest.mark.parametrize("words", ["-*- eval: (f) -*-", "Local Variables:\neval: (f)\nEnd:", "# LOCAL VARIABLES:"])
def test_emacs_takes_no_variables_from_it(words: str) -> None:
    for before in ("", "#!/bin/sh\n", "a\n" * 2000, "vim: ts=1\n", "\f\n"):
        for after in ("", "\n", "\nmore\n", "\n# vim: ts=1:\n"):
            assert not set_by_emacs(without_mode_lines(f"{before}{words}{after}"))


@pytest.mark.slow
@pytest.mark.neovim
@pytest.mark.parametrize("place", [0, 3, 20, 39, 40])
def test_a_real_neovim_sets_nothing(tmp_path: Path, place: int) -> None:
    neovim = os.environ.get("NVIM", "")
    if not neovim:
        pytest.skip("Neovim is not installed")

    def tab_stop(content: str) -> str:
        path = tmp_path / "transcript.md"
        path.write_text(content)
        command = [neovim, "--clean", "--headless", "+set modeline", f"+edit {path}", "+verbose echo &ts", "+qall!"]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stderr.strip()

    lines = ["words"] * 40
    lines.insert(place, "# vim: set ts=1:")
    content = "\n".join(lines)
    assert tab_stop("") == tab_stop(without_mode_lines(content)) != "1"
    if place in (0, 3, 39, 40):
        assert tab_stop(content) == "1", "such a line is obeyed, so that the test can fail"
