"""Patches in both formats: what they do, how wrong numbers and wrappers are borne, and that they are all or nothing."""

from __future__ import annotations

import difflib
import hashlib
import random

import pytest

from codeagent_lsp.errors import PatchRefused
from codeagent_lsp.workspace.edits.patch import apply_patch, paths_of

A = "one\ntwo\nthree\nfour\nfive\nsix\n"


def refusal(files: dict[str, str | None], patch: str) -> str:
    before = dict(files)
    with pytest.raises(PatchRefused) as caught:
        apply_patch(files, patch)
    assert files == before
    return str(caught.value)


def unified(hunks: str, path: str = "a.py") -> str:
    return f"--- a/{path}\n+++ b/{path}\n{hunks}"


def begin(body: str) -> str:
    return f"*** Begin Patch\n{body}*** End Patch\n"


def blob(text: str) -> str:
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()[:7]


class TestWithoutContext:
    """The hunks of `diff -U0`: lines that are added have no line around them, only its number."""

    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    @pytest.mark.parametrize("final", [True, False])
    @pytest.mark.parametrize("told", ["", "index"])
    @pytest.mark.parametrize("seed", range(12))
    def test_any_diff_applies_to_the_text_it_was_made_from(
        self, seed: int, told: str, final: bool, newline: str
    ) -> None:
        rng = random.Random(seed)
        before = [f"line {number}\n" for number in range(rng.choice((3, 12, 40)))]
        after = list(before)
        for number in range(rng.randint(1, 4)):
            at = rng.randint(1, len(after))
            after[at : at + rng.choice((0, 0, 1))] = [f"new {number}.{row}\n" for row in range(rng.randint(1, 3))]
        hunks = list(difflib.unified_diff(before, after, "a/f.py", "b/f.py", n=0))
        old, new = "".join(before), "".join(after)
        if not final:
            old, new = old.removesuffix("\n"), new.removesuffix("\n")
        index = f"diff --git a/f.py b/f.py\nindex {blob(old)}..0000000 100644\n" if told else ""
        text = {"f.py": old.replace("\n", newline)}
        if not final and before[-1] != after[-1]:
            return  # it would have to say where no line end is
        assert apply_patch(text, index + "".join(hunks)) == {"f.py": new.replace("\n", newline)}

    @pytest.mark.parametrize(
        ("hunks", "wanted"),
        [
            ("@@ -3,0 +4,2 @@\n+x\n+y\n", A.replace("three\n", "three\nx\ny\n")),
            ("@@ -6,0 +7 @@\n+x\n", A + "x\n"),
            ("@@ -6,0 +7 @@\n+x\n\\ No newline at end of file\n", A + "x"),
            ("@@ -3,0 +4 @@ two\n+x\n", A.replace("three\n", "three\nx\n")),
            ("@@ -1,2 +0,0 @@\n-one\n-two\n@@ -4,0 +3 @@\n+x\n", "three\nfour\nx\nfive\nsix\n"),
            ("@@ -2 +2 @@\n-two\n+2\n@@ -2,0 +3 @@\n+x\n", A.replace("two\n", "2\nx\n")),
            ("@@ -2,0 +3 @@\n+x\n@@ -3 +4 @@\n-three\n+3\n", A.replace("three\n", "x\n3\n")),
            ("@@ -3,0 +4 @@\n+\n", A.replace("three\n", "three\n\n")),
        ],
    )
    def test_lines_are_added_behind_the_one_of_the_number(self, hunks: str, wanted: str) -> None:
        assert apply_patch({"a.py": A}, unified(hunks)) == {"a.py": wanted}

    def test_at_the_top_of_the_text_that_git_names(self) -> None:
        head = f"diff --git a/a.py b/a.py\nindex {blob(A)}..0000000 100644\n"
        assert apply_patch({"a.py": A}, head + unified("@@ -0,0 +1 @@\n+x\n")) == {"a.py": "x\n" + A}


