"""All files are read and parsed once, before the first of these tests: that is the work of none of them."""

from __future__ import annotations

import pytest

from tests.tidy import source


@pytest.fixture(autouse=True, scope="session")
def _parsed() -> None:
    source.modules()
    source.test_modules()
