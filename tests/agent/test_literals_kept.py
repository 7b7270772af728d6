"""What stands inside strings stays as it is, however a model has moved the code around it: in every language."""

from __future__ import annotations

import random

import pytest

from codeagent_lsp.agent.replacement import replaced
from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.literals import refuse_altered
from codeagent_lsp.tools.code.ast_edit import AstEdit, edited
from codeagent_lsp.workspace.edits.match import replace
from tests.agent.literals import INDEXED, LANGUAGES, WITH_MARGIN, WITHOUT_MARGIN, Margin, Written, case, moved

WAYS = ("same", "dedented", "deeper", "other blanks")
ROUNDS = 12


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("written", LANGUAGES.values(), ids=LANGUAGES.keys())
def test_a_quick_action(written: Written, way: str) -> None:
    chance = random.Random(f"{written.path}{way}")
    for _ in range(ROUNDS):
        given = case(written, chance)
        if way == "other blanks" and written not in INDEXED.values():
            continue  # without a grammar tabs and blanks stay as a model gives them
        wanted = given.text[: given.start] + given.changed + given.text[given.end :]
        reply = moved(given.changed, given, way)
        assert replaced(given.text, given.start, given.end, reply, given.path) == wanted, reply


@pytest.mark.slow
@pytest.mark.parametrize("way", ["same", "dedented", "deeper"])
@pytest.mark.parametrize("written", INDEXED.values(), ids=INDEXED.keys())
def test_the_form_function_and_the_tool_edit_by_ast(written: Written, way: str) -> None:
    chance = random.Random(f"{written.path}{way}")
    name = "F" if written.path.endswith(".cs") else "f"
    for _ in range(ROUNDS):
        given = case(written, chance)
        wanted = given.text[: given.start] + given.changed + given.text[given.end :]
        reply = moved(given.changed, given, way)
        assert edited(given.path, given.text, [AstEdit(name, "replace", reply)]).text == wanted, reply
        answer = read_answer(f"```\n{reply}```", Files({given.path: given.text}), "function")
        assert answer.texts == {given.path: wanted}, answer.problem


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("written", LANGUAGES.values(), ids=LANGUAGES.keys())
def test_an_edit_of_lines_places_them_right_or_not_at_all(written: Written, way: str) -> None:
    chance, placed = random.Random(f"{written.path}{way}"), 0
    for _ in range(ROUNDS):
        given = case(written, chance)
        old = given.text[given.start : given.end]
        opening = f"{written.literal[0]}\n"
        new = given.changed.replace(opening, f"{opening}\tmore\n    less\n")
        wanted = given.text[: given.start] + new + given.text[given.end :]
        try:
            found = replace(given.text, moved(old, given, way), moved(new, given, way)).text
        except EditRefused:
            continue
        placed += 1
        assert found == wanted
    assert placed == ROUNDS or way != "same"


COMMENTS = {
    "moved with the code": ("a.c", "    /*\n     * a\n     */\n    f();\n", "/*\n * b\n */\ng();\n",
                            "    /*\n     * b\n     */\n    g();\n"),
    "old code at the margin": ("a.c", "    /*\nold();\n  as it was\n    */\n    f();\n",
                               "/*\nold();\n  as it was\n*/\ng();\n",
                               "    /*\nold();\n  as it was\n    */\n    g();\n"),
    "a table, tabs for blanks": ("a.go", "\t/*\n\t    a   b\n\t*/\n\tf()\n", "    /*\n        a   b\n    */\n    g()\n",
                                 "\t/*\n\t    a   b\n\t*/\n\tg()\n"),
    "a block of Ruby": ("a.rb", "  f\n=begin\n    a\n=end\n  g\n", "f\n=begin\n    a\n=end\nh\n",
                        "  f\n=begin\n    a\n=end\n  h\n"),
    "a docstring": ("a.py", '    """A.\n\n        b\n    """\n    f()\n', '"""A.\n\n    b\n"""\ng()\n',
                    '    """A.\n\n        b\n    """\n    g()\n'),
    "an unknown language": ("a.unheard", "    a\n    b\n", "c\nd\n", "    c\n    d\n"),
    "an unknown literal": ("a.unheard", "    a\n    b\n", "c 'x\n  y'\nd\n", "c 'x\n  y'\nd\n"),
    "YAML": ("a.yaml", "    run: |\n      cat <<E\n      a\n      E\n", "run: |\n  cat <<E\n  b\n  E\n",
             "    run: |\n      cat <<E\n      b\n      E\n"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "selected", "reply", "wanted"), COMMENTS.values(), ids=COMMENTS.keys())