class TestUnified:
    def test_git_style(self) -> None:
        patch = "diff --git a/a.py b/a.py\nindex 123..456 100644\n" + unified(
            "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
        )
        assert apply_patch({"a.py": A}, patch) == {"a.py": A.replace("two", "2")}
        assert paths_of(patch) == ("a.py",)

    @pytest.mark.parametrize("header", ["@@ -90,7 +88,1 @@", "@@", "@@ -3 +3 @@ def f():", "@@ ... @@"])
    def test_wrong_numbers_and_counts(self, header: str) -> None:
        assert apply_patch({"a.py": A}, unified(f"{header}\n three\n-four\n+4\n five\n"))["a.py"] == A.replace(
            "four", "4"
        )

    def test_several_hunks_with_shared_context(self) -> None:
        hunks = "@@ -1,3 +1,4 @@\n one\n+1.5\n two\n three\n@@ -3,3 +4,2 @@\n three\n-four\n five\n"
        assert apply_patch({"a.py": A}, unified(hunks))["a.py"] == "one\n1.5\ntwo\nthree\nfive\nsix\n"

    def test_hunks_in_any_order(self) -> None:
        hunks = "@@ -5,2 +5,2 @@\n five\n-six\n+6\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
        assert apply_patch({"a.py": A}, unified(hunks))["a.py"] == "1\ntwo\nthree\nfour\nfive\n6\n"

    def test_create_and_delete(self) -> None:
        patch = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+x\n+y\n--- a/a.py\n+++ /dev/null\n@@ -1,6 +0,0 @@\n"
        patch += "".join(f"-{line}\n" for line in A.split())
        assert apply_patch({"a.py": A, "new.py": None}, patch) == {"a.py": None, "new.py": "x\ny\n"}
        assert paths_of(patch) == ("new.py", "a.py")

    def test_empty_new_file_and_plain_delete(self) -> None:
        patch = "diff --git a/e.py b/e.py\nnew file mode 100644\nindex 0000000..e69de29\n"
        patch += "diff --git a/a.py b/a.py\ndeleted file mode 100644\n"
        assert apply_patch({"a.py": A}, patch) == {"e.py": "", "a.py": None}

    def test_rename_with_and_without_hunks(self) -> None:
        head = "diff --git a/a.py b/b c.py\nsimilarity index 90%\nrename from a.py\nrename to b c.py\n"
        assert apply_patch({"a.py": A}, head) == {"a.py": None, "b c.py": A}
        patch = head + "--- a/a.py\n+++ b/b c.py\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
        assert apply_patch({"a.py": A}, patch) == {"a.py": None, "b c.py": A.replace("two", "2")}
        assert paths_of(patch) == ("a.py", "b c.py")

    def test_no_newline_at_end_of_file(self) -> None:
        marker = "\\ No newline at end of file\n"
        patch = unified(f"@@ -1,2 +1,2 @@\n a\n-b\n{marker}+b\n")
        assert apply_patch({"a.py": "a\nb"}, patch)["a.py"] == "a\nb\n"
        patch = unified(f"@@ -1,2 +1,2 @@\n a\n-b\n+c\n{marker}")
        assert apply_patch({"a.py": "a\nb\n"}, patch)["a.py"] == "a\nc"

    def test_final_newline_stays_when_nothing_is_said(self) -> None:
        assert apply_patch({"a.py": "a\nb"}, unified("@@ -1,2 +1,3 @@\n a\n b\n+c\n"))["a.py"] == "a\nb\nc"

    def test_removed_line_that_looks_like_a_header(self) -> None:
        patch = unified("@@ -1,2 +1,1 @@\n--- old comment\n x = 1\n", "a.sql")
        assert apply_patch({"a.sql": "-- old comment\nx = 1\n"}, patch)["a.sql"] == "x = 1\n"

    def test_context_blank_line_without_its_blank(self) -> None:
        patch = unified("@@ -1,4 +1,4 @@\n a\n\n-b\n+c\n d\n")
        assert apply_patch({"a.py": "a\n\nb\nd\n"}, patch)["a.py"] == "a\n\nc\nd\n"

    def test_crlf_file_and_crlf_patch(self) -> None:
        patch = unified("@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2.5\n three\n")
        wanted = A.replace("two\n", "2\n2.5\n").replace("\n", "\r\n")
        for text in (patch, patch.replace("\n", "\r\n")):
            assert apply_patch({"a.py": A.replace("\n", "\r\n")}, text)["a.py"] == wanted

    def test_line_number_chooses_between_equal_places(self) -> None:
        text = "x\ny\nz\n" * 3
        patch = unified("@@ -4,3 +4,3 @@\n x\n-y\n+Y\n z\n")
        assert apply_patch({"a.py": text}, patch)["a.py"] == "x\ny\nz\nx\nY\nz\nx\ny\nz\n"

    def test_dedented_hunk_is_shifted(self) -> None:
        patch = unified("@@ -1,3 +1,3 @@\n x()\n-y()\n+z()\n")
        assert apply_patch({"a.py": "if a:\n    x()\n    y()\n"}, patch)["a.py"] == "if a:\n    x()\n    z()\n"

    def test_names_without_prefixes_and_with_quotes(self) -> None:
        assert paths_of("--- src/x.py\t2026-01-01\n+++ src/x.py\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n") == ("src/x.py",)
        assert paths_of('--- "a/\\303\\244.py"\n+++ "b/\\303\\244.py"\n@@ -1 +1 @@\n-a\n+b\n') == ("ä.py",)
        assert paths_of("--- ./x.py\n+++ ./x.py\n@@ -1 +1 @@\n-a\n+b\n") == ("x.py",)
        assert paths_of("--- x.py.orig\n+++ x.py\n@@ -1 +1 @@\n-a\n+b\n") == ("x.py",)

    @pytest.mark.parametrize("name", ["ä b.py", "日本/x.py", 'say "x".py', "tab\there.py"])
    def test_names_as_git_quotes_them(self, name: str) -> None:
        escapes = {'"': '\\"', "\t": "\\t"}
        octal = "".join(escapes.get(chr(byte), chr(byte) if byte < 128 else f"\\{byte:03o}") for byte in name.encode())
        plain = "".join(escapes.get(char, char) for char in name)  # core.quotePath=false
        for quoted in (octal, plain):
            head = f'diff --git "a/{quoted}" "b/{quoted}"\n'
            made = f'{head}new file mode 100644\n--- /dev/null\n+++ "b/{quoted}"\n@@ -0,0 +1 @@\n+x\n'
            empty = f"{head}new file mode 100644\nindex 0000000..e69de29\n"
            renamed = f'{head.replace("b/", "b/new ")}rename from "{quoted}"\nrename to "new {quoted}"\n'
            assert paths_of(made) == (name,)
            assert paths_of(empty) == (name,)
            assert set(paths_of(renamed)) == {name, f"new {name}"}

    def test_bom_stays(self) -> None:
        assert apply_patch({"a.py": "\ufeff" + A}, unified("@@ -1,2 +1,2 @@\n-one\n+1\n two\n"))["a.py"] == (
            "\ufeff" + A.replace("one", "1")
        )


