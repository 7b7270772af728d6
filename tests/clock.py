"""Time limits that hold on a busy machine too: of processor time, or of waiting for what would take much longer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def processor_seconds(limit: float) -> Iterator[None]:
    """Fail when the block takes more processor time of this thread: what other programs do does not count."""
    begun = time.thread_time()
    yield
    took = time.thread_time() - begun
    assert took < limit, f"{took:.2f} s of processor time, at most {limit} s"


@contextmanager
def sooner_than(seconds: float, what: str) -> Iterator[None]:
    """Fail when the block does not end before `what` would have, which takes `seconds`."""
    begun = time.monotonic()
    yield
    took = time.monotonic() - begun
    assert took < seconds, f"{took:.1f} s, no sooner than {what}"
