"""An editor that leaves it open whether it has made accepted changes: no run that ends so counts as done, and its end
names exactly the files of which that is so, in each way to accept changes and however the others went.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal, get_args

import pytest

from codeagent_lsp.batch.perform import AgentRun, Patch, _reason
from codeagent_lsp.errors import EditorError
from codeagent_lsp.events import ChangesApplied, Outcome, RunStatus, to_dict
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.terminal.summary import EXIT_DONE, EXIT_FAILED, Summary, ending
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.changeset import Applied, ApplyOutcome, Changeset
from tests.session.fakes import World, call, calls, say, world, write

Fate = Literal["made", "refused", "silent", "late"]
"""What becomes of a file: the editor makes the change, refuses it, does not answer, or makes it after that."""
FATES: tuple[Fate, ...] = ("made", "refused", "silent", "late")
Way = Literal["review", "auto", "live"]
APPLY = text("choice.apply", "en")


def uncertain(made: World, fates: dict[str, Fate]) -> None:
    """Let the editor of a world treat each file so."""
    whole = made.editor.apply

    async def apply(changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        def of(*wanted: Fate) -> Changeset:
            return Changeset(tuple(each for each in changeset if fates[Path(each.path).name] in wanted))

        done = await whole(of("made", "late"), label, may_lose)  # the late ones are seen only when it is asked again
        left, open_ = of("refused", "silent", "late"), of("silent", "late")
        here = done.done.without(open_.paths)
        outcome: ApplyOutcome = "full" if not left else "partial" if here else "unknown" if open_ else "none"
        return Applied(outcome, here, left, reason="no", late=open_, unconfirmed=open_.paths)

    made.editor.apply = apply  # type: ignore[method-assign]


@pytest.mark.slow
@pytest.mark.parametrize("fates", [*itertools.combinations_with_replacement(FATES, 2)], ids="-".join)
async def test_no_run_is_done_that_may_not_be(tmp_path: Path, fates: tuple[Fate, Fate]) -> None:
    await ends_truly(tmp_path, "auto", fates)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["review", "auto", "live"])
@pytest.mark.parametrize("fates", [*itertools.product(FATES, FATES)], ids="-".join)
async def test_nor_in_any_order_and_however_it_is_accepted(tmp_path: Path, way: Way, fates: tuple[Fate, Fate]) -> None:
    await ends_truly(tmp_path, way, fates)


async def ends_truly(tmp_path: Path, way: Way, fates: tuple[Fate, Fate]) -> None:
    """Assert that a run of two files says of each what became of it."""
    both = calls(call("write_file", path="a.py", content="a\n"), call("write_file", path="b.py", content="b\n"))
    made = world(tmp_path / "w", both, say("All is done."), says=[APPLY], apply=way)
    of = dict(zip(("a.py", "b.py"), fates, strict=True))
    uncertain(made, of)
    done = await made.run()
    silent = tuple(made.path(name) for name, fate in of.items() if fate == "silent")
    assert (done.unconfirmed or ()) == silent
    for name, fate in of.items():
        assert (name in done.summary.partition("\n\n")[0]) == (fate == "silent")
    exit_code = Summary(run_id=done.run_id).after(to_dict(done)).exit_code
    if silent:
        assert (done.status, exit_code) == ("stopped", EXIT_FAILED)
        assert done.outcome in ("unknown", "partial")
        assert done.summary.endswith("All is done.")
    elif "refused" not in fates:
        assert (done.status, done.outcome, exit_code) == ("completed", "full", EXIT_DONE)
    else:
        assert exit_code != EXIT_DONE


@pytest.mark.parametrize(("language", "word"), [("en", "Apply or Discard"), ("zh-cn", "编辑器未确认")])
async def test_it_says_which_files_and_what_to_do(tmp_path: Path, language: str, word: str) -> None:
    made = world(
        tmp_path / "w", write("sub/a.py", "a\n"), say("Done."), says=[text("choice.apply", language)], language=language
    )
    uncertain(made, {"a.py": "silent"})
    done = await made.run()
    first = done.summary.partition("\n\n")[0]
    assert "sub/a.py" in first
    assert word in first


async def test_the_answer_to_a_later_decision_does_not_hide_it(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "a\n"), write("b.py", "b\n"), say(), apply="live")
    uncertain(made, {"a.py": "silent", "b.py": "made"})
    done = await made.run()
    assert (done.status, done.unconfirmed) == ("stopped", (made.path("a.py"),))
    assert done.outcome != "full"


async def test_an_editor_that_fails_names_the_files(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "1\n"), say(), says=[APPLY])
    made.editor.failure = EditorError("session.unknown", session="x")
    done = await made.run()
    assert (done.status, done.unconfirmed) == ("failed", (made.path("a.py"),))
    assert "a.py" in done.summary


async def test_what_is_applied_again_is_confirmed(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "1\n"), say(), says=[APPLY])
    fates: dict[str, Fate] = {"a.py": "silent"}
    uncertain(made, fates)
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    fates["a.py"] = "made"
    assert (await proposal.apply()).outcome == "full"
    assert proposal.unconfirmed == ()
    first, second = (each.unconfirmed for each in made.events if isinstance(each, ChangesApplied))
    assert (first, second) == ((made.path("a.py"),), None)


async def test_a_restart_knows_that_it_was_not_done(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "1\n"), say(), says=[APPLY])
    uncertain(made, {"a.py": "silent"})
    done = await made.run()
    session = made.manager.current()
    again = Session(session.session_id, made.store)
    replay(again, made.store.load(session.session_id))
    kept = again.context.runs[done.run_id]
    assert (kept.status, kept.staged.paths) == ("stopped", (made.path("a.py"),))


@pytest.mark.parametrize("status", get_args(RunStatus))
def test_the_terminal_names_them_once_however_the_run_ended(status: str) -> None:
    words = "Not known: a.py.\n\nMore."
    summary = Summary(status=status, outcome="unknown", words=words, unconfirmed=True)
    lines = "\n".join(line.plain for line in ending(summary, "", 1.0, "en"))
    assert lines.count("a.py") == 1
    assert summary.exit_code != EXIT_DONE or status == "waiting"


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_a_task_of_a_batch_is_done_only_where_all_of_it_arrived(outcome: str) -> None:
    run = AgentRun({"status": "completed", "outcome": outcome})
    assert (_reason(run, Patch(files=("a.py",))) == "") == (outcome == "full")
