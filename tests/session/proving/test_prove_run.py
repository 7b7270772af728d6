"""Runs that try a proposal, in the real shadow with real tests: what is told, what is marked, and nothing changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environments import Environments
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.own_runs import trial
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.proving.proof import MinimalProof, ProposalProof
from codeagent_lsp.session.request import TRIALS, RunKind, RunRequest
from tests.session.fakes import World, say, until, world
from tests.session.fakes import write as write_file
from tests.tools.shells import DIRECT, FakeEnvironments

pytestmark = pytest.mark.slow

TEST = """\
from cart import total


def test_total() -> None:
    assert total([2, 3]) == 5


def test_one() -> None:
    assert True
"""
WITHOUT = ("cacheprovider", "pytest-lsp", "hypothesispytest", "xdist", "xdist.looponfail", "asyncio", "anyio")
"""Plugins that the environment of our own tests has: the project's tests would wait for them in each of their runs."""
PROJECT = f"[tool.pytest.ini_options]\naddopts = '{' '.join(f'-p no:{name}' for name in WITHOUT)}'\n"
APART = "# far enough from the next\n" * 8
FILLER = "def plain_{0}(count: int) -> int:\n    number = count + {0}\n    return number\n\n\n" + APART


def environments(folder: Path) -> Environments:
    return Environments(ShellSettings, folder / "state", folder / "spool")


