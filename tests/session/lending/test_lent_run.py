"""The run of another agent: what its calls do, when the user is asked, and that it ends whole in every order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError, UsageError
from codeagent_lsp.session.lending import lent_run
from codeagent_lsp.session.lending.lent_run import MOST_BYTES, CallCancelled, LentCall, lent
from codeagent_lsp.session.lending.lent_tools import LENT_TOOLS, in_lent_names, lent_tool, with_kept_named
from codeagent_lsp.session.request import RunRequest
from tests.examples import examples
from tests.session.fakes import World, say, until, world

TEXT = "def total(items):\n    return 0\n"
EDIT = {"path": "cart.py", "old_str": "return 0", "new_str": "return sum(items)"}
HOUR = 3600.0


class Agent:
    """The other agent: what it sends, and what it is answered."""

    name = "claude-code"

    def __init__(self) -> None:
        self.sent: asyncio.Queue[LentCall | CallCancelled | None] = asyncio.Queue()
        self.answers: dict[int, tuple[str, bool]] = {}
        self.left: list[str] = []
        self.number = 0

    async def next(self) -> LentCall | CallCancelled | None:
        return await self.sent.get()

    async def answer(self, number: int, text: str, *, ok: bool) -> None:
        assert number not in self.answers, "answered twice"
        self.answers[number] = (text, ok)

    async def leave(self, reason: str) -> None:
        self.left.append(reason)

    def call(self, tool: str, **arguments: Any) -> int:
        self.number += 1
        self.sent.put_nowait(LentCall(self.number, tool, arguments))
        return self.number

    async def does(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """The answer to a call."""
        number = self.call(tool, **arguments)
        await until(lambda: number in self.answers)
        return self.answers[number]


def begun(made: World, agent: Agent, quiet: float = HOUR) -> str:
    made.open("cart.py", TEXT)
    return made.manager.start_beside(RunRequest("lent", "", "The editor lent"), lent(agent, quiet))


async def left(made: World, agent: Agent, run_id: str) -> events.RunCompleted:
    agent.sent.put_nowait(None)
    return await made.finished(run_id)


def asked(made: World) -> int:
    return len(made.of(events.ApprovalRequested))


async def test_calls_are_ours_and_are_shown(tmp_path: Path) -> None:
    made, agent = world(tmp_path / "w", says=["Discard"]), Agent()
    run_id = begun(made, agent)
    assert await agent.does("open_files") == (f"Workspace: {made.root}\ncart.py (not on the disk)", True)
    assert (await agent.does("read", path="cart.py"))[0].startswith("1|def total")
    text, ok = await agent.does("edit", **EDIT)
    assert ok and text.startswith("Staged") and made.text("cart.py") == TEXT
    assert "with your staged changes" in (await agent.does("open_files"))[0]
    assert (await agent.does("write", path="new.py", content="x = 1\n"))[1]
    shown = [call["name"] for event in made.of(events.ToolCalls) for call in event.calls]  # type: ignore[attr-defined]
    assert shown == ["open_files", "read_file", "edit_file", "open_files", "write_file"]
    assert [event.success for event in made.of(events.ToolFinished)] == [True] * 5  # type: ignore[attr-defined]
    start = made.of(events.ResponseStart)[0]
    assert isinstance(start, events.ResponseStart) and start.beside == "The editor lent"
    await left(made, agent, run_id)
    assert agent.left == ["ended"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("delegate", {}, "There is no tool 'delegate'"),
        ("read_file", {"path": "cart.py"}, "There is no tool 'read_file'"),
        ("run", {"command": "true", "allow_network": True}, "no argument 'allow_network'"),
        ("run", {"command": "true", "allowNetwork": True}, "no argument 'allowNetwork'"),
        ("run", {"command": "true", "background": True}, "no argument 'background'"),
        ("edit", {**EDIT, "old_str": "nowhere"}, "not in the file"),
        ("edit", {"path": "cart.py"}, "Wrong arguments for edit:"),
        ("read", {"path": "../../etc/passwd"}, "outside"),
        ("propose", {}, "Nothing is staged."),
    ],
)
async def test_what_is_refused_or_nothing(tmp_path: Path, tool: str, arguments: dict[str, Any], said: str) -> None:
    made, agent = world(tmp_path / "w"), Agent()
    run_id = begun(made, agent)
    text, ok = await agent.does(tool, **arguments)
    assert said in text and ok == (tool == "propose")
    assert (await left(made, agent, run_id)).status == "completed" and not asked(made)


async def test_the_mode_of_the_user_holds(tmp_path: Path) -> None:
    made, agent = world(tmp_path / "w", mode="readOnly"), Agent()
    run_id = begun(made, agent)
    text, ok = await agent.does("edit", **EDIT)
    assert not ok and "readOnly" in text and (await agent.does("read", path="cart.py"))[1]
    await left(made, agent, run_id)


async def test_a_long_answer_is_cut(tmp_path: Path) -> None:
    made, agent = world(tmp_path / "w"), Agent()
    run_id = begun(made, agent)
    made.open("long.py", "".join(f"name_{number} = {number}\n" for number in range(9000)))
    text, ok = await agent.does("read", path="long.py")
    assert ok and MOST_BYTES // 2 < len(text) < MOST_BYTES and "Read ranges" in text
    await left(made, agent, run_id)


@pytest.mark.parametrize("apply", ["review", "auto", "live"])
async def test_it_is_always_reviewed(tmp_path: Path, apply: Any) -> None:
    made, agent = world(tmp_path / "w", says=["Discard"], apply=apply), Agent()
    run_id = begun(made, agent)
    await agent.does("edit", **EDIT)
    ended = await left(made, agent, run_id)
    assert asked(made) == 1 and made.text("cart.py") == TEXT and ended.status == "rejected"


@pytest.mark.slow
async def test_quiet_is_a_proposal_that_is_made_once(tmp_path: Path) -> None:
    made, agent = world(tmp_path / "w", deadline=0.05), Agent()
    run_id = begun(made, agent, quiet=0.01)
    await agent.does("read", path="cart.py")
    await asyncio.sleep(0.05)
    assert not asked(made)
    await agent.does("edit", **EDIT)
    await until(lambda: asked(made) == 1 and not made.inbox.open())
    await left(made, agent, run_id)
    assert asked(made) == 1, "nothing has changed since"
    assert made.manager.runs.get(run_id).proposal.changeset


async def test_what_became_of_a_proposal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, agent = world(tmp_path / "w", says=["Apply"]), Agent()
    run_id = begun(made, agent)
    await agent.does("edit", **EDIT)
    assert "Accepted" in (await agent.does("propose"))[0]
    assert made.text("cart.py") == TEXT.replace("return 0", "return sum(items)")
    made.user.says = ["Discard"]
    await agent.does("write", path="new.py", content="x = 1\n")
    assert "discarded" in (await agent.does("propose"))[0]
    monkeypatch.setattr(lent_run, "PROPOSE_SECONDS", 0.05)
    await agent.does("write", path="other.py", content="x = 1\n")
    text, ok = await agent.does("propose")
    assert ok and "not decided yet about: other.py" in text
    # The question stays, and an answer to it counts.
    (question,) = made.inbox.open()
    made.inbox.respond(question.request_id, ("Apply",))
    await until(lambda: made.text("other.py") == "x = 1\n")
    assert (await agent.does("propose"))[0] == "Nothing is staged."
    assert (await left(made, agent, run_id)).status == "completed"


@pytest.mark.slow
async def test_a_part_by_hunk_and_the_question_closed(tmp_path: Path) -> None:
    made, agent = world(tmp_path / "w", deadline=0.01), Agent()
    run_id = begun(made, agent)
    made.open("cart.py", TEXT + "\n" * 9 + "x = 1\n")
    await agent.does("edit", **EDIT)
    await agent.does("edit", path="cart.py", old_str="x = 1", new_str="x = 2")
    number = agent.call("propose")
    proposal = made.manager.runs.get(run_id).proposal
    await until(lambda: asked(made) == 1 and not made.inbox.open())
    await proposal.apply(hunks={made.path("cart.py"): frozenset({0})})
    proposal.discard()
    await until(lambda: number in agent.answers)
    assert "accepted a part" in agent.answers[number][0]
    await left(made, agent, run_id)


async def test_the_end_by_the_user(tmp_path: Path) -> None:
    made, agent = world(tmp_path / "w"), Agent()
    run_id = begun(made, agent)
    await agent.does("edit", **EDIT)
    number = agent.call("ask_user", questions=[{"text": "Which?"}])
    await until(made.inbox.open)
    assert made.inbox.open()[0].question.title.startswith("claude-code: ")
    made.manager.runs.cancel(run_id)
    assert (await made.finished(run_id)).status == "cancelled"
    assert agent.left == ["cancelled"] and number not in agent.answers and not made.inbox.open()
    assert made.manager.runs.get(run_id).proposal.changeset
    (last,) = made.of(events.ToolFinished)[-1:]
    assert isinstance(last, events.ToolFinished) and last.status == "cancelled"


async def test_a_call_is_stopped_and_the_rest_goes_on(tmp_path: Path) -> None:
    made, agent = world(tmp_path / "w"), Agent()
    run_id = begun(made, agent)
    number = agent.call("ask_user", questions=[{"text": "Which?"}])
    await until(made.inbox.open)
    assert (await agent.does("read", path="cart.py"))[1], "not behind the question"
    agent.sent.put_nowait(CallCancelled(number))
    agent.sent.put_nowait(CallCancelled(99))
    await until(lambda: not made.inbox.open())
    assert (await agent.does("edit", **EDIT))[1]
    made.user.says = ["Discard"]
    await left(made, agent, run_id)
    assert number not in agent.answers


async def test_too_many_at_a_time_are_refused(tmp_path: Path) -> None:
    made, agent = world(tmp_path / "w"), Agent()
    run_id = begun(made, agent)
    for _ in range(lent_run.MAX_CALLS + 1):
        agent.call("ask_user", questions=[{"text": "Which?"}])
    await until(lambda: agent.answers)
    assert list(agent.answers) == [lent_run.MAX_CALLS + 1]
    await left(made, agent, run_id)
    assert len(made.of(events.ToolFinished)) == lent_run.MAX_CALLS and not made.inbox.open()


async def test_the_session_of_the_user_stays_and_words_are_not_for_it(tmp_path: Path) -> None:
    made, agent = world(tmp_path / "w", say("Done.")), Agent()
    mine = made.manager.current().session_id
    run_id = begun(made, agent)
    assert made.manager.current().session_id == mine
    with pytest.raises(SessionError):
        made.manager.runs.newest_at_work()
    assert (await made.run()).status == "completed"
    assert run_id in made.manager.runs.active()
    await left(made, agent, run_id)
    with pytest.raises(UsageError):
        made.manager.queue.say(made.manager.runs.get(run_id), "")


ACTS = st.one_of(
    st.sampled_from([tool.name for tool in LENT_TOOLS]).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from([{}, EDIT, {"path": "cart.py"}, {"command": "true"}]))
    ),
    st.tuples(st.just("cancel"), st.integers(0, 12)),
    st.tuples(st.just("pause"), st.just(0)),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(ACTS, max_size=14), st.booleans(), st.sampled_from(["Apply", "Discard", ""]))
def test_any_order_ends_whole(
    tmp_path_factory: pytest.TempPathFactory, acts: list[Any], cancelled: bool, answer: str
) -> None:
    async def play() -> None:
        made = world(tmp_path_factory.mktemp("any") / "w", says=[answer] * 20 if answer else [], deadline=0.02)
        agent = Agent()
        run_id = begun(made, agent, quiet=0.001)
        for name, given_ in acts:
            if name == "cancel":
                agent.sent.put_nowait(CallCancelled(given_))
            elif name == "pause":
                await asyncio.sleep(0.003)
            else:
                agent.call(name, **given_)
        if cancelled:
            made.manager.runs.cancel(run_id)
        agent.sent.put_nowait(None)
        ended = await asyncio.wait_for(made.finished(run_id), 20)
        assert ended.status == ("cancelled" if cancelled else ended.status) and len(agent.left) <= 1
        begun_cards = [call["id"] for event in made.of(events.ToolCalls) for call in event.calls]  # type: ignore[attr-defined]
        ended_cards = [event.call_id for event in made.of(events.ToolFinished)]  # type: ignore[attr-defined]
        assert sorted(begun_cards) == sorted(ended_cards) and not made.inbox.open()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in others if not task.done() and "play" not in repr(task.get_coro())]

    asyncio.run(play())


def test_the_tools_say_what_they_take() -> None:
    for tool in LENT_TOOLS:
        schema = tool.schema()
        assert schema["type"] == "object" and len(tool.description) < 260
        assert not set(tool.hidden) & schema["properties"].keys()
    run = lent_tool("run")
    assert run is not None and set(run.schema()["properties"]) == {"command", "timeout", "working_dir"}
    assert in_lent_names("use read_file, not edit_file_now") == "use read, not edit_file_now"
    assert with_kept_named("read_file\nread_file @output/2.txt)") == "read_file\nread @output/2.txt)"
