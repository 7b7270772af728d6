"""Modifiers that a reply leaves out stay, in every language that has some, unless the request is about them."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.aptitude import Proof
from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.direct.modifiers import with_modifiers
from codeagent_lsp.direct.question import FilesQuestion, Question, RewriteLimits, RewriteRequest, SelectionQuestion
from codeagent_lsp.workspace.files.file_view import FileText

# A file's ending, the modifiers, and the definition behind them, with `1` for what changes.
DEFINITIONS = (
    ("rs", "pub async", "fn total(a: i32) -> i32 {\n    a + 1\n}\n"),
    ("rs", "pub(crate) unsafe", "fn total(a: i32) -> i32 {\n    a + 1\n}\n"),
    ("rs", 'pub extern "C"', "fn total(a: i32) -> i32 {\n    a + 1\n}\n"),
    ("c", "static inline", "int total(int a)\n{\n    return a + 1;\n}\n"),
    ("cpp", "inline", "int total(int a) {\n    return a + 1;\n}\n"),
    ("ts", "async", "function total(a: number) {\n  return a + 1;\n}\n"),
    ("js", "async", "function total(a) {\n  return a + 1;\n}\n"),
    ("py", "async", "def total(a):\n    return a + 1\n"),
    ("cs", "public sealed", "class Total {\n    int a = 1;\n}\n"),
    ("java", "public final", "class Total {\n    int a = 1;\n}\n"),
    ("kt", "internal suspend inline", "fun total(a: Int): Int {\n    return a + 1\n}\n"),
    ("kt", "data", "class Total(val a: Int = 1)\n"),
    ("swift", "public static", "func total(a: Int) -> Int {\n    return a + 1\n}\n"),
    ("scala", "private[core] final", "def total(a: Int): Int = {\n  a + 1\n}\n"),
    ("lua", "local", "function total(a)\n  return a + 1\nend\n"),
)
# A member of a class: the head and the end of the class around it, too.
MEMBERS = (
    ("rs", "impl A {\n", "pub", "    {}fn total(&self) -> i32 {{\n        1\n    }}\n}}\n"),
    ("cpp", "struct A {\n", "virtual", "    {}int total(int a) {{\n        return 1;\n    }}\n}};\n"),
    ("cs", "class A {\n", "public static", "    {}int Total(int a) {{\n        return 1;\n    }}\n}}\n"),
    ("java", "class A {\n", "protected synchronized", "    {}int total(int a) {{\n        return 1;\n    }}\n}}\n"),
    (
        "java",
        "class A {\n    @Override\n",
        "public final",
        "    {}int total(int a) {{\n        return 1;\n    }}\n}}\n",
    ),
    ("ts", "class A {\n", "private static async", "  {}total(a: number) {{\n    return 1;\n  }}\n}}\n"),
    ("js", "class A {\n", "static async", "  {}total(a) {{\n    return 1;\n  }}\n}}\n"),
    ("php", "<?php\n", "abstract", "{}class Total {{\n    public $a = 1;\n}}\n"),
    ("php", "<?php\nclass A {\n", "final protected", "    {}function total($a) {{\n        return 1;\n    }}\n}}\n"),
    ("py", "class A:\n    @staticmethod\n", "async", "    {}def total(a):\n        return 1\n"),
    ("kt", "class A {\n", "override", "    {}fun total(a: Int): Int {{\n        return 1\n    }}\n}}\n"),
    ("swift", "struct A {\n", "mutating", "    {}func total() {{\n        a = 1\n    }}\n}}\n"),
)
ROWS = [(ending, "", words, f"{{}}{code.replace('{', '{{').replace('}', '}}')}") for ending, words, code in DEFINITIONS]
ROWS += list(MEMBERS)
ALL = pytest.mark.parametrize(("ending", "head", "words", "code"), ROWS)


def _texts(head: str, words: str, code: str) -> tuple[str, str]:
    """Return the text before, and one without the modifiers, in which more has changed."""
    before = head + code.format(f"{words} ")
    return before, (head + code.format("")).replace("1", "2")


@ALL
def test_kept(ending: str, head: str, words: str, code: str) -> None:
    before, after = _texts(head, words, code)
    assert with_modifiers(f"a.{ending}", before, after, "count two of them") == before.replace("1", "2")


@ALL
@pytest.mark.parametrize("request_words", ["change its visibility", "make {} go", "去掉修饰符"])
def test_asked_for(ending: str, head: str, words: str, code: str, request_words: str) -> None:
    before, after = _texts(head, words, code)
    said = request_words.format(words)
    assert with_modifiers(f"a.{ending}", before, after, said) == after


@ALL
def test_nothing_else_changes(ending: str, head: str, words: str, code: str) -> None:
    before, after = (head + code.format(said) for said in (f"{words} ", ""))
    assert with_modifiers(f"a.{ending}", before, after, "tidy this") == after


CHOSEN = (
    # Others of the same kind were given: the reply chose.
    ("A.java", "class A {\n    public int f() {\n        return 1;\n    }\n}\n", "public", "private"),
    ("a.cs", "class A {\n    static async int F() {\n        return 1;\n    }\n}\n", "static async", "async"),
    ("a.rs", "pub fn f() -> i32 {\n    1\n}\n", "pub", "pub(crate)"),
)


@pytest.mark.parametrize(("path", "before", "words", "others"), CHOSEN)
def test_chosen(path: str, before: str, words: str, others: str) -> None:
    after = before.replace(words, others).replace("1", "2")
    assert with_modifiers(path, before, after, "count two") == after


def test_only_what_still_holds() -> None:
    before = "export class A {\n  static async load(a) {\n    return await get(a);\n  }\n}\n"
    after = "export class A {\n  load(a) {\n    return this.all.get(a);\n  }\n}\n"
    assert with_modifiers("a.js", before, after, "use the table") == after


def test_access_stays_where_others_were_chosen() -> None:
    before = "class A {\n    public static int f() {\n        return 1;\n    }\n}\n"
    after = "class A {\n    static int f() {\n        return 2;\n    }\n}\n"
    assert with_modifiers("A.java", before, after, "count two") == before.replace("1", "2")


def test_overloads_are_told_apart() -> None:
    before = "class A {\n    public int f(int a) {\n        return 1;\n    }\n    int f(long a) {\n        return 1;\n"
    before += "    }\n}\n"
    after = before.replace("public ", "").replace("1", "2", 1)
    assert with_modifiers("A.java", before, after, "count two") == before.replace("1", "2", 1)


@pytest.mark.parametrize("ending", ["kt", "swift", "scala", "lua"])
def test_nothing_is_defined_any_more(ending: str) -> None:
    before = "local function a()\nend\n" if ending == "lua" else "private class A {\n    private val a = 1\n}\n"
    assert with_modifiers(f"a.{ending}", before, "a = 1\n", "only the value") == "a = 1\n"


def test_a_new_definition_and_names_like_modifiers() -> None:
    before = "static int f(void)\n{\n    return 1;\n}\n"
    after = "int g(int inline_size)\n{\n    return inline_size;\n}\n"
    assert with_modifiers("a.c", before, after, "replace f by g") == after


RUST = "pub fn total(a: i32) -> i32 {\n    a + 1\n}\n"


@pytest.mark.parametrize("words", ["count two", "make it private and count two"])
def test_questions_ask_for_it(words: str) -> None:
    file = ShownFile("a.rs", FileText("a.rs", RUST, "disk"))
    questions: tuple[Question, ...] = (
        SelectionQuestion(RewriteRequest("a.rs", RUST, 0, len(RUST), words), "s", RewriteLimits()),
        FilesQuestion(words, Proof(), 2048),
    )
    for question in questions:
        answer = question.read("```rust\nfn total(a: i32) -> i32 {\n    a + 2\n}\n```", Material((file,)), "function")
        assert answer.texts["a.rs"].startswith("pub fn" if words == "count two" else "fn"), answer
