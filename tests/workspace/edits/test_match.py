"""The edit engine, case by case: every tier, every reason to refuse, and what the refusal says."""

from __future__ import annotations

import pytest

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.workspace.edits.match import plan, replace
from codeagent_lsp.workspace.edits.match_block import shift_between, small_typo
from codeagent_lsp.workspace.text.position import content_of, dominant_newline, ending_of, runs_together, split_lines

FILE = '''\
class Cart:
    """What a customer wants."""

    def add(self, item):
        if item.stock > 0:
            self.items.append(item)

        return len(self.items)

    def drop(self, item):
        self.items.remove(item)
        return len(self.items)
'''
OLD = """\
    def drop(self, item):
        self.items.remove(item)
        return len(self.items)
"""
NEW = """\
    def drop(self, item):
        if item in self.items:
            self.items.remove(item)
        return len(self.items)
"""
# A line, and the same one with the characters that word processors and models write.
LOOK_ALIKE = [
    ('say("hi")', "say(\u201chi\u201d)"),
    ('say("hi")', "say(\u201ehi\u201c)"),
    ('say("hi")', "say(\u00abhi\u00bb)"),
    ('say("hi")', "say(\uff02hi\uff02)"),
    ("say('hi')", "say(\u2018hi\u2019)"),
    ("say('hi')", "say(\uff07hi\uff07)"),
    ("# it's here", "# it\u2019s here"),
    ("# 5' 3\"", "# 5\u2032 3\u2033"),
    ("a = b - c", "a = b \u2212 c"),
    ("# a - b", "# a \u2013 b"),
    ("# non-stop", "# non\u2011stop"),
    ("# wait...", "# wait\u2026"),
    ("# a b", "# a\u00a0b"),
    ("# a b", "# a\u202fb"),
    ("# a b", "# a\u3000b"),
    ("    c()", "\u00a0   c()"),
    ("    c()", "\u00a0\u00a0\u00a0\u00a0c()"),
    ("    c()", "\u3000   c()"),
]


def refusal(text: str, old: str, new: str, *, replace_all: bool = False) -> EditRefused:
    with pytest.raises(EditRefused) as caught:
        replace(text, old, new, replace_all=replace_all)
    return caught.value


def dedent(block: str, width: int = 4) -> str:
    return "".join(line[width:] if line.strip() else line for line in split_lines(block))


