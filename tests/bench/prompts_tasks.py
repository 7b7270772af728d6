"""A small made-up project, what is asked of an agent in it, and what a strong model does about it, step by step.

A step is written once, as intents (read, grep, edit, write, test), and translated into the tools of each agent. Not
here: playing and measuring (`prompts.py`).
"""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from tests.bench.by_hand import Answer
from tests.bench.chat_requests import Asked, text_of

PRICES = '''"""Prices in cents."""


def with_discount(cents: int, percent: int) -> int:
    """Return a price after a discount."""
    return cents - cents * percent // 100


def with_tax(cents: int, rate: int = 19) -> int:
    """Return a price with its tax."""
    return cents + cents * rate // 100
'''
CART = '''"""The cart of one customer."""

from kiosk.prices import with_discount, with_tax


class Cart:
    """What a customer wants to buy."""

    def __init__(self, discount: int = 0) -> None:
        self.discount = discount
        self.items: list[tuple[str, int]] = []

    def add(self, name: str, cents: int) -> None:
        """Put something into the cart."""
        self.items.append((name, cents))

    def subtotal(self) -> int:
        """Return the sum of all prices."""
        return sum(cents for _, cents in self.items)

    def total(self) -> int:
        """Return what the customer pays."""
        return with_tax(with_discount(self.subtotal(), self.discount))
'''
RECEIPT = '''"""What is printed for a customer."""

from kiosk.cart import Cart


def lines(cart: Cart) -> list[str]:
    """Return a line for each thing in the cart, and the sum."""
    return [*(f"{name} {cents}" for name, cents in cart.items), f"sum {cart.subtotal()}"]
'''
SHELF = '''"""The shelf with {name}: what lies on it, and what it is worth."""

LIMIT = {limit}


class {title}Shelf:
    """The {name} of one shop."""

    def __init__(self) -> None:
        self.pieces = 0
        self.sold_pieces = 0

    def restock_{name}(self, pieces: int) -> int:
        """Put pieces on the shelf, at most up to its limit; return how many found room."""
        room = min(pieces, LIMIT - self.pieces)
        self.pieces += room
        return room

    def sell_{name}(self, pieces: int) -> int:
        """Take pieces from the shelf; return how many there were."""
        taken = min(pieces, self.pieces)
        self.pieces -= taken
        self.sold_pieces += taken
        return taken

    def worth(self, cents: int) -> int:
        """Return what the pieces on the shelf are worth."""
        return self.pieces * cents


def {name}_order(shelf: {title}Shelf) -> int:
    """Return how many pieces have to be ordered."""
    return LIMIT - shelf.pieces
'''
SHELVES = ("bakery", "cheese", "drinks", "fruit", "papers", "sweets", "tea", "toys")
TESTS = {
    "tests/test_prices.py": """from kiosk.prices import with_discount, with_tax


def test_a_discount_is_taken_off() -> None:
    assert with_discount(1000, 10) == 900


def test_tax_is_added() -> None:
    assert with_tax(1000) == 1190
""",
    "tests/test_cart.py": """from kiosk.cart import Cart


def test_a_total_has_discount_and_tax() -> None:
    cart = Cart(discount=10)
    cart.add("tea", 1000)
    assert (cart.subtotal(), cart.total()) == (1000, 1071)
""",
    "tests/test_drinks.py": """from kiosk.drinks import DrinksShelf


def test_what_is_sold_is_counted() -> None:
    shelf = DrinksShelf()
    shelf.restock_drinks(9)
    assert (shelf.sell_drinks(4), shelf.sold_pieces, shelf.pieces) == (4, 4, 5)
""",
}
PROJECT: Mapping[str, str] = {
    "README.md": "# Kiosk\n\nA cash desk for small shops. `python -m pytest` runs the tests.\n",
    "pyproject.toml": '[project]\nname = "kiosk"\nversion = "1"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "kiosk/__init__.py": '"""A cash desk."""\n',
    "kiosk/prices.py": PRICES,
    "kiosk/cart.py": CART,
    "kiosk/receipt.py": RECEIPT,
    **{
        f"kiosk/{name}.py": SHELF.format(name=name, title=name.title(), limit=20 + at)
        for at, name in enumerate(SHELVES)
    },
    **TESTS,
}

NUMBERED = re.compile(r"^\s*\d+(?:[|:\t]|$)")
MANY_LINES = 400

Intent = tuple[str, dict[str, str]]


def read(path: str) -> Intent:
    """Look at a file."""
    return "read", {"path": path}


def grep(pattern: str) -> Intent:
    """Search all files."""
    return "grep", {"pattern": pattern}


def edit(path: str, old: str, new: str) -> Intent:
    """Replace the only place with a text."""
    return "edit", {"path": path, "old": old, "new": new}


