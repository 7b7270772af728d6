"""The loop in a small window: it summarises with its own model, and what it sends only grows in between."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.context.compaction import END, SUMMARISE
from codeagent_lsp.agent.context.history import SUMMARY, is_request
from codeagent_lsp.agent.limits import LoopLimits
from codeagent_lsp.llm.model import ModelRequest
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from tests.agent.test_loop import Bench, bench
from tests.session.fakes import assert_well_formed, call, calls, say

LIMITS = LoopLimits(iterations=30, window=4096, reply_tokens=512)
ANSWER = "some text of a file\n" * 150
QUESTION = SUMMARISE.split("{")[0]


def is_question(request: ModelRequest) -> bool:
    return request.messages[-1].content.startswith(QUESTION)


class Worker(ScriptedModel):
    """Calls `look` a number of times, then answers; asked for a summary it says `words` or what it is told to."""

    def __init__(self, count: int, summary: ScriptedReply) -> None:
        super().__init__()
        self.count = count
        self.summary = summary

    def _pick(self, turn: int) -> ScriptedReply:
        done = sum(not is_question(request) for request in self.requests)
        if is_question(self.requests[-1]):
            return self.summary
        return calls(call("look", n=done)) if done <= self.count else say("All read.")


async def work(tmp_path: Path, summary: ScriptedReply) -> tuple[Worker, Bench]:
    model = Worker(20, summary)
    made = bench(tmp_path, model, LIMITS, answer=ANSWER)
    result = await made.loop.run()
    assert result.text == "All read."
    assert_well_formed(made.history.messages)
    return model, made


async def test_between_compactions_every_prompt_begins_like_the_one_before(tmp_path: Path) -> None:
    model, made = await work(tmp_path, say("I read some."))
    prompts = [request for request in model.requests if not is_question(request)]
    broken = 0
    for earlier, later in pairwise(prompts):
        assert later.tools == earlier.tools
        broken += later.messages[: len(earlier.messages)] != earlier.messages
    compactions = [event for event in made.told if isinstance(event, events.ContextCompacted)]
    assert broken == len(compactions)
    assert 0 < broken < 10
    assert all(event.after < event.before for event in compactions)


async def test_the_question_for_a_summary_begins_like_the_last_prompt_too(tmp_path: Path) -> None:
    model, _ = await work(tmp_path, say("I read some."))
    asked = [index for index, request in enumerate(model.requests) if is_question(request)]
    assert asked
    for index in asked:
        before, question = model.requests[index - 1], model.requests[index]
        shared = question.messages[:-1]
        assert shared == before.messages[: len(shared)]
        assert question.tools == before.tools


async def test_the_summary_is_the_models_and_its_words_are_not_shown(tmp_path: Path) -> None:
    model, made = await work(tmp_path, say("I read some."))
    (told,) = [message.content for message in model.requests[-1].messages if message.name == SUMMARY]
    assert "I read some." in told
    assert "I read some." not in "".join(event.content for event in made.told if isinstance(event, events.Token))
    assert [m.content for m in model.requests[-1].messages if is_request(m)] == ["the task"]
    assert len(made.of(events.UsageReported)) == len(model.requests)


@pytest.mark.slow
@pytest.mark.parametrize(
    "summary",
    [
        calls(call("look", n=99)),
        ScriptedReply(error="busy"),
        ScriptedReply(error="overflow"),
        ScriptedReply("half", error="broken"),
        ScriptedReply(""),
        ScriptedReply("?", problem="no JSON"),
    ],
)
async def test_a_model_that_cannot_summarise_does_not_stop_the_work(tmp_path: Path, summary: ScriptedReply) -> None:
    model, made = await work(tmp_path, summary)
    (told,) = [message.content for message in model.requests[-1].messages if message.name == SUMMARY]
    assert "- look: some text of a file" in told
    assert told.endswith(END)
    assert "look99 begins" not in made.log.lines


async def test_results_longer_than_the_window_are_cut_before_they_stand(tmp_path: Path) -> None:
    made = bench(tmp_path, ScriptedModel([calls(call("look", n=1)), say("ok")]), LIMITS, answer=ANSWER * 40)
    await made.loop.run()
    (result,) = [message for message in made.history.messages if message.role == "tool"]
    assert len(result.content) < 3000
    assert not made.of(events.ContextCompacted)
    (finished,) = [event for event in made.told if isinstance(event, events.ToolFinished)]
    assert len(finished.output) > 3000
