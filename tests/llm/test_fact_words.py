"""What is known of a model, as clients and people get it."""

from __future__ import annotations

from codeagent_lsp.llm.learned_facts import Facts, Prices, combine, facts_data, facts_told

KNOWN = combine(
    [
        ("setting", Facts(context_window=32_768)),
        ("server", Facts(context_window=8192, longest_reply=4096, reasoning=True, vision=False)),
        ("catalogue", Facts(prices=Prices(3.0, 15.0, cached=0.3))),
    ]
)


def test_each_fact_has_its_source() -> None:
    assert facts_data(KNOWN) == {
        "contextWindow": {"value": 32_768, "source": "setting"},
        "longestReply": {"value": 4096, "source": "server"},
        "prices": {"value": {"input": 3.0, "output": 15.0, "cached": 0.3}, "source": "catalogue"},
        "reasoning": {"value": True, "source": "server"},
        "vision": {"value": False, "source": "server"},
    }
    assert facts_data(combine([])) == {}


def test_in_words() -> None:
    assert facts_told(KNOWN, "en") == (
        "window 32,768 tokens (your setting); longest reply 4,096 tokens (the server says); prices $3 a million "
        "tokens in, $0.3 cached, $15 out (price list genai-prices); reasoning yes (the server says); "
        "images no (the server says); tool calls by its API unknown"
    )
    assert "价格 每百万 token：输入 $3" in facts_told(KNOWN, "zh-cn")
    assert "assumed" in facts_told(combine([("assumed", Facts(context_window=8192))]), "en")
