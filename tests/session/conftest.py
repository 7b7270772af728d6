"""What every test of sessions leaves behind is closed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.session.fakes import STORES


@pytest.fixture(autouse=True)
def _stores_are_closed() -> Iterator[None]:
    yield
    while STORES:
        STORES.pop().close()
