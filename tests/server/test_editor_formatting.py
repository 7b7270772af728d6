"""An accepted change lands while the user types and the editor formats what it saves right behind it, and is taken back
in the spelling that the formatter has given it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from codeagent_lsp.server.run_services import Views
from codeagent_lsp.session.rewind.earlier_texts import taking_back
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from tests.examples import pairwise
from tests.leaping import leaping
from tests.server.typing_client import EGLOT, NEOVIM, VSCODE, Habit, TypingClient, while_typing

NOTES = "# notes:"
RATES = (5, 8, 12, 20, 30, 60)
HUNKS = (1, 50)
Formatter = Callable[[str], str]


def trimmed(text: str) -> str:
    """As `trimTrailingWhitespace` and `insertFinalNewline`."""
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n")) + "\n"


def spaced(text: str) -> str:
    """Two blank lines before a function, no two in a row elsewhere."""
    text = re.sub(r"\n{3,}", "\n\n", trimmed(text))
    return re.sub(r"\n+(?=def )", "\n\n\n", text)


def quoted(text: str) -> str:
    """One kind of quotes, and blanks around operators."""
    return re.sub(r"(?<=\w)=(?=[\w\"])", " = ", trimmed(text).replace("'", '"'))


def broken(text: str) -> str:
    """A call over several lines, with a last comma."""
    return re.sub(
        r"^( *)(\w+)\((\w+), (\w+)\)$", r"\1\2(\n\1    \3,\n\1    \4,\n\1)", spaced(quoted(text)), flags=re.MULTILINE
    )


FORMATTERS = {each.__name__: each for each in (trimmed, spaced, quoted, broken)}


def texts(hunks: int) -> tuple[str, str]:
    """A text of functions as one writes them, and the same with so many hunks: changed, added and removed lines."""
    base, text = [f"{NOTES}\n"], [f"{NOTES}\n"]
    for number in range(hunks + 2):
        head = [f"def f{number}():  \n", f"    a{number}='old'\n", "\n", "\n", f"    call(a{number}, b)  \n"]
        old = [f"    x{number}='1'\n", f"    y{number}='2'  \n"]
        new = {
            0: [f"    x{number}='one'  \n", f"    y{number}='2'  \n"],
            1: [*old, f"    call(x{number}, y)\n", f"    z{number}='3'   \n"],
            2: [f"    y{number}='2'  \n"],
            3: [f"    other(x{number}, y{number})\n"],
        }[number % 4]
        tail = [f"    return 'r{number}'\n", "\n"]
        is_changed = 0 < number <= hunks
        base += [*head, *old, *tail]
        text += [*head, *(new if is_changed else old), *tail]
    return "".join(base), "".join(text)


async def there_and_back(folder: Path, habit: Habit, formatter: Formatter, hunks: int, rate: float, keys: int) -> None:
    path = folder / "a.py"
    base, text = texts(hunks)
    client = TypingClient(habit)
    client.open(path, base)
    client.after_apply = formatter
    work = client.editor.apply(Changeset((FileChange(str(path), base, text),)), "label")
    applied, typed = await while_typing(client, path, NOTES, rate, work, keys)
    assert (applied.outcome, applied.reason) == ("full", "")
    assert client.text(path) == formatter(text).replace(NOTES, f"{NOTES}{typed}")
    await client.until_known(path)
    back = taking_back([applied.done], Views(lambda: [str(folder)], client.documents).plain())
    assert not back.conflicts
    undone, more = await while_typing(client, path, NOTES, rate, client.editor.apply(back.changeset, "undo"), keys)
    assert undone.outcome == "full"
    assert client.text(path) == formatter(base).replace(NOTES, f"{NOTES}{typed}{more}")


@pytest.mark.parametrize(
    ("rate", "formatter", "hunks"),
    [pytest.param(*row, marks=[pytest.mark.slow] if row[0] < 60 else []) for row in pairwise(RATES, FORMATTERS, HUNKS)],
)
@leaping
async def test_in_an_editor_that_refuses_older_versions(
    tmp_path: Path, rate: float, formatter: str, hunks: int
) -> None:
    await there_and_back(tmp_path, VSCODE, FORMATTERS[formatter], hunks, rate, 10_000)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "formatter", "hunks"), pairwise(RATES, FORMATTERS, HUNKS))
@leaping
async def test_in_an_editor_that_drops_them_and_says_yes(
    tmp_path: Path, rate: float, formatter: str, hunks: int
) -> None:
    await there_and_back(tmp_path, NEOVIM, FORMATTERS[formatter], hunks, rate, 10_000)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "formatter", "hunks"), pairwise((8, 60), FORMATTERS, HUNKS))
@leaping
async def test_in_an_editor_that_tells_in_pauses(tmp_path: Path, rate: float, formatter: str, hunks: int) -> None:
    await there_and_back(tmp_path, EGLOT, FORMATTERS[formatter], hunks, rate, max(6, int(rate / 2)))
