"""What stays to the end of a test session, kept away from the collector of garbage, which then looks less often."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 50_000
"""So many new objects are looked through at once: with the 700 of the standard, most of them are still in use."""


@contextmanager
def uncollected() -> Iterator[None]:
    """What is made in here stays for good: a million objects, looked through again and again, are much of the work."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(YOUNG)
        gc.enable()
