"""A first map, the next one, and one after an edit: `python -m tests.bench.index_peer --repo PATH [...] --peer PYTHON`.

Whole programs side by side on the same folders in the same run: ours (`codeagent-lsp map`) and `aider-chat`, each in
a process of its own, in turns. `cold`: nothing is known; `warm`: nothing has changed; `changed`: one file has. Wall
time, processor time and the most memory of all its processes together (shared pages counted once); the best of the
rounds. `--peer new` makes an environment with `aider-chat` by pip first. Its figure `map` leaves out its imports.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.index.grammars import is_source, is_test
from tests.bench.histories import Repository
from tests.bench.peer import OTHER_SIDE, environment

TOKENS = 1024
CACHES = ".aider.tags.cache*"
STEPS = ("cold", "warm", "changed")


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of wall and of processor, MB; `inside` the seconds that the program itself says its map took."""

    wall: float
    cpu: float
    memory: float
    inside: float = 0.0


def main() -> None:
    """Print a table for each repository."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repo", action="append", required=True, help="a git history, bare or not; may be repeated")
    parser.add_argument("--peer", required=True, help="Python of an environment with aider-chat, or `new`")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        peer = environment(Path(place) / "peer") if options.peer == "new" else options.peer
        for number, repo in enumerate(options.repo):
            _repository(repo, Path(place) / str(number), peer, options.rounds)


def _repository(repo: str, place: Path, peer: str, rounds: int) -> None:
    repository = Repository(repo)
    task = repository.tasks(1)[0]
    files = _export(repository, task.parent, place / "tree")
    load = "/".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\n{Path(repo).parent.name or repo}: {len(files)} files, load {load}, best of {rounds}")
    ours: dict[str, list[Cost]] = {step: [] for step in STEPS}
    theirs: dict[str, list[Cost]] = {step: [] for step in STEPS}
    for _ in range(rounds):
        _round(ours, place, _our_program(place, task.message))
        _round(theirs, place, _their_program(place, peer), _question(task.message, files))
    print(
        "          ours: wall   cpu    MB | aider: wall   cpu    map    MB | wall ratio, to the map alone, cpu, memory"
    )
    for step in STEPS:
        a, b = _best(ours[step]), _best(theirs[step])
        print(
            f"{step:>8}  {a.wall:10.2f} {a.cpu:5.2f} {a.memory:5.0f} | {b.wall:11.2f} {b.cpu:5.2f} {b.inside:6.2f}"
            f" {b.memory:5.0f} | {a.wall / b.wall:.2f} {a.wall / b.inside:.2f} {a.cpu / b.cpu:.2f}"
            f" {a.memory / b.memory:.2f}",
            flush=True,
        )


def _export(repository: Repository, commit: str, place: Path) -> list[str]:
    tree = repository.tree(commit)
    contents = repository.blobs(set(tree.values()))
    for path, blob in tree.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(contents[blob])
        os.utime(place / path, (1e9, 1e9))
    return sorted(tree)


def _round(costs: dict[str, list[Cost]], place: Path, command: Sequence[str], given: str = "") -> None:
    """One program's three steps, from nothing."""
    for known in (place / "state", *(place / "tree").glob(CACHES)):
        shutil.rmtree(known, ignore_errors=True)
    for step in STEPS:
        if step == "changed":
            _edit(place / "tree")
        costs[step].append(measured(command, given, {"CODEAGENT_STATE_DIR": str(place / "state")}, place / "tree"))


def _edit(tree: Path) -> None:
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.py"))
    chosen = next(name for name in names if is_source(name) and not is_test(name))
    with (tree / chosen).open("a") as file:
        file.write(f"\n\ndef added_{time.time_ns()}():\n    return 1\n")


def _our_program(place: Path, message: str) -> Sequence[str]:
    arguments = ("map", "--workspace", str(place / "tree"), "--tokens", str(TOKENS), "--query", message)
    return (sys.executable, "-m", "codeagent_lsp.cli", *arguments)


def _their_program(place: Path, python: str) -> Sequence[str]:
    return (python, "-I", "-c", OTHER_SIDE, str(place / "tree"))


def _question(message: str, files: Iterable[str]) -> str:
    return json.dumps({"message": message, "files": list(files), "budget": TOKENS}) + "\n"


def measured(command: Sequence[str], given: str, environ: dict[str, str], folder: Path) -> Cost:
    """What a program costs, with all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), **environ},
    )  # fmt: skip
    most = [0]
    watching = threading.Thread(target=_watch, args=(process, most))
    watching.start()
    out, _ = process.communicate(given)
    wall = time.perf_counter() - begun
    watching.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0, (command[:4], process.returncode)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    inside = json.loads(out)[1] if out.startswith("[") else wall
    return Cost(wall, cpu, most[0] / 1024, inside)


def _watch(process: subprocess.Popen[str], most: list[int]) -> None:
    while process.poll() is None:
        most[0] = max(most[0], sum(proportional(each) for each in family(process.pid)))
        time.sleep(0.02)


def family(process: int) -> list[int]:
    """A process and all below it."""
    try:
        listing = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return [process]
    return [process, *(each for child in listing.split() for each in family(int(child)))]


def proportional(process: int) -> int:
    """Kilobytes resident, of pages that several processes share its part; 0 where that cannot be told."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _best(costs: Sequence[Cost]) -> Cost:
    """The least of each: what else the machine does only adds."""
    return Cost(*(min(getattr(cost, name) for cost in costs) for name in ("wall", "cpu", "memory", "inside")))


if __name__ == "__main__":
    main()
