"""Words are found in a text wherever they are, though most are only looked for among its different words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.records.mark import lower_in_place, places

PARTS = [
    "pass",
    "_pass",
    "key",
    "-key",
    " on ",
    "密码",
    "ключ",
    "é",
    "İ",
    "\n",
    "\x1c",
    "\u3000",
    "=",
    ".",
    "x9",
    "<<",
    "K",
]
WORDS = [
    "pass",
    "passkey",
    "pass key",
    "key=",
    "-key",
    "<<",
    " on ",
    "密码",
    "ключ",
    "_pass",
    "9pass",
    "\n",
    "é",
    "K.x",
]


@given(st.lists(st.sampled_from(PARTS), max_size=40), st.sampled_from(["", "filling " * 200, "füllung " * 200]))
def test_each_word_is_found_wherever_it_is(parts: list[str], filling: str) -> None:
    text = filling + "".join(parts)
    for shown in (text, lower_in_place(text)):
        naive = [at for word in WORDS for at in range(len(shown)) if shown.startswith(word, at)]
        assert list(places(shown, *WORDS)) == naive
