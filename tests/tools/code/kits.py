"""A kit of every language: pieces of code, each on lines of its own, that a file can be put together from in any order.

Targets have doc comments, decorators, strings and comments that look like code, and text that is not ASCII.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Piece:
    """Some lines; `target` is what to call it, '' for what stands between targets.

    `body` is a new body for it: '' for that of the kit, None where it has none.
    """

    text: str
    target: str = ""
    body: str | None = ""


@dataclass(frozen=True)
class Kit:
    """`whole` and `body` are new code for any target, `broken` code that no parser takes."""

    name: str
    path: str
    head: str
    pieces: tuple[Piece, ...]
    whole: str
    body: str
    broken: str
    outer: tuple[str, str] = ("", "")
    named: str = "fresh"

    @property
    def targets(self) -> tuple[Piece, ...]:
        return tuple(piece for piece in self.pieces if piece.target)


def _piece(text: str, target: str = "", body: str | None = "") -> Piece:
    return Piece(dedent(text).strip("\n") + "\n", target, body)


PYTHON = Kit(
    "python",
    "a.py",
    "import os\n\n",
    (
        _piece(
            '''
            # größer: about alpha
            @cache
            @other("@decorator def alpha(): pass", key=lambda x: x)
            async def alpha(a, *, b="def alpha():"):  # noqa
                """Doc of alpha, 中文."""
                # alpha inside
                def inner():
                    return alpha
                return inner() + beta(alpha)
                # last of alpha
            ''',
            "alpha",
        ),
        _piece("def beta(x): return f\"{x} def beta(): {beta}\" + 'é'", "beta"),
        _piece(
            '''
            class Gamma(Base, metaclass=Meta):
                """Gamma."""

                size = 1

                @property
                def alpha(self):
                    return """
            def alpha():
                return 1
            """

                def beta(self): ...
            ''',
            "Gamma",
            "x = 1",
        ),
        _piece('TEXT = """\ndef beta():\n    pass\n"""'),
        _piece("# a comment of nobody: def alpha()"),
        _piece("if os.name == 'nt':\n    def other():\n        beta(alpha=1)\nelse:\n    other = None"),
    ),
    "def fresh(a):\n    if a:\n        return 1\n    return 'ü'",
    "if a:\n    return 1\nreturn 'ü'",
    "def broken(:\n    x = ((\n",
)

JAVASCRIPT_PIECES = (
    _piece(
        """
        /**
         * Doc of alpha: function alpha() {}
         */
        export async function alpha(a, b = "function alpha() {") {
          // alpha inside
          const inner = () => alpha;
          return inner() + `${beta(a)} function beta() { 中文`;
        }
        """,
        "alpha",
    ),
    _piece("const beta = (x) => { return /function beta\\(\\) {/.test(x) }; // beta", "beta"),
    _piece(
        """
        class Gamma extends Base {
          #hidden = 1;
          alpha() { return this.alpha() + beta(1) }
          static beta = () => { return "}" };
          get size() { return this.#hidden }
        }
        """,
        "Gamma",
        "beta() {}",
    ),
    _piece("const table = {\n  alpha() { return 1 },\n  beta: function () { return 'é' },\n};"),
    _piece("/* nobody's: class Gamma {} */"),
    _piece("if (alpha) { (function () { var beta = 1; beta }()) }"),
)
JAVASCRIPT = Kit(
    "javascript",
    "a.mjs",
    "import x from './x';\n\n",
    JAVASCRIPT_PIECES,
    "function fresh(a) {\n  if (a) {\n    return `\n  keep`;\n  }\n}",
    "if (a) {\n  return 1;\n}",
    "function broken( {\n",
)
TYPESCRIPT = Kit(
    "typescript",
    "a.ts",
    "import { x } from './x';\n\n",
    (
        *JAVASCRIPT_PIECES[:2],
        _piece(
            """
            /** Gamma. */
            @Component({ selector: "class Gamma {}" })
            export class Gamma<T> extends Base<T> implements Other {
              @Input() private size?: number = 1;
              /** m */
              @Hook("alpha") alpha(): T { return this.alpha() }
            }
            """,
            "Gamma",
            "beta(): void {}",
        ),
        _piece(
            "// about Delta\nexport interface Delta<T> {\n  alpha(a: T): void;\n  beta?: string;\n}",
            "Delta",
            "alpha(): void;",
        ),
        *JAVASCRIPT_PIECES[3:],
        _piece("type Other = { alpha: number } | 'type Other';"),
    ),
    "function fresh(a: number): string {\n  return `\n  keep`;\n}",
    "if (a) {\n  return 1;\n}",
    "function broken( {\n",
)
TSX = Kit(
    "tsx",
    "a.tsx",
    "import React from 'react';\n\n",
    (
        _piece(
            "/** Alpha. */\nexport const Alpha = ({ a }: Props) => {\n"
            '  return <Beta title="const Alpha">{a} const Alpha é</Beta>;\n};',
            "Alpha",
        ),
        _piece("function Beta(props: Props) { return <div>{props.children}</div> }", "Beta"),
        _piece("const el = <Alpha>{'<Alpha>'}</Alpha>;"),
    ),
    "function Fresh() {\n  return <b>\n    text\n  </b>;\n}",
    "return <i/>;",
    "const broken = <div>{;\n",
    named="Fresh",
)
GO = Kit(
    "go",
    "a.go",
    'package a\n\nimport "fmt"\n\n',
    (
        _piece(
            """
            // Alpha does, ñ.
            //
            // func Alpha() {}
            func Alpha(a int) (int, error) {
            \t// Alpha inside
            \ts := `
            func Alpha() {
            `
            \tAlpha := len(s)
            \treturn Alpha, Beta(a)
            }
            """,
            "Alpha",
        ),
        _piece('func Beta(x int) error { return fmt.Errorf("func Beta() { %d", x) }', "Beta"),
        _piece("// Alpha of T.\nfunc (t *T) Alpha() int { return t.Alpha() + t.size }", "T.Alpha"),
        _piece('// T is.\ntype T struct {\n\tsize int `json:"type T struct"`\n}', ""),
        _piece('var text = "func Beta() {}"'),
    ),
    "func Fresh(a int) {\n\tif a > 0 {\n\t\treturn\n\t}\n}",
    "if a > 0 {\n\tpanic(1)\n}\npanic(2)",
    "func broken( {\n",
    named="Fresh",
)
RUST = Kit(
    "rust",
    "a.rs",
    "use std::fmt;\n\n",
    (
        _piece(
            """
            /// Alpha, fn alpha() {} 中
            #[inline]
            #[cfg(feature = "fn alpha() {}")]
            pub fn alpha<'a>(x: &'a str) -> Option<&'a str> {
                /* fn alpha() { /* nested */ } */
                let alpha = x;
                beta(alpha, r#"fn beta() { "# )
            }
            """,
            "alpha",
        ),
        _piece("fn beta(a: &str, b: &str) -> bool { a == \"}\" && b == 'x'.to_string() }", "beta"),
        _piece(
            "/// Gamma.\n#[derive(Debug, Clone)]\npub struct Gamma<T> {\n    /// size\n    pub size: T,\n}",
            "Gamma",
            "size: T,",
        ),
        _piece("impl<T> Gamma<T> {\n    //! inner\n    pub fn alpha(&self) -> T { self.alpha() }\n}"),
        _piece("// nobody's: fn alpha()"),
        _piece('macro_rules! m { () => { "fn beta() {" } }'),
    ),
    "fn fresh(a: i32) -> i32 {\n    if a > 0 {\n        return 1;\n    }\n    2\n}",
    "if true {\n    return None;\n}\nNone",
    "fn broken( {\n",
)
JAVA = Kit(
    "java",
    "A.java",
    "package a;\n\nimport java.util.*;\n\n",
    (
        _piece(
            """
            /**
             * Alpha: int alpha() {}
             */
            @Override
            @Named("int alpha() {}") // why
            public <T> int alpha(int a, T b) throws E {
                // alpha inside, é
                Runnable r = () -> alpha(1, null);
                return "int beta() {".length() + beta(a);
            }
            """,
            "A.alpha",
        ),
        _piece("int beta(int x) { return x == '}' ? 1 : this.beta(2); }", "A.beta"),
        _piece("/** Size. */\nprivate static final int SIZE = 1; // SIZE", "A.SIZE", None),
        _piece(
            "class Inner {\n    int alpha() { return 1; }\n    enum E { P, Q; int beta() { return 2; } }\n}",
            "A.Inner",
            "int x;",
        ),
        _piece("A(int a) { super(); }"),
        _piece('static { String s = """\n    int alpha() {\n    """; }'),
    ),
    "int fresh(int a) {\n    if (a > 0) {\n        return 1;\n    }\n    return 2;\n}",
    "if (true) {\n    throw new E();\n}",
    "int broken( {\n",
    outer=("public class A extends B {\n", "}\n"),
)
C = Kit(
    "c",
    "a.c",
    "#include <stdio.h>\n\n",
    (
        _piece(
            """
            /* alpha: int alpha() {} */
            static int alpha(const char *a)
            {
            \t/* alpha inside ß */
            \tstruct node n = { .size = 1 };
            \treturn beta("int beta() {") + n.size + '}';
            }
            """,
            "alpha",
        ),
        _piece("int beta(const char *x) { return x ? beta(0) : 1; }", "beta"),
        _piece(
            "// node\nstruct node {\n\tint size; /* struct node {} */\n\tstruct node *next;\n};", "node", "int one;"
        ),
        _piece("#define MAX(a, b) \\\n\t((a) > (b) ? (a) : (b))", "MAX", None),
        _piece("int gamma_(int);"),
        _piece('const char *text = "int alpha() {";'),
    ),
    "int fresh(int a)\n{\n\tif (a)\n\t\treturn 1;\n\treturn 2;\n}",
    "if (1)\n\treturn 1;\nreturn 2;",
    "int broken( {\n",
)
CPP = Kit(
    "cpp",
    "a.cpp",
    "#include <vector>\nusing namespace std;\n\n",
    (
        _piece(
            """
            /// alpha: int alpha() {}
            template <typename T, int N = 1>
            [[nodiscard]] auto alpha(const T& a) -> decltype(a)
            {
              // alpha inside é
              auto f = [&](int alpha) { return alpha; };
              return beta(R"x(int beta() {)x") + f(N);
            }
            """,
            "alpha",
        ),
        _piece("int beta(const char* x) noexcept { return x ? beta(0) : '}'; }", "beta"),
        _piece(
            "// Gamma\nclass Gamma : public Base {\n public:\n  Gamma() : size_(1) {}\n  ~Gamma();\n"
            "  virtual int alpha() const { return this->alpha(); }\n private:\n  int size_;\n};",
            "Gamma",
            "int one;",
        ),
        _piece("namespace n {\nint alpha() { return 1; }\n}  // namespace n"),
        _piece("Gamma::~Gamma() {}"),
        _piece("enum class Color { Red, Green };", "Color", "Blue"),
    ),
    "int fresh(int a) {\n  if (a) {\n    return 1;\n  }\n  return 2;\n}",
    "if (1) {\n  return 1;\n}\nreturn 2;",
    "int broken( {\n",
)
CSHARP = Kit(
    "csharp",
    "A.cs",
    "using System;\n\n",
    (
        _piece(
            """
            /// <summary>int Alpha() {} ö</summary>
            [Test, Name("int Alpha() {}")]
            [Other]
            public async Task<int> Alpha<T>(int a, T b) where T : class
            {
                // Alpha inside
                Func<int, int> f = Alpha => Alpha + 1;
                return f(Beta($"int Beta() {{ {a} }}"));
            }
            """,
            "A.Alpha",
        ),
        _piece('int Beta(string x) => x == "}" ? 1 : this.Beta("");', "A.Beta"),
        _piece("/// <summary>Size</summary>\npublic int Size { get; set; } = 1; // Size", "A.Size", None),
        _piece("private class Inner\n{\n    int Alpha() { return 1; }\n}", "A.Inner", "int x;"),
        _piece("public A() : base() { }"),
        _piece('const string Text = @"int Alpha()\n{ ""x"" }";'),
    ),
    "int Fresh(int a)\n{\n    if (a > 0)\n    {\n        return 1;\n    }\n    return 2;\n}",
    "throw new Exception();",
    "int Broken( {\n",
    outer=("public class A : B\n{\n", "}\n"),
    named="Fresh",
)
RUBY = Kit(
    "ruby",
    "a.rb",
    "require 'x'\n\n",
    (
        _piece(
            """
            # Alpha: def alpha; end
            # ä
            def alpha(a, b: 1, &block) # note
              # alpha inside
              text = <<~EOS
                def alpha
                end
              EOS
              a.each { |alpha| alpha }
              beta("def beta; end #{text}")
            end
            """,
            "alpha",
        ),
        _piece("def beta(x) = x ? beta(nil) : :end", "beta"),
        _piece(
            "# Gamma\nclass Gamma < Base\n  SIZE = 1\n  def alpha; self.alpha; end\n\n  def self.beta\n  end\nend",
            "Gamma",
            "SIZE = 2",
        ),
        _piece("=begin\ndef alpha\nend\n=end"),
        _piece("%w[def alpha end].each do |beta|\n  beta.call if beta\nend"),
    ),
    "def fresh(a)\n  if a\n    1\n  end\nend",
    "nil",
    "def broken(\n",
)
PHP = Kit(
    "php",
    "a.php",
    "<?php\nnamespace App;\n\n",
    (
        _piece(
            """
            /**
             * alpha: function alpha() {}
             */
            #[Attr("function alpha() {}")]
            function alpha(int $a, $alpha = "}"): int
            {
                // alpha inside ç
                $f = fn($beta) => $beta + 1;
                return $f($alpha) + beta('function beta() {') + alpha($a);
            }
            """,
            "alpha",
        ),
        _piece('function beta($x) { return "{$x} function beta() {"; } # beta', "beta"),
        _piece(
            "/** Gamma */\n#[X]\nfinal class Gamma extends Base\n{\n    const SIZE = 1;\n"
            "    public $alpha = 'class Gamma {}';\n    public function alpha() { return $this->alpha(); }\n}",
            "Gamma",
            "const OTHER = 2;",
        ),
        _piece("$text = <<<X\nfunction alpha() {\nX;"),
        _piece("echo alpha(1);"),
    ),
    "function fresh($a)\n{\n    return <<<X\n  keep\nX;\n}",
    "if ($x) {\n    return 1;\n}\nreturn 2;",
    "function broken( {\n",
)
BASH = Kit(
    "bash",
    "a.sh",
    "#!/bin/bash\n\n",
    (
        _piece(
            """
            # alpha: alpha() { }
            alpha() { # note
              local alpha="alpha() { ñ"
              beta "$alpha" # beta
              cat <<EOF
            alpha() {
            EOF
            }
            """,
            "alpha",
        ),
        _piece("function beta {\n\techo 'beta() {'; alpha \"$@\"\n}", "beta"),
        _piece("TEXT='beta() {\n}'"),
        _piece('if true; then\n  alpha "$TEXT"\nfi'),
    ),
    "fresh() {\n  cat <<EOF\nkeep\nEOF\n}",
    "echo 1\necho 2",
    "broken() { if\n",
)

KITS = (PYTHON, JAVASCRIPT, TYPESCRIPT, TSX, GO, RUST, JAVA, C, CPP, CSHARP, RUBY, PHP, BASH)
