"""Functions with literals over several lines, in every language that is indexed and some that are not, whose contents
no change of the code around them may touch.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from codeagent_lsp.index.grammars import grammar_of

CONTENTS = (
    ("SELECT 1", "FROM t"),
    ("all:", "\tcc -o a a.c", "  # blanks", "\t  both"),
    ("services:", "  port: 80", "", "    deep: 1"),
    ("", "   ", "\t", "x  "),
    ("        as deep as the code", "    less"),
    ("if (a) {", "\treturn;", "}"),
)


class Written(NamedTuple):
    """A language: the file name, what opens and closes a type, a function and a literal in it, and a plain statement;
    `{0}` in the statement is a number. With `margin`, the literal has to begin in the first column, too.
    """

    path: str
    outer: tuple[str, str]
    function: tuple[str, str]
    literal: tuple[str, str]
    statement: str
    unit: str = "    "
    margin: bool = False


LANGUAGES = {
    "python": Written("a.py", ("class A:", ""), ("def f(self):", ""), ('q = """', '"""'), "x = {0}"),
    "python, single quotes": Written("a.py", ("class A:", ""), ("def f(self):", ""), ("q = r'''", "'''"), "x = {0}"),
    "javascript": Written("a.js", ("class A {", "}"), ("f() {", "}"), ("const q = `", "`;"), "let x = {0};", "  "),
    "typescript": Written("a.ts", ("class A {", "}"), ("f(): void {", "}"), ("const q = `", "`;"), "let x = {0};"),
    "tsx": Written("a.tsx", ("class A {", "}"), ("f() {", "}"), ("const q = `", "`;"), "let x = {0};", "\t"),
    "go": Written("a.go", ("package a", ""), ("func f() {", "}"), ("q := `", "`"), "x := {0}", "\t"),
    "rust": Written("a.rs", ("impl A {", "}"), ("fn f() {", "}"), ('let q = r#"', '"#;'), "let x = {0};"),
    "java": Written("A.java", ("class A {", "}"), ("void f() {", "}"), ('var q = """', '""";'), "int x = {0};"),
    "c++": Written("a.cpp", ("struct A {", "};"), ("void f() {", "}"), ('auto q = R"(', ')";'), "int x = {0};"),
    "c#": Written("a.cs", ("class A {", "}"), ("void F() {", "}"), ('var q = @"', '";'), "int x = {0};"),
    "ruby": Written("a.rb", ("class A", "end"), ("def f", "end"), ("q = <<EOS", "EOS"), "x = {0}", "  "),
    "php": Written("a.php", ("<?php\nclass A {", "}"), ("function f() {", "}"), ("$q = <<<EOT", "EOT;"), "$x = {0};"),
    "bash": Written("a.sh", ("x() {", "}"), ("f() {", "}"), ("cat <<EOF", "EOF"), "x={0}", "  "),
    "kotlin": Written("a.kt", ("class A {", "}"), ("fun f() {", "}"), ('val q = """', '"""'), "val x = {0}"),
    "lua": Written("a.lua", ("do", "end"), ("local function f()", "end"), ("local q = [[", "]]"), "local x = {0}"),
    "perl": Written("a.pl", ("{", "}"), ("sub f {", "}"), ("print <<EOF;", "EOF"), "my $x = {0};"),
}

_BY_SIGNS = {
    "sql": Written("a.sql", ("BEGIN", "END;"), ("DO", "END DO;"), ("AS $$", "$$;"), "SET x = {0};"),
    "nix": Written("a.nix", ("{", "}"), ("f = {", "};"), ("q = ''", "'';"), "x = {0};", "  "),
    "ocaml": Written("a.ml", ("module A = struct", "end"), ("let f () =", ""), ("let q = {sql|", "|sql} in"), "g {0};"),
    "f#": Written("a.fs", ("module A =", ""), ("let f () = (", ")"), ('let q = """', '"""'), "let x = {0}"),
    "haskell": Written("a.hs", ("module A where", ""), ("f = do", ""), ("let q = [r|", "|]"), "let x = {0}"),
    "toml": Written("a.toml", ("[a]", ""), ("[a.f]", ""), ('q = """', '"""'), "x = {0}"),
    "html": Written("a.html", ("<body>", "</body>"), ("<div>", "</div>"), ("<pre>", "</pre>"), "<p>{0}</p>", "  "),
    "vue": Written("a.vue", ("<script>", "</script>"), ("f() {", "}"), ("let q = `", "`"), "let x = {0};", "  "),
    "xml": Written("a.xml", ("<a>", "</a>"), ("<f>", "</f>"), ("<q><![CDATA[", "]]></q>"), "<x>{0}</x>"),
    "swift": Written("a.swift", ("class A {", "}"), ("func f() {", "}"), ('let q = """', '"""'), "let x = {0}"),
    "scala": Written("a.scala", ("class A {", "}"), ("def f() = {", "}"), ('val q = """', '"""'), "val x = {0}"),
    "dart": Written("a.dart", ("class A {", "}"), ("f() {", "}"), ("var q = '''", "''';"), "var x = {0};"),
    "elixir": Written("a.ex", ("defmodule A do", "end"), ("def f do", "end"), ('q = """', '"""'), "x = {0}"),
    "julia": Written("a.jl", ("module A", "end"), ("function f()", "end"), ('q = """', '"""'), "x = {0}"),
    "r": Written("a.R", ("a <- {", "}"), ("f <- function() {", "}"), ('q <- r"(', ')"'), "x <- {0}"),
    "powershell": Written("a.ps1", ("class A {", "}"), ("f() {", "}"), ('$q = @"', '"@'), "$x = {0}"),
    "terraform": Written("a.tf", ("a {", "}"), ("f {", "}"), ("q = <<EOF", "EOF"), "x = {0}"),
    "zsh": Written("a.zsh", ("x() {", "}"), ("f() {", "}"), ("cat <<EOF", "EOF"), "x={0}"),
    "clojure": Written("a.clj", ("(ns a", ")"), ("(defn f []", ")"), ('(def q "', '")'), "(def x {0})"),
    "cmake": Written("CMakeLists.txt", ("if(A)", "endif()"), ("foreach(f)", "endforeach()"), ("set(q [[", "]])"),
                     "set(x {0})"),
    "graphql": Written("a.graphql", ("type A {", "}"), ("f {", "}"), ('"""', '"""'), "x: Int{0}"),
    "latex": Written("a.tex", ("{", "}"), ("{", "}"), ("\\begin{verbatim}", "\\end{verbatim}"), "x{0}"),
}  # fmt: skip
_FORMS = {
    "python": ("q = f'''", "'''"),
    "python, bytes": ("q = rb'''", "'''"),
    "python, in a call": ('f("""', '""")'),
    "javascript": ("q = tag`", "`;"),
    "typescript": ("type Q = `", "`;"),
    "tsx": ('q = <p title="', '" />;'),
    "rust": ('let q = "', '";'),
    "rust, bytes": ('let q = br##"', '"##;'),
    "rust, in a macro": ('m! { "', '" }'),
    "c++": ('auto q = u8R"sql(', ')sql";'),
    "c#": ('var q = $@"', '";'),
    "c#, raw": ('var q = """', '""";'),
    "c#, raw and filled": ('var q = $"""', '""";'),
    "ruby": ("q = %q{", "}"),
    "ruby, %Q": ("q = %Q(", ")"),
    "ruby, %": ("q = %(", ")"),
    "ruby, single quotes": ("q = '", "'"),
    "ruby, double quotes": ('q = "', '"'),
    "ruby, backticks": ("q = `", "`"),
    "ruby, %x": ("q = %x{", "}"),
    "ruby, regex": ("q = %r{", "}x"),
    "ruby, slashes": ("q = /", "/x"),
    "ruby, symbol": ('q = :"', '"'),
    "ruby, %s": ("q = %s(", ")"),
    "ruby, raw heredoc": ("q = <<'EOS'", "EOS"),
    "ruby, squiggly heredoc": ("q = <<~EOS", "EOS"),
    "ruby, heredoc of a command": ("q = <<`EOS`", "EOS"),
    "ruby, key": ('q = { "', '": 1 }'),
    "php": ("$q = '", "';"),
    "php, double quotes": ('$q = "', '";'),
    "php, nowdoc": ("$q = <<<'EOT'", "EOT;"),
    "php, backticks": ("$q = `", "`;"),
    "bash": ("q='", "'"),
    "bash, double quotes": ('q="', '"'),
    "bash, escapes": ("q=$'", "'"),
    "bash, raw heredoc": ("cat <<'EOF'", "EOF"),
    "bash, heredoc in a pipe": ("cat <<EOF | wc", "EOF"),
    "bash, default": ('q="${y:-', '}"'),
    "kotlin": ('val q = """|', '""".trimMargin()'),
    "lua": ("local q = [==[", "]==]"),
    "perl": ("my $q = q{", "};"),
    "perl, qq": ("my $q = qq(", ");"),
    "perl, other delimiter": ("my $q = q|", "|;"),
    "perl, single quotes": ("my $q = '", "';"),
    "perl, double quotes": ('my $q = "', '";'),
    "perl, raw heredoc": ("print <<'EOF';", "EOF"),
    "perl, regex": ("$q =~ m{", "}x;"),
    "sql": ("AS $body$", "$body$;"),
    "sql, quotes": ("q = '", "';"),
    "nix": ('q = "', '";'),
    "ocaml": ("let q = {|", "|} in"),
    "ocaml, quotes": ('let q = "', '" in'),
    "f#": ('let q = @"', '"'),
    "toml": ("q = '''", "'''"),
    "html": ("<textarea>", "</textarea>"),
    "html, attribute": ('<p title="', '"></p>'),
    "swift": ('let q = #"""', '"""#'),
    "dart": ('var q = """', '""";'),
    "elixir": ('q = ~S"""', '"""'),
    "elixir, quotes": ('q = "', '"'),
    "powershell": ("$q = @'", "'@"),
    "zsh": ("q='", "'"),
    "latex": ("\\begin{lstlisting}", "\\end{lstlisting}"),
}
_AT_THE_MARGIN = {"ruby, a comment of a block": ("=begin", "=end"), "perl, POD": ("=pod", "=cut")}
LANGUAGES |= _BY_SIGNS
LANGUAGES |= {
    f"{name}: {literal[0]}": LANGUAGES[name.partition(",")[0]]._replace(literal=literal)
    for name, literal in _FORMS.items()
}
LANGUAGES |= {
    name: LANGUAGES[name.partition(",")[0]]._replace(literal=literal, margin=True)
    for name, literal in _AT_THE_MARGIN.items()
}
INDEXED = {name: written for name, written in LANGUAGES.items() if grammar_of(written.path) is not None}


class Case(NamedTuple):
    """A file, the lines of a function in it (`start:end`), and the function after a change of its statements."""

    written: Written
    text: str
    start: int
    end: int
    changed: str

    @property
    def path(self) -> str:
        return self.written.path

    @property
    def unit(self) -> str:
        return self.written.unit


def case(written: Written, chance: random.Random) -> Case:
    """Return a case by chance: what the literal holds, how deep the function stands, what is around it."""
    opening, closing = written.literal
    filled = opening.rstrip("\"'`").endswith(("f", "$", "$@"))
    unit = written.unit
    content = chance.choice([each for each in CONTENTS if closing not in each and not (filled and "}" in each)])
    depth = 0 if written.path.endswith(".go") else 1
    head = "".join(f"{line}\n" for line in written.outer[0].split("\n"))

    def function(number: int) -> str:
        inner = unit * (depth + 1)
        lines = [
            unit * depth + written.function[0],
            inner + written.statement.format(number),
            ("" if written.margin else inner) + written.literal[0],
            *content,
            written.literal[1],
            inner + written.statement.replace("x", "y").format(number + 1),
            *([unit * depth + written.function[1]] if written.function[1] else []),
        ]
        return "".join(f"{line}\n" for line in lines)

    foot = f"{written.outer[1]}\n" if written.outer[1] else ""
    before = head + ("\n" if chance.random() < 0.5 else "")
    old, new = function(1), function(7)
    return Case(written, before + old + foot, len(before), len(before) + len(old), new)


def moved(code: str, case: Case, way: str) -> str:
    """Return the lines of a function as a model gives them back: `way` says what it has done to their blanks."""
    lines = code.split("\n")
    opening, closing = case.written.literal
    opened = next(number for number, line in enumerate(lines) if line.strip() == opening)
    closed = next(number for number in range(opened + 1, len(lines)) if lines[number] == closing)
    inside = range(opened + (0 if case.written.margin else 1), closed + 1)
    depth = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    match way:
        case "same":
            return code
        case "dedented":
            lines = [line if at in inside else line.removeprefix(depth) for at, line in enumerate(lines)]
        case "deeper":
            lines = [line if at in inside or not line else case.unit + line for at, line in enumerate(lines)]
        case "other blanks":
            one, other = ("\t", "    ") if case.unit == "\t" else (case.unit, "\t")
            lines = [line if at in inside else _swapped(line, one, other) for at, line in enumerate(lines)]
    return "\n".join(lines)


def _swapped(line: str, one: str, other: str) -> str:
    rest = line
    count = 0
    while rest.startswith(one):
        rest, count = rest[len(one) :], count + 1
    return other * count + rest


class Margin(NamedTuple):
    """A file, what stands before the lines of a function in it, how a literal opens and closes, what stands behind."""

    path: str
    head: str
    literal: tuple[str, str]
    foot: str

    def lines(self, content: tuple[str, ...], indent: str) -> str:
        """The lines of the function, with a literal of this content, all of it at one indentation."""
        rows = ("x1", self.literal[0], *content, self.literal[1], "y1")
        return "".join(f"{indent}{row}\n" if row else "\n" for row in rows)


WITHOUT_MARGIN = {
    "java": Margin("A.java", "class A {\n    void f() {\n", ('String q = """', '""";'), "    }\n}\n"),
    "csharp": Margin("a.cs", "class A {\n    void F() {\n", ('var q = """', '""";'), "    }\n}\n"),
    "csharp$": Margin("a.cs", "class A {\n    void F() {\n", ('var q = $"""', '""";'), "    }\n}\n"),
    "ruby": Margin("a.rb", "class A\n    def f\n", ("q = <<~EOS", "EOS"), "    end\nend\n"),
    "ruby raw": Margin("a.rb", "class A\n    def f\n", ("q = g(<<~'EOS', 1)", "EOS"), "    end\nend\n"),
    "swift": Margin("a.swift", "class A {\n    func f() {\n", ('let q = """', '"""'), "    }\n}\n"),
    "swift#": Margin("a.swift", "class A {\n    func f() {\n", ('let q = #"""', '"""#'), "    }\n}\n"),
    "kotlin": Margin("a.kt", "class A {\n    fun f() {\n", ('val q = """', '""".trimIndent()'), "    }\n}\n"),
    "kotlin margin": Margin("a.kt", "class A {\n    fun f() {\n", ('val q = """', '""".trimMargin()'), "    }\n}\n"),
    "nix": Margin("a.nix", "{\n    f = {\n", ("q = ''", "'';"), "    };\n}\n"),
    "python": Margin("a.py", "class A:\n    def f(self):\n", ('q = textwrap.dedent("""', '""")'), ""),
    "python\\": Margin("a.py", "class A:\n    def f(self):\n", ('q = dedent("""\\', '""")'), ""),
    "python c": Margin("a.py", "class A:\n    def f(self):\n", ("q = inspect.cleandoc('''", "''')"), ""),
    "php": Margin("a.php", "<?php\nclass A {\n    function f() {\n", ("$q = <<<EOT", "EOT;"), "    }\n}\n"),
    "php now": Margin("a.php", "<?php\nclass A {\n    function f() {\n", ("$q = <<<'EOT'", "EOT;"), "    }\n}\n"),
    "elixir": Margin("a.ex", "defmodule A do\n    def f do\n", ('q = """', '"""'), "    end\nend\n"),
    "julia": Margin("a.jl", "module A\n    function f()\n", ('q = """', '"""'), "    end\nend\n"),
    "scala": Margin("a.scala", "class A {\n    def f() = {\n", ('val q = """', '""".stripMargin'), "    }\n}\n"),
    "groovy": Margin("a.groovy", "class A {\n    def f() {\n", ('def q = """', '""".stripIndent()'), "    }\n}\n"),
    "perl": Margin("a.pl", "{\n    sub f {\n", ("my $q = <<~EOT;", "EOT"), "    }\n}\n"),
    "terraform": Margin("a.tf", "a {\n    f {\n", ("q = <<-EOF", "EOF"), "    }\n}\n"),
    "graphql": Margin("a.graphql", "type A {\n    f {\n", ('"""', '"""'), "    }\n}\n"),
}
"""Literals of which the language takes away the blanks that all lines share."""
WITH_MARGIN = {
    "js": Margin("a.js", "class A {\n    f() {\n", ("const q = `", "`;"), "    }\n}\n"),
    "go": Margin("a.go", "package a\nfunc f() {\n    if x {\n", ("q := `", "`"), "    }\n}\n"),
    "python plain": Margin("a.py", "class A:\n    def f(self):\n", ('q = """', '"""'), ""),
    "python f": Margin("a.py", "class A:\n    def f(self):\n", ('q = textwrap.dedent(f"""', '""")'), ""),
    "python other": Margin("a.py", "class A:\n    def f(self):\n", ('q = g("""', '""")'), ""),
    "ruby -": Margin("a.rb", "class A\n    def f\n", ("q = <<-EOS", "EOS"), "    end\nend\n"),
    "ruby two": Margin("a.rb", "class A\n    def f\n", ("q = g(<<~EOS, <<-E)", "EOS"), "    end\nend\n"),
    "kotlin plain": Margin("a.kt", "class A {\n    fun f() {\n", ('val q = """', '"""'), "    }\n}\n"),
    "kotlin $": Margin("a.kt", "class A {\n    fun f() {\n", ('val q = """$a', '""".trimIndent()'), "    }\n}\n"),
    "c# verbatim": Margin("a.cs", "class A {\n    void F() {\n", ('var q = @"', '";'), "    }\n}\n"),
    "dart": Margin("a.dart", "class A {\n    f() {\n", ("var q = '''", "''';"), "    }\n}\n"),
    "rust": Margin("a.rs", "impl A {\n    fn f() {\n", ('let q = r#"', '"#;'), "    }\n}\n"),
    "scala plain": Margin("a.scala", "class A {\n    def f() = {\n", ('val q = """', '"""'), "    }\n}\n"),
    "scala s": Margin("a.scala", "class A {\n    def f() = {\n", ('val q = s"""', '""".stripMargin'), "    }\n}\n"),
    "bash": Margin("a.sh", "x() {\n    f() {\n", ("cat <<EOF", "EOF"), "    }\n}\n"),
    "toml": Margin("a.toml", "[a]\n    [a.f]\n", ('q = """', '"""'), ""),
}
"""Literals that keep all blanks, and those of which it is not certain."""
