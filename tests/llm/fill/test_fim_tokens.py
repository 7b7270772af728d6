"""Families by names of models, prompts, and tokens that a text quotes."""

from __future__ import annotations

import pytest

from codeagent_lsp.llm.fill.filler import (
    FAMILIES,
    UNMISTAKABLE,
    FillRequest,
    Piece,
    cut_tokens,
    family_of,
    harmless,
    prompt_of,
)


@pytest.mark.parametrize(
    ("name", "token"),
    [
        ("qwen2.5-coder-1.5b-instruct-q4_k_m", "<|fim_prefix|>"),
        ("Qwen/Qwen2.5-Coder-7B", "<|fim_prefix|>"),
        ("qwen3-coder:30b", "<|fim_prefix|>"),
        ("codegemma:2b", "<|fim_prefix|>"),
        ("starcoder2:3b", "<fim_prefix>"),
        ("granite-code:8b", "<fim_prefix>"),
        ("deepseek-coder:1.3b-base", "<｜fim▁begin｜>"),
        ("codellama:7b-code", "<PRE> "),
        ("codestral-22b", "[SUFFIX]"),
        ("Seed-Coder-8B-Base", "<[fim-suffix]>"),
    ],
)
def test_the_family_of_a_name(name: str, token: str) -> None:
    family = family_of(name)
    assert family is not None and family.form.startswith(token)


@pytest.mark.parametrize("name", ["gpt-4o", "llama-3.1-8b-instruct", "mistral-small", "qwen2.5-7b-instruct", ""])
def test_models_that_are_not_known_to_fill_in(name: str) -> None:
    assert family_of(name) is None


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.names[:12])
def test_a_prompt_has_both_sides_once(family: object) -> None:
    request = FillRequest("BEFORE {suffix}", "AFTER {prefix}", "x.py", (Piece("y.py", "PIECE"),))
    prompt = prompt_of(family, request)  # type: ignore[arg-type]
    assert prompt.count("BEFORE {suffix}") == 1 and prompt.count("AFTER {prefix}") == 1


def test_a_text_that_quotes_a_token_cannot_end_the_prompt() -> None:
    for token in UNMISTAKABLE:
        assert token not in harmless(f"a = '{token}'")
    assert harmless("<s>old</s>") == "<s>old</s>"


def test_an_answer_ends_at_a_token() -> None:
    assert cut_tokens("a + b<|endoftext|>junk") == ("a + b", True)
    assert cut_tokens("a + b") == ("a + b", False)
