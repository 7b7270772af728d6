"""What models really write for a patch: every slip comes out as meant, or is refused with all left alone."""

from __future__ import annotations

import random
import re

import pytest

from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.errors import PatchRefused
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.edits.patch import apply_patch, paths_of

FILE = """\
import os

LIMIT = 10


def load(path):
    with open(path) as file:
        return file.read()


def store(path, text):
    if len(text) > LIMIT:
        raise ValueError(text)
    with open(path, "w") as file:
        file.write(text)
"""
DONE = FILE.replace("LIMIT = 10", "LIMIT = 20").replace("raise ValueError(text)", "raise ValueError(path)")
HEAD = "--- a/f.py\n+++ b/f.py\n"
FIRST = " import os\n \n-LIMIT = 10\n+LIMIT = 20\n \n"
SECOND = "     if len(text) > LIMIT:\n-        raise ValueError(text)\n+        raise ValueError(path)\n"
ONE, TWO = f"@@ -1,4 +1,4 @@\n{FIRST}", f"@@ -12,2 +12,2 @@ def store(path, text):\n{SECOND}"
GOOD = HEAD + ONE + TWO
BEGIN = f"*** Begin Patch\n*** Update File: f.py\n@@\n{FIRST}@@ def store(path, text):\n{SECOND}*** End Patch\n"

BORNE = {
    "nothing wrong": GOOD,
    "a hunk that only shows lines": HEAD + ONE + "@@ -10,1 +10,1 @@\n def store(path, text):\n" + TWO,
    "wrong counts": HEAD + f"@@ -1,40 +1,2 @@\n{FIRST}@@ -12,1 +12,9 @@\n{SECOND}",
    "wrong lines": HEAD + f"@@ -7,4 +7,4 @@\n{FIRST}@@ -90,2 +90,2 @@\n{SECOND}",
    "all counts left out": HEAD + f"@@ -1 +1 @@\n{FIRST}@@ -12 +12 @@\n{SECOND}",
    "bare at signs": HEAD + f"@@\n{FIRST}@@\n{SECOND}",
    "dots for numbers": HEAD + f"@@ ... @@\n{FIRST}@@ ... @@\n{SECOND}",
    "zeros for numbers": HEAD + f"@@ -0,0 +0,0 @@\n{FIRST}@@ -0,0 +0,0 @@\n{SECOND}",
    "no blank on blank lines": GOOD.replace("\n \n", "\n\n"),
    "crlf": GOOD.replace("\n", "\r\n"),
    "crlf in the hunks alone": HEAD + (ONE + TWO).replace("\n", "\r\n"),
    "no final newline": GOOD.removesuffix("\n"),
    "blank lines at the end": GOOD + "\n\n\n",
    "blank lines before": "\n\n" + GOOD,
    "a fence": f"```diff\n{GOOD}```\n",
    "a fence without a language": f"```\n{GOOD}```",
    "waves for a fence": f"~~~diff\n{GOOD}~~~\n",
    "a heredoc": f"git apply <<'EOF'\n{GOOD}EOF\n",
    "a heredoc in a fence": f"```bash\npatch <<EOF\n{GOOD}EOF\n```\n",
    "words before": f"Here is the patch:\n\n{GOOD}",
    "git's headers": f"diff --git a/f.py b/f.py\nindex 1234567..89abcde 100644\n{GOOD}",
    "modes": f"diff --git a/f.py b/f.py\nold mode 100644\nnew mode 100755\nindex 1..2\n{GOOD}",
    "no prefixes": GOOD.replace("a/f.py", "f.py").replace("b/f.py", "f.py"),
    "dots before the names": GOOD.replace("a/f.py", "./f.py").replace("b/f.py", "./f.py"),
    "times behind the names": GOOD.replace("f.py\n", "f.py\t2026-01-01 00:00:00.000 +0000\n"),
    "a backup's name": GOOD.replace("a/f.py", "f.py.orig").replace("b/f.py", "f.py"),
    "out of order": HEAD + TWO + ONE,
    "each hunk with its own names": HEAD + ONE + HEAD + TWO,
    "trailing blanks in kept lines": GOOD.replace(" import os\n", " import os  \n"),
    "two more context lines apart": GOOD.replace(ONE, ONE + " \n def load(path):\n"),
    "another section name": GOOD.replace("@@ def store(path, text):", "@@ class Nothing"),
    "three at signs": GOOD.replace("@@ -1,4 +1,4 @@", "@@@ -1,4 +1,4 @@@"),
    "begin": BEGIN,
    "begin, crlf": BEGIN.replace("\n", "\r\n"),
    "begin, no blank on blank lines": BEGIN.replace("\n \n", "\n\n"),
    "begin, in a fence": f"```\n{BEGIN}```\n",
    "begin, in a heredoc": f"apply_patch <<'PATCH'\n{BEGIN}PATCH\n",
    "begin, words around": f"I will change the limit.\n{BEGIN}Done.\n",
    "begin, blank lines between": BEGIN.replace("*** Update", "\n*** Update").replace("*** End", "\n*** End"),
    "begin, no first header": BEGIN.replace("f.py\n@@\n", "f.py\n"),
    "begin, out of order": f"*** Begin Patch\n*** Update File: f.py\n@@ def store\n{SECOND}@@\n{FIRST}*** End Patch",
    "begin, at signs on both sides": BEGIN.replace("@@ def store(path, text):", "@@ def store(path, text): @@"),
    "begin, dots before the name": BEGIN.replace("File: f.py", "File: ./f.py"),
    "begin, blanks behind the marks": BEGIN.replace("Patch\n", "Patch  \n"),
    "begin, end of file": BEGIN.replace(
        "*** End Patch", "*** Update File: g.py\n@@\n-g\n+G\n*** End of File\n*** End Patch"
    ),
}


