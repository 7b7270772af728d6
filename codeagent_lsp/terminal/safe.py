"""Makes any text safe to print: no control sequence and no invisible direction mark reaches the terminal. Pure."""

from __future__ import annotations

from codeagent_lsp.workspace.text.unseen import shown


def visible(text: str) -> str:
    """`text` with line ends as `\\n`, and every other control or invisible character shown by its number."""
    return shown(text.replace("\r\n", "\n"))


def one_line(text: str, width: int = 200) -> str:
    """`text` on one line of at most `width` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"
