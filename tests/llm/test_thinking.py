"""Thinking is kept apart from the answer, wherever it is cut, and text that only looks like it is kept."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.llm.deltas import Assembler
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.thinking import ThinkFilter
from tests.examples import examples
from tests.llm.support import chunked

CHANNEL = "<|channel|>"
CASES = [
    ("plain", "Just text.", "Just text.", ""),
    ("empty", "", "", ""),
    ("blank", "  \n", "  \n", ""),
    ("think", "<think>hm</think>Yes", "Yes", "hm"),
    ("line breaks", "<think>\nhm\n</think>\n\nYes", "Yes", "\nhm\n"),
    ("white space before", "\n <think>hm</think>Yes", "Yes", "hm"),
    ("upper case", "<THINK>hm</THINK>Yes", "Yes", "hm"),
    ("thinking", "<thinking>hm</thinking>Yes", "Yes", "hm"),
    ("thought", "<thought>hm</thought>Yes", "Yes", "hm"),
    ("reasoning", "<reasoning>hm</reasoning>Yes", "Yes", "hm"),
    ("twice", "<think>a</think><think>b</think>Yes", "Yes", "ab"),
    ("never closed", "<think>hm", "", "hm"),
    ("other tag inside", "<think>a </thinking> b</think>Yes", "Yes", "a </thinking> b"),
    ("tags inside", "<think>a <b> </c></think>Yes", "Yes", "a <b> </c>"),
    ("channels", f"{CHANNEL}analysis<|message|>hm<|end|><|start|>assistant{CHANNEL}final<|message|>Yes", "Yes", "hm"),
    ("final channel", f"<|start|>assistant{CHANNEL}final <|message|>Yes", "Yes", ""),
    ("a call in a channel", f"{CHANNEL}analysis<|message|>hm<|end|>{CHANNEL}to=x", f"{CHANNEL}to=x", "hm"),
    ("a token", f"{CHANNEL} is a token", f"{CHANNEL} is a token", ""),
    ("empty thinking", "<think></think>Yes", "Yes", ""),
    ("later is text", "Yes <think>no</think>", "Yes <think>no</think>", ""),
    ("nearly a tag", "<thin ice>", "<thin ice>", ""),
    ("half a tag", "<thi", "<thi", ""),
    ("another tag", "<tool_call>{}", "<tool_call>{}", ""),
    ("call after it", "<think>x</think><tool_call>{}", "<tool_call>{}", "x"),
    ("brackets", "[THINK]hm[/THINK]Yes", "Yes", "hm"),
    ("triangles", "◁think▷hm◁/think▷Yes", "Yes", "hm"),
    ("seed", "<seed:think>hm</seed:think>Yes", "Yes", "hm"),
    ("unused", "<unused94>thought\nhm<unused95>Yes", "Yes", "\nhm"),
    ("solution", "<|begin_of_thought|>hm<|end_of_thought|><|begin_of_solution|>Yes<|end_of_solution|>", "Yes", "hm"),
    ("response", "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Yes<|END_RESPONSE|>", "Yes", "hm"),
    ("no tokens", "analysisI look.assistantfinalYes", "Yes", "I look."),
    ("no tokens, a call", "assistantcommentary to=functions.x json{}", "commentary to=functions.x json{}", ""),
    ("no tokens, the assistant", "analysisThe assistant must.assistantfinalYes", "Yes", "The assistant must."),
    ("an analysis", "analysis of it", "analysis of it", ""),
    ("finally", "finally", "finally", ""),
    ("no channel", "analysis<|message|>hm<|end|>Yes", "Yes", "hm"),
    ("a format", f"{CHANNEL}final <|constrain|>json<|message|>{{}}<|return|>", "{}", ""),
    (
        "words and a call",
        f"{CHANNEL}commentary<|message|>I look.<|end|><|start|>assistant{CHANNEL}commentary to=x",
        f"I look.\n\n<|start|>assistant{CHANNEL}commentary to=x",
        "",
    ),
    ("words and a thought", f"{CHANNEL}final<|message|>Yes<|end|>{CHANNEL}analysis<|message|>hm<|end|>", "Yes", "hm"),
    ("head", "<|im_start|>assistant\nYes<|im_end|>", "Yes", ""),
    ("ends", "Yes\n<|eot_id|></s>\n", "Yes\n", ""),
    ("an end inside", "Yes <|im_end|> ends it", "Yes <|im_end|> ends it", ""),
    ("an end as code", "It is `<|im_end|>`", "It is `<|im_end|>`", ""),
    ("struck", "<s>no</s>", "<s>no</s>", ""),
    (
        "the end of a call",
        f"{CHANNEL}commentary to=x<|message|><|call|>",
        f"{CHANNEL}commentary to=x<|message|><|call|>",
        "",
    ),
    ("less than", "a <", "a <", ""),
]


def split(pieces: list[str]) -> tuple[str, str]:
    sieve = ThinkFilter()
    parts = [sieve.feed(piece) for piece in pieces]
    parts.append(sieve.close())
    return "".join(text for text, _ in parts), "".join(reasoning for _, reasoning in parts)


@pytest.mark.parametrize(("source", "text", "reasoning"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_thinking_however_it_is_cut(source: str, text: str, reasoning: str) -> None:
    assert split([source]) == (text, reasoning)
    assert split(list(source)) == (text, reasoning)
    for at in range(len(source)):
        assert split([source[:at], source[at:]]) == (text, reasoning)


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from(CASES), st.sampled_from(["", "</s>", "<|im_end|>\n", "\n<|return|>"]), st.integers(0, 999))
def test_an_end_of_turn_is_never_shown(case: tuple[str, str, str, str], end: str, seed: int) -> None:
    _, source, text, _ = case
    plain = text and text == source and "<s>" not in source and text == text.rstrip()
    if plain:
        assert split(chunked(source + end, seed))[0].rstrip("\n") == text


@settings(max_examples=examples(200), deadline=None)
@given(st.text(st.sampled_from("<>/think abc\n"), max_size=60), st.integers(0, 999))
def test_nothing_is_lost_and_pieces_do_not_matter(source: str, seed: int) -> None:
    assert split(chunked(source, seed)) == split([source])
    if not re.search("</?think", source):
        assert split([source]) == (source, "")


def test_text_is_not_held_back() -> None:
    sieve = ThinkFilter()
    assert sieve.feed("Hello") == ("Hello", "")
    assert sieve.feed(" <think>.") == (" <think>.", "")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("hm</think>\nYes", "Yes"),
        ("Yes", "Yes"),
        ("The tag `</think>` ends it.", "The tag `</think>` ends it."),
        ('The tag "</think>" ends it.', 'The tag "</think>" ends it.'),
        ("hm\n</thinking>\n\nYes", "Yes"),
        ("</reasoning>Yes", "Yes"),
        ("I look at it.</thinking>Yes", "Yes"),
        ("A tag </thinking> closes it.", "A tag </thinking> closes it."),
        ("Write <think>x</think>.", "Write <think>x</think>."),
        ("```\n</think>\n```", "```\n</think>\n```"),
        ("hm[/THINK]Yes", "Yes"),
        ("hm\n</THINK>\nYes", "Yes"),
        ("hm◁/think▷Yes", "Yes"),
        ("hm<|END_THINKING|>Yes", "Yes"),
        ("<think>a</think>b</think>Yes", "Yes"),
        ("Yes\n</think>", "Yes\n"),
        ("Yes\n</thinking>\n", "Yes\n"),
        ("Yes<think>", "Yes"),
        ("</think>", ""),
    ],
)
def test_thinking_whose_opening_tag_the_template_swallowed(text: str, wanted: str) -> None:
    for size in (1, 3, len(text)):
        assembler, shown = Assembler(endpoint("http://127.0.0.1")), ""
        for at in range(0, len(text), size):
            items = assembler.feed({"choices": [{"delta": {"content": text[at : at + size]}}]})
            shown += "".join(item.text for item in items)
        shown += "".join(item.text for item in assembler.flush())
        assembler.feed({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        assert assembler.finish(done_marker=True).text == wanted
        # A tag that belongs to no text is never seen, not even while the reply streams.
        assert wanted == text or not re.search(r"</?think|THINK", shown)
