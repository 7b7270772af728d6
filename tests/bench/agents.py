"""Agents side by side on one model server: the same tasks, the same words, the same checks, in turns.

`python -m tests.bench.agents --agents ours,aider --tasks 12` starts the embedded model, lets each agent do each task in
a fresh copy of its project, writes one JSON line for each to `--out` at once, and prints tables; it asserts nothing.
`--report FILE` prints the tables of an earlier run. The model is behind a proxy that counts (`agents_proxy.py`); the
tasks are made by a program (`tasks`), the agents stand in `agents_runs.py`, results and tables in `agents_results.py`.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench.agents_node import NotFetched, OpenCode, Pi, fetched
from tests.bench.agents_peers import Aider, MiniSwe
from tests.bench.agents_proxy import CountingProxy
from tests.bench.agents_results import Result, append, cause_of, changed_files, read, report
from tests.bench.agents_runs import ROOT, WINDOW, Agent, Limit, ModelServer, Ours
from tests.bench.boxed import doors
from tests.bench.peer import VERSION, environment
from tests.bench.served import model_of, served
from tests.bench.tasks import ALL_KINDS, KINDS, SIZES, Task, draw, lay, solved
from tests.bench.tasks.exercises import exercise_tasks
from tests.bench.tasks.people import people_tasks

FORMS = ("auto", "tools", "whole", "function", "line", "blocks", "diff")
ATTEMPTS = ("2", "3", "5")
AGENTS = ("ours", *(f"ours:{variant}" for variant in (*FORMS, *ATTEMPTS)), "aider", "mini", "pi", "opencode")
MINI_VERSION = "2.4.6"
LIMIT_SECONDS = 300.0


def main() -> None:
    """Measure, or only print the tables of a file."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what it started ends, too
    options = _options()
    out = Path(options.report or options.out)
    if options.report is None:
        if out.exists() and not options.resume:
            sys.exit(f"{out} is there already: give --resume to go on with it, or another --out")
        _measure(options, out)
    results = read(out)
    print(report(results) if results else "no results")


def _measure(options: argparse.Namespace, out: Path) -> None:
    compileall.compile_dir(ROOT / "codeagent_lsp", quiet=1)  # as it is once installed; the agents write no byte code
    tasks = draw(options.seed, options.tasks, kinds=options.kinds, sizes=options.sizes)
    if options.people:
        if not options.repo:
            sys.exit("--people needs --repo, a clone of the history whose tasks these are")
        tasks = people_tasks(options.people, options.repo)
        tasks = [task for task in tasks if task.size in options.sizes][: options.tasks]
    if options.exercises:
        tasks = list(exercise_tasks(Path(options.exercises)))[: options.tasks]
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agents-")))
        key = os.environ.get(options.key) or secrets.token_urlsafe(24)
        programs = _programs(options.agents, options.peer)
        url = options.url or stack.enter_context(served(key, options.slots, options.window))
        proxy = stack.enter_context(CountingProxy(url, key, options.tokens))
        model = options.model or model_of(proxy.url)
        server = ModelServer(proxy.url, model, options.window, stack.enter_context(doors(proxy.url, home)))
        make = _maker(server, home, programs)
        agents = [make(name) for name in options.agents]
        every = turns(
            tasks,
            agents,
            proxy,
            rounds=options.rounds,
            seconds=options.timeout,
            done=read(out),
            logs=options.logs,
        )
        for result in every:
            append(out, result)
            _tell(result)


def turns(
    tasks: Sequence[Task],
    agents: Sequence[Agent],
    proxy: CountingProxy,
    *,
    rounds: int,
    seconds: float,
    done: Sequence[Result] = (),
    logs: Path | None = None,
) -> Iterator[Result]:
    """Every agent on every task, the first one changing from task to task; what is in `done` is left out."""
    known = {result.key for result in done}
    for number in range(1, rounds + 1):
        for at, task in enumerate(tasks):
            first = (at + number - 1) % len(agents)
            for agent in [*agents[first:], *agents[:first]]:
                if (number, task.id, agent.name) not in known:
                    yield measured(agent, task, proxy, round_number=number, seconds=seconds, logs=logs)


def measured(
    agent: Agent, task: Task, proxy: CountingProxy, *, round_number: int, seconds: float, logs: Path | None = None
) -> Result:
    """One agent on one task in a fresh folder."""
    folder = Path(tempfile.mkdtemp(prefix="task-"))
    project = folder / "project"
    try:
        project.mkdir()
        lay(task, project)
        proxy.take()
        ended = agent.work(task, project, Limit(seconds, proxy.spent))
        if logs is not None:
            _log(logs, f"{round_number}-{task.id}-{agent.name.replace(':', '-')}.txt", ended.output)
        count = proxy.take()
        changed = changed_files(task, project)
        good = solved(task, project)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Result(
        round=round_number,
        task=task.id,
        kind=task.kind,
        size=task.size,
        agent=agent.name,
        solved=good,
        said_done=ended.said_done,
        status=ended.status,
        cause="" if good else cause_of(task, changed, ended),
        error=ended.error,
        seconds=round(ended.seconds, 2),
        requests=count.requests,
        prompt_tokens=count.prompt_tokens,
        cached_tokens=count.cached_tokens,
        completion_tokens=count.completion_tokens,
        model_seconds=round(count.seconds, 2),
        files_changed=tuple(sorted(changed)),
    )


