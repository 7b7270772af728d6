"""Long texts keep what tells: ends, errors, the words of the task; never more than the limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.workspace.text.excerpts import KEYWORDS, LEAST, LinesOfInterest, excerpt, keywords_of, share_out

TEXTS = st.lists(st.text(st.characters(exclude_characters="\n"), max_size=60), max_size=200).map("\n".join)


def log(*telling: tuple[int, str], lines: int = 2000) -> str:
    made = [f"line {number} nothing of interest here" for number in range(lines)]
    for number, text in telling:
        made[number] = text
    return "\n".join(made)


@given(TEXTS, st.integers(0, 3000), st.lists(st.text(max_size=8), max_size=4))
def test_it_is_never_longer_than_the_limit(text: str, limit: int, words: list[str]) -> None:
    shown = excerpt(text, limit, words)
    assert len(shown) <= max(limit, LEAST)
    assert shown == excerpt(text, limit, words)
    if len(text) <= limit:
        assert shown == text


@given(TEXTS, st.integers(300, 3000))
def test_lines_stay_whole_and_in_order(text: str, limit: int) -> None:
    remaining = iter(text.split("\n"))
    for line in excerpt(text, limit).split("\n"):
        if "lines left out" not in line:
            assert line in remaining


def test_beginning_end_errors_and_words_of_the_task_stay() -> None:
    text = log((700, "ValueError: bad date"), (1400, "def parse_date(text):"), (1401, "    return 1"))
    shown = excerpt(text, 3000, keywords_of("Fix parse_date in dates.py"))
    assert shown.startswith("line 0 ")
    assert shown.endswith("line 1999 nothing of interest here")
    assert "ValueError: bad date" in shown
    assert "def parse_date(text):\n    return 1" in shown
    assert "lines left out ...]" in shown


def test_without_the_word_that_line_is_not_kept() -> None:
    text = log((1400, "def parse_date(text):"))
    assert "parse_date" not in excerpt(text, 3000, ["other"])


def test_errors_are_found_in_chinese_too() -> None:
    assert "第 3 行错误" in excerpt(log((900, "第 3 行错误")), 2000)


def test_a_very_long_line_is_shown_around_its_word() -> None:
    text = "a" * 50_000 + "NEEDLE" + "b" * 50_000
    shown = excerpt(text, 1000, ["needle"])
    assert "NEEDLE" in shown
    assert "100006 characters" in shown
    assert len(shown) <= 1000


def test_the_gaps_say_how_much_is_missing() -> None:
    shown = excerpt(log(lines=1000), 1000).split("\n")
    (gap,) = [line for line in shown if "left out" in line]
    assert gap == f"[... {1000 - len(shown) + 1} lines left out ...]"


def test_names_are_the_first_keywords_and_common_words_are_none() -> None:
    words = keywords_of("please fix the pagination of get_user_list in api/users.py and the Widget")
    assert words[:2] == ("get_user_list", "api/users.py")
    assert "pagination" in words
    assert "widget" in words
    assert not {"please", "fix", "the", "and"} & set(words)
    assert "分页" in keywords_of("修改列表的分页逻辑")


@given(st.text(max_size=500))
def test_keywords_are_few_and_differ(task: str) -> None:
    words = keywords_of(task)
    assert len(words) == len(set(words)) <= KEYWORDS


@given(st.lists(st.integers(0, 5000), max_size=20), st.integers(0, 20_000))
def test_shares_are_fair(sizes: list[int], limit: int) -> None:
    shares = share_out(sizes, limit)
    assert sum(shares) <= limit
    assert all(share <= size for share, size in zip(shares, sizes, strict=True))
    if sum(sizes) <= limit:
        assert list(shares) == sizes
    cut = [share for share, size in zip(shares, sizes, strict=True) if share < size]
    if cut:
        assert max(cut) - min(cut) <= 1
        assert max(shares) <= max(cut) + 1


@given(
    st.lists(st.sampled_from(["quiet", "", "an Error", "the word", "é" * 30, "x" * 500])),
    st.integers(1, 90),
    st.integers(0, 3000),
)
def test_lines_of_interest_do_not_depend_on_the_pieces(lines: list[str], piece: int, limit: int) -> None:
    data = "\n".join(lines).encode()
    whole, pieces = LinesOfInterest(limit, ["word"]), LinesOfInterest(limit, ["word"])
    whole.add(data)
    for at in range(0, len(data), piece):
        pieces.add(data[at : at + piece])
    found = whole.found()
    assert found == pieces.found()
    assert sum(line.cost for line in found) <= limit and whole.total == pieces.total == len(data)
    for line in found:
        assert data[line.start : line.start + line.size].decode().removesuffix("\n") == line.text


def test_the_best_of_many_lines_stay_with_those_around_them() -> None:
    lines = LinesOfInterest(2000, ["parse_width"])
    for number in range(3000):
        wanted = "FAILED tests/test_a.py::test_parse_width" if number == 1500 else f"warning {number}"
        lines.add(f"{wanted}\n".encode())
    texts = [line.text for line in lines.found()]
    assert "FAILED tests/test_a.py::test_parse_width" in texts and texts[:2] == ["warning 0", "warning 1"]
