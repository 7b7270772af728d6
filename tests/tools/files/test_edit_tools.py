"""Editing tools: everything is staged, nothing reaches the disk, line ends and unsaved text survive."""

from __future__ import annotations

import asyncio

import pytest

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.files.edit_tools import EditParameters, make_edit, rewritten, with_needed_tabs
from codeagent_lsp.workspace.changes.changeset import FileChange
from tests.tools.fakes import Bench

NUMBERED = "1|def f():\n2|    return 1\n"


# --- edit_file


async def test_an_edit_is_staged_and_shown(bench: Bench) -> None:
    path = bench.write("src/a.py", "def f():\n    return 1\n")
    result = await bench.call("edit_file", path="src/a.py", old_str="return 1", new_str="return 2")
    assert result.ok
    assert result.text == "Staged for the user's decision: src/a.py\n  line 2 in place of 1 line: return 2"
    assert bench.changeset.files == (FileChange(path, "def f():\n    return 1\n", "def f():\n    return 2\n"),)
    assert bench.disk() == {"src/a.py": b"def f():\n    return 1\n"}
    assert result.data == {"change_id": "c1"}


async def test_edits_build_on_staged_text_which_stands_over_buffers_over_the_disk(bench: Bench) -> None:
    path = bench.write("a.py", "disk\n")
    bench.open("a.py", "buffer\n", version=7)
    assert not (await bench.call("edit_file", path="a.py", old_str="disk", new_str="x")).ok
    assert (await bench.call("edit_file", path="a.py", old_str="buffer", new_str="staged")).ok
    assert (await bench.call("edit_file", path="a.py", old_str="staged", new_str="again")).ok
    assert bench.changeset.files == (FileChange(path, "buffer\n", "again\n", 7),)
    assert "1|again" in (await bench.call("read_file", path="a.py")).text


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ({"path": "none.py", "old_str": "a", "new_str": "b"}, "failed", "does not exist"),
        ({"path": "a.py", "old_str": "missing", "new_str": "b"}, "failed", ""),
        ({"path": "a.py", "old_str": "", "new_str": "b"}, "failed", "empty"),
        ({"path": "a.py", "old_str": "x", "new_str": "x"}, "failed", "same"),
        ({"path": "a.py", "old_str": "x", "new_str": "y"}, "failed", ""),
        ({"path": ".", "old_str": "a", "new_str": "b"}, "denied", ""),
        ({"path": "src", "old_str": "a", "new_str": "b"}, "failed", "is a folder"),
        ({"path": "bin", "old_str": "a", "new_str": "b"}, "failed", "bin"),
        ({"path": "/etc/passwd", "old_str": "a", "new_str": "b"}, "failed", "outside"),
        ({"path": "a.py", "old_str": "x"}, "retry", "new_str:"),
    ],
)
async def test_edits_that_are_refused(bench: Bench, arguments: dict[str, str], status: str, said: str) -> None:
    bench.write("a.py", "x = 1\nx = 2\n")
    bench.write("src/b.py", "")
    bench.write("bin", b"\0\1\2")
    result = await bench.call("edit_file", **arguments)
    assert result.status == status and said in result.text
    assert not bench.changeset


@pytest.mark.parametrize(
    ("name", "text", "old", "new"),
    [
        ("a.py", "class A:\n    x = 1\n    y = 2\n", "x = 1\ny = 2", 'x = """\nA\n"""\ny = 2'),
        ("a.rb", "class A\n  x = 1\n  y = 2\nend\n", "x = 1\ny = 2", "x = <<E\nA\nE\ny = 2"),
        ("a.html", "<div>\n  <p>1</p>\n  <b/>\n</div>\n", "<p>1</p>\n<b/>", "<pre>\nA\n</pre>\n<b/>"),
        ("a.sql", "BEGIN\n  x;\n  y;\nEND\n", "x;\ny;", "x AS $$\nA\n$$;\ny;"),
    ],
)
async def test_a_new_string_is_not_indented_with_the_code(
    bench: Bench, name: str, text: str, old: str, new: str
) -> None:
    bench.write(name, text)
    result = await bench.call("edit_file", path=name, old_str=old, new_str=new)
    assert result.status == "failed" and "indented" in result.text
    rows = [*(f"-{line}\n" for line in old.split("\n")), *(f"+{line}\n" for line in new.split("\n"))]
    patch = f"--- a/{name}\n+++ b/{name}\n@@ -2,2 +2,4 @@\n{''.join(rows)}"
    assert (await bench.call("apply_patch", patch=patch)).status == "failed"
    assert not bench.changeset.files
    unit = next(line[: len(line) - len(line.lstrip())] for line in text.split("\n") if line.startswith(" "))
    exact = "\n".join(unit + line for line in old.split("\n"))
    right = "\n".join(line if line == "A" else unit + line for line in new.split("\n"))
    assert (await bench.call("edit_file", path=name, old_str=exact, new_str=right)).ok
    assert [each.text for each in bench.changeset.files] == [text.replace(exact, right)]


