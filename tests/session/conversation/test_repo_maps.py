"""The repo map in a model's prompts: the right file before the task, a prefix that stays, and runs without an index."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.prompt import OVERVIEW, PIECES, TASK_MAP
from codeagent_lsp.config import Settings
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.session.conversation.repo_maps import LEAST_TOKENS, Budgets, budgets
from codeagent_lsp.session.request import RunRequest, Target
from tests.index.maps import paths_in
from tests.index.workspaces import write
from tests.session.fakes import World, call, calls, say, world
from tests.session.fakes import write as writing
from tests.session.indexed import TAXES, RealIndexing, indexing

LARGE = ModelInfo("m", "scripted", facts=window_known(31_000), tool_calling="native")
SMALL = ModelInfo("s", "scripted", facts=window_known(8192), tool_calling="native")
TASK = "Where does the checkout of the cart add the wrong tax?"


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[RealIndexing]:
    write(tmp_path / "w", TAXES)
    async with indexing(tmp_path / "w") as made:
        yield made


def script(made: World, *replies: ScriptedReply, info: ModelInfo = LARGE) -> ScriptedModel:
    model = ScriptedModel(replies or [say()], info=info)
    made.models["model"] = model
    return model


def shop(tmp_path: Path, index: RealIndexing, settings: Callable[[Settings], Settings] = lambda value: value) -> World:
    def by_tools(value: Settings) -> Settings:
        chosen = settings(value)
        return replace(chosen, agent=replace(chosen.agent, answer_form="tools"))  # no more requests than are looked at

    return world(tmp_path / "w", indexing=index, settings=by_tools, apply="auto")


def map_in(text: str, head: str) -> str:
    """The map behind a heading, as far as its lines go."""
    return text.partition(f"{head}\n")[2].partition("\n\n")[0]


def sent(model: ScriptedModel, number: int = -1) -> list[str]:
    return [message.content for message in model.requests[number].messages]


# --- how many tokens


@pytest.mark.parametrize(
    ("setting", "window", "overview", "task"),
    [
        ("auto", 4096, 0, 341),
        ("auto", 8192, 0, 682),
        ("auto", 32_768, 682, 2048),
        ("auto", 131_072, 1024, 3072),
        ("auto", 1_000_000, 1024, 3072),
        (0, 131_072, 0, 0),
        (50, 131_072, 0, 0),
        (1000, 131_072, 250, 750),
        (9000, 8192, 0, 2048),
        (9000, 131_072, 2250, 6750),
    ],
)
def test_budgets(setting: int | Literal["auto"], window: int, overview: int, task: int) -> None:
    given = budgets(setting, window)

    assert replace(given, pieces=0) == Budgets(overview, task)
    assert given.pieces >= overview + task


@pytest.mark.parametrize("window", [1024, 2048, 8192, 8193, 20_000, 128_000])
def test_maps_leave_the_window_to_the_work(window: int) -> None:
    given = budgets("auto", window)
    assert given.overview + given.task <= window // 12
    assert given.pieces <= window // 12
    assert all(tokens == 0 or tokens >= LEAST_TOKENS for tokens in (given.overview, given.task, given.pieces))


# --- where it stands


@pytest.mark.slow
async def test_the_right_file_stands_before_the_task(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made)
    await made.run(TASK)
    system, helpful, task = sent(model)
    shown = paths_in(map_in(helpful, TASK_MAP))
    assert {"shop/cart.py", "shop/taxes.py"} == set(shown[:2])
    assert "def value_added_tax(items)" in helpful
    assert task == TASK
    assert "shop/cart.py" in map_in(system, OVERVIEW)
    assert "Files of the workspace" not in helpful


@pytest.mark.slow
async def test_what_the_session_has_edited_comes_up_for_its_next_task(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    edited = TAXES["shop/mail.py"] + "\n\ndef nothing():\n    return 1\n"
    model = script(made, say(), writing("shop/mail.py", edited), say(), say())
    await made.run("Look into the sums")
    await made.run("Write something")
    await made.run("Look into the sums")

    before, after = (paths_in(map_in(sent(model, number)[at], TASK_MAP)) for number, at in ((0, 1), (-1, -2)))
    assert before.index("shop/mail.py") > 2
    assert after[0] == "shop/mail.py"


@pytest.mark.slow
async def test_a_small_window_has_the_map_of_its_task_alone(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made, info=SMALL)
    await made.run(TASK)
    system, helpful, _ = sent(model)
    assert OVERVIEW not in system
    assert estimate_tokens(map_in(helpful, TASK_MAP)) <= 8192 // 12
    assert "shop/cart.py" in paths_in(map_in(helpful, TASK_MAP))[:2]


@pytest.mark.slow
async def test_the_files_in_focus_count(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made, calls(call("read_file", path="lib/part7.py")), say(), say())
    await made.run("Read it")
    await made.run("And now make it faster")
    assert paths_in(map_in(sent(model, 2)[-2], TASK_MAP))[0] == "lib/part7.py"


@pytest.mark.slow
async def test_the_file_of_a_selection_counts(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made)
    file = made.read(made.path("lib/part9.py"))
    request = RunRequest("test", "", "Tests", Target(file, 0, len(file.text)))
    await made.finished(made.manager.start(request))
    assert paths_in(map_in(sent(model)[1], TASK_MAP))[0] == "lib/part9.py"


async def test_a_small_model_that_explains_gets_no_map(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made, info=SMALL)
    file = made.read(made.path("lib/part9.py"))
    await made.finished(made.manager.start(RunRequest("explain", "", "?", Target(file, 0, len(file.text)))))
    assert not any(TASK_MAP in text for text in sent(model))


@pytest.mark.slow
async def test_subagents_have_the_overview_and_a_map_of_their_own_task(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made, calls(call("delegate", agent="reviewer", task="Look at the mailer")), say("Fine."), say())
    await made.run(TASK)
    assert len(model.requests) == 3
    assert map_in(sent(model, 1)[0], OVERVIEW) == map_in(sent(model, 0)[0], OVERVIEW) != ""
    assert paths_in(map_in(sent(model, 1)[1], TASK_MAP))[0] == "shop/mail.py"
    assert sent(model, 1)[1].endswith("\n\nLook at the mailer")


# --- the code before a question


async def asked(made: World, question: str) -> None:
    await made.finished(made.manager.start(RunRequest("ask", question, question)))


@pytest.mark.slow
async def test_a_question_starts_with_the_code_that_may_answer_it(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made)
    await asked(made, "How is the value added tax of the items computed?")
    code = sent(model)[1].partition(PIECES)[2]
    assert code.startswith("\n\nshop/taxes.py:1-2\n```\ndef value_added_tax(items):\n    return 19\n```")
    assert "lib/part" not in code


@pytest.mark.slow
async def test_the_code_before_a_question_fits_the_window(tmp_path: Path, index: RealIndexing) -> None:
    body = "".join(f"    tax_{n} = items[{n}]\n" for n in range(50))
    write(tmp_path / "w", {f"big/tax{n}.py": f"def value_added_tax_{n}(items):\n{body}" for n in range(12)})
    made = shop(tmp_path, index)
    model = script(made, info=SMALL)
    await asked(made, "How is the value added tax of the items computed?")
    code = sent(model)[1].partition(PIECES)[2]
    assert 100 < estimate_tokens(code) <= budgets("auto", 8192).pieces + 10


@pytest.mark.slow
async def test_a_task_gets_no_code_and_a_named_file_is_not_shown_twice(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made, say(), say())
    await made.run("How is the value added tax of the items computed?")
    await asked(made, "How is the value added tax of the items in taxes.py computed?")
    assert all(PIECES not in text or "shop/taxes.py:1-2" not in text for text in sent(model))
    assert not any(PIECES in text for text in sent(model, 0))


@pytest.mark.slow
async def test_nothing_found_no_code(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made)
    await asked(made, "zzzz qqqq?")
    assert not any(PIECES in text for text in sent(model))


# --- what stays


@pytest.mark.slow
async def test_the_rules_are_the_same_bytes_for_a_whole_session(tmp_path: Path, index: RealIndexing) -> None:
    """And every prompt begins with the one before it, whatever happens to the code."""
    made = shop(tmp_path, index)
    steps = [
        (calls(call("read_file", path="shop/cart.py")), say("Read.")),
        (writing("shop/vouchers.py", "def voucher_of(cart):\n    return value_added_tax(cart)\n"), say("Written.")),
        (calls(call("search_semantic", query="voucher of a cart")), say("Found.")),
    ]
    model = script(made, *(reply for replies in steps for reply in replies))
    for number, _ in enumerate(steps):
        await made.run(f"{TASK} ({number})")
        write(made.root, {f"shop/new{number}.py": f"def new_{number}(): return value_added_tax({number})\n"})
        (made.root / f"lib/part{number}.py").unlink()
    prompts = [sent(model, number) for number in range(6)]
    for before, after in pairwise(prompts):
        assert after[: len(before)] == before
    assert len({prompt[0] for prompt in prompts}) == 1


@pytest.mark.slow
async def test_a_compaction_leaves_the_rules_as_they_are(tmp_path: Path, index: RealIndexing) -> None:
    def early(value: Settings) -> Settings:
        return replace(value, context=replace(value.context, compact_at=0.3))

    made = shop(tmp_path, index, early)
    info = replace(LARGE, facts=window_known(16_384))
    write(made.root, {f"long{number}.txt": f"{number} many words in a line\n" * 400 for number in range(6)})
    model = script(made, *(calls(call("read_file", path=f"long{n}.txt")) for n in range(6)), say(), say(), info=info)
    await made.run(TASK)
    await made.run("Go on")
    assert made.of(events.ContextCompacted)
    assert len({request.messages[0].content for request in model.requests}) == 1
    assert OVERVIEW in model.requests[-1].messages[0].content


@pytest.mark.slow
async def test_what_moved_is_told_in_the_latest_message_once(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made, say(), say(), say())
    await made.run(TASK)
    (made.root / "shop" / "mail.py").unlink()
    write(made.root, {"shop/rates.py": "def rates(): return value_added_tax(1)\n"})
    await made.run(TASK)
    told = sent(model)[-2]
    assert "gone: shop/mail.py" in told
    assert "shop/rates.py" in told.partition("new: ")[2].partition(";")[0]
    await made.run(TASK)
    assert "Since the repo map" not in sent(model)[-2]


@pytest.mark.slow
async def test_an_edit_moves_nothing(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made, say(), say())
    await made.run(TASK)
    write(made.root, {"lib/part3.py": "def part_3():\n    return 33\n"})
    await made.run(TASK)
    assert "Since the repo map" not in sent(model)[-2]
    assert map_in(sent(model)[1], TASK_MAP) == map_in(sent(model)[-2], TASK_MAP)


# --- without one


async def test_a_run_without_an_index_works_and_sees_the_names(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    index.problem = ToolFailed("The code index is being built.")
    model = script(made, calls(call("search_semantic", query="tax")), say("Done."))
    assert "Done." in (await made.run(TASK)).summary
    assert "Files of the workspace:\nlib/part0.py" in sent(model)[1]
    assert "being built" in sent(model)[-1]
    assert all(head not in text for head in (OVERVIEW, TASK_MAP) for text in sent(model))


@pytest.mark.parametrize("problem", [OSError("no disk"), RuntimeError("a bug")])
async def test_whatever_ails_the_index_the_run_goes_on(tmp_path: Path, index: RealIndexing, problem: Exception) -> None:
    made = shop(tmp_path, index)
    index.problem = problem
    script(made, say("Done."))
    assert (await made.run(TASK)).status == "completed"


@pytest.mark.slow
async def test_no_overview_of_half_a_workspace(tmp_path: Path, index: RealIndexing) -> None:
    """It would stay for the whole session."""
    made = shop(tmp_path, index)
    index.unseen = True
    model = script(made, say(), say())
    await made.run(TASK)
    index.unseen = False
    await made.run(TASK)
    assert OVERVIEW not in sent(model)[0]
    assert TASK_MAP in sent(model)[1]
    assert model.requests[0].messages[0] == model.requests[1].messages[0]


async def test_switched_off_by_the_setting_nobody_asks(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index, lambda value: replace(value, repo_map=replace(value.repo_map, max_tokens=0)))
    model = script(made)
    await made.run(TASK)
    assert all(head not in text for head in (OVERVIEW, TASK_MAP) for text in sent(model))
    assert index.asked == 0


@pytest.mark.slow
async def test_a_greeting_brings_no_map(tmp_path: Path, index: RealIndexing) -> None:
    made = shop(tmp_path, index)
    model = script(made)
    await made.run("?!")
    assert all(TASK_MAP not in text for text in sent(model))
