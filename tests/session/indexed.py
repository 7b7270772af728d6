"""A real code index for the tests of runs, without a server: always up to date, or out of order as a test wants it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from codeagent_lsp.index.answers import Answers
from codeagent_lsp.index.port import Finder
from codeagent_lsp.index.service import IndexService, Status
from tests.index.workspaces import service

TAXES = {
    "shop/cart.py": (
        "from shop.taxes import value_added_tax\n\n\n"
        "class Cart:\n    def checkout(self):\n        return value_added_tax(self.items)\n"
    ),
    "shop/taxes.py": "def value_added_tax(items):\n    return 19\n",
    "shop/mail.py": "class Mailer:\n    def send_invoice(self, customer):\n        smtp(customer)\n",
    **{f"lib/part{n}.py": f"def part_{n}():\n    return {n}\n" for n in range(40)},
}


class RealIndexing:
    """The `Indexing` of a test. `problem` is raised by every question; `asked` counts them."""

    def __init__(self, index: IndexService) -> None:
        self.problem: Exception | None = None
        self.unseen = False
        self.asked = 0
        self.others: list[Finder] = []
        self._index = index
        self._answers = Answers(index.store, index.folders)

    @property
    def whole(self) -> bool:
        return not self.unseen

    def finders(self) -> Sequence[Finder]:
        return self.others

    async def ready(self, seconds: float) -> Answers:
        self.asked += 1
        if self.problem is not None:
            raise self.problem
        await self._index.refresh()
        return self._answers

    async def refresh(self) -> Status:
        if self.problem is not None:
            raise self.problem
        return await self._index.refresh()


@asynccontextmanager
async def indexing(root: Path) -> AsyncIterator[RealIndexing]:
    """An index over a folder, kept beside it."""
    async with service(root, store=root.parent / "index" / "index.sqlite") as index:
        yield RealIndexing(index)
