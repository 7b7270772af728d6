"""A model is tried on tiny edits: what counts is the edited file, and nobody pays twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from codeagent_lsp.direct import TEXT_FORMS, AnswerForm
from codeagent_lsp.direct.aptitude import FILE, STRIKES, KnownForms, ProofStore, Score
from codeagent_lsp.direct.form_probe import EDITS, TEXT, Edit, is_right, probe
from codeagent_lsp.errors import ModelReplyInvalid, ModelUnreachable
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, Reply, StreamItem
from codeagent_lsp.llm.providers.scripted import ScriptedModel
from codeagent_lsp.messages import ToolCall, Usage


class Player:
    """A model that plays a part: `answers` gives the reply to an edit in a request."""

    def __init__(self, answers: Callable[[Edit, ModelRequest], Reply], name: str = "player") -> None:
        self.info = ModelInfo(name, "openai", "http://127.0.0.1:9/v1")
        self.requests: list[ModelRequest] = []
        self._answers = answers

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.requests.append(request)
        await asyncio.sleep(0)
        words = next(message.content for message in request.messages if message.role == "user")
        yield self._answers(next(edit for edit in EDITS if edit.words in words), request)

    async def count_tokens(self, text: str) -> int:
        return len(text)

    async def close(self) -> None:
        pass


def after(edit: Edit) -> str:
    return TEXT.replace(edit.before, edit.after)


def strong(edit: Edit, request: ModelRequest) -> Reply:
    """Edits by one call, then says so."""
    if request.messages[-1].role == "tool":
        return Reply("Done.", usage=Usage(10, 0, 2))
    call = ToolCall("edit_file", {"path": "shapes.py", "old_str": edit.before, "new_str": edit.after})
    return Reply("", (call,), "tool_calls", Usage(20, 0, 5))


def in_words(edit: Edit, request: ModelRequest) -> Reply:
    """Says that it is done, and does nothing."""
    return Reply("✓ Done, I fixed it.")


def whole(edit: Edit, request: ModelRequest) -> Reply:
    """Knows whole files and nothing else: it says the same to everything."""
    return Reply("" if request.tools else f"```python\n{after(edit)}```", usage=Usage(7, 0, 3))


async def test_a_strong_model_is_tried_by_tools_alone() -> None:
    model, told = Player(strong), list[AnswerForm]()
    proof = await probe(model, lambda form, score: told.append(form))
    assert proof.calls_tools
    assert told == ["tools"]
    assert len(model.requests) == 2 * len(EDITS)
    score = proof.scores["tools"]
    assert (score.done, score.of, score.prompt_tokens, score.completion_tokens) == (len(EDITS), len(EDITS), 90, 21)


async def test_a_reply_that_parses_proves_nothing() -> None:
    proof = await probe(Player(in_words))
    assert {form: score.done for form, score in proof.scores.items()} == dict.fromkeys(("tools", *TEXT_FORMS), 0)
    assert not any(map(proof.has, TEXT_FORMS))


async def test_a_model_that_gives_whole_files() -> None:
    proof = await probe(Player(whole))
    assert proof.has("whole")
    assert not proof.calls_tools


async def test_a_form_that_the_model_chokes_on_is_a_failed_one() -> None:
    def chokes(edit: Edit, request: ModelRequest) -> Reply:
        if request.tools:
            raise ModelReplyInvalid("model.server_parse", url="u", reason="r")
        return whole(edit, request)

    proof = await probe(Player(chokes))
    assert proof.scores["tools"].done == 0
    assert proof.has("whole")


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.words[:30])
def test_what_is_right(edit: Edit) -> None:
    assert is_right(edit, after(edit))
    assert is_right(edit, after(edit).replace('    """The area of a square."""\n', "    # no docstring\n"))
    assert not is_right(edit, TEXT)
    assert not is_right(edit, after(edit).replace("LIMIT = 100", "LIMIT = 1"))
    assert not is_right(edit, "def (")
    assert not is_right(edit, "")


def test_the_order_of_a_product_does_not_matter() -> None:
    assert is_right(EDITS[0], TEXT.replace("width + height", "height * width"))
    assert is_right(EDITS[1], TEXT.replace("return self.radius\n", "return self.radius * 2\n"))


async def test_a_model_is_tried_once(tmp_path: Path) -> None:
    model, probes = Player(strong), list[int]()
    known = KnownForms(ProofStore(tmp_path))
    first, second = await asyncio.gather(*(known.proof(model, lambda: probes.append(1)) for _ in range(2)))
    assert first.scores["tools"].done == second.scores["tools"].done == len(EDITS)
    count = len(model.requests)
    assert (await KnownForms(ProofStore(tmp_path)).proof(model, lambda: probes.append(1))).calls_tools
    assert (len(model.requests), len(probes)) == (count, 1)


def store_file(folder: Path) -> bool:
    return (folder / FILE).exists()


async def test_a_script_has_nothing_to_prove(tmp_path: Path) -> None:
    model = ScriptedModel([])
    known = KnownForms(ProofStore(tmp_path))
    assert (await known.proof(model, lambda: pytest.fail("it was tried"))).calls_tools
    await known.count(model, "tools", worked=False)
    assert model.requests == []
    assert not store_file(tmp_path)


async def test_a_model_that_cannot_be_reached_is_not_judged(tmp_path: Path) -> None:
    def gone(edit: Edit, request: ModelRequest) -> Reply:
        raise ModelUnreachable("model.unreachable", url="u", reason="gone")

    store = ProofStore(tmp_path)
    with pytest.raises(ModelUnreachable):
        await KnownForms(store).proof(Player(gone), lambda: None)
    assert store.get(Player(gone).info) is None


async def test_a_wrong_entry_heals(tmp_path: Path) -> None:
    store = ProofStore(tmp_path)
    known, model = KnownForms(store), Player(strong)
    wrong = await known.proof(Player(whole, "player"), lambda: None)
    assert not wrong.calls_tools
    for _ in range(STRIKES):
        await known.count(model, "whole", worked=False)
    assert (await known.proof(model, lambda: None)).calls_tools


async def test_a_cancelled_probe_is_made_again(tmp_path: Path) -> None:
    known, model = KnownForms(ProofStore(tmp_path)), Player(strong)
    work = asyncio.ensure_future(known.proof(model, lambda: None))
    for _ in range(5):
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (await known.proof(model, lambda: None)).calls_tools


def test_scores_are_shares() -> None:
    assert (Score(0, 0).share, Score(1, 4).share) == (0.0, 0.25)
