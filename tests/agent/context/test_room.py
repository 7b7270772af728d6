"""What takes much room gives way: pictures of old requests, the middle of a line that is very long."""

from __future__ import annotations

from codeagent_lsp.agent.context.compaction import NO_PICTURES, KeptFacts, compact, squeeze, within
from codeagent_lsp.agent.context.history import PER_IMAGE, size
from codeagent_lsp.messages import Image, Message, estimate_tokens
from codeagent_lsp.workspace.text.excerpts import excerpt

SHOT = Image("image/png", "AAAA")
SYSTEM = Message("system", "rules")


def talk(count: int, last: Message) -> list[Message]:
    asked = [Message("user", f"what is on picture {number}?", images=(SHOT,)) for number in range(count)]
    said = [Message("assistant", f"It is a window, number {number}.") for number in range(count)]
    return [SYSTEM, *(message for pair in zip(asked, said, strict=True) for message in pair), last]


async def test_pictures_of_older_requests_go_and_those_of_the_latest_stay() -> None:
    messages = talk(4, Message("user", "and on this one?", images=(SHOT,)))
    made = await compact(messages, 3 * PER_IMAGE, KeptFacts())
    assert size(made) <= 3 * PER_IMAGE
    asked = [message for message in made if message.role == "user" and "picture" in message.content]
    assert all(not message.images and NO_PICTURES in message.content for message in asked)
    assert made[-1].images == (SHOT,)
    assert NO_PICTURES not in made[-1].content


def test_under_pressure_even_the_latest_pictures_go() -> None:
    messages = talk(0, Message("user", "look at it", images=(SHOT, SHOT)))
    made = squeeze(messages, PER_IMAGE)
    assert size(made) <= PER_IMAGE
    assert made[-1].content.startswith("look at it")
    assert not made[-1].images


def test_a_long_line_keeps_its_beginning_and_its_end() -> None:
    line = f"Please fix foo() in a.py. {'{data: 1, more: 2} ' * 1500} Do not touch b.py."
    shown = within(line, 2000)
    assert shown.startswith("Please fix foo() in a.py.")
    assert shown.endswith("Do not touch b.py.")
    assert 1000 < estimate_tokens(shown) <= 2000


def test_few_long_lines_share_the_room() -> None:
    text = "\n".join(f"begin{number} {'x' * 5000} end{number}" for number in range(3))
    shown = excerpt(f"{text}\nshort", 3000)
    assert all(f"begin{number}" in shown and f"end{number}" in shown for number in range(3))
    assert shown.endswith("\nshort")
    assert 2500 < len(shown) <= 3000
