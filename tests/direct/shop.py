"""A small workspace, and tasks in it."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.direct.checks import FailedTest, Verdict, brief_of
from codeagent_lsp.direct.gathering import Subject
from codeagent_lsp.direct.workspace_files import WorkspaceFiles
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import Roots
from tests.workspace.file_fakes import FakeBuffers, FakeStaged

LONG = "".join(f"def filler_{n}(value):\n    total = value + {n}\n    return total\n\n\n" for n in range(380))
FILES = {
    "shop/cart.py": "from shop.taxes import tax\n\n\ndef checkout(items):\n    return tax(items)\n",
    "shop/taxes.py": "RATE = 19\n\n\ndef tax(items):\n    return RATE\n",
    "shop/mail.py": "def send(customer):\n    return customer\n",
    "shop/long.py": f'"""Long."""\n\n\n{LONG}def wanted(a):\n    return a - 1\n',
    "tests/test_taxes.py": "from shop.taxes import tax\n\n\ndef test_tax():\n    assert tax([1]) == 0.19\n",
    "tests/test_cart.py": "from shop.cart import checkout\n\n\ndef test_checkout():\n    assert checkout([])\n",
    ".env": "SECRET=1\n",
    "dist/made.py": "X = 1\n",
    "README.md": "# Shop\n",
}
FAILING = Verdict(0, (FailedTest("tests.test_taxes.test_tax", "tests/test_taxes.py", 5),), "test_tax: 19 != 0.19")


def shop(folder: Path) -> WorkspaceFiles:
    """The files of a shop, written to a folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return over(folder)


def over(folder: Path, buffers: FakeBuffers | None = None) -> WorkspaceFiles:
    """The files that are in a folder and in buffers."""
    view = FileView(Roots([str(folder)]), buffers or FakeBuffers(), FakeStaged())
    return WorkspaceFiles(view, lambda path: not path.endswith(".env"))


def subject(words: str, target: str = "", mapped: tuple[str, ...] = (), earlier: tuple[str, ...] = ()) -> Subject:
    return Subject(brief_of(words), target, range(0), earlier, mapped)