class TestBegin:
    def test_all_operations(self) -> None:
        patch = begin(
            "*** Add File: new.py\n+x\n+\n+y\n*** Delete File: gone.py\n*** Update File: a.py\n*** Move to: b.py\n"
            "@@\n one\n-two\n+2\n"
        )
        files = {"a.py": A, "gone.py": "g\n"}
        wanted = {"a.py": None, "b.py": A.replace("two", "2"), "gone.py": None, "new.py": "x\n\ny\n"}
        assert apply_patch(files, patch) == wanted
        assert paths_of(patch) == ("new.py", "gone.py", "a.py", "b.py")

    @pytest.mark.parametrize(
        "wrap", ["```diff\n{}```\n", "apply_patch <<'EOF'\n{}EOF\n", "<<EOF\n{}EOF", "\n\n{}\n\n", "Here it is:\n{}"]
    )
    def test_wrappers(self, wrap: str) -> None:
        patch = wrap.format(begin("*** Update File: a.py\n@@\n-two\n+2\n"))
        assert apply_patch({"a.py": A}, patch)["a.py"] == A.replace("two", "2")

    def test_header_narrows(self) -> None:
        text = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"
        for header in ("@@ class B:\n", "@@ class B\n@@     def f(self):\n"):
            patch = begin(f"*** Update File: a.py\n{header}-        return 1\n+        return 2\n")
            assert apply_patch({"a.py": text}, patch)["a.py"] == text[:-2] + "2\n"

    def test_header_below_the_only_place(self) -> None:
        text = "class A:\n    x = 1\n\nclass B:\n    y = 1\n"
        message = refusal({"a.py": text}, begin("*** Update File: a.py\n@@ class B:\n-    x = 1\n+    x = 2\n"))
        assert "class B" in message

    def test_end_of_file(self) -> None:
        patch = begin("*** Update File: a.py\n@@\n-x\n+y\n*** End of File\n")
        assert apply_patch({"a.py": "x\na\nx\n"}, patch)["a.py"] == "x\na\ny\n"

    def test_lines_added_at_the_end(self) -> None:
        assert apply_patch({"a.py": "x"}, begin("*** Update File: a.py\n@@\n+y\n"))["a.py"] == "x\ny\n"

    def test_first_hunk_without_at_signs(self) -> None:
        assert apply_patch({"a.py": A}, begin("*** Update File: a.py\n one\n-two\n"))["a.py"] == A.replace("two\n", "")