async def test_code_that_is_indented_otherwise_still_finds_its_place(bench: Bench) -> None:
    bench.write("a.py", "class A:\n    x = 1\n    y = 2\n")
    new = 'x = 1\ndef f():\n    """One.\n\n    Two.\n    """\ny = 2'
    assert (await bench.call("edit_file", path="a.py", old_str="x = 1\ny = 2", new_str=new)).ok


async def test_replace_all(bench: Bench) -> None:
    bench.write("a.py", "x = 1\nx = 2\n")
    assert (await bench.call("edit_file", path="a.py", old_str="x", new_str="y", replace_all=True)).ok
    assert bench.text("a.py") == "y = 1\ny = 2\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\r\nb\r\nc\r\n", "a\r\nB\r\nX\r\nc\r\n"),
        ("a\r\nb\r\nc", "a\r\nB\r\nX\r\nc"),
        ("a\nb\nc\r\n", "a\nB\nX\nc\r\n"),
    ],
)
async def test_line_ends_survive_an_edit(bench: Bench, before: str, after: str) -> None:
    bench.write("a.txt", before)
    assert (await bench.call("edit_file", path="a.txt", old_str="b\n", new_str="B\nX\n")).ok
    assert bench.text("a.txt") == after


def test_line_numbers_copied_from_a_read_result_are_dropped() -> None:
    edit = EditParameters(path="a", old_str="2|    return 1", new_str="2|    return 2", replace_all=False)
    assert make_edit("def f():\n    return 1\n", edit) == "def f():\n    return 2\n"
    mixed = EditParameters(path="a", old_str=NUMBERED, new_str="def f():\n    return 2\n", replace_all=False)
    assert make_edit("def f():\n    return 1\n", mixed) == "def f():\n    return 2\n"


def test_what_looks_like_line_numbers_but_is_in_the_file_is_data() -> None:
    table = "1|Ann\n2|Bob\n"
    edit = EditParameters(path="a", old_str="2|Bob\n", new_str="2|Ben\n", replace_all=False)
    assert make_edit(table, edit) == "1|Ann\n2|Ben\n"
    assert rewritten(table, "1|Ann\n2|Ben\n") == "1|Ann\n2|Ben\n"


BODY = "def f(a):\n    b = a + 1\n    c = b * 2\n    return c\n"
CUT = "def f(a, b):\n    # ... existing code ...\n    return c\n"
FORMS: dict[str, dict[str, object]] = {
    "edit_file": {"path": "a.py", "old_str": BODY, "new_str": CUT},
    "write_file": {"path": "a.py", "content": CUT},
    "batch_edit": {"edits": [{"path": "a.py", "old_str": BODY, "new_str": CUT}]},
    "edit_by_ast": {"path": "a.py", "edits": [{"target": "f", "operation": "replace", "code": CUT}]},
    "apply_patch": {
        "patch": "*** Begin Patch\n*** Update File: a.py\n@@\n-def f(a):\n-    b = a + 1\n-    c = b * 2\n"
        "+def f(a, b):\n+    # ... existing code ...\n     return c\n*** End Patch"
    },
}


@pytest.mark.parametrize("tool", FORMS)
async def test_a_line_that_stands_for_code_deletes_none(bench: Bench, tool: str) -> None:
    bench.write("a.py", BODY)
    result = await bench.call(tool, **FORMS[tool])
    assert not result.ok and "# ... existing code ..." in result.text
    assert not bench.changeset.files


async def test_what_the_user_types_while_an_edit_is_made_is_no_part_of_it(bench: Bench) -> None:
    """The base of the change is the text that was read."""
    bench.write("a.py", "one\ntwo\n")
    bench.open("a.py", "one\ntwo\n", version=1)
    call = asyncio.create_task(bench.call("edit_file", path="a.py", old_str="two", new_str="2"))
    await asyncio.sleep(0)
    bench.open("a.py", "typed\none\ntwo\n", version=2)
    assert (await call).ok
    (change,) = bench.changeset.files
    assert change.base is not None
    assert change.text == change.base.replace("two", "2")


# --- write_file


