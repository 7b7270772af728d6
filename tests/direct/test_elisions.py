"""Placeholders for code that was left out are told from ordinary lines."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.direct.fences import ELISION, read_envelope
from codeagent_lsp.index.placeholders import left_out

PLACEHOLDERS = [
    "# ...",
    "// ...",
    "/* ... */",
    "{/* ... */}",
    "<!-- ... -->",
    "-- ...",
    " * ...",
    "# ……",
    "# [...]",
    "…",
    "# ... rest of the code",
    "// ... other logic ...",
    "# ... (code as before)",
    "# previous code here",
    "# existing code",
    "# --- existing code ---",
    "// rest of the function remains the same",
    "# the rest of the class is unchanged",
    "{/* existing code */}",
    "... rest of the code",
    "# (unchanged)",
    "// same as before",
    "# everything else stays the same",
    "# other helper functions",
    "# 其他方法不变",
    "# 原有代码",
    "// 其它代码不变",
    "# ... 其他函数 ...",
    "# 这里是原来的逻辑",
    "# 其余部分保持不变",
    "# 保持不变",
    "# add 方法保持不变",
    "# 此处省略若干代码",
    "# 同上",
]
ORDINARY = [
    "# other values are ignored",
    'print("...")',
    'print("Loading...")',
    "x: Callable[..., int] = f",
    "x[..., 0] = 1",
    "...rest,",
    "...otherProps",
    "# handle the remaining items",
    "# skip the rest of the line",
    "# the existing users keep their names",
    "# the order stays unchanged",
    "# 其他值被忽略",
    "# 处理剩余部分",
    "# 顺序保持不变",
    "# 原来的逻辑有误，已改正",
    "# wait for it...",
    "# ----",
    "---",
    "#[derive(Debug)]",
    "* other people",
]
BIG = "def big(a):\n    b = a + 1\n    return b * 2\n"
CALLS = f"from typing import Callable\n\nRun = Callable[..., int]\nprint('Loading...')\n\n\n{BIG}"


@pytest.mark.parametrize("line", PLACEHOLDERS)
def test_a_placeholder_is_found(line: str) -> None:
    assert left_out("x = 1\ny = 2\n", f"x = 1\n    {line}\n") == line.strip()


@pytest.mark.parametrize("line", ORDINARY)
def test_an_ordinary_line_passes(line: str) -> None:
    assert left_out("x = 1\n", f"x = 1\n    {line}\n") == ""


def test_a_placeholder_that_was_there_may_stay_but_not_spread() -> None:
    assert left_out("a\n# ...\nb\n", "c\n  # ...\nd\n") == ""
    assert left_out("a\n# ...\nb\n", "# ...\n# ...\n") == "# ..."


@pytest.mark.parametrize(
    "code", ["def big(a): ...\n", "def big(a):\n    ...\n", 'def big(a):\n    """It."""\n    ...\n', "x = 1\n...\n"]
)
def test_dots_do_not_replace_a_body(code: str) -> None:
    assert "..." in left_out(BIG, code)


@pytest.mark.parametrize(
    "code",
    [
        f"class Sized(Protocol):\n    def big(self) -> int: ...\n\n\n{BIG}",
        f"class Wrong(Exception):\n    ...\n\n\n{BIG}",
        f"@overload\ndef big(a: int) -> int: ...\n@overload\ndef big(a: str) -> str: ...\n{BIG}",
        f"{BIG}\nx = Tuple[\n    int,\n    ...\n]\n",
    ],
)
def test_new_stubs_are_code(code: str) -> None:
    assert left_out(BIG, code) == ""


def test_a_stub_may_stay_a_stub() -> None:
    assert left_out("def f(a): ...\n", "def f(a, b): ...\n") == ""


def test_headings_of_documents_are_words() -> None:
    assert left_out("# A\n", "# A\n\n## Other methods\n", "a.md") == ""
    assert left_out("# A\n\nText\n", "# A\n\n<!-- rest of the file -->\n", "a.md")


@pytest.mark.parametrize(
    "words", ["# everything else", "# Other imports", "// all other routes", "# same as above", "# 其余部分保持不变"]
)
def test_words_where_nothing_is_missing_are_an_ordinary_comment(words: str) -> None:
    assert left_out("x = 1\ny = 2\n", f"x = 1\n{words}\ny = 2\n") == ""
    assert left_out("x = 1\ny = 2\n", f"x = 1\n{words}\n") == words


@pytest.mark.parametrize("code", ["def big(a): ...\n", "def big(a):\n    # 原有代码\n    return 1\n"])
@pytest.mark.parametrize("form", ["whole", "function"])
def test_an_answer_with_dots_elsewhere_in_the_file_is_refused(code: str, form: str) -> None:
    files = Files({"a.py": CALLS})
    answer = read_answer(f"```python\n{code}```", files, "whole" if form == "whole" else "function")
    assert answer.texts == {}
    assert "left out" in answer.problem


def test_a_protocol_beside_the_class_is_added() -> None:
    code = "class Runs(Protocol):\n    def big(self) -> int: ...\n"
    text = read_answer(f"```python\n{code}```", Files({"a.py": CALLS}), "function").texts["a.py"]
    assert code in text
    assert BIG in text


def test_a_block_that_leaves_code_out_is_refused() -> None:
    reply = f"a.py\n<<<<<<< SEARCH\n{BIG}=======\ndef big(a):\n    # existing code\n    return 3\n>>>>>>> REPLACE\n"
    assert "left out" in read_answer(reply, Files({"a.py": CALLS}), "blocks").problem


@pytest.mark.parametrize("line", ["/* ... */", "# 原有代码", "...", "// 其它代码不变", "# ... (code as before)"])
def test_a_quick_action_leaves_nothing_out(line: str) -> None:
    found = read_envelope(f"```\ndef big(a):\n    {line}\n    return 1\n```", BIG)
    assert (found.code, found.problem) == (None, ELISION)


@pytest.mark.parametrize("line", ["# other values are ignored", 'print("...")', "# 其他值被忽略"])
def test_a_quick_action_may_have_ordinary_comments(line: str) -> None:
    assert read_envelope(f"```\ndef big(a):\n    {line}\n    return 1\n```", BIG).problem == ""


@pytest.mark.parametrize(
    ("path", "text", "gone", "comment"),
    [
        ("a.md", "# T\n\none\n\ntwo\n\n## E\n\n41\n", "one\n\ntwo\n", "<!-- § -->\n"),
        ("a.html", "<html>\n<body>\n<p>a</p>\n<b>41</b>\n</body>\n</html>\n", "<p>a</p>\n", "<!-- § -->\n"),
        ("a.tex", "\\begin{document}\nOne.\n\nTwo.\nN 41.\n\\end{document}\n", "One.\n\nTwo.\n", "% §\n"),
        ("a.rst", "Title\n=====\n\nOne.\n\nTwo.\n\nN 41.\n", "One.\n\nTwo.\n", ".. §\n"),
        ("a.txt", "One.\n\nTwo.\n\nThree.\n\nN 41.\n", "Two.\n\nThree.\n", "[§]\n"),
        ("a.css", "b { y: 2 }\nd { e: 1 }\nc { z: 41px }\n", "b { y: 2 }\nd { e: 1 }\n", "/* § */\n"),
        ("a.yaml", "b: 2\nd:\n  - e\nc: 41\n", "b: 2\nd:\n  - e\n", "# §\n"),
        ("a.j2", "<p>a</p>\n<i>b</i>\n<b>41</b>\n", "<p>a</p>\n<i>b</i>\n", "{# § #}\n"),
        ("a.vb", "Dim A\nDim B\nDim C = 41\n", "Dim A\nDim B\n", "' §\n"),
        ("Makefile", "A = 1\nB = 2\nC = 41\n", "A = 1\nB = 2\n", "# §\n"),
    ],
)
@pytest.mark.parametrize("words", ["existing content", "unchanged", "rest unchanged", "keep as is", "其余内容不变"])
def test_no_door_takes_a_stand_in_in_a_file_of_any_kind(
    path: str, text: str, gone: str, comment: str, words: str
) -> None:
    code = text.replace(gone, comment.replace("§", words)).replace("41", "42")
    for form in ("whole", "blocks"):
        reply = f"{path}\n````\n{code}````\n"
        if form == "blocks":
            reply = f"{path}\n<<<<<<<< SEARCH\n{text}========\n{code}>>>>>>>> REPLACE\n"
        answer = read_answer(reply, Files({path: text}), "whole" if form == "whole" else "blocks")
        assert answer.texts == {} and answer.problem, form
    assert read_envelope(f"````\n{code}````", text, path).problem == ELISION
