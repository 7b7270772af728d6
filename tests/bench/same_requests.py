"""Show that the bench of agents runs what users run: for each task both send the model the same requests.

    python -m tests.bench.same_requests [--tasks N] [--seed S] [--replies refusing,answering] [--show]

Each task is done twice, in fresh copies of its project: by the bench's `ours`, and by `codeagent-lsp run` as the README
says, in the folder of the project, with the settings that `setup` keeps. A scripted model answers both, so that nothing
is left to chance: *refusing* cannot do any task, *answering* sends the last code back that it is shown, with a line
more, and reads a file where it is offered to. The bodies are compared byte for byte, but for the folder of the project
and for the usage of tokens that the bench's proxy asks for, which changes no answer. `--show` prints where the first of
them differ. The exit code is 1 if any do. Not here: the agents (`agents_runs.py`), the tasks (`tasks`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.agents_proxy import CountingProxy
from tests.bench.agents_runs import KEPT_OUT, ROOT, WINDOW, Limit, Ours
from tests.bench.by_hand import Answer, Policy, playing
from tests.bench.chat_requests import Asked, text_of
from tests.bench.tasks import KINDS, SIZES, Task, draw, lay

TASKS, SEED = 12, 20261127
LIMIT_SECONDS = 120.0
MODEL = "qwen2.5-coder-1.5b-instruct"
SHOWN = 200


def refusing(asked: Asked) -> Answer:
    """Answer that the task cannot be done."""
    return Answer("I do not know.")


def answering(asked: Asked) -> Answer:
    """Answer with code that depends on the request alone: what stands in its last fence, and a line more."""
    if "read_file" in asked.tools and asked.messages[-1]["role"] != "tool":
        return Answer(calls=[("read_file", {"path": "README.md"})])
    prompt = "\n".join(text_of(message) for message in asked.messages)
    fences = re.findall(r"^```\w*\n(.*?)^```", prompt, re.MULTILINE | re.DOTALL)
    return Answer(f"```python\n{fences[-1]}\n# {len(fences)}\n```" if fences else "I do not know.")


REPLIES: Mapping[str, Policy] = {"refusing": refusing, "answering": answering}


@dataclass(frozen=True, slots=True)
class Compared:
    """What was sent for one task, by the bench and by a user's command."""

    task: str
    replies: str
    in_bench: Sequence[str]
    by_user: Sequence[str]

    @property
    def same(self) -> bool:
        """Whether both sent the same."""
        return list(self.in_bench) == list(self.by_user)

    def told(self) -> str:
        """Return the first difference."""
        for number, (one, other) in enumerate(zip(self.in_bench, self.by_user, strict=False), 1):
            if one != other:
                at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
                ends = (f"{name}: …{text[max(0, at - SHOWN) : at + SHOWN]}…" for name, text in _named(one, other))
                return "\n".join([f"request {number}, character {at}", *ends])
        return f"{len(self.in_bench)} requests in the bench, {len(self.by_user)} by the command"


def _named(in_bench: str, by_user: str) -> Sequence[tuple[str, str]]:
    return ("bench", in_bench), ("command", by_user)


@dataclass(slots=True)
class _Sent:
    """A policy, and what it was asked since the last time."""

    policy: Policy
    asked: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked.body)
        return self.policy(asked)

    def take(self, project: Path) -> list[str]:
        taken, self.asked = self.asked, []
        bodies = [{key: value for key, value in body.items() if key != "stream_options"} for body in taken]
        return [json.dumps(body, sort_keys=True).replace(str(project), "PROJECT") for body in bodies]


def compared(tasks: Sequence[Task], replies: str, folder: Path) -> Iterator[Compared]:
    """Do each task both ways below a folder; what each sent."""
    sent, home = _Sent(REPLIES[replies]), folder / "home"
    home.mkdir(parents=True)
    with playing(sent.answer, window=WINDOW) as url, CountingProxy(url) as proxy:
        ours = Ours("ours", proxy.url, MODEL, folder / "bench")
        model = {"baseUrl": url, "name": MODEL}
        settings = {f"codeagent.model.{key}": each for key, each in model.items()}
        (home / "settings.json").write_text(json.dumps(settings))
        for number, task in enumerate(tasks):
            benched = _laid(task, folder / f"b{number}" / "project")
            ours.work(task, benched, Limit(LIMIT_SECONDS))
            in_bench = sent.take(benched)
            used = _laid(task, folder / f"u{number}" / "project")
            as_a_user(task, used, home)
            yield Compared(task.id, replies, in_bench, sent.take(used))


def as_a_user(task: Task, project: Path, home: Path) -> None:
    """Do a task as the README says, with the settings in this home. RuntimeError if the command breaks."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(KEPT_OUT)}
    command = [sys.executable, "-m", "codeagent_lsp.cli", "run", "--yes", task.words]
    environment = {**kept, "CODEAGENT_STATE_DIR": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, timeout=LIMIT_SECONDS, check=False
    )
    if b"Traceback" in done.stderr:
        raise RuntimeError(done.stderr.decode("utf-8", "replace"))


def _laid(task: Task, folder: Path) -> Path:
    folder.mkdir(parents=True)
    lay(task, folder)
    return folder


def main() -> int:
    """Print a line for each task."""
    options = _options()
    tasks = draw(options.seed, options.tasks, kinds=KINDS, sizes=SIZES)
    differ = sent = 0
    print("| task | replies | requests | characters | the same |", "|---|---|---|---|---|", sep="\n", flush=True)
    for replies in options.replies:
        with tempfile.TemporaryDirectory(prefix="same-") as name:
            for each in compared(tasks, replies, Path(name).resolve()):
                characters = sum(map(len, each.in_bench))
                mark = "yes" if each.same else "NO"
                print(f"| {each.task} | {replies} | {len(each.in_bench)} | {characters} | {mark} |", flush=True)
                if not each.same and options.show:
                    print(each.told())
                differ += not each.same
                sent += len(each.in_bench)
    print(f"\n{len(tasks)} tasks, {sent} requests: {differ or 'none'} differ")
    return 1 if differ else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.same_requests", description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=TASKS, metavar="N", help=f"so many tasks ({TASKS})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"which tasks are drawn ({SEED})")
    parser.add_argument(
        "--replies", type=lambda text: text.split(","), default=list(REPLIES), metavar=",".join(REPLIES)
    )
    parser.add_argument("--show", action="store_true", help="print where requests differ")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
