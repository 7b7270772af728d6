"""A quick rewrite: one call, a prompt that fits, and a reply that is used only when it is whole."""

from __future__ import annotations

import pytest

from codeagent_lsp.agent.replacement import PLACE
from codeagent_lsp.direct.question import RewriteLimits, RewriteRequest, prompt
from codeagent_lsp.errors import ModelReplyInvalid
from codeagent_lsp.messages import estimate_tokens

TEXT = "def f():\n    return 1\n\n\ndef g():\n    return f()\n"
BODY = "    return 1\n"


def request(text: str = TEXT, selected: str = BODY, **more: tuple[str, ...]) -> RewriteRequest:
    start = text.index(selected)
    return RewriteRequest("a.py", text, start, start + len(selected), "make it 2", **more)


def test_the_prompt_has_what_the_model_needs() -> None:
    words = prompt(request(diagnostics=("line 2: wrong",)), RewriteLimits())
    for part in ("make it 2", "a.py", "- line 2: wrong", f"def f():\n{PLACE}", "def g():", f"```\n{BODY}"):
        assert part in words


def test_code_with_fences_stands_in_longer_ones() -> None:
    text = "a\n\n```sh\nls\n```\n\nb\n"
    assert "````\n```sh\nls\n```\n\n````" in prompt(request(text, "```sh\nls\n```\n"), RewriteLimits())


@pytest.mark.slow
@pytest.mark.parametrize("line", ["x = compute(1, 2, 3)  # a line\n", "值 = 计算(一, 二, 三)  # 很长的一行注释\n"])
@pytest.mark.parametrize("count", [0, 3, 40, 100, 5000])
@pytest.mark.parametrize("window", [2048, 4096, 8192, 32_768])
def test_the_prompt_fits_the_window_or_is_refused(line: str, count: int, window: int) -> None:
    selected = "begin\n" + line * count
    asked = request(line * 9000 + selected + "end\n" + line * 9000, selected)
    limits = RewriteLimits(window, window // 4)
    try:
        words = prompt(asked, limits)
    except ModelReplyInvalid as refused:
        assert refused.key == "rewrite.too_large"
        assert str(window) in refused.localized("zh-cn")
        assert count >= 40
        return
    assert estimate_tokens(words) + estimate_tokens(selected) < window
    assert selected in words
