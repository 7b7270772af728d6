"""A small repository as an index, without a parser: texts with their definitions found by a plain pattern."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from codeagent_lsp.index.store import IndexEntry, Lexical, Store
from codeagent_lsp.index.symbols import FileTags, Reference, SymbolInfo, pack

_DEFINITION = re.compile(r"^( *)(?:async )?(class|def) (\w+).*$", re.MULTILINE)

SHOP: Mapping[str, str] = {
    "shop/cart.py": (
        "from shop.prices import total_price\n\n\n"
        "class Cart:\n    def add_item(self, item):\n        self.items.append(item)\n\n"
        "    def checkout(self):\n        return total_price(self.items)\n"
    ),
    "shop/prices.py": (
        "from shop.taxes import value_added_tax\n\n\n"
        "def total_price(items):\n    return sum(i.price for i in items) + value_added_tax(items)\n"
    ),
    "shop/taxes.py": "def value_added_tax(items):\n    # the rate of the country\n    return 19\n",
    "shop/mail.py": "class Mailer:\n    def send_invoice(self, customer):\n        smtp(customer)\n",
    "tests/test_cart.py": "def test_checkout_of_a_cart():\n    cart = Cart()\n    assert cart.checkout() == 0\n",
    "docs/cart.md": "# The cart\n\nThe cart checkout is explained here: checkout, cart, checkout.\n",
    "shop/static/cart.min.js": "function checkout(cart){return cart.checkout}\n",
    "README.md": "A shop.\n",
}


def tags_of(path: str, text: str) -> FileTags:
    """Definitions by their indentation; every word of a Python text is a reference."""
    if not path.endswith(".py"):
        return FileTags("")
    symbols: list[SymbolInfo] = []
    scope: list[tuple[int, str]] = []
    last = text.count("\n")
    for found in _DEFINITION.finditer(text):
        indent, line = len(found[1]), text.count("\n", 0, found.start()) + 1
        scope = [each for each in scope if each[0] < indent]
        parent = ".".join(name for _, name in scope)
        kind = "class" if found[2] == "class" else "method" if parent else "function"
        signature = found[0].strip().removesuffix(":")
        symbols.append(SymbolInfo(found[3], kind, path, line, last, signature, "", parent))  # type: ignore[arg-type]
        scope.append((indent, found[3]))
    references = [
        Reference(name, number)
        for number, line in enumerate(text.splitlines(), 1)
        for name in re.findall(r"[A-Za-z_]\w{2,}", line)
    ]
    return FileTags("python", _closed(symbols), tuple(references))


def put(store: Store, files: Mapping[str, str]) -> None:
    """Write files to a store, in one transaction."""
    entries = []
    for path, text in files.items():
        tags = tags_of(path, text)
        digest = hashlib.sha256(text.encode()).digest()
        entries.append(IndexEntry(path, digest, pack(tags), store.prepare(path, tags, text)))
    store.write(entries)


def shop(folder: Path, more: Mapping[str, str] | None = None) -> Store:
    """A store with the files of the shop."""
    store = Store(folder / "index.sqlite", (Lexical(),))
    put(store, {**SHOP, **(more or {})})
    return store


def _closed(symbols: list[SymbolInfo]) -> tuple[SymbolInfo, ...]:
    """Each definition ends before the next that is not inside of it."""
    closed = []
    for at, symbol in enumerate(symbols):
        after = (later.line_start - 1 for later in symbols[at + 1 :] if not later.parent.startswith(symbol.qualified))
        end = next(after, symbol.line_end)
        closed.append(
            SymbolInfo(
                symbol.name, symbol.kind, symbol.path, symbol.line_start, end, symbol.signature, "", symbol.parent
            )
        )
    return tuple(closed)
