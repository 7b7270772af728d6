"""Going back to before a run: files and talk as they were, what was typed since kept, and the rewind undone again."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.errors import SessionError
from codeagent_lsp.events.base import What
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.own_runs import going_back
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.rewind import rewinding
from codeagent_lsp.session.rewind.rewinding import check, undo_rewind
from tests.examples import volume
from tests.session.fakes import World, call, calls, say, world, write


async def rewound(made: World, run_id: str, what: What = "both") -> str:
    """Go back to before a run; the id of the run that did."""
    session = made.manager.runs.get(run_id).session
    work = going_back(check(session, run_id, made.manager.runs), what, made.manager.runs)
    rewind_id = made.manager.start(RunRequest("session.rewind", "back", "back"), session.session_id, work)
    assert (await made.finished(rewind_id)).status == "completed"
    return rewind_id


async def did(made: World, task: str, *replies: ScriptedReply) -> str:
    """One run, applied at once."""
    made.script(*replies, say(f"did {task}"))
    return (await made.run(task)).run_id


def talk(made: World) -> list[str]:
    said = made.manager.current().context.conversation
    return [message.content for message in said if message.role == "user" and not message.name]


def files(made: World) -> dict[str, str]:
    return {path.removeprefix(f"{made.root}/"): made.buffers.documents[path].text for path in made.buffers.documents}


def edit(path: str, old: str, new: str) -> ScriptedReply:
    return calls(call("edit_file", path=path, old_string=old, new_string=new))


def again(made: World, folder: Path) -> World:
    """The same session after the end of its process, over the same buffers."""
    session_id = made.manager.current().session_id
    made.store.close()
    other = world(folder / "w", state=folder / "sessions", apply="auto")
    other.buffers.documents.update(made.buffers.documents)
    other.manager.resume(session_id)
    return other


@pytest.mark.slow
async def test_files_and_talk_are_as_before(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\ntwo\nthree\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"))
    second = await did(made, "second", edit("a.py", "two", "TWO"), write("b.py", "new\n"))
    await did(made, "third", edit("a.py", "three", "THREE"))
    await rewound(made, second)
    assert files(made) == {"a.py": "ONE\ntwo\nthree\n"}
    assert talk(made) == ["first"]
    await rewound(made, first)
    assert (files(made), talk(made)) == ({"a.py": "one\ntwo\nthree\n"}, [])


async def test_what_was_typed_since_is_kept_and_the_rewind_undone(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n\n\ntwo\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"))
    made.open("a.py", "ONE\n\ntyped\n\ntwo\n")
    await did(made, "second", edit("a.py", "two", "TWO"))
    rewind_id = await rewound(made, first)
    assert (files(made), talk(made)) == ({"a.py": "one\n\ntyped\n\ntwo\n"}, [])
    made.open("a.py", "one\n\ntyped more\n\ntwo\n")
    await undo_rewind(made.manager.runs.get(rewind_id), made.manager.runs)
    assert (files(made), talk(made)) == ({"a.py": "ONE\n\ntyped more\n\nTWO\n"}, ["first", "second"])
    with pytest.raises(SessionError):
        await undo_rewind(made.manager.runs.get(rewind_id), made.manager.runs)


@pytest.mark.parametrize(("what", "text", "said"), [("changes", "one\n", ["first"]), ("talk", "ONE\n", [])])
async def test_one_of_both(tmp_path: Path, what: What, text: str, said: list[str]) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"))
    rewind_id = await rewound(made, first, what)
    assert (files(made), talk(made)) == ({"a.py": text}, said)
    await undo_rewind(made.manager.runs.get(rewind_id), made.manager.runs)
    assert (files(made), talk(made)) == ({"a.py": "ONE\n"}, ["first"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "back"),
    [
        ("zero\nONE\ntwo\n", "zero\none\ntwo\n"),
        ("ONE\ntyped\ntwo\n", "one\ntyped\ntwo\n"),
        ("ONE\ntwo typed\n", "one\ntwo typed\n"),
        ("ONE typed\ntwo\n", "ONE typed\ntwo\n"),
    ],
)
async def test_typing_right_beside_is_in_nobodys_way(tmp_path: Path, typed: str, back: str) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\ntwo\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"))
    made.open("a.py", typed)
    rewind_id = await rewound(made, first)
    assert files(made) == {"a.py": back}
    await undo_rewind(made.manager.runs.get(rewind_id), made.manager.runs)
    assert files(made) == {"a.py": typed}


async def test_the_model_hears_nothing_of_what_was_taken_back(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    await did(made, "first", edit("a.py", "one", "ONE"))
    second = await did(made, "the second", edit("a.py", "ONE", "TWO"))
    await rewound(made, second)
    model = made.script(say())
    await made.run("the next")
    sent = "\n".join(message.content for message in model.requests[0].messages)
    assert ("first" in sent, "the second" in sent) == (True, False)


async def test_moves_deletions_and_what_commands_wrote(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    made.open("b.py", "two\n")
    before = files(made)
    first = await did(
        made,
        "first",
        calls(call("move_file", path="a.py", new_path="c.py")),
        calls(call("delete_file", path="b.py")),
        write("d.py", "new\n"),
    )
    assert files(made) == {"c.py": "one\n", "d.py": "new\n"}
    made.open("c.py", "typed\none\n")
    rewind_id = await rewound(made, first)
    assert files(made) == {**before, "a.py": "typed\none\n"}
    await undo_rewind(made.manager.runs.get(rewind_id), made.manager.runs)
    assert files(made) == {"c.py": "typed\none\n", "d.py": "new\n"}


async def test_undecided_changes_are_dropped_and_come_back(tmp_path: Path) -> None:
    made = world(tmp_path / "w", deadline=0.001)
    made.open("a.py", "one\n")
    run_id = await did(made, "first", edit("a.py", "one", "ONE"))
    proposal = made.manager.runs.get(run_id).proposal
    assert proposal.changeset
    rewind_id = await rewound(made, run_id)
    assert not proposal.changeset
    await undo_rewind(made.manager.runs.get(rewind_id), made.manager.runs)
    assert [change.text for change in proposal.changeset] == ["ONE\n"]


async def test_a_place_that_was_rewritten_since_stays_and_is_named(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"))
    made.open("a.py", "mine\n")
    await rewound(made, first)
    assert files(made) == {"a.py": "mine\n"}
    (event,) = (event for event in made.events if event.type == "session_rewound")
    assert event.conflicts == ("a.py:1",)  # type: ignore[attr-defined]


async def test_what_is_typed_while_it_is_planned_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file that changes, in one that is only looked at, and in one that the run has created."""
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n\n\ntwo\n")
    made.open("b.py", "here\n")
    first = await did(made, "first", edit("a.py", "one", "ONE"), edit("b.py", "here", "there"), write("c.py", "new\n"))
    made.open("b.py", "here\n")  # taken back by hand
    plan = rewinding.plan_rewind

    def slow(*given: Any) -> Any:
        earlier = plan(*given)
        made.open("a.py", "ONE\n\n\ntwo\ntyped\n")
        made.open("b.py", "here\ntyped\n")
        made.open("c.py", "new\ntyped\n")
        return earlier

    monkeypatch.setattr(rewinding, "plan_rewind", slow)
    await rewound(made, first)
    assert files(made) == {"a.py": "one\n\n\ntwo\ntyped\n", "b.py": "here\ntyped\n", "c.py": "new\ntyped\n"}


