"""Replies taken apart: blocks, their paths, and the words around them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.direct.fences import parts_of, path_in

CODE = "def f():\n    return 1\n"

PATHS = {
    "a line before": f"src/a.py\n```python\n{CODE}```\n",
    "bold": f"**src/a.py**\n```python\n{CODE}```\n",
    "code span": f"`src/a.py`:\n\n```python\n{CODE}```\n",
    "a heading": f"### src/a.py\n```python\n{CODE}```\n",
    "named": f"File: src/a.py\n```python\n{CODE}```\n",
    "in a sentence": f"Here is the corrected `src/a.py`:\n```python\n{CODE}```\n",
    "info string": f"```python path=src/a.py\n{CODE}```\n",
    "info string alone": f"```src/a.py\n{CODE}```\n",
    "with ./": f"./src/a.py\n```python\n{CODE}```\n",
    "with backslashes": f"src\\a.py\n```python\n{CODE}```\n",
    "in an open fence": f"```\nsrc/a.py\n```python\n{CODE}```\n",
    "a comment": f"```python\n# src/a.py\n{CODE}```\n",
}


@pytest.mark.parametrize("name", PATHS)
def test_the_path_of_a_block(name: str) -> None:
    (fence,) = parts_of(PATHS[name]).fences
    assert fence.path == "src/a.py"
    assert fence.code.endswith(CODE)
    assert fence.closed


def test_words_are_kept_apart_from_paths_and_code() -> None:
    reply = f"The sign is wrong.\n\na.py\n```python\n{CODE}```\nThat is all."
    assert parts_of(reply).prose == "The sign is wrong.\n\nThat is all."


def test_a_sentence_with_a_path_stays_in_the_words() -> None:
    assert "corrected" in parts_of(PATHS["in a sentence"]).prose


def test_a_block_inside_a_block_belongs_to_it() -> None:
    reply = "README.md\n```markdown\n# Title\n```python\nx = 1\n```\nend\n```\nDone."
    (fence,) = parts_of(reply).fences
    assert fence.code == "# Title\n```python\nx = 1\n```\nend\n"
    assert parts_of(reply).prose == "Done."


def test_a_longer_fence_holds_shorter_ones() -> None:
    (fence,) = parts_of("````\n```\nx\n```\n````\n").fences
    assert fence.code == "```\nx\n```\n"


def test_a_block_without_an_end_says_so() -> None:
    (fence,) = parts_of("```python\nx = 1\n").fences
    assert not fence.closed


@pytest.mark.parametrize("line", ["There is no path here.", "see a.py and b.py", "e.g. this", ""])
def test_lines_that_name_no_single_file(line: str) -> None:
    assert path_in(line) in ("", "e.g")


@given(st.text("`~ab.py/#\n: ", max_size=200))
def test_any_text_is_taken_apart(text: str) -> None:
    parts = parts_of(text)
    assert sum(len(fence.code) for fence in parts.fences) + len(parts.prose) <= len(text) + len(parts.fences)


ITEMS = {
    "a number": "1. Change it:",
    "a dash": "- Change it:",
    "a number in brackets": "2) Change it:",
    "an item in an item": "- First\n  - Change it:",
    "more words": "1. Change it.\n   It is short:",
    "an earlier item": "1. Look.\n2. Change it:",
    "a star": "*   Change it:",
}
DEPTHS = ("  ", "   ", "    ", "      ", "        ", "\t")


@pytest.mark.parametrize("lead", DEPTHS)
@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS.keys())
@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_a_block_in_an_item_of_a_list(item: str, lead: str, between: str) -> None:
    block = "".join(f"{lead}{line}\n" for line in ("```python", *CODE.splitlines(), "", "x = 1", "```"))
    block = block.replace(f"{lead}\n", "\n")
    behind = "\nAnd then:\n\n```python\n    y = 2\n```\n"
    parts = parts_of(f"{item}{between}{block}{behind}")
    assert [(fence.code, fence.closed) for fence in parts.fences] == [
        (f"{CODE}\nx = 1\n", True),
        ("    y = 2\n", True),
    ]
    assert parts.prose.startswith(item) and parts.prose.endswith("And then:")


def test_two_blocks_in_a_list_and_one_that_is_cut() -> None:
    text = "1. One:\n\n    ```python\n    a = 1\n    ```\n\n2. Two:\n\n    ```python\n    if a:\n        b = 2\n"
    assert [(fence.code, fence.closed) for fence in parts_of(text).fences] == [
        ("a = 1\n", True),
        ("if a:\n    b = 2\n\n", False),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "It is written so:\n\n    ```python\n    a = 1\n    ```\n",
        "- one\n\nNo list:\n\n    ```\n    a = 1\n    ```\n",
        "    ```\n    a\n    ```\n",
    ],
)
def test_a_fence_shown_as_code_outside_of_lists_is_none(text: str) -> None:
    assert parts_of(text).fences == ()


def test_an_indented_fence_within_a_block_is_its_text() -> None:
    inner = "- item\n\n    ```\n    a\n    ```\n"
    assert [fence.code for fence in parts_of(f"````markdown\n{inner}````\n").fences] == [inner]
