"""Underlines, inner fences and doc comments are not taken as the marks of a reply."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.direct.fences import BLOCKS as BLOCKS_TOLD
from codeagent_lsp.direct.fences import parts_of, read_envelope
from codeagent_lsp.index.wrappings import block_mark

RST = "Title\n=====\n\nSome words.\n\nInstall\n=======\n\nRun it.\n"


def test_an_underline_is_no_divider() -> None:
    reply = "README.rst\n<<<<<<< SEARCH\nTitle\n=====\n=======\nThe Title\n=========\n>>>>>>> REPLACE\n"
    answer = read_answer(reply, Files({"README.rst": RST}), "blocks")
    assert answer.texts == {"README.rst": RST.replace("Title\n=====", "The Title\n=========")}


def test_an_underline_of_the_same_length_is_refused_and_a_longer_divider_taken() -> None:
    files = Files({"README.rst": RST})
    body = "Install\n=======\n{}\nSet up\n======\n"
    refused = read_answer(f"<<<<<<< SEARCH\n{body.format('=======')}>>>>>>> REPLACE\n", files, "blocks")
    assert refused.texts == {}
    assert "<<<<<<<<< SEARCH" in refused.problem
    answer = read_answer(f"<<<<<<<<< SEARCH\n{body.format('=' * 9)}>>>>>>>>> REPLACE\n", files, "blocks")
    assert answer.texts == {"README.rst": RST.replace("Install\n=======", "Set up\n======")}


def test_a_block_without_its_divider_is_refused() -> None:
    reply = "<<<<<<< SEARCH\nTitle\n=====\n>>>>>>> REPLACE\n"
    answer = read_answer(reply, Files({"README.rst": RST}), "blocks")
    assert answer.texts == {}
    assert "=======" in answer.problem


DOCUMENT = "# Tool\n\n```\ntool --all\n```\n\nMore:\n\n```sh\ntool\n```\n\n```\nok\n```\n\nEnd.\n"


@pytest.mark.parametrize("info", ["markdown", "md", "rst", "markdown README.md", "README.md"])
def test_bare_fences_inside_a_document_belong_to_it(info: str) -> None:
    parts = parts_of(f"README.md\n```{info}\n{DOCUMENT}```\nDone.")
    assert [(fence.code, fence.closed) for fence in parts.fences] == [(DOCUMENT, True)]
    assert parts.prose.endswith("Done.")


def test_a_block_after_a_document_is_its_own() -> None:
    reply = f"README.md\n```markdown\n{DOCUMENT}```\n\na.py\n```python\nx = 1\n```\n\nb.txt\n```\nwords\n```\n"
    assert [fence.path for fence in parts_of(reply).fences] == ["README.md", "a.py", "b.txt"]
    assert parts_of(reply).fences[0].code == DOCUMENT


def test_a_document_that_was_cut_says_so() -> None:
    (fence,) = parts_of("README.md\n```markdown\n# Tool\n\n```\ntool\n```\n\nMore").fences
    assert not fence.closed


def test_a_doc_comment_is_no_diff() -> None:
    now = "--- Adds.\nlocal function add(a, b)\n  return a - b\nend\n\nreturn add\n"
    answer = read_answer(f"```lua\n{now.replace('a - b', 'a + b')}```", Files({"a.lua": now}), "whole")
    assert answer.texts == {"a.lua": now.replace("a - b", "a + b")}


CSS = "a {\n  b: 1;\n  c: 2;\n}\n"
BLOCKS = {
    **{
        f"{count} signs{', apart' if blanks == '  ' else ''}": (
            f"{'<' * count}{blanks}SEARCH\n  b: 1;\n{'=' * count}\n  b: 3;\n{'>' * count}{blanks}REPLACE\n"
        )
        for count in (3, 4, 5, 7, 9, 10)
        for blanks in (" ", "", "  ")
    },
    "a name behind the mark": "<<<<<<< SEARCH a.css\n  b: 1;\n=======\n  b: 3;\n>>>>>>> REPLACE\n",
}
NO_BLOCKS = {
    "small letters": "<<<<<<< search\n  b: 1;\n=======\n  b: 3;\n>>>>>>> replace\n",
    "indented": "  <<<<<<< SEARCH\n  b: 1;\n  =======\n  b: 3;\n  >>>>>>> REPLACE\n",
    "other signs": "------- SEARCH\n  b: 1;\n=======\n  b: 3;\n+++++++ REPLACE\n",
    "a merge conflict": "<<<<<<< HEAD\n  b: 1;\n=======\n  b: 3;\n>>>>>>> branch\n",
    "other words": "<<<<<<< ORIGINAL\n  b: 1;\n=======\n  b: 3;\n>>>>>>> UPDATED\n",
    "words alone": "SEARCH:\n  b: 1;\nREPLACE:\n  b: 3;\n",
    "tags": "<search>\n  b: 1;\n</search>\n<replace>\n  b: 3;\n</replace>\n",
    "brackets": "[SEARCH]\n  b: 1;\n[REPLACE]\n  b: 3;\n",
    "another end": "<<<<<<< SEARCH\n  b: 1;\n=======\n  b: 3;\n<<<<<<< END\n",
    "no end": "<<<<<<< SEARCH\n  b: 1;\n=======\n  b: 3;\n",
    "no beginning": "  b: 1;\n=======\n  b: 3;\n>>>>>>> REPLACE\n",
}
FRAMES = {
    "alone": "{}",
    "in the whole file": "a {{\n{}  c: 2;\n}}\n",
    "before the file": "{}" + CSS.replace("{", "{{").replace("}", "}}"),
}
FORMS: tuple[TextForm, ...] = ("whole", "function", "blocks", "line")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", ["a.css", "a.md", "a.sql", "a.txt"])
def test_blocks_in_a_fence_are_understood_or_refused_and_never_written(path: str, form: TextForm) -> None:
    for name, block in (BLOCKS | NO_BLOCKS).items():
        for place, frame in FRAMES.items():
            answer = read_answer(f"{path}\n```\n{frame.format(block)}```", Files({path: CSS}), form)
            if name in BLOCKS:
                assert answer.texts == {path: CSS.replace("1", "3")}, (name, place)
            else:
                assert not answer.texts and "SEARCH" in answer.problem, (name, place, answer)


@pytest.mark.parametrize("block", (BLOCKS | NO_BLOCKS).values(), ids=(BLOCKS | NO_BLOCKS).keys())
def test_blocks_in_the_answer_for_a_selection_are_refused(block: str) -> None:
    assert read_envelope(f"```\n{block}```", "  b: 1;\n").problem == BLOCKS_TOLD
    assert read_envelope(f"```\n{block}```", block).problem != BLOCKS_TOLD


@pytest.mark.parametrize(
    "text",
    [
        "x <<< y\n>>> z\n",
        ">>> import a\n>>> a.new()\n",
        "Heading\n=======\n\nnew\n---\n",
        "<search>\n  <input>\n</search>\n",
        "cat <<<EOT\n1 >> 2\nEOT\n",
        "SELECT REPLACE(a, 'b', 'c')\n",
        "SEARCH\n\nThe search.\n",
        "a <- b <<< c >>> REPLACED\n",
    ],
)
def test_what_only_looks_like_a_mark_is_text(text: str) -> None:
    assert block_mark(text) == ""
    assert read_answer(f"a.md\n```\n{text}```", Files({"a.md": "old\n"}), "whole").texts == {"a.md": text}


@pytest.mark.parametrize("block", (BLOCKS | NO_BLOCKS).values(), ids=(BLOCKS | NO_BLOCKS).keys())
def test_blocks_without_a_fence_are_taken_or_told_what_is_wrong(block: str) -> None:
    answer = read_answer(f"a.css\n{block}", Files({"a.css": CSS}), "blocks")
    if block in BLOCKS.values():
        assert answer.texts == {"a.css": CSS.replace("1", "3")}
    elif block_mark(block):
        assert not answer.texts and "SEARCH" in answer.problem


def test_words_about_a_conflict_that_a_file_has_are_words() -> None:
    conflict = "<<<<<<< HEAD\n  b: 1;\n=======\n  b: 3;\n>>>>>>> branch\n"
    answer = read_answer(f"It has a conflict:\n\n{conflict}\n", Files({"a.css": conflict}), "blocks")
    assert not answer.texts and not answer.problem