async def test_creating_and_replacing(bench: Bench) -> None:
    result = await bench.call("write_file", path="new/deep/a.py", content="x\ny")
    assert "Created new/deep/a.py (2 lines)" in result.text
    assert bench.changeset.files == (FileChange(bench.path("new/deep/a.py"), None, "x\ny"),)
    assert (await bench.call("write_file", path="new/deep/a.py", content="z\n")).ok
    assert bench.changeset.files == (FileChange(bench.path("new/deep/a.py"), None, "z\n"),)
    assert bench.disk() == {}


async def test_an_empty_file_can_be_made(bench: Bench) -> None:
    assert (await bench.call("write_file", path="__init__.py", content="")).ok
    assert bench.text("__init__.py") == ""


async def test_replacing_keeps_the_line_ends_of_lines_that_stay(bench: Bench) -> None:
    bench.write("a.txt", "a\r\nb\nc\r\n")
    result = await bench.call("write_file", path="a.txt", content="a\nb\nC\n")
    assert bench.text("a.txt") == "a\r\nb\nC\r\n"
    assert result.text.endswith(": a.txt\n  line 3 in place of 1 line: C")


async def test_an_answer_has_a_line_for_each_place(bench: Bench) -> None:
    bench.write("a.txt", "".join(f"{number}\n" for number in range(1, 21)))
    content = "".join(f"{number}\n" for number in range(1, 21) if number not in (5, 6)).replace("2\n3\n", "two\n3\n")
    result = await bench.call("write_file", path="a.txt", content=content.replace("15\n", "15\n\nnew\n"))
    assert result.text.splitlines() == [
        "Staged for the user's decision: a.txt",
        "  line 2 in place of 1 line: two",
        "  after line 4: 2 lines removed",
        "  lines 14-15 added: new",
    ]


async def test_an_answer_is_short_for_many_places(bench: Bench) -> None:
    bench.write("a.txt", "".join(f"x{number}\nsame {number}\n" for number in range(200)))
    result = await bench.call("edit_file", path="a.txt", old_str="x", new_str="y", replace_all=True)
    assert result.ok and len(result.text) < 3_000 and result.text.splitlines()[-1] == "  (and 160 more places)"


async def test_writing_the_same_text_is_refused(bench: Bench) -> None:
    bench.write("a.txt", "a\r\nb\r\n")
    result = await bench.call("write_file", path="a.txt", content="a\nb\n")
    assert (result.status, result.error and result.error.code) == ("failed", "EDIT_REFUSED")
    assert not bench.changeset


async def test_numbers_of_a_read_result_are_dropped_only_when_an_ordinary_file_is_replaced(bench: Bench) -> None:
    bench.write("a.py", "def f():\n    return 0\n")
    assert (await bench.call("write_file", path="a.py", content=NUMBERED)).ok
    assert bench.text("a.py") == "def f():\n    return 1\n"
    assert (await bench.call("write_file", path="table.psv", content="1|Ann\n2|Bob\n")).ok
    assert bench.text("table.psv") == "1|Ann\n2|Bob\n"


@pytest.mark.parametrize("path", ["src", "bin", "a.py/b.py", "a.py/deep/b.py"])
async def test_places_where_no_text_can_go(bench: Bench, path: str) -> None:
    bench.write("src/x.py", "")
    bench.write("a.py", "")
    bench.write("bin", b"\0\1")
    result = await bench.call("write_file", path=path, content="x")
    assert not result.ok
    assert not bench.changeset


# --- batch_edit and preview_edit


async def test_a_batch_is_one_step_over_several_files(bench: Bench) -> None:
    bench.write("a.py", "one\ntwo\n")
    bench.write("b.py", "three\n")
    edits = [
        {"path": "a.py", "old_str": "one", "new_str": "1"},
        {"path": "./a.py", "old_str": "1\ntwo", "new_str": "1\n2"},
        {"path": "b.py", "old_str": "three", "new_str": "3"},
    ]
    result = await bench.call("batch_edit", edits=edits)
    assert result.ok
    assert (bench.text("a.py"), bench.text("b.py")) == ("1\n2\n", "3\n")
    assert (await bench.call("undo_patch", change_id=result.data["change_id"])).ok
    assert not bench.changeset


async def test_a_batch_makes_a_file_of_nothing_and_goes_on_with_it(bench: Bench) -> None:
    bench.write("a.py", "one\n")
    new, then = (
        {"path": "n/b.py", "old_str": "", "new_str": "x = 1\n"},
        {"path": "n/b.py", "old_str": "1", "new_str": "2"},
    )
    made = await bench.call("batch_edit", edits=[new, then, {"path": "a.py", "old_str": "one", "new_str": "1"}])
    assert made.text.startswith("Created n/b.py (1 line).") and bench.text("n/b.py") == "x = 2\n"
    assert bench.text("a.py") == "1\n"
    again = await bench.call("batch_edit", edits=[{"path": "a.py", "old_str": "", "new_str": "y\n"}])
    assert "old_str is empty" in again.text