@pytest.mark.parametrize("patch", BORNE.values(), ids=BORNE.keys())
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_borne(patch: str, end: str) -> None:
    files: dict[str, str | None] = {"f.py": FILE.replace("\n", end), "g.py": f"g{end}"}
    assert apply_patch(files, patch)["f.py"] == DONE.replace("\n", end)
    assert files["f.py"] == FILE.replace("\n", end)


REFUSED = {
    "not a patch": ("Change the limit to 20.", "neither"),
    "empty": ("", "neither"),
    "no names": (ONE, "name its file"),
    "one name": (f"+++ b/f.py\n{ONE}", "name its file"),
    "another file": (GOOD.replace("f.py", "other.py"), "no such file"),
    "an absolute name": (GOOD.replace("a/f.py", "/abs/f.py").replace("b/f.py", "/abs/f.py"), "no such file"),
    "a name in a folder": (GOOD.replace("/f.py", "/src/f.py"), "no such file"),
    "two names": (GOOD.replace("b/f.py", "b/g.py"), "rename"),
    "context that is not there": (GOOD.replace(" import os", " import sys"), "hunk 1 of 2"),
    "a removed line that is not there": (GOOD.replace("ValueError(text)", "TypeError(text)"), "hunk 2 of 2"),
    "the same hunk twice": (HEAD + ONE + ONE, "same lines"),
    "applied already": (GOOD.replace("10", "30").replace("20", "10").replace("30", "20"), "already"),
    "only context": (f"{HEAD}@@ -1,1 +1,1 @@\n import os\n", "no line that begins with"),
    "only additions": (f"{HEAD}@@ -3,0 +5 @@\n+x = 1\n", "only adds lines"),
    "no hunk": (HEAD, "no hunk"),
    "creating what is there": ("--- /dev/null\n+++ b/f.py\n@@ -0,0 +1 @@\n+x\n", "exists already"),
    "creating with old lines": ("--- /dev/null\n+++ b/n.py\n@@ -1 +1 @@\n-x\n+y\n", "begin with '+'"),
    "deleting other lines": ("--- a/f.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import sys\n", "other lines"),
    "renaming onto a file": ("diff --git a/f.py b/g.py\nrename from f.py\nrename to g.py\n", "exists already"),
    "binary": ("diff --git a/f.py b/f.py\nBinary files a/f.py and b/f.py differ\n", "binary"),
    "binary with data": ("diff --git a/f.py b/f.py\nindex 1..2\nGIT binary patch\nliteral 3\nKcmZQz\n", "binary"),
    "a copy": ("diff --git a/f.py b/c.py\ncopy from f.py\ncopy to c.py\n", "Copying"),
    "begin, cut off": (BEGIN.removesuffix("*** End Patch\n"), "cut off"),
    "begin, nothing inside": ("*** Begin Patch\n*** End Patch\n", "neither"),
    "begin, an unknown section": (BEGIN.replace("Update File", "Change File"), "none of"),
    "begin, a line without a mark": (BEGIN.replace(" import os", "import os"), "'import os'"),
    "begin, creating what is there": ("*** Begin Patch\n*** Add File: f.py\n+x\n*** End Patch\n", "exists already"),
    "begin, a creation without marks": ("*** Begin Patch\n*** Add File: n\nx\n*** End Patch\n", "begins with '+'"),
    "begin, deleting nothing": ("*** Begin Patch\n*** Delete File: n\n*** End Patch\n", "no such file"),
    "begin, a header at the end": (BEGIN.replace("*** End", "@@ def more\n*** End"), "followed by no lines"),
    "begin, moving onto a file": (BEGIN.replace("f.py\n", "f.py\n*** Move to: g.py\n"), "exists already"),
}  # fmt: skip


