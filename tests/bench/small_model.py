"""Whether the embedded model itself, left to choose, does a task with long files in its window of 8,192 tokens.

`python -m tests.bench.small_model [--attempts 3]` prints what it was asked in each attempt and took from the cache,
and how often all values were right. How it chooses hangs on the processor; that the prompts and the cache are right
does not: `tests/session/test_embedded_task.py` holds that.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.llm.factory import open_model
from tests.session.test_embedded_task import TASK, done, with_long_files, wrong_values
from tests.session.watched import WatchedModel, share, table

TEMPERATURES = (0.0, 0.4)  # the first attempt is without chance


async def attempt(folder: Path, temperature: float) -> bool:
    """One run on the task, told line by line; whether it ended well with all values right."""
    begun = time.monotonic()
    made = with_long_files(folder, temperature)
    inner = await open_model(ModelSettings(provider="embedded"), folder)
    model = made.models["model"] = WatchedModel(inner)
    try:
        ended = await done(made, TASK)
    finally:
        await inner.close()
    wrong = wrong_values(made)
    print(table(model.asked))
    print(
        f"{ended.status}; {len(model.asked)} calls in {time.monotonic() - begun:.0f} s; wrong: "
        f"{', '.join(wrong) or 'none'}; {share(model.asked[1:]):.1%} of the prompt tokens after the first call cached",
        flush=True,
    )
    return ended.status == "completed" and not wrong


def main() -> None:
    """The attempts, and how many were good."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attempts", type=int, default=3)
    attempts: int = parser.parse_args().attempts
    good = 0
    for number in range(attempts):
        temperature = TEMPERATURES[min(number, 1)]
        print(f"\nattempt {number + 1}, temperature {temperature}")
        with tempfile.TemporaryDirectory() as folder:
            good += asyncio.run(attempt(Path(folder), temperature))
    print(f"\n{good} of {attempts} attempts were good")


if __name__ == "__main__":
    main()
