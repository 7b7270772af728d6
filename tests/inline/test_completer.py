"""The completer: known answers, typing along, joining, ending, one at a time, and never anything of another text."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable

import pytest

from codeagent_lsp.errors import ModelError, ModelUnreachable
from codeagent_lsp.inline.completer import Completer, Options
from codeagent_lsp.inline.context import Material, Place
from codeagent_lsp.llm.fill.filler import FillRequest
from tests.examples import volume

NOW = Options(pause=0.0)


class Typewriter:
    """A filler that writes what `answer` says to a request, a few characters at a time."""

    name = "typewriter"
    slow = True

    def __init__(self, answer: Callable[[FillRequest], str], *, size: int = 2, pause: float = 0.0) -> None:
        self.requests: list[FillRequest] = []
        self.running = self.most = self.ended_early = 0
        self._answer = answer
        self._size = size
        self._pause = pause

    async def stream(self, request: FillRequest) -> AsyncGenerator[str, None]:
        self.requests.append(request)
        self.running += 1
        self.most = max(self.most, self.running)
        text, at = self._answer(request), 0
        try:
            while at < len(text):
                await asyncio.sleep(self._pause)
                yield text[at : at + self._size]
                at += self._size
        finally:
            self.running -= 1
            self.ended_early += at < len(text)

    async def close(self) -> None: ...


def completer_of(filler: Typewriter, errors: list[ModelError] | None = None) -> Completer:
    async def nothing(place: Place) -> Material:
        return Material()

    return Completer(filler, nothing, lambda text: text, (errors if errors is not None else []).append)


def end(text: str) -> Place:
    return Place("x.py", text, len(text))


LIKE = "".join(f"    self.rows.append(row, key=None)\n    x{number}\n" for number in range(3))


async def test_what_all_lines_that_begin_so_say_is_there_without_the_model() -> None:
    filler = Typewriter(lambda request: "model")
    completer = completer_of(filler)
    assert await completer.complete(end(f"{LIKE}        self.rows.a"), Options(pause=60.0)) == "ppend(row, key=None)"
    crlf = f"{LIKE}    self.rows.append(".replace("\n", "\r\n")
    assert await completer.complete(end(crlf), NOW) == "row, key=None)"
    assert filler.requests == []
    assert completer.counts.drafts == 2
    assert await completer.complete(end(f"{LIKE}    self.rows.a"), NOW, invoked=True) == "model", "asked for by a key"


@pytest.mark.parametrize(
    "text",
    [
        f"{LIKE}    self",  # a word is not begun like a line
        f"{LIKE}    self.rows.appendix",
        f"{LIKE}    self.rows.append(other)\n    self.rows.a",
        f"{LIKE}    self.rows.a\n    self.rows.a",
        f"{LIKE.replace('x1', 'y')[80:]}    self.rows.a",  # too few
        f"{LIKE}    x = self.rows.a",
        f"{LIKE}    self.rows.append(row, key=None",  # next to nothing is left
    ],
)
async def test_the_model_is_asked_where_the_lines_do_not_agree(text: str) -> None:
    assert await completer_of(Typewriter(lambda request: "model")).complete(end(text), NOW) == "model"


async def test_in_the_middle_of_a_line_there_is_no_draft() -> None:
    text = f"{LIKE}    self.rows.a"
    place = Place("x.py", f"{text} + 1\n", len(text))
    assert await completer_of(Typewriter(lambda request: "model")).complete(place, NOW) == "model"


class Objecting:
    """A check that finds an error in everything that has `row` in it."""

    def expect(self, answer: str) -> None: ...

    async def brings_error(self, answer: str) -> bool:
        return "row" in answer

    async def close(self) -> None: ...


async def test_a_draft_that_brings_an_error_gives_way_to_the_model() -> None:
    async def nothing(place: Place) -> Material:
        return Material()

    errors: list[ModelError] = []
    completer = Completer(Typewriter(lambda request: "model"), nothing, str, errors.append, lambda place: Objecting())
    assert await completer.complete(end(f"{LIKE}    self.rows.a"), NOW) == "model"
    assert completer.counts.drafts == 0


async def test_an_answer_is_made_once_and_typed_along() -> None:
    filler = Typewriter(lambda request: "total + 1\n")
    completer = completer_of(filler)
    assert await completer.complete(end("x = "), NOW) == "total + 1"
    assert await completer.complete(end("x = tot"), NOW) == "al + 1"
    assert await completer.complete(end("x = "), NOW) == "total + 1"
    assert len(filler.requests) == 1
    assert await completer.complete(end("x = b"), NOW) == "total + 1", "another way is another request"
    assert len(filler.requests) == 2


async def test_what_is_typed_to_the_end_is_asked_anew() -> None:
    filler = Typewriter(lambda request: "ab\n")
    completer = completer_of(filler)
    await completer.complete(end("x = "), NOW)
    await completer.complete(end("x = ab"), NOW)
    assert len(filler.requests) == 2


async def test_that_nothing_fits_is_remembered_unless_the_user_asks() -> None:
    filler = Typewriter(lambda request: "")
    completer = completer_of(filler)
    for _ in range(3):
        assert await completer.complete(end("x = "), NOW) == ""
    assert len(filler.requests) == 1
    await completer.complete(end("x = "), NOW, invoked=True)
    assert len(filler.requests) == 2


async def test_the_next_key_joins_the_request_on_its_way() -> None:
    filler = Typewriter(lambda request: "total + 1\n", size=1, pause=0.01)
    completer = completer_of(filler)
    first = asyncio.create_task(completer.complete(end("x = "), NOW))
    await asyncio.sleep(0.04)
    first.cancel()
    assert await completer.complete(end("x = to"), NOW) == "tal + 1"
    assert len(filler.requests) == 1
    assert completer.counts.joined == 1


@pytest.mark.slow
async def test_another_key_ends_the_request_on_its_way_at_once() -> None:
    filler = Typewriter(lambda request: "total + 1\n" if request.prefix.endswith("= ") else "other\n", pause=0.05)
    completer = completer_of(filler)
    first = asyncio.create_task(completer.complete(end("x = "), NOW))
    await asyncio.sleep(0.12)
    completer.moved("x.py", "x = q")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert filler.running == 0
    assert await completer.complete(end("x = q"), NOW) == "other"
    assert await first == ""


@pytest.mark.slow
async def test_a_request_that_nobody_waits_for_ends() -> None:
    filler = Typewriter(lambda request: "x" * 400, pause=0.02)
    completer = completer_of(filler)
    first = asyncio.create_task(completer.complete(end("x = "), NOW))
    await asyncio.sleep(0.05)
    first.cancel()
    await asyncio.sleep(0.7)
    assert filler.running == 0 and filler.ended_early == 1


@pytest.mark.slow
async def test_while_the_user_types_nothing_is_asked() -> None:
    filler = Typewriter(lambda request: "1\n")
    completer = completer_of(filler)
    typed = "value = compute"
    tasks = []
    for size in range(1, len(typed) + 1):
        tasks.append(asyncio.create_task(completer.complete(end(typed[:size]), Options(pause=0.5))))
        await asyncio.sleep(0.005)
    answers = await asyncio.gather(*tasks)
    assert len(filler.requests) == 1
    assert answers[:-1] == [""] * (len(typed) - 1) and answers[-1] == "1"


async def test_an_error_is_told_and_the_next_request_goes_on() -> None:
    class Broken(Typewriter):
        async def stream(self, request: FillRequest) -> AsyncGenerator[str, None]:
            self.requests.append(request)
            if len(self.requests) == 1:
                raise ModelUnreachable("model.reset", url="http://127.0.0.1:1", reason="gone")
            yield "1\n"

    errors: list[ModelError] = []
    completer = completer_of(Broken(lambda request: ""), errors)
    assert await completer.complete(end("x = "), NOW) == ""
    assert len(errors) == 1
    assert await completer.complete(end("x = "), NOW) == "1"


async def test_secrets_are_masked_in_all_that_is_sent() -> None:
    secret = "hunter" + "2" * 10
    filler = Typewriter(lambda request: "1\n")

    async def material(place: Place) -> Material:
        return Material((("other.py", f"password = '{secret}'\nvalue = compute(total)\n"),))

    completer = Completer(filler, material, lambda text: text.replace(secret, "***"), lambda error: None)
    text = f"password = '{secret}'\nvalue = compute(total)\nx = "
    await completer.complete(Place("x.py", f"{text}\ny = '{secret}'\n", len(text)), NOW)
    (request,) = filler.requests
    assert request.pieces
    assert secret not in request.prefix + request.suffix + "".join(piece.text for piece in request.pieces)


@pytest.mark.parametrize("seed", range(4))
async def test_random_keys_never_get_anything_of_another_text(seed: int) -> None:
    """The model answers with what belongs to its prefix alone, so that an answer of any other text is seen as such."""
    await random_keys(seed, 60)


@pytest.mark.slow
async def test_very_many_random_sequences_of_keys() -> None:
    for seed in range(volume(10_000)):
        await random_keys(seed, 12)


async def random_keys(seed: int, keys: int) -> None:
    """Type, delete and move at random, with requests that overlap, and look at every answer."""
    dice = random.Random(seed)

    def answer(request: FillRequest) -> str:
        """The letters that are due: after each letter its successor, up to z."""
        last = request.prefix[-1:] or "a"
        begin = ord(last) if last.isalpha() else ord("a") - 1
        return "".join(chr(code) for code in range(begin + 1, ord("z") + 1)) + "\n"

    filler = Typewriter(answer, size=dice.choice((1, 3, 30)))
    completer = completer_of(filler)
    text, tasks = "", []
    asked: list[str] = []
    for _ in range(keys):
        action = dice.random()
        last = text[-1:] or "`"
        if action < 0.5 and last.isalpha() and last < "z":
            text += chr(ord(last) + 1)  # along
        elif action < 0.8:
            text += dice.choice("amz= \n")
        else:
            text = text[: dice.randrange(len(text) + 1)]
        completer.moved("x.py", text)
        asked.append(text)
        tasks.append(asyncio.create_task(completer.complete(end(text), NOW)))
        if dice.random() < 0.2:
            dice.choice(tasks).cancel()
        for _ in range(dice.choice((0, 0, 1, 3, 12))):
            await asyncio.sleep(0)
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    await completer.close()
    assert filler.most <= 1, "more than one request at a time"
    assert filler.running == 0
    for before, found in zip(asked, answers, strict=True):
        if isinstance(found, str) and found:
            assert found == answer(FillRequest(before, "")).strip(), (before, found)