@pytest.mark.parametrize(
    "bad", [{"path": "b.py", "old_str": "none", "new_str": "x"}, {"path": "gone.py", "old_str": "a", "new_str": "b"}]
)
async def test_a_batch_is_all_or_nothing(bench: Bench, bad: dict[str, str]) -> None:
    bench.write("a.py", "one\n")
    bench.write("b.py", "two\n")
    result = await bench.call("batch_edit", edits=[{"path": "a.py", "old_str": "one", "new_str": "1"}, bad])
    assert not result.ok and bad["path"] in result.text
    assert not bench.changeset and bench.told == []


@pytest.mark.parametrize(
    "edits", [[], "nothing", [{"path": "a.py"}], [{"path": "a", "old_str": "b", "new_str": "c"}] * 101]
)
async def test_batches_that_are_none(bench: Bench, edits: object) -> None:
    result = await bench.call("batch_edit", edits=edits)
    assert result.status == "retry" and "edits" in result.text


async def test_a_preview_changes_nothing(bench: Bench) -> None:
    bench.write("a.py", "one\n")
    result = await bench.call("preview_edit", path="a.py", old_str="1|one", new_str="1|two")
    assert "-one\n+two" in result.text
    assert not bench.changeset
    assert not (await bench.call("preview_edit", path="a.py", old_str="gone", new_str="x")).ok


def test_a_refused_edit_says_why() -> None:
    with pytest.raises(EditRefused) as refusal:
        make_edit("a\na\n", EditParameters(path="x", old_str="a", new_str="b", replace_all=False))
    assert refusal.value.reason == "ambiguous"


# --- apply_patch


GIT_MOVE = "diff --git a/run b/bin/run\nsimilarity index 100%\nrename from run\nrename to bin/run\n"
GIT_MOVE_AND_EDIT = f"{GIT_MOVE}--- a/run\n+++ b/bin/run\n@@ -1 +1 @@\n-go\n+stay\n"
OWN_MOVE = "*** Begin Patch\n*** Update File: run\n*** Move to: bin/run\n@@\n-go\n+stay\n*** End Patch"


@pytest.mark.parametrize(("patch", "text"), [(GIT_MOVE, "go\n"), (GIT_MOVE_AND_EDIT, "stay\n"), (OWN_MOVE, "stay\n")])
async def test_a_rename_in_a_patch_is_a_move(bench: Bench, patch: str, text: str) -> None:
    """So that the file keeps its rights and its history, as by `move_file`."""
    old, new = bench.write("run", "go\n"), str(bench.root / "bin/run")
    result = await bench.call("apply_patch", patch=patch)
    assert result.ok and "moved run to bin/run" in result.text and "deleted" not in result.text
    assert bench.changeset.files == (FileChange(new, "go\n", text, moved_from=old),)


async def test_a_patch_of_a_file_that_is_elsewhere_says_where(bench: Bench) -> None:
    bench.write("src/a.py", "x = 1\n")
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
    told = (await bench.call("apply_patch", patch=patch)).text
    assert told.startswith("a.py: there is no such file.") and "Did you mean src/a.py?" in told


async def test_a_rename_whose_old_path_is_written_anew_deletes_nothing(bench: Bench) -> None:
    path = bench.write("run", "go\n")
    again = "diff --git a/run b/run\nnew file mode 100644\n--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+anew\n"
    assert (await bench.call("apply_patch", patch=GIT_MOVE + again)).ok
    assert {each.path: each.text for each in bench.changeset} == {path: "anew\n", str(bench.root / "bin/run"): "go\n"}


COUNTED = "x = rate\ny = rate\nz = rate  # rate\n"


@pytest.mark.parametrize("name", ["replace", "edit_file", "MultiEdit"])
@pytest.mark.parametrize("expected", [1, 2, 3, 4, 5, "4", 0])
async def test_as_many_places_as_are_expected_or_none(bench: Bench, name: str, expected: int | str) -> None:
    bench.write("a.py", COUNTED)
    edit = {"old_string": "rate", "new_string": "share", "expected_replacements": expected}
    given = {"file_path": "a.py", **({"edits": [edit]} if name == "MultiEdit" else edit)}
    result = await bench.call(name, **given)
    if int(expected) == 4:
        assert result.ok and bench.text("a.py") == COUNTED.replace("rate", "share")
    else:
        assert result.status == "failed" and "4" in result.text, result.text
        assert not bench.changeset