def write(path: str, text: str) -> Intent:
    """Make a file."""
    return "write", {"path": path, "text": text}


def run_tests(path: str = "tests") -> Intent:
    """Run the tests of a file or folder."""
    return "test", {"path": path}


Step = tuple[Intent, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """Something asked of an agent: the project's `files`, the user's words in one line, the steps of a strong model,
    the `answer` at their end, and what files then contain (`wanted`).
    """

    name: str
    words: str
    steps: Sequence[Step]
    answer: str
    wanted: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=lambda: PROJECT)

    def done_in(self, folder: Path) -> bool:
        """Return whether the files are as wanted; without a wish, whether they are as they were."""
        if not self.wanted:
            return all((folder / path).read_text("utf-8") == text for path, text in self.files.items())
        found = {path: (folder / path) for path in self.wanted}
        return all(file.is_file() and self.wanted[path] in file.read_text("utf-8") for path, file in found.items())


def broken(path: str, right: str, wrong: str) -> Mapping[str, str]:
    """Return the project with a fault."""
    assert right in PROJECT[path]
    return {**PROJECT, path: PROJECT[path].replace(right, wrong)}


TAX, SOLD = "cents * rate // 100\n", "        self.sold_pieces += taken\n"
AS_TEXT = '''


def as_text(cart: Cart) -> str:
    """Return the receipt as one text."""
    return "\\n".join(lines(cart))
'''
AS_TEXT_TEST = """from kiosk.cart import Cart
from kiosk.receipt import as_text


def test_a_receipt_is_one_text() -> None:
    cart = Cart()
    cart.add("tea", 300)
    assert as_text(cart) == "tea 300\\nsum 300"
"""
LAST_LINE = RECEIPT.splitlines(keepends=True)[-1]

WORKS = (
    Work(
        "question",
        "How does a discount reach the total of a cart? Name the functions, change nothing.",
        [(grep("discount"), read("kiosk/cart.py")), (read("kiosk/prices.py"),)],
        "Cart.total gives its subtotal and its discount to with_discount, and the result to with_tax.",
    ),
    Work(
        "failing",
        "Run the tests and say which fail and why. Change nothing.",
        [(run_tests(),), (read("tests/test_prices.py"), read("kiosk/prices.py"))],
        "test_tax_is_added and test_a_total_has_discount_and_tax fail: with_tax divides by 1000 instead of 100.",
        files=broken("kiosk/prices.py", TAX, "cents * rate // 1000\n"),
    ),
    Work(
        "fault",
        "with_tax in kiosk/prices.py adds a tenth of the tax only. Correct it; tests/test_prices.py has to pass.",
        [
            (read("kiosk/prices.py"), read("tests/test_prices.py")),
            (edit("kiosk/prices.py", "// 1000", "// 100"), run_tests("tests/test_prices.py")),
        ],
        "with_tax divides by 100 now, and its tests pass.",
        {"kiosk/prices.py": TAX},
        broken("kiosk/prices.py", TAX, "cents * rate // 1000\n"),
    ),
    Work(
        "addition",
        "Add a function as_text(cart) to kiosk/receipt.py that returns the receipt as one text, and a test for it.",
        [
            (read("kiosk/receipt.py"), read("tests/test_cart.py")),
            (
                edit("kiosk/receipt.py", LAST_LINE, LAST_LINE + AS_TEXT),
                write("tests/test_receipt.py", AS_TEXT_TEST),
                run_tests("tests/test_receipt.py"),
            ),
        ],
        "kiosk/receipt.py has as_text now, with a test in tests/test_receipt.py that passes.",
        {"kiosk/receipt.py": "def as_text(", "tests/test_receipt.py": "as_text(cart)"},
    ),
    Work(
        "rename",
        "Rename the method subtotal of Cart to net, wherever it is used.",
        [
            (grep("subtotal"),),
            (read("kiosk/cart.py"), read("kiosk/receipt.py"), read("tests/test_cart.py")),
            (
                edit("kiosk/cart.py", "def subtotal(", "def net("),
                edit("kiosk/cart.py", "self.subtotal()", "self.net()"),
                edit("kiosk/receipt.py", "cart.subtotal()", "cart.net()"),
                edit("tests/test_cart.py", "cart.subtotal()", "cart.net()"),
                run_tests(),
            ),
        ],
        "Cart.subtotal is Cart.net now, in three files; the tests pass.",
        {"kiosk/cart.py": "self.net()", "kiosk/receipt.py": "cart.net()", "tests/test_cart.py": "cart.net()"},
    ),
    Work(
        "search",
        "One of the shelves does not count what it has sold. Find it, mend it, and run the tests.",
        [
            (grep("sold_pieces"),),
            *((read(f"kiosk/{name}.py"),) for name in SHELVES),
            (
                edit("kiosk/drinks.py", "        self.pieces -= taken\n", f"        self.pieces -= taken\n{SOLD}"),
                run_tests("tests/test_drinks.py"),
            ),
        ],
        "The shelf with drinks counts what it has sold now; its test passes.",
        {"kiosk/drinks.py": SOLD},
        broken("kiosk/drinks.py", SOLD, ""),
    ),
)