async def test_a_file_of_the_users_own_where_a_moved_one_was_stays(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    first = await did(made, "first", calls(call("move_file", path="a.py", new_path="b.py")))
    made.open("a.py", "mine\n")
    rewind_id = await rewound(made, first)
    assert files(made) == {"a.py": "mine\n", "b.py": "one\n"}
    (event,) = (event for event in made.events if event.type == "session_rewound")
    assert event.conflicts == ("a.py:1",)  # type: ignore[attr-defined]
    await undo_rewind(made.manager.runs.get(rewind_id), made.manager.runs)
    assert files(made) == {"a.py": "mine\n", "b.py": "one\n"}


@pytest.mark.slow
@pytest.mark.parametrize("half", ["talk", "changes"])
async def test_a_rewind_of_one_half_and_then_farther_back(tmp_path: Path, half: What) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "0\n")
    runs = [await did(made, str(number), edit("a.py", str(number), str(number + 1))) for number in range(3)]
    near = await rewound(made, runs[1], half)
    state = (files(made), talk(made))
    far = await rewound(made, runs[0])
    assert (files(made), talk(made)) == ({"a.py": "0\n"}, [])
    with pytest.raises(SessionError, match="Undo it first"):
        await undo_rewind(made.manager.runs.get(near), made.manager.runs)
    await undo_rewind(made.manager.runs.get(far), made.manager.runs)
    assert (files(made), talk(made)) == state
    await undo_rewind(made.manager.runs.get(near), made.manager.runs)
    assert (files(made), talk(made)) == ({"a.py": "3\n"}, ["0", "1", "2"])


