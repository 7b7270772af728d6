"""What stays to the end of a test session, kept away from the collector of garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """What is made in here stays for good: a million objects, looked through again and again, are much of the work."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