def works_in(files: Mapping[str, str]) -> tuple[Work, ...]:
    """Return works for any project: a question about its largest Python file up to 400 lines, and an edit of it."""
    sizes = {
        path: text.count("\n")
        for path, text in files.items()
        if path.endswith(".py") and text.count(first_line(text)) == 1 and text.count("\n") <= MANY_LINES
    }
    path = max(sizes, key=lambda name: sizes[name])
    head, name = first_line(files[path]), PurePath(path).stem
    return (
        Work(
            "question",
            f"What is in {path}, and who uses it? Change nothing.",
            [(grep(name), read(path))],
            "It is used in the places that the search found.",
            files=files,
        ),
        Work(
            "comment",
            f"Put the comment '# {name}' at the very top of {path}.",
            [(read(path),), (edit(path, head, f"# {name}\n{head}"),)],
            "The comment is there.",
            {path: f"# {name}\n{head}"},
            files,
        ),
    )


def first_line(text: str) -> str:
    """Return the first line of a text with its end; '' for none."""
    return next(iter(text.splitlines(keepends=True)), "")


def committed(repository: Path) -> dict[str, str]:
    """Return the text files of a repository's last commit."""
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=repository, check=True, capture_output=True).stdout
    files = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for entry in filter(tarfile.TarInfo.isfile, archive):
            content = archive.extractfile(entry)
            assert content is not None, "a file has a content"
            try:
                files[entry.name] = content.read().decode()
            except UnicodeDecodeError:
                continue  # a picture or the like
    return files


def lay(work: Work, folder: Path) -> None:
    """Write the project of a work into a folder and commit it."""
    for path, text in work.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "begin"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True)


Call = tuple[str, dict[str, Any]]
Translation = Callable[[Intent, Path], Call]
"""Returns the call that an agent's tools offer for an intent in the project in a folder."""


def ours(intent: Intent, folder: Path) -> Call:
    """Translate for codeagent-lsp, whose paths are relative to its workspace."""
    match intent:
        case "read", given:
            return "read_file", {"path": given["path"]}
        case "grep", given:
            return "grep", {"pattern": given["pattern"]}
        case "edit", given:
            return "edit_file", {"path": given["path"], "old_str": given["old"], "new_str": given["new"]}
        case "write", given:
            return "write_file", {"path": given["path"], "content": given["text"]}
        case "test", given:
            return "run_tests", {"path": given["path"]}
    raise ValueError(intent)


def opencode(intent: Intent, folder: Path) -> Call:
    """Translate for opencode, whose paths are absolute."""
    path = str(folder / intent[1].get("path", ""))
    match intent:
        case "read", _:
            return "read", {"filePath": path}
        case "grep", given:
            return "grep", {"pattern": given["pattern"]}
        case "edit", given:
            return "edit", {"filePath": path, "oldString": given["old"], "newString": given["new"]}
        case "write", given:
            return "write", {"filePath": path, "content": given["text"]}
        case "test", given:
            return "bash", {"command": f"python -m pytest -q {given['path']}"}
    raise ValueError(intent)


class StrongModel:
    """A policy that does one work in a folder. A file that stands whole in the request is not read once more.

    `numbers` are those of the requests of the work itself: with tools and the user's words. To others, such as for a
    title, it says a few words.
    """

    def __init__(self, work: Work, translation: Translation, folder: Path) -> None:
        self.numbers: list[int] = []
        self._work = work
        self._translation = translation
        self._folder = folder
        self._left = list(work.steps)

    def __call__(self, asked: Asked) -> Answer:
        """Return the next reply."""
        users = [text_of(message) for message in asked.messages if message["role"] == "user"]
        if not asked.tools or not any(self._work.words in text for text in users):
            return Answer("A task about the kiosk")
        self.numbers.append(asked.number)
        shown = squeezed("\n".join(map(text_of, asked.messages)))
        while self._left:
            step = self._left.pop(0)
            wanted = [intent for intent in step if not (intent[0] == "read" and self._stands(intent[1]["path"], shown))]
            if wanted:
                return Answer(calls=[self._translation(intent, self._folder) for intent in wanted])
        return Answer(self._work.answer)

    def _stands(self, path: str, shown: str) -> bool:
        return squeezed(self._work.files[path]) in shown


def squeezed(text: str) -> str:
    """Return a text without blank lines, numbers of lines and indentation, to be found however it is shown."""
    lines = (NUMBERED.sub("", line).strip() for line in text.splitlines())
    return "\n".join(filter(None, lines))