BEFORE = "--- a/g.py\n+++ b/g.py\n@@ -1 +1 @@\n-g\n+G\n"
SECOND_OF_TWO = {
    f"{name}, second": (BEFORE + case[0], case[1])
    for name, case in REFUSED.items()
    if case[0].startswith(("---", "diff"))
}


@pytest.mark.parametrize(
    ("patch", "says"), [*REFUSED.values(), *SECOND_OF_TWO.values()], ids=[*REFUSED.keys(), *SECOND_OF_TWO.keys()]
)
def test_refused_with_all_left_alone(patch: str, says: str) -> None:
    files: dict[str, str | None] = {"f.py": FILE, "g.py": "g\n"}
    before = dict(files)
    with pytest.raises(PatchRefused, match=re.escape(says)) as caught:
        apply_patch(files, patch)
    assert files == before
    assert "old_str" not in str(caught.value)
    assert len(str(caught.value)) < 1500


def test_a_rename_with_edits_in_both_formats() -> None:
    git = "diff --git a/f.py b/src/g.py\nsimilarity index 80%\nrename from f.py\nrename to src/g.py\n"
    git += "--- a/f.py\n+++ b/src/g.py\n" + ONE + TWO
    for patch in (git, BEGIN.replace("f.py\n", "f.py\n*** Move to: src/g.py\n")):
        assert apply_patch({"f.py": FILE}, patch) == {"f.py": None, "src/g.py": DONE}
        assert paths_of(patch) == ("f.py", "src/g.py")


def test_deleting_and_creating_in_both_formats() -> None:
    gone = "--- a/f.py\n+++ /dev/null\n@@ -1,16 +0,0 @@\n" + "".join(f"-{line}\n" for line in FILE.splitlines())
    made = "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1,2 @@\n+x\n+\n"
    begin = "*** Begin Patch\n*** Delete File: f.py\n*** Add File: n.py\n+x\n+\n*** End Patch\n"
    for patch in (gone + made, made + gone, begin):
        assert apply_patch({"f.py": FILE}, patch) == {"f.py": None, "n.py": "x\n\n"}


@pytest.mark.parametrize("junk", ["-- \n2.40.1\n", "That is all.\n", "\nLet me know!\n", "EOF\n"])
def test_words_behind_the_last_hunk_are_no_part_of_it(junk: str) -> None:
    try:
        done = apply_patch({"f.py": FILE}, GOOD + junk)
    except PatchRefused:
        return
    assert done["f.py"] == DONE


def test_wrong_counts_do_not_swallow_the_next_file() -> None:
    wrong = HEAD + f"@@ -1,40 +1,40 @@\n{FIRST}@@ -12,9 +12,30 @@\n{SECOND}"
    other = "--- a/g.py\n+++ b/g.py\n@@ -1,9 +1,9 @@\n-g\n+G\n"
    for patch in (wrong + other, other + wrong):
        assert apply_patch({"f.py": FILE, "g.py": "g\n"}, patch) == {"f.py": DONE, "g.py": "G\n"}
        assert paths_of(patch) == tuple(re.findall(r"--- a/(.*)", patch))


def test_right_counts_keep_lines_that_look_like_names() -> None:
    text, want = "-- a/x\nmiddle\nend\n", "++ b/x\nmiddle\nEND\n"
    patch = "--- a/q.sql\n+++ b/q.sql\n@@ -1 +1 @@\n--- a/x\n+++ b/x\n@@ -3 +3 @@\n-end\n+END\n"
    assert apply_patch({"q.sql": text}, patch)["q.sql"] == want