async def test_a_number_of_places_is_told_to_no_model(bench: Bench) -> None:
    for name in ("edit_file", "batch_edit"):
        tool = bench.registry.get(name)
        assert "expected_replacements" not in str(tool.spec()["parameters"])
        assert "expected_replacements" in str(tool.accepted_schema())


RST = "Title\n=====\n\nSome words.\n\nInstall\n=======\n\n-------\nRun it.\n"
MARKS = {
    "apply_diff": ("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"),
    "replace_in_file": ("------- SEARCH", "=======", "+++++++ REPLACE"),
}


@pytest.mark.parametrize("name", MARKS)
@pytest.mark.parametrize(
    ("blocks", "wanted"),
    [
        ("{0}\nTitle\n=====\n{1}\nThe Title\n=========\n{2}", RST.replace("Title\n=====", "The Title\n=========")),
        ("{0}\nInstall\n\\=======\n{1}\nSet up\n======\n{2}", RST.replace("Install\n=======", "Set up\n======")),
        ("{0}\nSome words.\n{1}\nMore\n====\n{2}", RST.replace("Some words.", "More\n====")),
        ("{0}\n-------\nRun it.\n{1}\nRan.\n{2}", RST.replace("-------\nRun it.", "Ran.")),
        ("{0}\n:start_line:4\n-------\nSome words.\n{1}\nOther.\n{2}", RST.replace("Some words", "Other")),
        ("{0}\nInstall\n=======\n{1}\nSet up\n======\n{2}", None),
        ("{0}\nSome words.\n{1}\nOther.\n{0}\nRun it.\n{1}\nRan.\n{2}", None),
        ("{0}\nSome words.\n{1}\nOther.\n{2}\n{0}\nRun it.\n{2}", None),
        ("{0}\nSome words.\n{1}\nOther.\n{2}\n{0}\nRun it.\n{1}\nRan.\n", None),
    ],
)
async def test_blocks_are_made_as_they_are_divided_or_none_of_them(
    bench: Bench, name: str, blocks: str, wanted: str | None
) -> None:
    bench.write("a.rst", RST)
    result = await bench.call(name, path="a.rst", diff=blocks.format(*MARKS[name]))
    if wanted is None:
        assert not result.ok and not bench.changeset and "whole" in result.text, result.text
    else:
        assert result.ok and bench.text("a.rst") == wanted, result.text


@pytest.mark.parametrize(
    "path", ['"a.py"', "'a.py'", "`a.py`", "**a.py**", "<a.py>", "[a.py](a.py)", " a.py", "a.py\n"]
)
async def test_a_path_with_signs_around_it_makes_no_second_file(bench: Bench, path: str) -> None:
    bench.write("a.py", "x = 1\n")
    result = await bench.call("write_file", path=path, content="x = 2\n")
    assert not result.ok
    assert not bench.changeset


@pytest.mark.parametrize("path", ["'a' and 'b'.py", "app/[id]/(group)/page.tsx", "_a_.py", "@a.ts", "a b.txt"])
async def test_a_path_with_signs_of_its_own_is_a_path(bench: Bench, path: str) -> None:
    assert (await bench.call("write_file", path=path, content="x = 2\n")).ok


async def test_a_file_whose_name_has_quotes_is_that_file(bench: Bench) -> None:
    bench.write("'a.txt'", "x\n")
    assert (await bench.call("edit_file", path="'a.txt'", old_str="x", new_str="y")).ok


@pytest.mark.parametrize(
    ("path", "text", "right"),
    [
        ("Makefile", "all: x\n\tcc 41 \\\n\t  -o x\n\nclean:\n\trm x\n", True),
        ("rules.mk", "all: x\n\tcc 41\n\tcc x\n", True),
        ("a.go", "package a\n\nfunc f() int {\n\tif x {\n\t\treturn 41\n\t}\n\treturn 2\n}\n", True),
        ("a.tsv", "a\tb\n1\t41\n2\t3\n", False),
    ],
)
def test_a_file_that_needs_tabs_keeps_them_when_it_is_written(path: str, text: str, *, right: bool) -> None:
    given = text.replace("41", "42").expandtabs(4)
    if right:
        assert with_needed_tabs(path, text, given) == text.replace("41", "42")
    else:
        with pytest.raises(EditRefused, match="tabs"):
            with_needed_tabs(path, text, given)
    assert with_needed_tabs("a.py", "x\n\ty\n", "x\n    z\n") == "x\n    z\n"  # it may be the change