def test_comments_move_as_a_whole(path: str, selected: str, reply: str, wanted: str) -> None:
    before, after = {"a.go": ("package a\n\nfunc f() {\n", "}\n"), "a.py": ("def f():\n", "")}.get(
        path, ("x {\n", "}\n")
    )
    done = replaced(before + selected + after, len(before), len(before + selected), reply, path)
    assert done == before + wanted + after


IN_LITERALS = {
    "blanks at the end": ("a.sh", "cat <<E\n", "a\nb\n", "c\nd  ", "E\n", "c\nd  \n"),
    "blanks at the beginning": ("a.sh", "cat <<E\n", "a\n", "  a", "E\n", "  a\n"),
    "blanks at the end in HTML": ("a.html", "<pre>\n", "a\n", "b\t", "</pre>\n", "b\t\n"),
    "blanks in Python": ("a.py", 'x = """\n', "  a\n  b\n", "    a\n  b ", '"""\n', "    a\n  b \n"),
    "blanks in code": ("a.sh", "f() {\n", "  a\n", "  b  ", "}\n", "  b\n"),
    "a blank line behind code": ("a.py", "x = 1\n", "y = 2\n", "y = 3  \n\n", "z = 3\n", "y = 3\n"),
}


@pytest.mark.parametrize(
    ("path", "before", "selected", "reply", "after", "wanted"), IN_LITERALS.values(), ids=IN_LITERALS.keys()
)
def test_lines_of_a_literal_are_taken_as_they_are_given(
    path: str, before: str, selected: str, reply: str, after: str, wanted: str
) -> None:
    done = replaced(before + selected + after, len(before), len(before + selected), reply, path)
    assert done == before + wanted + after


OLD = ("    SELECT 1", "    FROM t", "", "      WHERE x")
NEW = {
    "a line changed": ("    SELECT 2", *OLD[1:]),
    "a line added": (*OLD[:2], "    JOIN u", *OLD[2:]),
    "all of it": ("    A", "      B"),
    "another depth": ("  SELECT 9", *OLD[1:]),
}


def _edited(written: Margin, old: str, new: str) -> str:
    """The file after an edit by lines whose literal stands eight blanks deep in it."""
    text = written.head + written.lines(OLD, " " * 8) + written.foot
    done = replace(text, old, new).text
    refuse_altered(written.path, text, done, [new])
    return done


@pytest.mark.slow
@pytest.mark.parametrize("given", ["", "    ", " " * 12], ids=["dedented", "half", "deeper"])
@pytest.mark.parametrize("written", WITHOUT_MARGIN.values(), ids=WITHOUT_MARGIN.keys())
def test_a_literal_moves_with_the_code_where_the_language_takes_its_margin_away(written: Margin, given: str) -> None:
    for new in NEW.values():
        wanted = written.head + written.lines(new, " " * 8) + written.foot
        assert _edited(written, written.lines(OLD, given), written.lines(new, given)) == wanted


@pytest.mark.parametrize("given", ["", "    ", " " * 12], ids=["dedented", "half", "deeper"])
@pytest.mark.parametrize("written", WITH_MARGIN.values(), ids=WITH_MARGIN.keys())
def test_no_other_literal_does(written: Margin, given: str) -> None:
    for new in NEW.values():
        with pytest.raises(EditRefused):
            _edited(written, written.lines(OLD, given), written.lines(new, given))


@pytest.mark.parametrize("written", WITHOUT_MARGIN.values(), ids=WITHOUT_MARGIN.keys())
def test_a_line_of_a_literal_of_which_no_other_is_given_is_refused(written: Margin) -> None:
    opening = f"x1\n{written.literal[0]}\n"
    with pytest.raises(EditRefused):
        _edited(written, opening, f"{opening}    MORE\n")


@pytest.mark.parametrize("written", WITHOUT_MARGIN.values(), ids=WITHOUT_MARGIN.keys())
def test_a_new_literal_without_margin_moves_as_a_whole(written: Margin) -> None:
    text = f"{written.head}        a0\n        b0\n{written.foot}"
    new = "a0\n" + written.lines(("    A", "      B"), "") + "b0\n"
    done = replace(text, "a0\nb0\n", new).text
    refuse_altered(written.path, text, done, [new])
    assert done == text.replace("        b0\n", written.lines(("    A", "      B"), " " * 8) + "        b0\n")