class TestRefused:
    @pytest.mark.parametrize("patch", ["", "hello", "@@ -1 +1 @@\n-a\n+b\n", "*** Begin Patch\n*** Delete File: x\n"])
    def test_not_a_patch(self, patch: str) -> None:
        with pytest.raises(PatchRefused):
            paths_of(patch)

    def test_one_bad_hunk_undoes_all(self) -> None:
        good = unified("@@ -1,2 +1,2 @@\n-one\n+1\n two\n")
        message = refusal({"a.py": A, "b.py": A}, good + unified("@@ -1,2 +1,2 @@\n one\n-zwei\n+2\n", "b.py"))
        assert "b.py, hunk 1 of 1" in message
        assert "line" in message

    def test_ambiguous_without_a_clear_number(self) -> None:
        assert "lines 1, 4, 7" in refusal({"a.py": "x\ny\nz\n" * 3}, unified("@@ -3,2 +3,2 @@\n x\n-y\n+Y\n"))

    @pytest.mark.parametrize("hunk", ["@@ -5,2 +5,3 @@\n five\n six\n+seven\n", "@@ -2,2 +2,2 @@\n one\n-zwei\n+two\n"])
    def test_already_applied(self, hunk: str) -> None:
        assert "already" in refusal({"a.py": A + "seven\n"}, unified(hunk))

    def test_existing_and_missing_files(self) -> None:
        assert "exists already" in refusal({"a.py": A}, begin("*** Add File: a.py\n+x\n"))
        assert "no such file" in refusal({"a.py": None}, begin("*** Delete File: a.py\n"))
        assert "no such file" in refusal({}, unified("@@ -1 +1 @@\n-a\n+b\n"))
        move = begin("*** Update File: a.py\n*** Move to: b.py\n@@\n-one\n+1\n")
        assert "exists already" in refusal({"a.py": A, "b.py": ""}, move)

    def test_deleting_other_lines_than_there_are(self) -> None:
        assert "other lines" in refusal({"a.py": A}, "--- a/a.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n")

    def test_two_hunks_on_the_same_lines(self) -> None:
        hunks = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n"
        assert "same lines" in refusal({"a.py": A}, unified(hunks))

    @pytest.mark.parametrize(
        "hunks",
        [
            *("@@ -3,0 +5 @@\n+x\n", "@@ -3,0 +3 @@\n+x\n", "@@ -3,0 +4,2 @@\n+x\n", "@@ -7,0 +8 @@\n+x\n"),
            *("@@ -3 +4 @@\n+x\n", "@@ -3,0 +4 @@ def f():\n+x\n", "@@ -3,0 +4 @@ four\n+x\n"),
            *("@@ -0,0 +1 @@\n+two\n", "@@ -0,0 +1,2 @@\n+x\n+five\n", "@@ -0,0 +1,6 @@\n+1\n+2\n+3\n+4\n+5\n+6\n"),
            *("@@ -1 +1 @@\n-two\n+2\n@@ -4,0 +5 @@\n+x\n", "@@ -1,0 +2 @@\n+x\n@@ -3,0 +4 @@\n+y\n"),
            *("@@ -2,2 +2,0 @@\n-one\n-two\n@@ -5,0 +4 @@\n+x\n", "@@ -3,0 +4 @@\n+x\n@@ -5 +6 @@\n-six\n+6\n"),
        ],
    )
    def test_lines_added_nowhere_in_particular(self, hunks: str) -> None:
        assert "only adds lines" in refusal({"a.py": A}, unified(hunks))

    def test_lines_added_to_another_text_than_the_patch_was_made_from(self) -> None:
        head = "diff --git a/a.py b/a.py\nindex 0123456..89abcde 100644\n"
        assert "as it is now" in refusal({"a.py": A}, head + unified("@@ -3,0 +4 @@\n+x\n"))

    def test_lines_added_already(self) -> None:
        patch = unified("@@ -3,0 +4,2 @@\n+x\n+y\n")
        once = apply_patch({"a.py": A}, patch)["a.py"]
        assert "already" in refusal({"a.py": once}, patch)

    def test_two_names_for_one_file(self) -> None:
        assert "rename" in refusal({"a.py": A}, "--- a/a.py\n+++ b/b.py\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n")

    def test_hunk_without_change(self) -> None:
        assert "hunk 1" in refusal({"a.py": A}, unified("@@ -1,2 +1,2 @@\n one\n two\n"))

    @pytest.mark.parametrize(
        "body",
        [
            "*** Update File: a.py\n@@\nno sign\n",
            "*** Add File: n.py\nno plus\n",
            "*** Delete File: a.py\n-one\n",
            "*** Rename File: a.py\n",
            "*** Update File: a.py\n@@\n-one\n+1\n@@ class X\n",
        ],
    )
    def test_malformed_sections(self, body: str) -> None:
        refusal({"a.py": A}, begin(body))

    def test_binary_and_copy(self) -> None:
        head = "diff --git a/a.py b/a.py\n"
        assert "binary" in refusal({"a.py": A}, head + "Binary files a/a.py and b/a.py differ\n")
        assert "Copying" in refusal({"a.py": A}, head + "copy from a.py\ncopy to b.py\n")