def write(made: World, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        Path(made.path(name)).write_text(text)


def disk(made: World, name: str) -> str:
    return Path(made.path(name)).read_text()


async def proposed(made: World, files: Mapping[str, str], changed: Mapping[str, str]) -> Proposal:
    """A run's proposal of these texts over these files."""
    write(made, files)
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    proposal.staging.write({made.path(name): text for name, text in changed.items()})
    return proposal


async def tried(made: World, kind: RunKind, proposal: Proposal) -> events.RunCompleted:
    run_id = made.manager.start(RunRequest(kind, "", kind), work=trial(kind, proposal))
    if (task := made.manager.runs.task(run_id)) is not None:
        await asyncio.wait_for(task, 300)
    return made.completed(run_id)


def told(made: World) -> events.ChangesProposed:
    return [event for event in made.events if isinstance(event, events.ChangesProposed)][-1]


async def test_what_failed_before_and_passes_now(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"), environments=environments(tmp_path), deadline=60)
    wrong, right = "def total(items):\n    return 0\n", "def total(items):\n    return sum(items)\n"
    files = {"cart.py": wrong, "test_cart.py": TEST, "pyproject.toml": PROJECT}
    proposal = await proposed(made, files, {"cart.py": right})
    ended = await tried(made, "prove", proposal)
    assert (ended.status, ended.outcome) == ("completed", None)
    assert "2 passed" in ended.summary and "Failed before and pass now: 1" in ended.summary
    proof = (told(made).proof or {})["tests"]
    assert (proof["passed"], proof["failed"], proof["outdated"]) == (2, 0, False)
    assert [name.rpartition("::")[2] for name in proof["now_passing"]] == ["test_total"]
    assert told(made).run_id == proposal.record.run_id
    assert disk(made, "cart.py") == wrong
    made.open("cart.py", "# typed\n" + wrong)
    assert "Outdated" in proposal.questions.title(proposal.changeset)
    await made.manager.close()


async def test_nothing_to_try_and_nowhere_to_try_it(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"), environments=FakeEnvironments(isolation=DIRECT))
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    ended = await tried(made, "prove", proposal)
    assert (ended.status, ended.error) == ("failed", SessionError("changes.none").localized("en"))
    proposal.staging.write({made.path("a.py"): "x\n"})
    ended = await tried(made, "minimize", proposal)
    assert ended.status == "failed" and "real folder" in (ended.error or "")


async def test_a_run_that_is_still_at_work(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"), environments=FakeEnvironments(isolation=DIRECT))
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    proposal.staging.write({made.path("a.py"): "x\n"})
    proposal.record.status = "running"
    ended = await tried(made, "prove", proposal)
    assert (ended.status, ended.error) == ("failed", SessionError("prove.at_work").localized("en"))


async def test_a_run_that_waits_for_the_answer_can_be_tried(tmp_path: Path) -> None:
    made = world(
        tmp_path / "w", write_file("a.py", "x\n"), say("done"), environments=FakeEnvironments(isolation=DIRECT)
    )
    run_id = made.manager.start(RunRequest("run", "do it", "do it"))
    proposal = made.manager.runs.get(run_id).proposal
    await until(lambda: proposal.deciding)
    assert proposal.record.status == "running"
    ended = await tried(made, "prove", proposal)
    assert "real folder" in (ended.error or ""), "it got as far as the shell"
    made.manager.runs.cancel()
    await made.manager.close()


async def test_a_project_without_tests(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"), environments=environments(tmp_path), deadline=60)
    proposal = await proposed(made, {"cart.py": "a = 1\n"}, {"cart.py": "a = 2\n"})
    for kind in TRIALS:
        ended = await tried(made, kind, proposal)
        assert ended.status == "failed"
        assert "No tests were found" in (ended.error or "")
    assert proposal.record.proof == ProposalProof()
    await made.manager.close()


async def test_what_is_cancelled_leaves_no_proof_and_all_changes(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("done"), environments=environments(tmp_path), deadline=60)
    slow = "import time\n\n\ndef test_slow() -> None:\n    time.sleep(120)\n"
    files = {"cart.py": "a = 1\n", "test_cart.py": slow, "pyproject.toml": PROJECT}
    proposal = await proposed(made, files, {"cart.py": "a = 2\n"})
    run_id = made.manager.start(RunRequest("prove", "", "prove"), work=trial("prove", proposal))
    await asyncio.sleep(3)
    task = made.manager.runs.task(run_id)
    assert task is not None, "tests are running"
    made.manager.runs.cancel(run_id)
    await asyncio.wait([task], timeout=30)
    assert made.completed(run_id).status == "cancelled"
    assert (proposal.record.proof.tests, len(proposal.changeset.paths)) == (None, 1)
    await made.manager.close()


async def test_a_proof_survives_a_restart(tmp_path: Path) -> None:
    wrong, right = "def total(items):\n    return 0\n", "def total(items):\n    return sum(items)\n"
    folder = tmp_path / "w"
    one = world(folder, write_file("cart.py", right), say("done"), environments=environments(tmp_path), deadline=1)
    write(one, {"cart.py": wrong, "test_cart.py": TEST, "pyproject.toml": PROJECT})
    session_id, run_id = one.manager.current().session_id, (await one.run()).run_id
    proposal = one.manager.runs.get(run_id).proposal
    await tried(one, "minimize", proposal)
    before, words = proposal.record.proof, proposal.proved()
    await one.manager.close()
    two = world(folder, say("done"))
    two.manager.resume(session_id)
    again = two.manager.runs.get(run_id).proposal
    assert before.tests is not None and before.minimal is not None
    assert again.record.proof == before
    assert again.proved() == words
    two.open("cart.py", "# typed\n" + wrong)
    assert all("Outdated" in line for line in again.proved())
    await two.manager.close()


def needed_names(made: World, found: MinimalProof) -> set[tuple[str, int]]:
    return {(Path(path).name, hunk) for path, hunk in found.needed}


def twenty(fixed: bool) -> dict[str, str]:
    """Four files with five functions each, all of which the tests call, and all of which the change rewrites."""
    texts = {}
    for file in range(4):
        body = "".join(FILLER.format(number) for number in range(file * 5, file * 5 + 5))
        if fixed:
            body = body.replace("    number = count +", "    number = int(count) +")
        texts[f"part_{file}.py"] = body
    return texts


IMPORTS = "".join(f"from part_{number // 5} import plain_{number}\n" for number in range(20))
ONE_TEST = "\n\ndef test_all() -> None:\n    assert sum([{calls}]) == {total}\n"
TESTS_APART = "\n\ndef test_{0}() -> None:\n    assert plain_{0}({1}) == {2}\n"


def case(wrong: tuple[int, ...], apart: bool) -> tuple[dict[str, str], dict[str, str]]:
    """The files and the changes: of 20 rewritten functions, `wrong` give a wrong result before."""
    before, after = twenty(False), twenty(True)
    for number in wrong:
        name = f"part_{number // 5}.py"
        before[name] = before[name].replace(f"number = count + {number}\n", f"number = count - {number + 1}\n")
    if apart:
        tests = "".join(TESTS_APART.format(number, 1, number + 1) for number in range(20))
    else:
        calls, total = ", ".join(f"plain_{number}(1)" for number in range(20)), sum(range(1, 21))
        tests = ONE_TEST.format(calls=calls, total=total)
    return {**before, "test_parts.py": IMPORTS + tests, "pyproject.toml": PROJECT}, after


@pytest.mark.parametrize("apart", [True, pytest.param(False, marks=pytest.mark.volume)])
async def test_three_of_twenty_hunks(tmp_path: Path, apart: bool) -> None:
    made = world(tmp_path / "w", say("done"), environments=environments(tmp_path), deadline=120)
    files, changed = case((3, 11, 17), apart)
    proposal = await proposed(made, files, changed)
    assert sum(len(change.hunks()) for change in proposal.changeset) == 20
    ended = await tried(made, "minimize", proposal)
    found = proposal.record.proof.minimal
    assert ended.status == "completed", ended
    assert found is not None and found.whole
    assert needed_names(made, found) == {("part_0.py", 3), ("part_2.py", 1), ("part_3.py", 2)}
    assert len(found.unneeded) == 17
    print(f"apart={apart}: {found.runs} test runs")
    assert found.runs <= (10 if apart else 20)
    assert "Changes that the tests do not need: 17" in told(made).summary
    assert all(disk(made, name) == files[name] for name in changed)
    assert len(proposal.changeset.paths) == 4, "nothing is dropped"
    await made.manager.close()
