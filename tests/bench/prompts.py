"""What an agent sends to a strong model: the first request by part, its growth from call to call, what a cache can use.

    python -m tests.bench.prompts [--works NAMES] [--repo PATH] [--opencode PROGRAM [--record]]

A scripted strong model does small works through the real `codeagent-lsp run`. Beside it stand the figures of the same
steps played into opencode, recorded in `prompts_opencode.json`. `--opencode` plays them anew, `--record` keeps the
figures. As it must reach nothing but this machine, that works only in a network of its own:

    unshare -rn sh -c 'ip link set lo up && exec python -m tests.bench.prompts --opencode PROGRAM --record'

`--repo` plays a question and an edit on the last commit of a repository instead. All lengths are characters of the JSON
that is sent. Not here: the works and the model (`prompts_tasks.py`), the endpoint (`by_hand.py`).
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tests.bench.agents_runs import ROOT, Limit, Run, run
from tests.bench.by_hand import MODEL, WINDOW, Exchanges, passing_trials, playing
from tests.bench.chat_requests import Asked, in_json, shared, text_of
from tests.bench.prompts_tasks import WORKS, StrongModel, Translation, Work, committed, lay, opencode, ours, works_in

RECORDED = Path(__file__).with_name("prompts_opencode.json")
LIMIT_SECONDS = 180.0
REPLY_TOKENS = 32_000

PARTS = ("rules", "tools", "map", "situation", "files", "request", "frame")
HEADINGS = {
    "map": r"((the|repo|project|code|workspace) )?map(?= of|:|,| \()|files that may matter|files of the workspace",
    "files": r"the (whole )?file|the beginning of|code that may answer|outline of",
    "situation": r"situation|environment|env>|here is some useful information about the environment",
    "rules": r"commands \(|rules|instructions|skills provide",
}
"""How a line begins after which a prompt has another part. Lines of files begin with their numbers."""
HEADING = re.compile("|".join(rf"(?P<{part}>(?:#+ |<)?(?:{words}))" for part, words in HEADINGS.items()), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Played:
    """One work done by one agent. `parts` are those of its first request, `prompts` the lengths of all its requests,
    `kept` how much of the request before each later one repeats, in per cent. `others` are requests that are not of
    the work, such as trials and titles, `before` those of them that came first; `total` is the length of all. `done`
    says that the files are as wanted, `said` that the agent ended well.
    """

    agent: str
    work: str
    parts: Mapping[str, int]
    prompts: Sequence[int]
    kept: Sequence[float]
    before: int
    others: int
    total: int
    done: bool
    said: bool


def parts_of(asked: Asked, words: str) -> dict[str, int]:
    """Return the lengths of the parts of a first request, by name; together they are its whole length."""
    sizes = dict.fromkeys(PARTS, 0)
    sizes["tools"] = len(asked.pieces[0])
    for message in asked.messages:
        usual = part = "rules" if message["role"] == "system" else "situation"
        for line in text_of(message).splitlines(keepends=True):
            found = HEADING.match(line)
            part = str(found.lastgroup) if found else part
            is_request = usual == "situation" and words in line
            sizes["request" if is_request else part] += len(in_json(line)) - len('""')
            part = usual if is_request else part
    sizes["frame"] = asked.characters - sum(sizes.values())
    return sizes


def measured(
    agent: str, work: Work, requests: Sequence[Asked], model: StrongModel, *, done: bool, said: bool
) -> Played:
    """Return the figures of one work."""
    own = [asked for asked in requests if asked.number in model.numbers]
    others = [asked.number for asked in requests if asked.number not in model.numbers]
    return Played(
        agent,
        work.name,
        parts_of(own[0], work.words) if own else {},
        [asked.characters for asked in own],
        [round(shared(asked, own[at : at + 1]).percent, 1) for at, asked in enumerate(own[1:])],
        sum(number < min(model.numbers, default=len(requests) + 1) for number in others),
        len(others),
        sum(asked.characters for asked in requests),
        done,
        said,
    )


Program = Callable[[Work, Path, Path, str], Run]
"""Runs an agent on a work: in a project, with a folder for its state, on the model at a URL."""


def play(agent: str, work: Work, program: Program, translation: Translation, home: Path) -> Played:
    """Let an agent do a work in a fresh copy of its project."""
    with tempfile.TemporaryDirectory(prefix="prompts-") as name:
        folder = Path(name).resolve()
        project, kept = folder / "project", folder / "requests"
        project.mkdir()
        lay(work, project)
        model = StrongModel(work, translation, project)
        with playing(passing_trials(model), kept) as url:
            ended = program(work, project, home, url)
        done = work.done_in(project)
        return measured(agent, work, Exchanges(kept).requests(), model, done=done, said=ended.code == 0)


def run_ours(work: Work, project: Path, home: Path, url: str) -> Run:
    """Run `codeagent-lsp run`, which knows nothing of the model beforehand."""
    state = tempfile.mkdtemp(dir=home)
    command = [sys.executable, "-m", "codeagent_lsp.cli", "run", "--yes", "--workspace", str(project), work.words]
    environment = {"CODEAGENT_STATE_DIR": state, "CODEAGENT_BASE_URL": url, "PYTHONPATH": str(ROOT)}
    return run(command, project, environment, Limit(LIMIT_SECONDS))


def run_opencode(program: str) -> Program:
    """Return how to run opencode, with folders of its own, without its updates, its list of models and downloads."""

    def started(work: Work, project: Path, home: Path, url: str) -> Run:
        limit = {"context": WINDOW, "output": REPLY_TOKENS}
        provider: dict[str, object] = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": url, "apiKey": "none"},
            "models": {MODEL: {"limit": limit}},
        }
        settings: dict[str, object] = {
            "provider": {"played": provider},
            "model": f"played/{MODEL}",
            "small_model": f"played/{MODEL}",
        }
        settings |= {"autoupdate": False, "share": "disabled", "permission": "allow"}
        environment = {"HOME": str(home), "OPENCODE_CONFIG_CONTENT": json.dumps(settings)}
        environment["PWD"] = str(project)  # opencode 1.18 takes its folder from there
        environment |= {f"XDG_{kind}_HOME": str(home / kind) for kind in ("CONFIG", "DATA", "CACHE", "STATE")}
        environment |= {f"OPENCODE_DISABLE_{what}": "1" for what in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD")}
        return run([program, "run", work.words], project, environment, Limit(LIMIT_SECONDS))

    return started


def alone() -> bool:
    """Return whether this process sees no network but loopback."""
    return [name for _, name in socket.if_nameindex()] == ["lo"]


def version_of(program: str) -> str:
    """Return the version that a program prints."""
    with tempfile.TemporaryDirectory() as home:
        said = run([program, "--version"], Path(home), {"HOME": home}, Limit(LIMIT_SECONDS)).output
    return said.strip().splitlines()[-1]


def recorded() -> list[Played]:
    """Return the figures of opencode that were kept."""
    rows = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else []
    return [Played(**{each.name: row[each.name] for each in fields(Played)}) for row in rows]


def record(results: Sequence[Played]) -> None:
    """Keep the figures of opencode, a work in each line."""
    rows = ",\n".join(f" {json.dumps(asdict(each))}" for each in results)
    RECORDED.write_text(f"[\n{rows}\n]\n", "utf-8")


def told(results: Sequence[Played]) -> str:
    """Return the figures as two tables, and the sums of the agents that did the same works."""
    works = dict.fromkeys(each.work for each in results)
    ordered = [each for work in works for each in results if each.work == work]
    first = [["first request", "agent", "characters", *PARTS]]
    calls = [["growth", "agent", "before", "others", "calls", "kept", "all", "done", "said", "characters of each call"]]
    for each in ordered:
        parts = [str(each.parts.get(part, 0)) for part in PARTS]
        first.append([each.work, each.agent, str(sum(each.parts.values())), *parts])
        kept = f"{min(each.kept, default=100):g} %"
        marks = ["yes" if mark else "no" for mark in (each.done, each.said)]
        numbers = [str(number) for number in (each.before, each.others, len(each.prompts))]
        growth = " ".join(map(str, each.prompts))
        calls.append([each.work, each.agent, *numbers, kept, str(each.total), *marks, growth])
    return "\n\n".join(["\n".join(aligned(first)), "\n".join(aligned(calls)), *sums(results)])


def sums(results: Sequence[Played]) -> list[str]:
    """Return a line for each agent with the sums over the works that all agents have done."""
    agents = dict.fromkeys(each.agent for each in results)
    both = set.intersection(*({each.work for each in results if each.agent == agent} for agent in agents))
    lines = []
    for agent in agents:
        own = [each for each in results if each.agent == agent and each.work in both]
        calls, total = sum(len(each.prompts) for each in own), sum(each.total for each in own)
        others = sum(each.others for each in own)
        lines.append(f"{agent}: {len(own)} works, {calls} calls and {others} others, {total} characters in all")
    return ["\n".join(lines)]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines: columns of numbers to the right, others to the left."""
    columns = []
    for column in zip(*rows, strict=True):
        width, numbers = max(map(len, column)), all(cell[:1].isdigit() and " " not in cell for cell in column[1:])
        columns.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in column])
    return ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]