@pytest.mark.parametrize("sides", [("i", "w"), ("c", "i"), ("c", "w"), ("o", "w"), ("b", "a")])
def test_the_sides_of_a_diff_under_other_letters(sides: tuple[str, str]) -> None:
    old, new = sides
    rows = "@@ -1 +1 @@\n-a\n+b\n"
    assert paths_of(f"--- {old}/d/x.py\n+++ {new}/d/x.py\n{rows}") == ("d/x.py",)
    head = f"diff --git {old}/d/x.py {new}/d/x.py\n"
    assert paths_of(f"{head}index 1..2 100644\n--- {old}/d/x.py\n+++ {new}/d/x.py\n{rows}") == ("d/x.py",)
    assert paths_of(f"{head}new file mode 100644\n--- /dev/null\n+++ {new}/d/x.py\n@@ -0,0 +1 @@\n+b\n") == ("d/x.py",)
    # Two folders of the workspace.
    with pytest.raises(PatchRefused):
        paths_of(f"--- {old}/x.py\n+++ {new}/y.py\n{rows}")


@pytest.mark.parametrize(
    "kind", ["new file mode 120000", "new file mode 160000", "index 1..2 120000", "old mode 120000"]
)
def test_a_link_or_a_submodule_is_no_text(kind: str) -> None:
    with pytest.raises(PatchRefused, match="symbolic link"):
        paths_of(f"diff --git a/l b/l\n{kind}\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-a\n+b\n")


def test_a_quoted_name_between_begin_and_end() -> None:
    body = '*** Begin Patch\n*** Update File: "caf\\303\\251.txt"\n@@\n-a\n+b\n*** End Patch\n'
    assert paths_of(body) == ("café.txt",)
