"""What the errors of servers tell about a window, in the words that these servers use."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.llm.learned_facts import FILE, Facts, LearnedFacts, reply_in, window_in

TOLD = {
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens.": 128_000,
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, "
    "1000 in the completion).": 8192,
    "prompt is too long: 215000 tokens > 200000 maximum": 200_000,
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length": 200_000,
    "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it": 4096,
    '{"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_ctx":8192}}': 8192,
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).": 1_048_576,
    "Your request exceeded model token limit: 262144": 262_144,
    "Requested token count exceeds the model's maximum context length of 131,072 tokens.": 131_072,
    "the prompt is larger than the model's context: context window is 32k": 32_768,
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens": 4096,
    "The decoder prompt (length 20000) is longer than the maximum model length of 16384.": 16_384,
    "However, the model is loaded with context length of only 4096 tokens, which is not enough.": 4096,
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length": 32_768,
    "Range of input length should be [1, 98304]": 98_304,
}
SILENT = (
    "Please reduce the length of the messages or completion.",
    "prompt is too long",
    "maximum context length is 12 tokens",
    "maximum context length is 99999999999999999999 tokens",
    "too many input tokens, retry in 20000 ms",
    "Input is too long for requested model.",
    "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for this model",
    "Your input exceeds the context window of this model. Please adjust your input and try again. 4000 characters",
    "Rate limit reached: maximum tokens per minute is 30000",
    "tokens per min (TPM): Limit 30000, Requested 40000",
    "",
)


@pytest.mark.parametrize("error", TOLD)
def test_the_window_in_an_error(error: str) -> None:
    assert window_in(error) == TOLD[error]


@pytest.mark.parametrize("error", SILENT)
def test_an_error_without_a_window(error: str) -> None:
    assert window_in(error) is None


def test_it_is_remembered_for_each_endpoint_and_model(tmp_path: Path) -> None:
    LearnedFacts(tmp_path).learn("https://a.example", "m", Facts(context_window=4096))
    again = LearnedFacts(tmp_path)
    assert again.get("https://a.example", "m").context_window == 4096
    assert again.get("https://b.example", "m").context_window is None
    assert again.get("https://a.example", "n").context_window is None


@pytest.mark.parametrize("stored", ['{"u m": "many"}', '{"u m": -5}', '{"u m": true}', "[]", "{", ""])
def test_a_damaged_file_tells_nothing(tmp_path: Path, stored: str) -> None:
    (tmp_path / FILE).write_text(stored)
    assert LearnedFacts(tmp_path).get("u", "m").context_window is None


REPLIES = {
    "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, you provided 32000.": 16384,
    "`max_tokens` must be less than or equal to `8192`, the maximum value for this model": 8192,
    "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]": 8192,
    "Range of max_tokens should be [1, 6000]": 6000,
    "The maximum tokens you requested exceeds the model limit of 4096.": 4096,
    "too many tokens: max tokens must be less than or equal to 4,096, given 32,000 output tokens": 4096,
    "max_completion_tokens: 100": None,
    "max_tokens must be a number": None,
    "Unknown parameter 4096": None,
}


@pytest.mark.parametrize("error", REPLIES)
def test_the_longest_reply_in_a_refusal(error: str) -> None:
    assert reply_in(error, 32_000) == REPLIES[error]


def test_the_longest_reply_is_remembered_beside_the_window(tmp_path: Path) -> None:
    LearnedFacts(tmp_path).learn("u", "m", Facts(context_window=4096))
    LearnedFacts(tmp_path).learn("u", "m", Facts(longest_reply=512))
    assert LearnedFacts(tmp_path).get("u", "m") == Facts(context_window=4096, longest_reply=512)