def test_a_plain_rename_before_a_file_without_a_header_of_git() -> None:
    head = "diff --git a/f.py b/n.py\nrename from f.py\nrename to n.py\n"
    other = "--- a/g.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n"
    assert apply_patch({"f.py": FILE, "g.py": "g\n"}, head + other) == {"f.py": None, "n.py": FILE, "g.py": None}
    made = "diff --git a/e b/e\nnew file mode 100644\nindex 0..e69de29\n"
    assert apply_patch({"g.py": "g\n"}, made + other) == {"g.py": None, "e": ""}


@pytest.mark.parametrize("place", range(1, 5))
def test_a_number_that_is_right_chooses_among_twins(place: int) -> None:
    text = "begin\nrun()\nend\n" * 4
    line = 3 * place - 1
    patch = f"{HEAD}@@ -{line - 1},3 +{line - 1},3 @@\n begin\n-run()\n+walk()\n end\n"
    lines = text.splitlines(keepends=True)
    lines[line - 1] = "walk()\n"
    assert apply_patch({"f.py": text}, patch)["f.py"] == "".join(lines)
    wrong = patch.replace(f"-{line - 1},3", f"-{line + 4},3")
    if (line + 4) % 3 != 1:
        with pytest.raises(PatchRefused, match="fits at lines 1, 4, 7, 10"):
            apply_patch({"f.py": text}, wrong)


# --- round trips


LINES = (
    "alpha\n",
    "beta\n",
    "\n",
    "    gamma\n",
    "\tdelta\n",
    "-- eps\n",
    "++ zeta\n",
    "@@ eta\n",
    "*** x\n",
    "字\n",
    " \n",
)


def random_text(chance: random.Random, lines: int) -> str:
    """Lines of which most are not repeated, so that a patch has one place."""
    body = [
        chance.choice(LINES) if chance.random() < 0.3 else f"line {chance.randrange(10**6)}\n" for _ in range(lines)
    ]
    text = "".join(body)
    return text.removesuffix("\n") if chance.random() < 0.2 else text


def edited(chance: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(lines) + 1)
        lines[at : at + chance.randrange(3)] = [f"new {chance.randrange(10**6)}\n"] * chance.randrange(3)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines[:-1]) + "".join(lines[-1:])


@pytest.mark.slow
def test_the_diff_of_any_changeset_is_a_patch_for_it() -> None:
    chance = random.Random(30)
    applied = refused = 0
    for _ in range(400):
        files: dict[str, str | None] = {f"d/{n} x.py": random_text(chance, chance.randrange(1, 30)) for n in range(3)}
        changes, wanted = [], dict(files)
        for path, base in files.items():
            assert base is not None
            match chance.randrange(5):
                case 0:
                    changes.append(FileChange(path, base, None))
                    wanted[path] = None
                case 1:
                    made = random_text(chance, 4)
                    changes.append(FileChange(f"{path}.new", None, made))
                    wanted[f"{path}.new"] = made
                case 2:
                    text = edited(chance, base)
                    changes.append(FileChange(f"moved/{path}", base, text, None, path))
                    wanted |= {path: None, f"moved/{path}": text}
                case _:
                    text = edited(chance, base)
                    changes.append(FileChange(path, base, text))
                    wanted[path] = text
        changeset = Changeset(tuple(change for change in changes if not change.empty))
        if not changeset:
            continue
        try:
            assert apply_patch(files, changeset.diff()) == {**dict.fromkeys(set(wanted) - set(files)), **wanted}
            applied += 1
        except PatchRefused as error:  # a repeated line can leave two places, and then it must say so
            assert "fits at lines" in str(error) or "only adds" in str(error) or "already" in str(error), str(error)
            refused += 1
    assert applied > 300
    assert refused < 40


@pytest.mark.parametrize(
    "patch",
    [
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-a\rb\n+c\rd\n",
        "*** Begin Patch\n*** Update File: x\n@@\n one\n-a\rb\n+c\rd\n*** End Patch\n",
    ],
)
def test_a_carriage_return_in_the_middle_of_a_line_is_refused(patch: str) -> None:
    with pytest.raises(PatchRefused, match="carriage return"):
        paths_of(patch)


# --- signs that are missing, and what stands around a patch


