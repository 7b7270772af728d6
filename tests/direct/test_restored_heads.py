"""Modifiers that a reply leaves out stay, in every language that has some, unless the request is about them."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.aptitude import Proof
from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.direct.question import FilesQuestion, Question, RewriteLimits, RewriteRequest, SelectionQuestion
from codeagent_lsp.direct.restoring import with_heads
from codeagent_lsp.workspace.files.file_view import FileText

# A file's ending, the modifiers, and the definition behind them, with `1` for what changes.
DEFINITIONS = (
    ("rs", "pub async", "fn total(a: i32) -> i32 {\n    a + 1\n}\n"),
    ("rs", "pub(crate)", "fn total(a: i32) -> i32 {\n    a + 1\n}\n"),
    ("rs", 'pub extern "C"', "fn total(a: i32) -> i32 {\n    a + 1\n}\n"),
    ("c", "static inline", "int total(int a)\n{\n    return a + 1;\n}\n"),
    ("cpp", "inline", "int total(int a) {\n    return a + 1;\n}\n"),
    ("ts", "async", "function total(a: number) {\n  return a + 1;\n}\n"),
    ("js", "async", "function total(a) {\n  return a + 1;\n}\n"),
    ("py", "async", "def total(a):\n    return a + 1\n"),
    ("cs", "public sealed", "class Total {\n    int a = 1;\n}\n"),
    ("java", "public abstract", "class Total {\n    int a = 1;\n}\n"),
    ("kt", "internal inline", "fun total(a: Int): Int {\n    return a + 1\n}\n"),
    ("swift", "public static", "func total(a: Int) -> Int {\n    return a + 1\n}\n"),
    ("scala", "private[core]", "def total(a: Int): Int = {\n  a + 1\n}\n"),
    ("lua", "local", "function total(a)\n  return a + 1\nend\n"),
)
# A member of a class: the head and the end of the class around it, too.
MEMBERS = (
    ("rs", "impl A {\n", "pub", "    {}fn total(&self) -> i32 {{\n        1\n    }}\n}}\n"),
    ("cpp", "struct A {\n", "virtual", "    {}int total(int a) {{\n        return 1;\n    }}\n}};\n"),
    ("cs", "class A {\n", "public static", "    {}int Total(int a) {{\n        return 1;\n    }}\n}}\n"),
    ("java", "class A {\n", "protected static", "    {}int total(int a) {{\n        return 1;\n    }}\n}}\n"),
    (
        "java",
        "class A {\n    @Override\n",
        "public",
        "    {}int total(int a) {{\n        return 1;\n    }}\n}}\n",
    ),
    ("ts", "class A {\n", "private static async", "  {}total(a: number) {{\n    return 1;\n  }}\n}}\n"),
    ("js", "class A {\n", "static async", "  {}total(a) {{\n    return 1;\n  }}\n}}\n"),
    ("php", "<?php\n", "abstract", "{}class Total {{\n    public $a = 1;\n}}\n"),
    ("php", "<?php\nclass A {\n", "protected static", "    {}function total($a) {{\n        return 1;\n    }}\n}}\n"),
    ("py", "class A:\n    @staticmethod\n", "async", "    {}def total(a):\n        return 1\n"),
    ("kt", "class A {\n", "override", "    {}fun total(a: Int): Int {{\n        return 1\n    }}\n}}\n"),
    ("swift", "struct A {\n", "static", "    {}func total() {{\n        a = 1\n    }}\n}}\n"),
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
    assert with_heads(f"a.{ending}", before, after, "count two of them") == before.replace("1", "2")


@ALL
@pytest.mark.parametrize("request_words", ["change its visibility", "make {} go", "去掉修饰符"])
def test_asked_for(ending: str, head: str, words: str, code: str, request_words: str) -> None:
    before, after = _texts(head, words, code)
    said = request_words.format(words)
    assert with_heads(f"a.{ending}", before, after, said) == after


@ALL
def test_nothing_else_changes(ending: str, head: str, words: str, code: str) -> None:
    before, after = (head + code.format(said) for said in (f"{words} ", ""))
    assert with_heads(f"a.{ending}", before, after, "tidy this") == after


CHOSEN = (
    # Others of the same kind were given: the reply chose.
    ("A.java", "class A {\n    public int f() {\n        return 1;\n    }\n}\n", "public", "private"),
    ("a.rs", "pub fn f() -> i32 {\n    1\n}\n", "pub", "pub(crate)"),
)


@pytest.mark.parametrize(("path", "before", "words", "others"), CHOSEN)
def test_chosen(path: str, before: str, words: str, others: str) -> None:
    after = before.replace(words, others).replace("1", "2")
    assert with_heads(path, before, after, "count two") == after


def test_only_what_still_holds() -> None:
    before = "export class A {\n  static async load(a) {\n    return await get(a);\n  }\n}\n"
    after = "export class A {\n  load(a) {\n    return this.all.get(a);\n  }\n}\n"
    assert with_heads("a.js", before, after, "use the table") == after


def test_access_stays_where_others_were_chosen() -> None:
    before = "class A {\n    public static int f() {\n        return 1;\n    }\n}\n"
    after = "class A {\n    static int f() {\n        return 2;\n    }\n}\n"
    assert with_heads("A.java", before, after, "count two") == before.replace("1", "2")


def test_overloads_are_told_apart() -> None:
    before = "class A {\n    public int f(int a) {\n        return 1;\n    }\n    int f(long a) {\n        return 1;\n"
    before += "    }\n}\n"
    after = before.replace("public ", "").replace("1", "2", 1)
    assert with_heads("A.java", before, after, "count two") == before.replace("1", "2", 1)


@pytest.mark.parametrize("ending", ["kt", "swift", "scala", "lua"])
def test_nothing_is_defined_any_more(ending: str) -> None:
    before = "local function a()\nend\n" if ending == "lua" else "private class A {\n    private val a = 1\n}\n"
    assert with_heads(f"a.{ending}", before, "a = 1\n", "only the value") == "a = 1\n"


def test_a_new_definition_and_names_like_modifiers() -> None:
    before = "static int f(void)\n{\n    return 1;\n}\n"
    after = "int g(int inline_size)\n{\n    return inline_size;\n}\n"
    assert with_heads("a.c", before, after, "replace f by g") == after


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


LEFT_OUT = (
    # A file, its text with `1` for what changes, and what the reply leaves out of it.
    (
        "a.py",
        "def f(a: int = 3, *, b: str = '') -> int:\n    c = 1\n    return c\n",
        (": int = 3", ": str = ''", " -> int"),
    ),
    ("a.py", "@cached\ndef f(a):\n    return 1\n", ("@cached\n",)),
    ("a.py", 'def f(a):\n    """Count."""\n    return 1\n', ('    """Count."""\n',)),
    ("a.ts", "function f<T>(a: T[] = []): number {\n  const b = 1;\n  return b;\n}\n", (" = []", ": number", "<T>")),
    ("a.ts", "/** Counts. */\nexport function f(a: number) {\n  return 1;\n}\n", ("/** Counts. */\n", "export ")),
    (
        "a.js",
        "/**\n * Counts.\n * @param a all\n */\nfunction f(a) {\n  return 1;\n}\n",
        ("/**\n * Counts.\n * @param a all\n */\n",),
    ),
    (
        "a.rs",
        "#[inline]\n#[must_use]\nfn f(a: i32) -> i32 {\n    let b = 1;\n    b\n}\n",
        ("#[inline]\n#[must_use]\n",),
    ),
    (
        "a.rs",
        "/// Counts.\npub fn f<T: Copy>(a: T) -> T\nwhere\n    T: Add,\n{\n    g(1);\n    a\n}\n",
        ("/// Counts.\n",),
    ),
    (
        "A.java",
        "class A {\n    /** Counts. */\n    @Test\n    void f() {\n        g(1);\n    }\n}\n",
        ("    /** Counts. */\n", "    @Test\n"),
    ),
    (
        "a.cs",
        "class A {\n    [Fact]\n    public void F(int a = 3) {\n        G(1);\n    }\n}\n",
        ("    [Fact]\n", " = 3", "public "),
    ),
    (
        "a.cpp",
        "struct A {\n    int f(int a = 3) const noexcept override {\n        return 1;\n    }\n};\n",
        (" override", " = 3"),
    ),
    ("a.php", "<?php\nfunction f(int $a = 3): int {\n    $b = 1;\n    return $b;\n}\n", (" = 3", ": int", "int ")),
    ("a.kt", "/** Counts. */\n@Test\nfun f(a: Int): Int {\n    return 1\n}\n", ("/** Counts. */\n", "@Test\n")),
    (
        "a.swift",
        "/// Counts.\n@MainActor\nfunc f(a: Int) -> Int {\n    return 1\n}\n",
        ("/// Counts.\n", "@MainActor\n"),
    ),
    ("a.lua", "--- Counts.\nlocal function f(a)\n  return 1\nend\n", ("--- Counts.\n",)),
)


@pytest.mark.parametrize(("path", "before", "parts"), LEFT_OUT)
def test_each_part_of_a_head_stays(path: str, before: str, parts: tuple[str, ...]) -> None:
    right = before.replace("1", "2")
    for part in parts:
        after = right.replace(part, "", 1)
        assert after != right
        assert with_heads(path, before, after, "count two") == right, part


OTHERWISE = (
    ("a.py", "class A(Base):\n    def f(self):\n        return 1\n", "class A:\n    def f(self):\n        return 2\n"),
    ("a.py", "def f(a, b=[]):\n    return 1\n", "def f(a, b):\n    return 2\n"),
    (
        "a.py",
        "from abc import abstractmethod\n\n\nclass A:\n    @abstractmethod\n    def f(self):\n        return 1\n",
        "class A:\n    def f(self):\n        return 2\n",
    ),
    ("a.rs", "fn f(mut a: i32) -> i32 {\n    a += 1;\n    a\n}\n", "fn f(a: i32) -> i32 {\n    a + 2;\n    a\n}\n"),
    ("a.c", "int f(const char *a)\n{\n    return 1;\n}\n", "int f(char *a)\n{\n    a[0] = 2;\n    return 1;\n}\n"),
    ("a.swift", "mutating func f() {\n    a = 1\n}\n", "func f() {\n    b = 2\n}\n"),
    ("a.swift", "struct A {\n    private var x = 1\n}\n", "func f() {\n        var x = 2\n}\n"),
    ("a.kt", "data class A(val a: Int = 1)\n", "class A(val a: Int = 2)\n"),
    # What a type is, which parameters there are and what is thrown or returned follows from the code.
    ("a.py", "def f(a: list[int]) -> list[int]:\n    return [1]\n", "def f(a: int) -> int:\n    return 2\n"),
    ("a.py", "def f(a, b=3):\n    return a + b + 1\n", "def f(a):\n    return a + 2\n"),
    (
        "A.java",
        "class A {\n    int f() throws E {\n        return g(1);\n    }\n}\n",
        "class A {\n    int f() {\n        return 2;\n    }\n}\n",
    ),
    ("a.rs", "fn f() -> i32 {\n    g();\n    1\n}\n", "fn f() {\n    g();\n    h(2);\n}\n"),
    ("a.php", "<?php\nfunction f( ... $a )\n{\n    return 1;\n}\n", "<?php\nfunction f(... $a)\n{\n    return 2;\n}\n"),
    (
        "a.ts",
        "/** Counts one. */\nfunction f() {\n  return 1;\n}\n",
        "/** Counts two. */\nfunction f() {\n  return 2;\n}\n",
    ),
)


@pytest.mark.parametrize(("path", "before", "after"), OTHERWISE)
def test_what_follows_from_the_code_is_as_given(path: str, before: str, after: str) -> None:
    assert with_heads(path, before, after, "count two") == after
