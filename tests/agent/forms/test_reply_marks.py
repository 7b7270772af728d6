"""Underlines, inner fences and doc comments are not taken as the marks of a reply."""

from __future__ import annotations

import pytest

from codeagent_lsp.agent.forms.answer import Files, read_answer
from codeagent_lsp.agent.forms.fences import parts_of

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
