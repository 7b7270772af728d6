"""How long a search over recorded runs takes: `python -m tests.bench.run_search [--runs N] [--searches N]`.

Sessions of 20 runs each, written by the store as the server writes them, each with a secret in its talk, which is
masked on the way. Searches of one and two words, rare and common ones, the beginning of a word, a language without
blanks; the list; and how many of the secrets are found, in the database's bytes too.
"""

from __future__ import annotations

import argparse
import random
import string
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from codeagent_lsp.records.masking import Masking
from codeagent_lsp.session.history.listing import KeptSessions, history_in

IN_A_SESSION = 20
WORDS = (
    "cart",
    "total",
    "parser",
    "repair",
    "rename",
    "retry",
    "socket",
    "cache",
    "index",
    "tests",
    "修复",
    "购物车",
    "合计",
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--searches", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        state = Path(name)
        secrets = _recorded(state, options.runs)
        history = history_in(state)
        print(f"built anew: {_milliseconds(lambda: history.search('cart', 20)) / 1000:.1f} s")
        rng = random.Random(2)
        took = sorted(_milliseconds(lambda: history.search(_query(rng), 20)) for _ in range(options.searches))
        middle, late = took[len(took) // 2], took[int(len(took) * 0.99)]
        print(f"{len(took)} searches: median {middle:.1f} ms, 99th percentile {late:.1f} ms, longest {took[-1]:.1f} ms")
        lists = sorted(_milliseconds(lambda: history.runs(100)) for _ in range(30))
        print(f"the list: median {lists[15]:.1f} ms")
        found = sum(bool(history.search(secret, 1)) for secret in rng.sample(secrets, min(200, len(secrets))))
        history.close()
        stored = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
        print(f"secrets found by a search: {found}, in the files: {sum(each.encode() in stored for each in secrets)}")


def _recorded(state: Path, runs: int) -> list[str]:
    """Write the sessions; return the secrets that were said in them."""
    rng = random.Random(1)
    kept = KeptSessions(state, _ignored, Masking().clean, lambda: None)
    secrets = []
    for number in range(runs):
        session, run = f"s{number // IN_A_SESSION:05}", f"r{number:06}"
        secret = "gh" + "p_" + "".join(rng.choices(string.ascii_letters + string.digits, k=36))
        secrets.append(secret)
        task = f"{_words(rng, 6)} number{number}"
        events: list[dict[str, object]] = [
            {"type": "run_started", "task": task, "title": task[:60]},
            {"type": "message", "message": {"role": "user", "content": f"{task}, the key is {secret}"}},
            {"type": "message", "message": {"role": "assistant", "content": f"{_words(rng, 80)} {secret}"}},
            {"type": "usage", "prompt_tokens": 900, "completion_tokens": 100},
            {"type": "run_completed", "status": "completed"},
        ]
        for event in events:
            kept.store.append(session, {"run_id": run, "session_id": session, "ts": float(number), **event})
        if number % IN_A_SESSION == IN_A_SESSION - 1:
            kept.store.release(session)
    kept.store.close()
    return secrets


def _words(rng: random.Random, count: int) -> str:
    return " ".join(f"{rng.choice(WORDS)}{rng.randrange(40) if rng.random() < 0.5 else ''}" for _ in range(count))


def _query(rng: random.Random) -> str:
    return rng.choice(
        [f"number{rng.randrange(10_000)}", f"{rng.choice(WORDS)}{rng.randrange(40)} {rng.choice(WORDS)}", "car", "购物"]
    )


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _ignored(error: OSError) -> None:
    raise error


if __name__ == "__main__":
    main()