class TestLines:
    def test_only_three_line_ends(self) -> None:
        text = "a\x0bb\x0cc\x85d\u2028e\u2029f\x1c\ng\r\nh\ri"
        assert split_lines(text) == ["a\x0bb\x0cc\x85d\u2028e\u2029f\x1c\n", "g\r\n", "h\r", "i"]

    def test_parts_of_a_line(self) -> None:
        assert runs_together(["a\r", "\n"])
        assert not runs_together(["a\r", "b\n", "\n"])
        assert (content_of("a \r\n"), ending_of("a \r\n"), ending_of("a")) == ("a ", "\r\n", "")

    @pytest.mark.parametrize(
        ("text", "newline"), [("", "\n"), ("a\r\nb\n", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\rc\n", "\r")]
    )
    def test_dominant_newline(self, text: str, newline: str) -> None:
        assert dominant_newline(text) == newline


class TestExact:
    def test_part_of_a_line(self) -> None:
        done = replace("total = price * count\n", "price", "cost")
        assert (done.text, done.tier) == ("total = cost * count\n", "exact")

    def test_whole_block(self) -> None:
        assert replace(FILE, OLD, NEW).text == FILE.replace(OLD, NEW)

    def test_plan_names_the_characters(self) -> None:
        edit = plan("abc", "b", "x")
        assert (edit.start, edit.stop, edit.text) == (1, 2, "x")

    def test_deletion(self) -> None:
        assert replace("a\nb\nc\n", "b\n", "").text == "a\nc\n"

    def test_part_of_a_line_becomes_lines_in_a_crlf_file(self) -> None:
        assert replace("x = 1\r\ny\r\n", "x = 1", "x = 1\nz = 2").text == "x = 1\r\nz = 2\r\ny\r\n"

    def test_bom_and_missing_final_newline_survive(self) -> None:
        assert replace("\ufeffa\nb", "b", "c").text == "\ufeffa\nc"
        assert replace("\ufeffa\nb", "\ufeffa", "x").text == "\ufeffx\nb"

    def test_new_line_after_the_old_one(self) -> None:
        assert replace("    return x\n", "return x", "return x\n\n\ndef g():\n    pass").text == (
            "    return x\n\n\ndef g():\n    pass\n"
        )

    def test_missing_final_newline_of_new_does_not_join_lines(self) -> None:
        assert replace("a = 1\nb = 2\nc = 3\n", "b = 2\n", "b = 5").text == "a = 1\nb = 5\nc = 3\n"

    def test_leading_newline_of_old_does_not_join_lines(self) -> None:
        assert replace("a = 1\nb = 2\nc = 3\n", "\nb = 2\nc = 3\n", "b = 5\nc = 3\n").text == "a = 1\nb = 5\nc = 3\n"

    def test_one_dedented_line_becomes_two(self) -> None:
        """Literally replaced, the second line would lose its indentation."""
        done = replace("def f():\n    x = 1\n", "x = 1\n", "x = 2\ny = 3\n")
        assert done.text == "def f():\n    x = 2\n    y = 3\n"


class TestTiers:
    def test_crlf_file(self) -> None:
        done = replace(FILE.replace("\n", "\r\n"), OLD, NEW)
        assert (done.text, done.tier) == (FILE.replace(OLD, NEW).replace("\n", "\r\n"), "line_ends")

    def test_mixed_line_ends_outside_and_inside(self) -> None:
        assert replace("a\r\nb\nc\rd\r\n", "b\nc\nd\n", "b\nx\nd\n").text == "a\r\nb\nx\rd\r\n"

    def test_cr_only(self) -> None:
        assert replace("a\rb\rc", "a\nb\n", "a\nb\nb2\n").text == "a\rb\rb2\rc"

    @pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x85", "\u2028", "\u2029"])
    def test_odd_separators_stay_in_their_line(self, odd: str) -> None:
        text = f"a = 1\n{odd}\nb = '{odd}'  \nc = 3\n"
        done = replace(text, f"b = '{odd}'\nc = 3", f"b = '{odd}'\nc = 4")
        assert done.text == f"a = 1\n{odd}\nb = '{odd}'  \nc = 4\n"

    def test_trailing_blanks_of_kept_lines_stay(self) -> None:
        done = replace("a = 1  \nb = 2\t\nc = 3\n", "a = 1\nb = 2\nc = 3\n", "a = 1\nb = 9\nc = 3\n")
        assert (done.text, done.tier) == ("a = 1  \nb = 9\nc = 3\n", "trailing_blanks")

    def test_trailing_blanks_made_up_in_old(self) -> None:
        noisy = OLD.replace("\n", "  \n")
        assert replace(FILE, noisy, NEW).text == FILE.replace(OLD, NEW)
        assert replace(FILE, noisy, NEW.replace("\n", "  \n")).text == FILE.replace(OLD, NEW)

    def test_dedented_to_column_0(self) -> None:
        done = replace(FILE, dedent(OLD), dedent(NEW))
        assert (done.text, done.tier) == (FILE.replace(OLD, NEW), "indentation")

    def test_one_level_too_deep(self) -> None:
        deeper = OLD.replace("    def", "        def").replace("        self", "            self")
        deeper = deeper.replace("        return", "            return")
        assert replace(FILE, deeper, "".join("    " + line for line in split_lines(NEW))).text == (
            FILE.replace(OLD, NEW)
        )

    def test_tabs_in_the_file(self) -> None:
        text = "class A:\n\tdef f(self):\n\t\treturn 1\n"
        done = replace(
            text, "    def f(self):\n        return 1\n", "    def f(self):\n        if 1:\n            return 2\n"
        )
        assert done.text == "class A:\n\tdef f(self):\n\t\tif 1:\n\t\t\treturn 2\n"

    def test_blanks_in_the_file_tabs_in_the_edit(self) -> None:
        text = "class A:\n  def f(self):\n    return 1\n"
        done = replace(text, "\tdef f(self):\n\t\treturn 1\n", "\tdef f(self):\n\t\treturn 2\n")
        assert done.text == "class A:\n  def f(self):\n    return 2\n"

    def test_line_less_indented_than_the_block(self) -> None:
        text = "def f():\n    if a:\n        x = 1\n        y = 2\n"
        done = replace(text, "    x = 1\n    y = 2\n", "    x = 1\ny = 2\n")
        assert done.text == "def f():\n    if a:\n        x = 1\n    y = 2\n"

    def test_kept_lines_keep_their_typographic_punctuation(self) -> None:
        text = "print(\u201chi\u201d)\nx = 1\n# a\u00a0b \u2013 c\u2026\n"
        done = replace(text, 'print("hi")\nx = 1\n# a b - c...\n', 'print("hi")\nx = 2\n# a b - c...\n')
        assert (done.text, done.tier) == (text.replace("1", "2"), "punctuation")
        done = replace("# \u201cquoted\u201d\n" + text, 'print("hi")\nx = 1\n', 'print("hi")\nx = 2\n')
        assert done.text == "# \u201cquoted\u201d\n" + text.replace("1", "2")

    @pytest.mark.parametrize(
        ("text", "old", "new", "right"),
        [
            ("say(\u201chi\u201d)", 'say("hi")', 'say("ho")', "say(\u201cho\u201d)"),
            ("I say \u201cyes\u201d twice.", 'I say "yes" twice.', 'I say "yes" once.', "I say \u201cyes\u201d once."),
            ("it\u2019s a\u00a0b \u2013 c", "it's a b - c", "it's a b - c, too", "it\u2019s a\u00a0b \u2013 c, too"),
            ("say(\u201chi\u201d)", 'say("hi")', "say('hi')", "say('hi')"),
            ("say(\u201chi\u201d)", 'say("hi")', 'print("all of it anew", 1)', 'print("all of it anew", 1)'),
        ],
    )  # fmt: skip
    def test_what_stays_of_a_changed_line_keeps_its_signs(self, text: str, old: str, new: str, right: str) -> None:
        for below in ("", "x = 1\n"):
            done = replace(f"{text}\n{below}last\n", f"{old}\n{below}", f"{new}\n{below}")
            assert done.text == f"{right}\n{below}last\n"

    def test_signs_that_the_edit_makes_up_are_not_written(self) -> None:
        done = replace('say("hi")\nx = 1\n', "say(\u201chi\u201d)\nx = 1\n", 'say("hi", 2)\nx = 1\n')
        assert done.text == 'say("hi", 2)\nx = 1\n'

    @pytest.mark.parametrize("kept", ["above", "below", "around"])
    @pytest.mark.parametrize("of_file", ["plain", "typographic"])
    @pytest.mark.parametrize(("plain", "typographic"), LOOK_ALIKE)
    def test_look_alike_characters_of_a_kept_line(self, plain: str, typographic: str, of_file: str, kept: str) -> None:
        there, given = (plain, typographic) if of_file == "plain" else (typographic, plain)
        shown = {"above": ("", "\ny = 2"), "below": ("x = 1\n", ""), "around": ("x = 1\n", "\ny = 2")}[kept]
        new = given.join(part.replace("1", "8").replace("2", "9") for part in shown)
        text = f"first\nx = 1\n{there}\ny = 2\nlast\n"
        before, after = (there.join(shown), there.join(part.replace("1", "8").replace("2", "9") for part in shown))
        done = replace(text, given.join(shown) + "\n", new + "\n")
        assert (done.text, done.tier) == (text.replace(before, after), "punctuation")

    def test_new_lines_below_a_line_indented_with_non_breaking_blanks(self) -> None:
        text = "if a:\n\u00a0   b()\n"
        assert replace(text, "if a:\n    b()\n", "if a:\n    b()\n    c()\n").text == text + "    c()\n"
        wrong = "if a:\n\u00a0   b()\n"
        assert replace("if a:\n    b()\n", wrong, wrong + "\u00a0   c()\n").text == "if a:\n    b()\n    c()\n"

    def test_leading_blank_line_added(self) -> None:
        text = "a = 1\nb = 2\nc = 3\n"
        assert replace(text, "\na = 1\nb = 2\n", "\na = 1\nb = 9\n").text == "a = 1\nb = 9\nc = 3\n"

    def test_blank_line_dropped_in_old_only(self) -> None:
        text = "a = 1\n\nb = 2\nc = 3\n"
        done = replace(text, "a = 1\nb = 2\nc = 3\n", "a = 1\n\nb = 2\nc = 4\n")
        assert (done.text, done.tier) == ("a = 1\n\nb = 2\nc = 4\n", "blank_lines")

    def test_blank_line_dropped_in_both(self) -> None:
        text = "a = 1\n\nb = 2\nc = 3\n"
        assert replace(text, "a = 1\nb = 2\nc = 3\n", "a = 1\nb = 2\nc = 4\n").text == "a = 1\n\nb = 2\nc = 4\n"

    @pytest.mark.parametrize(
        ("file", "old", "new", "expected"),
        [
            ("a\n\nb\nc\n", "a\nb\nc\n", "a\nB\nc\n", "a\n\nB\nc\n"),  # before a changed line
            ("a\nb\n\nc\n", "a\nb\nc\n", "a\nB\nc\n", "a\nB\n\nc\n"),  # behind it
            ("a\nb\n\nc\nd\n", "a\nb\nc\nd\n", "a\nB\nC\nd\n", "a\nB\n\nC\nd\n"),  # between two
            ("a\n\nb\nc\n", "a\nb\nc\n", "a\nc\n", "a\n\nc\n"),  # before a removed one
            ("a\nb\n\nc\n", "a\nb\nc\n", "a\nc\n", "a\n\nc\n"),
            ("if a:\n    b\n\nc\n", "if a:\n    b\nc\n", "if a:\n    b\n    d\nc\n", "if a:\n    b\n    d\n\nc\n"),
            ("f()\n\ng()\n", "f()\ng()\n", "f()\ndef h():\n    i()\n\ng()\n", "f()\n\ndef h():\n    i()\n\ng()\n"),
            ("import a\n\nb()\n", "import a\nb()\n", "import a\nimport c\nb()\n", "import a\nimport c\n\nb()\n"),
        ],
    )
    def test_blank_line_beside_the_change_dropped_in_both(self, file: str, old: str, new: str, expected: str) -> None:
        """Both blocks leave out a blank line that stands beside the changed lines: the file keeps it."""
        assert replace(file, old, new).text == expected

    def test_typo_in_old_only_and_in_both(self) -> None:
        expected = FILE.replace(OLD, NEW)
        typo = OLD.replace("def drop", "def dorp")
        assert replace(FILE, typo, NEW).text == expected
        assert replace(FILE, typo, NEW.replace("def drop", "def dorp")).text == expected

    def test_final_newline_is_as_before(self) -> None:
        assert replace("a = 1  \nb = 2", "a = 1\nb = 2\n", "a = 1\nb = 3\n").text == "a = 1  \nb = 3"


class TestRefused:
    @pytest.mark.parametrize(("old", "new"), [("", "x"), ("a", "a")])
    def test_empty(self, old: str, new: str) -> None:
        assert refusal("a\n", old, new).reason == "empty"

    def test_ambiguous_names_the_lines(self) -> None:
        error = refusal("x = 1\ny\nx = 1\n", "x = 1", "x = 2")
        assert error.reason == "ambiguous"
        assert "lines 1, 3" in str(error)

    def test_overlapping_occurrences_are_two(self) -> None:
        assert refusal("aaa", "aa", "b").reason == "ambiguous"

    def test_ambiguous_after_a_shift(self) -> None:
        text = "if a:\n    x()\n    y()\nelse:\n        x()\n        y()\n"
        assert refusal(text, "x()\ny()\n", "x()\nz()\n").reason == "ambiguous"

    def test_already_applied(self) -> None:
        assert refusal(FILE.replace(OLD, NEW), OLD, NEW).reason == "already_applied"
        assert refusal(FILE.replace(OLD, NEW), dedent(OLD), dedent(NEW)).reason == "already_applied"

    def test_already_applied_where_new_contains_old(self) -> None:
        error = refusal("import a\nimport b\n", "import a\n", "import a\nimport b\n")
        assert error.reason == "already_applied"
        assert "line 1" in str(error)

    def test_reindented_already(self) -> None:
        text = "if a:\n    x()\n    y()\n"
        assert refusal(text, "x()\ny()\n", "    x()\n    y()\n").reason == "already_applied"

    def test_invented_line(self) -> None:
        invented = OLD.replace("        return", "        self.log()\n        return")
        error = refusal(FILE, invented, NEW)
        assert error.reason == "not_found"
        assert "lines 10-" in str(error)
        assert "-         self.log()" in str(error)

    def test_line_inserted_by_the_user(self) -> None:
        text = FILE.replace("self.items.remove(item)\n", "self.items.remove(item)\n        self.count -= 1\n")
        error = refusal(text, OLD, NEW)
        assert error.reason == "not_found"
        assert "+ 12:         self.count -= 1" in str(error)

    def test_elision(self) -> None:
        error = refusal(FILE, "    def add(self, item):\n        ...\n        return len(self.items)\n", "x\n")
        assert error.reason == "not_found"
        assert "leave out" in str(error)

    def test_over_escaped_quotes(self) -> None:
        text = 'a = "x"\nb = "y"\n'
        error = refusal(text, 'a = \\"x\\"\nb = \\"y\\"\n', 'a = \\"x\\"\nb = \\"z\\"\n')
        assert error.reason == "not_found"
        assert "backslash" in str(error)

    def test_one_escaped_quote_is_no_typo(self) -> None:
        text = "a = 1\nb = 2\nit's fine\n"
        assert refusal(text, "a = 1\nb = 2\nit\\'s fine\n", "a = 3\nb = 2\nit\\'s fine\n").reason == "not_found"

    def test_typo_in_a_line_to_be_changed(self) -> None:
        typo = OLD.replace("remove(item)", "remoev(item)")
        assert refusal(FILE, typo, NEW.replace("remove(item)", "discard(item)")).reason == "not_found"

    def test_blank_line_at_the_edge_that_the_file_has(self) -> None:
        text = "a = 1\n\nb = 2\nc = 3\n"
        assert refusal(text, "b = 2\nc = 3\n", "\nb = 2\nc = 4\n").reason == "ambiguous"

    def test_near_twin_of_a_block_the_user_changed(self) -> None:
        """The block meant has a new line in it; the one with other blank lines is not it."""
        meant = "a = load()\nlog()\nb = use(a)\nsave(b)\n"
        twin = "a = load()\n\nb = use(a)\nsave(b)\n"
        old = "a = load()\nb = use(a)\nsave(b)\n"
        error = refusal(meant + "end()\n" + twin, old, "a = load()\n\nb = use(a)\nsave(b, 1)\n")
        assert error.reason == "ambiguous"

    def test_places_that_differ_in_their_quotes_alone(self) -> None:
        text = "x = 1\n# \u201ca\u201d\nx = 1\n# \u00aba\u00bb\n"
        assert refusal(text, 'x = 1\n# "a"\n', 'x = 2\n# "a"\n').reason == "ambiguous"

    def test_a_line_of_two_spellings_of_which_one_goes(self) -> None:
        text = '# \u201ca\u201d\nx = 1\n# "a"\n'
        assert refusal(text, '# "a"\nx = 1\n# "a"\n', '# "a"\nx = 2\n').reason == "not_found"
        done = replace(text, '# "a"\nx = 1\n# "a"\n', '# "a"\nx = 2\n# "a"\n')
        assert done.text == text.replace("1", "2")

    def test_uneven_indentation(self) -> None:
        assert refusal("if a:\n    x()\n      y()\n", "x()\ny()\n", "z()\n").reason == "not_found"

    def test_typographic_quotes_made_up(self) -> None:
        text = 'a = "x"\nb = "y"\nc = 1\n'
        old, new = "a = \u201cx\u201d\nb = \u201cy\u201d\nc = 1\n", "a = \u201cx\u201d\nb = \u201cz\u201d\nc = 1\n"
        assert refusal(text, old, new).reason == "not_found"

    def test_dedented_old_with_new_indented_as_in_the_file(self) -> None:
        text = "class A:\n    x = 1\n    y = 2\n\n    z = 3\n"
        new = "    x = 1\n    w = 2\n\n\ny = 2\nz = 3\n"
        assert refusal(text, "x = 1\ny = 2\n\nz = 4\n".replace("4", "3"), new.replace("z = 3", "    z = 3")).reason == (
            "not_found"
        )

    def test_line_left_out_below_a_blank_line(self) -> None:
        """The line above is in new_str as if it were new; literally replaced, the file would have it twice."""
        text = "start()\n\nlog(1)\nrun(1)\nend()\n"
        assert refusal(text, "\nrun(1)\nend()\n", "\nlog(1)\nrun(2)\nend()\n").reason == "not_found"

    def test_only_blank_lines(self) -> None:
        assert refusal("a\nb\n", "\n\n\n", "x\n").reason == "not_found"

    def test_nothing_alike(self) -> None:
        assert "nothing like it" in str(refusal("a\n", "completely = other()\n", "x\n"))

    def test_message_is_short(self) -> None:
        text = "".join(f"value_{i} = {i}\n" for i in range(100))
        old = "".join(f"value_{i} = {i if i in (10, 40) else i + 500}\n" for i in range(10, 50))
        message = str(refusal(text, old, "x\n"))
        assert "more lines differ" in message
        assert len(message.split("\n")) < 14

    def test_line_ends_that_would_run_together(self) -> None:
        assert refusal("a\rb  \nc\nd\n", "b\nc\nd", "\nc\nd").reason == "not_found"


class TestReplaceAll:
    def test_every_occurrence(self) -> None:
        assert replace("a b a", "a", "c", replace_all=True).text == "c b c"

    def test_applied_already(self) -> None:
        assert refusal("ab ab", "a", "ab", replace_all=True).reason == "already_applied"

    def test_partly_applied(self) -> None:
        assert refusal("ab a", "a", "ab", replace_all=True).reason == "ambiguous"

    def test_falls_back_to_one_place(self) -> None:
        assert replace(FILE, dedent(OLD), dedent(NEW), replace_all=True).text == FILE.replace(OLD, NEW)

    def test_line_ends_follow_the_file(self) -> None:
        assert replace("a\r\na\r\n", "a", "b\nc", replace_all=True).text == "b\r\nc\r\nb\r\nc\r\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "typo"),
    [
        ("return value", "return vlaue", True),
        ("return value", "return valu", True),
        ("return value", "return walue", True),
        ("return value1", "return value2", False),
        ("return v4lue", "return value", True),
        ("for i in x:", "for j in x:", False),
        ("a = b", "a = c", False),
        ("ab", "abc", False),
        ("it's", "it\\'s", False),
        ("return value", "return vaeul", False),
    ],
)
def test_small_typo(ours: str, theirs: str, typo: bool) -> None:
    assert small_typo(ours, theirs) is typo


def test_shift_needs_one_rule_for_all_lines() -> None:
    assert shift_between([("", "  "), ("  ", "    ")]) is not None
    assert shift_between([("", "  "), ("  ", "  ")]) is None
    assert shift_between([("", "  "), ("", "    ")]) is None
    assert shift_between([("   ", "\t"), ("    ", "\t\t")]) is None
