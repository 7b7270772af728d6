"""The server, looking more often at what it otherwise looks at every second or two: tests that wait for it wait less.

Everything else is as always: the same code in the same order. Tests in memory show what the true times are for
(`tests/foreign/test_watch.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from codeagent_lsp import cli
from codeagent_lsp.foreign import watch
from codeagent_lsp.foreign.whose import Pace
from codeagent_lsp.server import foreign_changes, lender

MAIN = "tests.server.hurried:main"
"""What a forked server runs (`tests/server/warm.py`)."""
SETTLED = 2.5
"""After so many seconds, what another program wrote has been told, if it is."""


def main(arguments: Sequence[str]) -> int:
    """Do as the command line does, sooner."""
    foreign_changes.START_SECONDS = 0.5
    watch.Pace = partial(Pace, tick=0.5, quiet=0.7, longest=3.0)  # type: ignore[attr-defined, assignment]
    lender.LOOK_SECONDS = 0.1
    return cli.main(arguments)