def _log(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


OTHERS: Mapping[str, Callable[[str, ModelServer, Path, str], Agent]] = {
    "aider": Aider,
    "mini": MiniSwe,
    "pi": Pi,
    "opencode": OpenCode,
}


def _programs(names: Sequence[str], peer: str) -> dict[str, str]:
    """The programs of those of the other agents that are to run, fetched before anything is measured."""
    try:
        found = {name: fetched(name) for name in names if name in ("pi", "opencode")}
    except NotFetched as error:
        sys.exit(str(error))
    if "aider" in names:
        found["aider"] = _peer("aider", peer)
    if "mini" in names:
        found["mini"] = _peer("mini")
    return found


def _maker(server: ModelServer, home: Path, programs: Mapping[str, str]) -> Callable[[str], Agent]:
    def make(name: str) -> Agent:
        if name in OTHERS:
            return OTHERS[name](name, server, home / name, programs[name])
        variant, place = name.partition(":")[2], home / name.replace(":", "-")
        if variant in ATTEMPTS:
            return Ours(name, server.url, server.model, place, attempts=int(variant))
        return Ours(name, server.url, server.model, place, variant)

    return make


REQUIREMENTS = {"aider": f"aider-chat=={VERSION}", "mini": f"mini-swe-agent=={MINI_VERSION}"}


def environment_of(name: str) -> Path:
    """The folder for the environment of an agent from PyPI, in the cache of the user."""
    return Path.home() / ".cache" / "codeagent-bench" / REQUIREMENTS[name].replace("==", "-")


def _peer(name: str, peer: str = "new") -> str:
    """The Python of an environment with an agent; `new` makes one, once."""
    if peer != "new":
        return peer
    place = environment_of(name)
    made = place / "made"
    if not made.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        environment(place, REQUIREMENTS[name])
        made.touch()
    return str(place / "bin" / "python")


def _tell(result: Result) -> None:
    end = "solved" if result.solved else result.cause
    tokens = f"{result.prompt_tokens} in ({result.cached_tokens} cached), {result.completion_tokens} out"
    print(
        f"{result.round} {result.task} {result.agent}: {end}; said {result.status}; {result.seconds:.0f} s, "
        f"{result.requests} calls, {tokens}",
        flush=True,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.agents", description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=_listed(AGENTS), default=["ours", "aider"], metavar=",".join(AGENTS))
    parser.add_argument("--tasks", type=int, default=60, metavar="N", help="so many tasks (60)")
    parser.add_argument("--seed", type=int, default=1, help="which tasks are drawn (1)")
    parser.add_argument("--kinds", type=_listed(ALL_KINDS), default=list(KINDS), metavar=",".join(ALL_KINDS))
    parser.add_argument("--sizes", type=_listed(SIZES), default=list(SIZES), metavar=",".join(SIZES))
    parser.add_argument("--rounds", type=int, default=1, help="each task so often (1)")
    parser.add_argument("--url", help="a model server that runs already; else the embedded model is started")
    parser.add_argument("--slots", type=int, default=1, metavar="N", help="requests the latter answers at a time (1)")
    parser.add_argument("--model", default="", help="its model; else the first one it offers")
    parser.add_argument("--key", default="OPENAI_API_KEY", metavar="VARIABLE", help="where its key is (OPENAI_API_KEY)")
    parser.add_argument("--exercises", metavar="PATH", help="the programs of this checkout of QuixBugs as tasks")
    parser.add_argument("--people", type=Path, metavar="FILE", help="tasks that tests.bench.tasks.people drew")
    parser.add_argument("--repo", metavar="PATH", help="with --people: a clone of their history")
    parser.add_argument("--out", default="results.jsonl", help="where each result is written at once")
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keep here what each agent printed")
    parser.add_argument("--resume", action="store_true", help="go on with --out and leave out what is there")
    parser.add_argument("--timeout", type=float, default=LIMIT_SECONDS, metavar="SECONDS", help="per task (300)")
    parser.add_argument("--tokens", type=int, default=0, metavar="N", help="end a run also at N tokens read or written")
    parser.add_argument(
        "--window",
        type=int,
        default=WINDOW,
        metavar="TOKENS",
        help=f"of the model; what is started here gets it ({WINDOW})",
    )
    parser.add_argument("--peer", default="new", metavar="PYTHON", help="a Python with aider-chat, or new (made once)")
    parser.add_argument("--report", metavar="FILE", help="only print the tables of this file")
    return parser.parse_args()


def _listed(allowed: Sequence[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        found = text.split(",")
        if strange := [name for name in found if name not in allowed]:
            raise argparse.ArgumentTypeError(f"{', '.join(strange)}: not among {', '.join(allowed)}")
        return found

    return names


if __name__ == "__main__":
    main()