@pytest.mark.parametrize("between", ["", "\n"], ids=["", "a blank line"])
@pytest.mark.parametrize("indent", ["", "    "], ids=["", "indented"])
def test_words_behind_a_hunk_that_is_counted_wrong_are_no_line_of_it(between: str, indent: str) -> None:
    count = 3 + len(between)
    rows = f" {indent}a\n-{indent}b\n+{indent}c\n{between}Here I changed b.\n"
    patch = f"--- a/a.py\n+++ b/a.py\n@@ -1,{count} +1,{count} @@\n{rows}"
    text = "".join(f"{indent}{name}\n" for name in "abde")
    assert dict(apply_patch({"a.py": text}, patch)) == {"a.py": text.replace("b\n", "c\n")}


CONTEXT = "x = 1\n\n\ndef f(a):\n    # keep\n    return a + 41\n\n\ny = 2\n"


@pytest.mark.parametrize(
    "hunk",
    [
        "@@ -4,3 +4,3 @@\ndef f(a):\n    # keep\n-    return a + 41\n+    return a + 42\n",
        "@@ -1,6 +1,6 @@\nx = 1\n\n\ndef f(a):\n    # keep\n-    return a + 41\n+    return a + 42\n",
        "@@ -5,5 +5,5 @@\n    # keep\n-    return a + 41\n+    return a + 42\n\n\ny = 2\n",
        "@@ -4,9 +4,9 @@\ndef f(a):\n    # keep\n-    return a + 41\n+    return a + 42\n",
        "@@\ndef f(a):\n    # keep\n-    return a + 41\n+    return a + 42\n",
        "@@ -4,3 +4,3 @@\n def f(a):\n     # keep\n-    return a + 41\n+    return a + 42\n",
    ],
)
def test_kept_lines_without_their_sign_are_read_as_they_are(hunk: str) -> None:
    patch = f"--- a/a.py\n+++ b/a.py\n{hunk}"
    assert apply_patch({"a.py": CONTEXT}, patch) == {"a.py": CONTEXT.replace("41", "42")}
    texts = {"a.py": CONTEXT, "b.py": "b\n"}
    another = "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-b\n+c\n"
    assert apply_patch(texts, patch + another) == {"a.py": CONTEXT.replace("41", "42"), "b.py": "c\n"}
    # Words behind the patch are none of it: left out, or refused where its numbers do not show that.
    try:
        told = apply_patch({"a.py": CONTEXT}, f"{patch}\nThat is all.\n")
    except PatchRefused:
        told = {"a.py": CONTEXT}
    assert told["a.py"] in (CONTEXT, CONTEXT.replace("41", "42"))


@pytest.mark.parametrize(
    "call",
    [
        *("apply_patch <<'EOF'", 'apply_patch << "EOF"', "apply_patch <<EOF", "cat <<'EOF'", "git apply <<'EOF'"),
        *("git apply - <<-EOF", "patch -p1 <<'EOF'", "cd src && git apply <<'EOF'", "cat <<'EOF' | git apply"),
        *("cat > a.patch <<'EOF'", "$ apply_patch <<'EOF'"),
    ],
)
@pytest.mark.parametrize("fence", ["", "```", "```bash", "```diff"])
def test_a_patch_within_a_call_of_a_shell_is_the_patch(call: str, fence: str) -> None:
    text = "def f(a):\n    return a + 41\n"
    lines = "-    return a + 41\n+    return a + 42\n"
    for patch in (
        f"*** Begin Patch\n*** Update File: a.py\n@@ def f(a):\n{lines}*** End Patch\n",
        f"--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n def f(a):\n{lines}",
    ):
        given = f"{call}\n{patch}EOF\n"
        given = f"{fence}\n{given}```\n" if fence else given
        wanted = {"a.py": text.replace("41", "42")}
        assert apply_patch({"a.py": text}, given) == wanted
        assert not fence or read_answer(given, Files({"a.py": text}), "diff").texts == wanted


@pytest.mark.parametrize("added", ["# new\n", "#!/bin/sh\n# new\n"])
def test_lines_before_the_first_one_need_none_around_them(added: str) -> None:
    text = "def f(a):\n    return a\n\n\nx = 1\n"
    rows = "".join(f"+{line}" for line in added.splitlines(keepends=True))
    count = added.count("\n")
    head = f"@@ -0,0 +1{f',{count}' if count > 1 else ''} @@\n"
    assert apply_patch({"a.py": text}, f"--- a/a.py\n+++ b/a.py\n{head}{rows}") == {"a.py": added + text}
