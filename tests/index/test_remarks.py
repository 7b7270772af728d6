"""What is said about code is taken off the code, and is none where it comes alone."""

from __future__ import annotations

import pytest

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.remarks import is_remark_alone, stands_amid_words, without_remarks
from codeagent_lsp.index.wrappings import refuse_wrapped

# A file's ending, the signs of a comment, and a piece of it.
PIECES = (
    ("py", "# {}", 'def f(a):\n    text = "a"\n    return text\n'),
    ("js", "// {}", "function f(a) {\n  const text = `a`;\n  return text;\n}\n"),
    ("kt", "// {}", 'fun f(a: Int): String {\n    val text = "a"\n    return text\n}\n'),
    ("swift", "// {}", 'func f(a: Int) -> String {\n    let text = "a"\n    return text\n}\n'),
    ("lua", "-- {}", 'local function f(a)\n  local text = "a"\n  return text\nend\n'),
    ("sql", "-- {}", "CREATE VIEW a AS\nSELECT id\nFROM b;\n"),
    ("css", "/* {} */", ".a {\n  width: 1px;\n  color: red;\n}\n"),
    ("rb", "# {}", "def f(a)\n  text = a\n  text\nend\n"),
    ("sh", "# {}", "f() {\n  echo 1\n  echo 2\n}\n"),
    ("html", "<!-- {} -->", '<section id="a">\n  <p>One</p>\n</section>\n'),
)
BEFORE = (
    "Here is the updated code:",
    "Sure! Below is the new version:",
    "以下是修改后的代码：",
    "Hier ist der neue Code:",
)
BEHIND = ("I hope this helps!", "Explanation:\nThe code is shorter now.", "**Changes:**\n- the text\n- nothing else")
APOLOGIES = (
    "I'm sorry, but I can't help with that.",
    "The code looks fine as it is.",
    "Done!",
    "抱歉，我无法修改这段代码。",
)
ALL = pytest.mark.parametrize(("ending", "signs", "piece"), PIECES)


def _changed(piece: str) -> str:
    rows = piece.split("\n")
    return "\n".join((rows[0], rows[1].replace("1", "2").replace('"a"', '"b"') + " ", *rows[2:]))


@ALL
@pytest.mark.parametrize("said", [*BEFORE, "python"])
def test_before(ending: str, signs: str, piece: str, said: str) -> None:
    code = _changed(piece)
    assert without_remarks(f"a.{ending}", f"{said}\n\n{code}", piece).strip("\n") == code.strip("\n")


@ALL
@pytest.mark.parametrize("said", [*BEHIND, "---"])
def test_behind(ending: str, signs: str, piece: str, said: str) -> None:
    code = _changed(piece)
    assert without_remarks(f"a.{ending}", f"{code}\n{said}\n", piece).strip("\n") == code.strip("\n")


@ALL
@pytest.mark.parametrize("said", APOLOGIES)
def test_alone(ending: str, signs: str, piece: str, said: str) -> None:
    path = f"a.{ending}"
    assert is_remark_alone(path, signs.format(said), piece)
    assert is_remark_alone(path, said, piece)
    # It takes the place of a comment, or what was code is a comment now.
    assert not is_remark_alone(path, signs.format(said), signs.format("This was said before."))
    kept = "\n".join(signs.format(line) for line in piece.splitlines())
    assert not is_remark_alone(path, kept, piece)


@ALL
def test_code_stays(ending: str, signs: str, piece: str) -> None:
    for code in (piece, f"{signs.format('Here is the total.')}\n{piece}", f"{piece}\n{signs.format('The end.')}\n"):
        assert without_remarks(f"a.{ending}", code, piece) == code


@ALL
def test_tools_refuse_it(ending: str, signs: str, piece: str) -> None:
    for text in (f"Here is the updated file:\n{_changed(piece)}", f"{_changed(piece)}\nI hope this helps!\n"):
        with pytest.raises(EditRefused):
            refuse_wrapped(f"a.{ending}", piece, text)


def test_a_rule_behind_a_text_that_has_its_signs() -> None:
    text = 'a = 1\nb = "2 --- c"\n'
    with pytest.raises(EditRefused, match="'---' would stand"):
        refuse_wrapped("a.kt", text, f"{text}\n---\n")


def test_documents_are_sentences() -> None:
    text = "# Title\n\nIt is new.\n"
    assert without_remarks("a.md", f"Here is more:\n{text}", text).startswith("Here")
    assert not is_remark_alone("a.md", "All is well.", text)


CONTENT = (
    # What is a sentence, and belongs to the file.
    ("a.yaml", "a: 1\nb: 2\n", "Server:\n  a: 1\n  b: 2\n"),
    ("a.yaml", "a: 1\n", "a: 1\nNotes:\n- x\n"),
    ("a.py", "One.\n\nTwo.\n", "One.\n\nTwo.\nFinally the c comes too.\n"),
    ("a.sh", "Hello.\n", "Welcome to the machine.\nHello.\n"),
    ("a.tsx", "  <b>a</b>\n", "  Welcome to us.\n  <b>a</b>\n"),
    ("a.c", "  free(a);\n", "Out:\n  free(a);\n"),
    ("a.sh", "make all\n", "bash\nmake everything\n"),
)


@pytest.mark.parametrize(("path", "old", "new"), CONTENT)
def test_content_stays(path: str, old: str, new: str) -> None:
    assert without_remarks(path, new, old) == new


@pytest.mark.parametrize("said", ["# TODO: write f", "# nothing to do", "# removed: it was not needed"])
def test_comments_that_are_meant(said: str) -> None:
    assert not is_remark_alone("a.py", said, "a = 1\nb = 2\n")


PLACES = (
    ("a.py", 'x = "|hello| you"\n', True),
    ("a.js", "say(`|hello| you`);\n", True),
    ("a.py", "x = 1  # |hello| you\n", True),
    ("a.css", "/* |hello| you */\n", True),
    ("a.html", "<p>|hello| you</p>\n", True),
    ("a.tsx", "  return <p>|hello| you</p>;\n", True),
    ("a.md", "say |hello| you\n", True),
    ("a.py", "x = |hello|\n", False),
    ("a.js", 'say("a", |hello|);\n', False),
    ("a.py", "|x = 'a'\ny = 'b'|\n", False),
)


@pytest.mark.parametrize(("path", "marked", "expected"), PLACES)
def test_amid_words(path: str, marked: str, expected: bool) -> None:
    start, end = marked.index("|"), marked.rindex("|") - 1
    assert stands_amid_words(path, marked.replace("|", ""), start, end) is expected
