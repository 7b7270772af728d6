"""C and C++ without a language server, and JSON5: what a change breaks is told, what macros look like is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.tools.diagnostics.syntax import broken_syntax, data_errors
from codeagent_lsp.tools.edit_diagnostics import AfterEdits, BeforeAndAfter, EditDiagnostics
from codeagent_lsp.workspace.files.file_view import FileView, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots
from tests.examples import examples
from tests.tools.fakes import Bench

C = "int size(int n) {\n    int most = 3;\n    if (n > most) {\n        return most;\n    }\n    return n;\n}\n"
CPP = "namespace a {\nclass Size {\npublic:\n    int of(int n) const { return n; }\n};\n}\n"


@pytest.mark.parametrize(
    ("name", "before", "old", "new", "line"),
    [
        ("a.c", C, "most = 3;", "most = 3", 2),
        ("a.c", C, "    }\n", "", 6),
        ("a.c", C, "(n > most)", "(n > most", 3),
        ("a.h", C, "return n;", "return n", 6),
        ("a.cpp", CPP, "return n; }", "return n;", 1),
        ("a.hpp", CPP, "};", "}", 5),
    ],
)
async def test_what_an_edit_breaks_is_told(bench: Bench, name: str, before: str, old: str, new: str, line: int) -> None:
    base = FileView(Roots([str(bench.root)]), bench.buffers, NothingStaged())
    bench.add((AfterEdits, AfterEdits(EditDiagnostics(BeforeAndAfter(base, bench.view), None, None))))
    bench.write(name, before)
    result = await bench.call("edit_file", path=name, old_str=old, new_str=new)
    assert "Diagnostics: 1 new" in result.text
    assert f"{name}:{line}:" in result.text
    result = await bench.call("write_file", path=name, content=f"{before}// whole again\n")
    assert "no new problems any more" in result.text


@pytest.mark.parametrize(
    "after",
    [
        C.replace("int most", "STATIC_ASSERT(x) int most"),
        C.replace("int most", "LIST_EACH(a, b)\n    int most"),
        "EXPORT\n" + C.replace("int size", "API_CALL int size"),
        C.replace("    return n;", "    MUST_NOT(n) {\n    }\n    return n;"),
    ],
)
def test_macros_are_no_errors(after: str) -> None:
    assert broken_syntax("a.c", C, after) == ()


def test_what_was_broken_before_or_is_no_c_is_not_judged() -> None:
    assert broken_syntax("a.c", C.replace("}", ""), C.replace("3;", "3")) is None
    assert broken_syntax("a.c", "", "int x") is None
    assert broken_syntax("a.py", "x = 1\n", "x = (\n") is None


_LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.floats(allow_nan=True)
_VALUES = st.recursive(
    _LEAVES,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=4), each, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(200))
@given(_VALUES, st.sampled_from(["", " // why\n", "/* , */ "]), st.booleans())
def test_what_is_json5_can_be_read(value: object, comment: str, is_last: bool) -> None:
    text = json.dumps(value, indent=1)
    if is_last and text[-2:] in ("\n]", "\n}"):
        text = f"{text[:-2]},{text[-2:]}"
    assert data_errors("a.json5", comment + text) == ()


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(200))
@given(_VALUES, st.data())
def test_a_lost_bracket_or_comma_is_told(value: object, data: st.DataObject) -> None:
    # Without texts, in which brackets and commas are no syntax.
    plain = json.loads(json.dumps(value), parse_constant=str)
    text = json.dumps({"a": [_without_texts(plain), 1, 2]}, indent=1)
    place = data.draw(st.sampled_from([at for at, each in enumerate(text) if each in "[]{},:"]))
    assert data_errors("a.json5", text) == ()
    assert data_errors("a.json5", text[:place] + text[place + 1 :])


def _without_texts(value: object) -> object:
    if isinstance(value, dict):
        return {f"k{number}": _without_texts(each) for number, each in enumerate(value.values())}
    if isinstance(value, list):
        return [_without_texts(each) for each in value]
    return 1


@pytest.mark.parametrize(
    ("text", "line"),
    [("{a}", 1), ("[1,,2]", 1), ("{\n a: f(),\n}", 2), ("{a: x}", 1), ("{\n a: 1\n b: 2}", 3), ("{a: `x`}", 1)],
)
def test_code_is_no_json5(text: str, line: int) -> None:
    found = data_errors("a.json5", text)
    assert found is not None
    assert [each.line for each in found] == [line]
    assert "JSON5" in found[0].message


@pytest.mark.parametrize(
    "text", ["'x'", "{a: 'x\\\ny', // c\n}", "{a: +Infinity, b: -NaN, c: .5, d: 0xAF, e: 5.}", "", "// only\n[]"]
)
def test_json5_has_more_than_json(text: str) -> None:
    assert data_errors("a.json5", text) == ()


@pytest.mark.parametrize(
    ("name", "opening", "ending"),
    [
        *(
            ("a.css", "/*", "*/"),
            ("a.kt", "/*", "*/"),
            ("a.sql", "/*", "*/"),
            ("a.ts", "/*", "*/"),
            ("a.java", "/*", "*/"),
        ),
        *(("a.html", "<!--", "-->"), ("a.lua", "--[[", "]]"), ("a.hs", "{-", "-}"), ("a.ml", "(*", "*)")),
    ],
)
async def test_a_comment_that_loses_a_sign_is_told(bench: Bench, name: str, opening: str, ending: str) -> None:
    base = FileView(Roots([str(bench.root)]), bench.buffers, NothingStaged())
    bench.add((AfterEdits, AfterEdits(EditDiagnostics(BeforeAndAfter(base, bench.view), None, None))))
    bench.write(name, f"{opening} first {ending}\n\n{opening} second {ending}\n")
    result = await bench.call("edit_file", path=name, old_str=f"first {ending}", new_str="first")
    assert f"{name}:1:" in result.text and "a comment has no beginning or no end" in result.text
    result = await bench.call("edit_file", path=name, old_str=f"{opening} first", new_str=f"{opening} 1st {ending}")
    assert "a comment has" not in result.text
