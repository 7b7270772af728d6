"""One notion of a comment for all languages: no sign is known at one place alone."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.fences import ELISION, parts_of, read_envelope
from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.comments import comment_of, is_comment_in, is_document
from codeagent_lsp.index.placeholders import refuse_left_out

SIGNS = {
    "a.hbs": ("{{!-- § --}}", "{{! § }}", "{{~!-- § --~}}"),
    "a.tmpl": ("{{/* § */}}", "{{- /* § */ -}}"),
    "a.j2": ("{# § #}", "{#- § -#}"),
    "a.liquid": ("{% comment %} § {% endcomment %}", "{%- comment -%}§{%- endcomment -%}"),
    "a.erb": ("<%# § %>", "<%-# § -%>"),
    "a.heex": ("<%!-- § --%>",),
    "a.jsp": ("<%-- § --%>",),
    "a.cshtml": ("@* § *@",),
    "a.html": ("<!-- § -->", "<!--- § --->"),
    "a.jsx": ("{/* § */}", "// §"),
    "a.css": ("/* § */", "/** § **/"),
    "a.py": ("# §", "## § ##"),
    "a.sql": ("-- §",),
    "a.el": (";; §",),
    "a.tex": ("% §", "%% §"),
    "a.vb": ("' §", "Rem §"),
    "a.vim": ('" §',),
    "a.f90": ("! §",),
    "a.bat": (":: §", "REM §"),
    "a.m4": ("dnl §",),
    "a.1": ('.\\" §', "'\\\" §"),
    "a.rst": (".. §",),
    "a.haml": ("-# §",),
    "a.pug": ("//- §",),
    "a.texi": ("@c §", "@comment §"),
    "a.ml": ("(* § *)", "(** § *)"),
    "a.hs": ("{- § -}", "-- §"),
    "a.rkt": ("#| § |#",),
    "a.jl": ("#= § =#",),
    "a.nim": ("#[ § ]#",),
    "a.ps1": ("<# § #>",),
    "a.d": ("/+ § +/",),
    "a.lua": ("--[[ § ]]", "--[==[ § ]==]"),
    "a.json": ('"//": "§",', '"_comment": "§"', '"$comment": "§",'),
    "a.md": ("<!-- § -->", "[//]: # (§)", '[comment]: # "§"', "{/* § */}"),
    "a.adoc": ("// §",),
    "Makefile": ("# §",),
    "Dockerfile": ("# §",),
    "CMakeLists.txt": ("# §",),
    "requirements.txt": ("# §",),
}
ROWS = [(path, sign) for path, signs in SIGNS.items() for sign in signs]
BEFORE = "top 1\n\none 2\n\ntwo 3\n\nend 41\n"
WORDS = (
    "rest of the content unchanged",
    "existing code",
    "... rest of the file ...",
    "existing content",
    "previous content here",
    "keep as is",
    "... the two others ...",
    "其余内容保持不变",
)


@pytest.mark.parametrize(("path", "sign"), ROWS)
def test_a_stand_in_is_one_in_the_comments_of_every_language(path: str, sign: str) -> None:
    for words in WORDS:
        line = sign.replace("§", words)
        found = comment_of(line)
        assert found is not None and words in found.said, line
        assert is_comment_in(path, line)
        after = f"top 1\n\n{line}\n\nend 42\n"
        with pytest.raises(EditRefused):
            refuse_left_out(path, BEFORE, after)
            pytest.fail(line)
        assert read_envelope(f"````\n{after}````", BEFORE, path).problem == ELISION, line
        # Nothing goes, or it says more.
        refuse_left_out(path, BEFORE, BEFORE.replace("one", f"{line}\none").replace("41", "42"))
        if "..." not in words:
            refuse_left_out(path, BEFORE, after.replace(words, f"{words} and is counted by all that read it"))


@pytest.mark.parametrize(("path", "sign"), [row for row in ROWS if row[0] not in ("a.json", "a.md", "a.texi")])
def test_a_path_is_found_in_the_comments_of_every_language(path: str, sign: str) -> None:
    (fence,) = parts_of(f"```\n{sign.replace('§', 'src/a.py')}\nx = 1\n```").fences
    assert fence.path == "src/a.py"


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # rest",
        "{{ value }}",
        "{% if x %}",
        "<%= x %>",
        "@click",
        "(a * b)",
        "#[derive(Debug)] struct A;",
        "'rest of the code'",
        '"rest of the code"',
        '"comment": "rest of the code"',
        "..parent",
        "::before { }",
        "Remove the rest",
        "dnlx",
        "[link](existing content)",
    ],
)
def test_other_lines_are_no_placeholders(line: str) -> None:
    refuse_left_out("a.x", BEFORE, f"top 1\n{line}\nend 42\n")


@pytest.mark.parametrize("line", ["# Existing content", "* Rest of the text", "- previous content", "' existing text"])
def test_signs_that_begin_words_of_a_document_are_no_comments_there(line: str) -> None:
    for path in ("README.md", "README", "notes.txt", "a.rst"):
        assert is_document(path)
        refuse_left_out(path, BEFORE, f"top 1\n\n{line}\n\nend 42\n")


@pytest.mark.parametrize("words", ["existing content", "keep as is", "previous content here", "as is", "no changes"])
def test_loose_words_in_the_place_of_as_many_lines_are_a_comment(words: str) -> None:
    before = "a = 1\nb = 2\nc = 41\n"
    refuse_left_out("a.py", before, f"a = 1\n# {words}\nb = 3\nc = 42\n")
    assert read_envelope(f"```\na = 1\n# {words}\nb = 3\nc = 42\n```", before, "a.py").problem == ""
