"""A changed comment that has lost its beginning or its end is not written, also where no grammar is known."""

from __future__ import annotations

import re

import pytest

from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.direct.question import RewriteLimits, RewriteRequest, SelectionQuestion
from codeagent_lsp.index.literal_signs import loose_comment_signs, signs_of
from codeagent_lsp.index.literals import loose_comments
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


CLASSES = {
    "a.ts": ("export class §", "  §(): number {⏎    return 1;⏎  }", "}"),
    "a.js": ("class §", "  §() {⏎    return 1;⏎  }", "}"),
    "A.java": ("class §", "  int §() {⏎    return 1;⏎  }", "}"),
    "A.cs": ("class §", "  int §() {⏎    return 1;⏎  }", "}"),
    "a.cpp": ("class §", "  int §() {⏎    return 1;⏎  }", "};"),
    "a.kt": ("class §", "  fun §(): Int {⏎    return 1⏎  }", "}"),
    "a.swift": ("class §", "  func §() -> Int {⏎    return 1⏎  }", "}"),
    "a.dart": ("class §", "  int §() {⏎    return 1;⏎  }", "}"),
}
OTHERS = {
    "a.php": "<?php\n/* A */\nfunction one() {\n  return 1;\n}\n/* B */\nfunction two() {\n  return 2;\n}\n",
    "a.go": "package a\n\n/* A */\nfunc One() int {\n\treturn 1\n}\n\n/* B */\nfunc Two() int {\n\treturn 2\n}\n",
    "a.css": "/* A */\n.a {\n  color: red;\n}\n/* B */\n.b {\n  color: blue;\n}\n",
    "a.sql": "/* A */\nSELECT 1;\n/* B */\nSELECT 2;\n",
    "a.html": "<!-- A -->\n<p>one</p>\n<!-- B -->\n<p>two</p>\n",
    "a.vue": "<!-- A -->\n<p>one</p>\n<script>\n/* B */\nlet x = 1;\n/* C */\nlet y = 2;\n</script>\n",
    "a.lua": "--[[ A ]]\none = 1\n--[[ B ]]\ntwo = 2\n",
    "a.hs": "{- A -}\none = 1\n{- B -}\ntwo = 2\n",
    "a.ml": "(* A *)\nlet one = 1\n(* B *)\nlet two = 2\n",
    "a.ps1": "<# A #>\n$one = 1\n<# B #>\n$two = 2\n",
    "a.jl": "#= A =#\none = 1\n#= B =#\ntwo = 2\n",
    "a.rs": "/* A */\nfn one() -> u8 {\n    1\n}\n/* B */\nfn two() -> u8 {\n    2\n}\n",
}
SIGNS = re.compile(r"/\*\*?|\*/|<!--|-->|--\[\[|\]\]|\{-|-\}|\(\*|\*\)|<#|#>|#=|=#")


def texts() -> dict[str, str]:
    """Files with comments above everything, by path."""
    found = dict(OTHERS)
    for path, (head, member, end) in CLASSES.items():
        parts = [f"/** {name}. */\n{head.replace('§', name)} {{" for name in ("Alpha", "Beta")]
        inner = [f"  /** {name}. */\n{member.replace('§', name)}".replace("⏎", "\n") for name in ("one", "two")]
        blocks = ("\n".join((part, "\n\n".join(inner), end)) for part in parts)
        found[path] = "\n\n".join(blocks) + "\n"
    return found


@pytest.mark.parametrize("path", ["a.html", "a.hs"])
def test_no_sign_of_a_comment_gets_lost_in_any_answer(path: str) -> None:
    assert lost_signs(path) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", texts())
def test_nor_in_any_language(path: str) -> None:
    assert lost_signs(path) == []


def lost_signs(path: str) -> list[tuple[str, str, str]]:
    """Return what was written although a comment in it has no end any more, or no beginning.

    Each sign in turn is left out or spoilt, in the whole file, in each class, and in a block around it.
    """
    text = texts()[path]
    written: list[tuple[str, str, str]] = []
    for sign in SIGNS.finditer(text):
        # What is left is a comment up to the end of its line, or an error, and no code is in it.
        if sign[0] in ("--[[", "<#"):
            continue
        for spoilt in ("", sign[0][-1:]):
            broken = text[: sign.start()] + spoilt + text[sign.end() :]
            around = slice(text.rfind("\n", 0, max(0, sign.start() - 12)) + 1, text.find("\n", sign.end()))
            block = text[around.start : sign.start()] + spoilt + text[sign.end() : around.stop]
            given = [
                f"{path}\n````\n{broken}````\n",
                *(f"{path}\n````\n{part}\n````\n" for part in broken.split("\n\n/")),
            ]
            given.append(f"{path}\n<<<<<<< SEARCH\n{text[around]}\n=======\n{block}\n>>>>>>> REPLACE\n")
            for reply in given:
                for form in FORMS[:2]:
                    done = read_answer(reply, Files({path: text}), form).texts.get(path, text)
                    written += [(sign[0], spoilt, reply)] * (loose(path, done) or done == broken)
    return written


def loose(path: str, text: str) -> bool:
    return loose_comments(path, text) > 0


@pytest.mark.parametrize("path", ["a.ts", "A.java", "a.kt", "a.css", "a.html", "a.hs"])
def test_code_may_be_commented_out(path: str) -> None:
    text = texts()[path]
    first, last = {"a.html": ("<!--", "-->"), "a.hs": ("{-", "-}")}.get(path, ("/*", "*/"))
    line = next(each for each in text.split("\n") if re.search(r"\d|color: red", each) or "<p>one" in each)
    out = f"{first}\n{line}\n{last}"
    reply = f"{path}\n<<<<<<< SEARCH\n{line}\n=======\n{out}\n>>>>>>> REPLACE\n"
    assert loose_comments(path, text.replace(line, out, 1)) == 0
    assert not read_answer(reply, Files({path: text}), "whole").problem.count("comment")
