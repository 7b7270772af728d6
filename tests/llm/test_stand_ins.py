"""Models that take over when one fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from codeagent_lsp.errors import ContextOverflow, ModelBusy, ModelError, ModelNotFound, ModelUnreachable
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, Reply
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import Message
from codeagent_lsp.session.run_models import StandInModel

ASK = ModelRequest((Message("user", "u"),))
TOLD: list[tuple[type[ModelError], str]] = []


def tell(error: ModelError, info: ModelInfo) -> None:
    TOLD.append((type(error), info.name))


def named(name: str, *replies: ScriptedReply) -> ScriptedModel:
    return ScriptedModel(replies, info=ModelInfo(name, "scripted", facts=window_known(8192)))


def opener(model: Model | ModelError) -> Callable[[], Awaitable[Model]]:
    async def open_it() -> Model:
        if isinstance(model, ModelError):
            raise model
        return model

    return open_it


async def text(model: Model) -> str:
    async for item in model.stream(ASK):
        if isinstance(item, Reply):
            return item.text
    raise AssertionError("no reply")


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    TOLD.clear()


async def test_the_first_that_can_be_opened_answers() -> None:
    gone = ModelUnreachable("model.unreachable", url="u", reason="r")
    model = await StandInModel.open([opener(gone), opener(gone), opener(named("b", ScriptedReply("hi")))], tell)
    assert model.info.name == "b" and await text(model) == "hi"
    assert [(ModelUnreachable, "b")] == TOLD


async def test_the_next_takes_over_for_good_and_is_told_once() -> None:
    first = named("a", ScriptedReply("one"), ScriptedReply(error="busy"), ScriptedReply("never"))
    model = await StandInModel.open(
        [opener(first), opener(named("b", ScriptedReply("two"), ScriptedReply("three")))], tell
    )
    assert [await text(model) for _ in range(3)] == ["one", "two", "three"]
    assert [(ModelBusy, "b")] == TOLD and model.info.name == "b"


async def test_the_error_of_the_first_is_told_when_none_works() -> None:
    missing = ModelNotFound("model.not_found")
    busy = named("a", ScriptedReply(error="busy"))
    model = await StandInModel.open([opener(busy), opener(missing)], tell)
    with pytest.raises(ModelBusy):
        await text(model)
    with pytest.raises(ModelNotFound):
        await StandInModel.open([opener(missing), opener(ModelBusy("model.busy", url="u", reason="r"))], tell)
    assert TOLD == []


async def test_an_overflow_is_about_the_prompt_not_the_model() -> None:
    model = await StandInModel.open([opener(named("a", ScriptedReply(error="overflow"))), opener(named("b"))], tell)
    with pytest.raises(ContextOverflow):
        await text(model)
    assert TOLD == [] and model.info.name == "a"


async def test_a_reply_that_breaks_after_its_first_word_is_not_begun_again() -> None:
    model = await StandInModel.open(
        [opener(named("a", ScriptedReply("some words", chunks=2, error="broken"))), opener(named("b"))], tell
    )
    seen = []
    with pytest.raises(ModelError):
        async for item in model.stream(ASK):
            seen.append(item)
    assert seen and TOLD == []