async def test_it_waits_for_nobody(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    first = await did(made, "first")
    made.script(ScriptedReply("", delay=1))
    made.manager.start(RunRequest("run", "busy", "busy"))
    session = made.manager.current()
    with pytest.raises(SessionError, match="at work"):
        check(session, first, made.manager.runs)
    made.manager.runs.cancel()


async def test_into_the_middle_of_a_rewind_is_refused(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "0\n")
    first, second = [await did(made, str(number), edit("a.py", str(number), str(number + 1))) for number in range(2)]
    rewind_id = await rewound(made, first)
    third = await did(made, "third", edit("a.py", "0", "3"))
    session = made.manager.current()
    for inside in (first, second, rewind_id):
        with pytest.raises(SessionError, match="Undo it first"):
            check(session, inside, made.manager.runs)
    assert check(session, third, made.manager.runs) == (third,)


@pytest.mark.slow
async def test_it_outlives_the_process(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    made.open("a.py", "one\n")
    await did(made, "first", edit("a.py", "one", "ONE"))
    second = await did(made, "second", edit("a.py", "ONE", "TWO"))
    rewind_id = await rewound(made, second)
    await did(made, "third", edit("a.py", "ONE", "THREE"))
    other = again(made, tmp_path)
    assert talk(other) == ["first", "third"]
    with pytest.raises(SessionError):  # what was taken back cannot be undone once more
        await other.manager.runs.get(second).proposal.undo()
    await undo_rewind(other.manager.runs.get(rewind_id), other.manager.runs)
    assert talk(other) == ["first", "second", "third"]
    assert talk(again(other, tmp_path)) == ["first", "second", "third"]


async def test_a_fork_begins_with_the_talk_before(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto")
    await did(made, "first")
    second = await did(made, "second")
    source = made.manager.current().session_id
    forked = await made.manager.fork(source, second)
    assert (made.manager.current(), talk(made)) == (forked, ["first"])
    await did(made, "another way")
    assert talk(made) == ["first", "another way"]
    assert talk(again(made, tmp_path)) == ["first", "another way"]
    whole = await made.manager.fork(source, None)
    made.manager.resume(whole.session_id)
    assert talk(made) == ["first", "second"]
    with pytest.raises(SessionError):
        await made.manager.fork(source, "nobody")


@pytest.mark.slow
@pytest.mark.parametrize("histories", [10, pytest.param(volume(200), marks=pytest.mark.volume, id="many")])
async def test_random_histories(tmp_path: Path, histories: int) -> None:
    """Runs that edit, move, delete and write; the user types lines of their own between; then back, and undone."""
    rng = random.Random(3)
    for number in range(histories):
        made = world(tmp_path / "w", state=tmp_path / f"s{number}", apply="auto")
        await one_history(made, rng)
        made.store.close()


async def one_history(made: World, rng: random.Random) -> None:
    """Each line names its file and number, so that a run's edits and the user's are on lines of their own."""
    for name in "abc":
        made.open(f"{name}.py", "".join(f"{name}{line}\n\n\n" for line in range(6)))
    states: list[tuple[dict[str, str], list[str], str]] = []
    typed = 0
    for turn in range(rng.randrange(2, 6)):
        before = (files(made), talk(made))
        run_id = await did(made, f"turn {turn}", *_work(made, rng, turn))
        states.append((*before, run_id))
        if rng.random() < 0.6 and files(made):
            typed += 1
            _type(made, rng, f"typed {typed}")
    target = rng.randrange(len(states))
    wanted, said, run_id = states[target]
    now, spoken = files(made), talk(made)
    rewind_id = await rewound(made, run_id)
    found = files(made)
    assert talk(made) == said
    for name, text in wanted.items():
        assert _ours(found[name]) == _ours(text), name
    assert all("typed" in text for name, text in found.items() if name not in wanted), "more than the user's is left"
    kept = sorted(line for text in found.values() for line in text.splitlines() if line.startswith("typed"))
    here = sorted(line for text in now.values() for line in text.splitlines() if line.startswith("typed"))
    assert kept == here, "what was typed is lost"
    await undo_rewind(made.manager.runs.get(rewind_id), made.manager.runs)
    assert (files(made), talk(made)) == (now, spoken)


def _ours(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("typed"))


def _work(made: World, rng: random.Random, turn: int) -> list[ScriptedReply]:
    """Some calls that are possible now."""
    names = sorted(files(made))
    wanted: list[Any] = []
    for step in range(rng.randrange(1, 4)):
        kind = rng.choice(("edit", "edit", "edit", "write", "move", "delete"))
        fresh = f"n{turn}_{step}.py"
        if kind == "write" or not names:
            wanted.append(call("write_file", path=fresh, content=f"new {turn} {step}\n\n\nend {turn} {step}\n"))
            continue
        name = rng.choice(names)
        names.remove(name)
        lines = [line for line in files(made)[name].splitlines() if line and not line.startswith("typed")]
        if kind == "edit" and lines:
            line = rng.choice(lines)
            wanted.append(call("edit_file", path=name, old_string=f"{line}\n", new_string=f"{line} {turn}.{step}\n"))
        elif kind == "move":
            wanted.append(call("move_file", path=name, new_path=fresh))
        elif "typed" not in files(made)[name]:
            wanted.append(call("delete_file", path=name))
    return [calls(item) for item in wanted]


def _type(made: World, rng: random.Random, words: str) -> None:
    """A line of the user's own, in a gap between two others."""
    name = rng.choice(sorted(files(made)))
    lines = files(made)[name].splitlines(keepends=True)
    gaps = [at for at, line in enumerate(lines) if line == "\n" and at and lines[at - 1] == "\n"]
    if not gaps:
        return
    at = rng.choice(gaps)
    made.open(name, "".join((*lines[:at], f"{words}\n", *lines[at:])))
