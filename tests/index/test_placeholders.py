"""No change puts a line that stands for code in the place of the code, whichever tool makes it; comments, stubs and the
dots of a language are code.
"""

from __future__ import annotations

import pytest

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.placeholders import left_out, refuse_left_out

LINES = [f"name{number} = value {number}\n" for number in range(12)]
STANDS = {
    "kt": ("// ...",),
    "js": ("// ... existing code ...", "{/* ... */}", "// [unchanged]"),
    "py": ("# ...", "# ... rest of the code", "# Rest of code remains the same", "# 其余代码不变", "..."),
    "css": ("/* ... other rules ... */", "/* rest of styles unchanged */"),
    "html": ("<!-- rest of the page -->", "<!-- ... -->"),
    "sql": ("-- rest of the file unchanged",),
    "lua": ("-- ... the rest",),
    "vim": ('" ... rest of config ...',),
    "bat": ("REM ... rest unchanged ...",),
    "f90": ("! ... rest unchanged ...",),
    "erl": ("% ... existing functions ...",),
    "el": (";; ... rest of file",),
    "ini": ("; ... rest ...",),
    "toml": ("# (other sections unchanged)",),
    "yaml": ("# ... rest of the configuration",),
    "csv": ("...",),
    "md": ("...", "[rest of the document unchanged]", "... (rest of the document unchanged)", "<!-- ... -->"),
    "txt": ("(the rest stays the same)", "[... rest of file unchanged ...]", "…"),
}
VAGUE = (
    *("same as original", "Existing logic remains", "code continues", "as above", "see above", "and so on"),
    *("Continue with existing code", "TODO: rest of the implementation", "unchanged from here on", "shortened"),
    *("as in the original version", "truncated for brevity", "keep the rest as is", "everything else stays the same"),
    *("no further changes", "other methods omitted", "like before", "the remaining handlers stay as they were"),
    *("only the changed lines are shown", "仅显示修改部分", "后续代码相同", "不變的部分省略"),
)
"""So much is said in ordinary comments, too: it stands for lines where more go than come."""
SIGNS = ("⋮", "[...]", "(...)", ". . .", "--- 8< ---", "<unchanged>", "*omitted*", "…")
MEANT = {
    "py": (
        "# the order is unchanged",
        "# the original list is unchanged",
        "# other fields are the same",
        "# the rest of the line is the same",
        "# other callers pass None",
        "[unchanged]",
        "x: tuple[int, ...] = y",
        "# wait...",
    ),
    "js": ("...rest,", "// the remaining items", "(existing)", "// same as the parser does"),
    "yaml": ("...", "- rest: unchanged"),
    "md": ("## Other methods", "The rest is silence.", "(see the rest of this page for the same)"),
}


@pytest.mark.parametrize(("ending", "line"), [(path, line) for path, lines in STANDS.items() for line in lines])
def test_what_stands_for_code_is_refused_in_its_place(ending: str, line: str) -> None:
    for first, last in ((3, 12), (3, 9), (0, 12), (5, 6)):
        before, after = "".join(LINES), "".join((*LINES[:first], f"  {line}\n", *LINES[last:]))
        with pytest.raises(EditRefused):
            refuse_left_out(f"a.{ending}", before, after)
        # Nothing goes, or the line was there before.
        refuse_left_out(f"a.{ending}", before, "".join((*LINES[:first], f"# x {line} y\n", *LINES[last:])))
        if line != "...":
            refuse_left_out(f"a.{ending}", before, "".join((*LINES[:first], f"  {line}\n", *LINES[first:])))
        refuse_left_out(f"a.{ending}", f"{line}\n{before}", f"{line}\n{''.join(LINES[last:])}")


@pytest.mark.parametrize(("ending", "line"), [(path, line) for path, lines in MEANT.items() for line in lines])
def test_an_ordinary_line_may_take_the_place_of_others(ending: str, line: str) -> None:
    refuse_left_out(f"a.{ending}", "".join(LINES), "".join((*LINES[:3], f"  {line}\n", *LINES[9:])))


@pytest.mark.parametrize("words", VAGUE)
@pytest.mark.parametrize(("ending", "signs"), [("py", "# {}"), ("js", "// {}"), ("css", "/* {} */"), ("lua", "-- {}")])
def test_vague_words_stand_for_lines_where_more_go_than_come(words: str, ending: str, signs: str) -> None:
    line = f"  {signs.format(words)}\n"
    for come in ("", "a new line that says something\n"):
        after = "".join((*LINES[:3], come, line, *LINES[9:]))
        with pytest.raises(EditRefused):
            refuse_left_out(f"a.{ending}", "".join(LINES), after)
        assert left_out("".join(LINES), after, f"a.{ending}") == line.strip()
    refuse_left_out(f"a.{ending}", "".join(LINES), "".join((*LINES[:3], line, *LINES[3:])))


@pytest.mark.parametrize("line", SIGNS)
@pytest.mark.parametrize("ending", ["js", "html", "sql", "kt", "go"])
def test_signs_alone_stand_for_lines(line: str, ending: str) -> None:
    with pytest.raises(EditRefused):
        refuse_left_out(f"a.{ending}", "".join(LINES), "".join((*LINES[:3], f"  {line}\n", *LINES[9:])))
    refuse_left_out(f"a.{ending}", "".join(LINES), "".join((*LINES[:3], f"  {line}\n", *LINES[3:])))


@pytest.mark.parametrize("behind", ["// ... rest unchanged", "# … existing code", "-- ... 其余代码不变"])
def test_a_placeholder_behind_code(behind: str) -> None:
    after = "".join((*LINES[:3], f"  begin() {behind}\n", *LINES[9:]))
    with pytest.raises(EditRefused):
        refuse_left_out("a.kt", "".join(LINES), after)


def test_stubs_are_code() -> None:
    body = "class A:\n    def f(self):\n        return 1\n"
    refuse_left_out("a.py", body, body.replace("return 1", "..."))
    refuse_left_out("a.py", body, "class A:\n    def f(self): ...\n")
    with pytest.raises(EditRefused):
        refuse_left_out("a.py", f"{body}x = 1\ny = 2\n", f"{body}x = 1\n...\n")


def test_moved_lines_are_not_lost() -> None:
    before = "a = 1\nb = 2\nc = 3\n"
    refuse_left_out("a.py", before, "c = 3\n# ... rest of the code\na = 1\nb = 2\n")