def main() -> None:
    """Play and print."""
    options = _options()
    works = works_in(committed(options.repo)) if options.repo else WORKS
    works = tuple(work for work in works if not options.works or work.name in options.works)
    if options.opencode and not alone():
        sys.exit("opencode is only played in a network of its own: see the first lines of this program.")
    results: list[Played] = []
    with tempfile.TemporaryDirectory(prefix="prompts-home-") as name:
        home = Path(name)
        results += [play("ours", work, run_ours, ours, home) for work in works]
        if options.opencode:
            agent = f"opencode {version_of(options.opencode)}"
            program = run_opencode(options.opencode)
            others = [play(agent, work, program, opencode, home) for work in works]
        else:
            names = {work.name for work in works}
            others = [] if options.repo else [each for each in recorded() if each.work in names]
    if options.record:
        record(others)
    print(told([*results, *others]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.prompts", description=__doc__.splitlines()[0])
    parser.add_argument("--works", type=lambda text: text.split(","), metavar="NAMES", help="only these, by commas")
    parser.add_argument("--repo", type=Path, metavar="PATH", help="works on the last commit of this repository instead")
    parser.add_argument("--opencode", metavar="PROGRAM", help="play it, too, instead of printing the recorded figures")
    parser.add_argument("--record", action="store_true", help="keep its figures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
