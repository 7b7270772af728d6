"""A changed comment that has lost its beginning or its end is not written, also where no grammar is known."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.direct.question import RewriteLimits, RewriteRequest, SelectionQuestion
from codeagent_lsp.index.literal_signs import loose_comment_signs, signs_of
from codeagent_lsp.workspace.files.file_view import FileText

FORMS: tuple[TextForm, ...] = ("whole", "function", "blocks")
FILES = {
    "a.css": "/* Old. */\na { b: 1; }\n/* c */\n",
    "a.scss": "$a: 1; // x\n/* Old. */\na { b: $a; }\n",
    "a.kt": '/* Old. */\nval a = "src/*.kt"\n',
    "a.swift": "/* Old. */\nlet a = 1\n",
    "a.scala": "/* Old. */\nval a = 1\n",
    "a.dart": "/* Old. */\nvar a = 1;\n",
    "a.sql": "/* Old. */\nSELECT 1;\n",
    "a.groovy": "/* Old. */\ndef a = 1\n",
    "a.js": "/* Old. */\nlet a = 1;\n",
    "a.c": "/* Old. */\nint a;\n",
}


@pytest.mark.parametrize("path", FILES)
def test_a_comment_keeps_both_signs(path: str) -> None:
    text = FILES[path]
    question = SelectionQuestion(
        RewriteRequest(path, text, text.index("/* Old"), text.index("*/") + 2, "x"), "", RewriteLimits()
    )
    material = Material((ShownFile(path, FileText(path, text, "disk")),))
    for given in ("New. */", "/* New.", "* New. */"):
        for form in FORMS:
            answer = read_answer(f"{path}\n````\n{text.replace('/* Old. */', given)}````\n", Files({path: text}), form)
            assert not answer.texts and answer.problem, (form, given)
        assert not question.read(f"```\n{given}\n```", material, "whole").texts, given
    wanted = text.replace("Old", "New")
    assert read_answer(f"{path}\n````\n{wanted}````\n", Files({path: text}), "whole").texts == {path: wanted}
    assert question.read("```\n/* New. */\n```", material, "whole").texts == {path: wanted}


def test_signs_within_literals_and_comments_are_none() -> None:
    for path, text in (
        ("a.kt", 'val a = "src/*"\nval b = """\n*/\n"""\n// */\n'),
        ("a.css", 'a { content: "*/"; }\n/* /* */\n'),
        ("a.sql", "SELECT '/*';\n-- */\n"),
        ("a.yaml", "a: src/*\n"),
    ):
        assert loose_comment_signs(text, signs_of(path)) == 0, path
    assert loose_comment_signs("/* a\n/* b */", signs_of("a.css")) == 1
    assert loose_comment_signs("a */ b /* c", signs_of("a.css")) == 2
