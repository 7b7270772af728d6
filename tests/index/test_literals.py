"""Which lines begin inside a literal: for every kind of literal of the indexed languages, and by signs elsewhere."""

from __future__ import annotations

import re

import pytest

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index import grammars
from codeagent_lsp.index.literal_signs import signs_of, spans
from codeagent_lsp.index.literals import (
    COMMENTS,
    EMBEDDED,
    STRINGS,
    language_of,
    literals,
    may_hold_more,
    refuse_altered,
)

GRAMMARS = {
    each: grammars.grammar_of(f"a.{each}")
    for each in ("py", "js", "ts", "tsx", "go", "rs", "java", "c", "cpp", "cs", "rb", "php", "sh")
}
LITERAL_KIND = re.compile(
    r"string|comment|template|regex|heredoc|nowdoc|quote|char|rune|uninterpreted|subshell|shell_command|symbol"
    r"|\btext\b|jsx_text|raw|preproc_arg"
)
INSIDE = re.compile(
    r"_content$|_fragment$|_start$|_end$|_begin(?:ning)?$|_pattern$|_flags$|_delimiter$|_encoding$|_marker$|escape|_brace$"
    r"|^interpolation|html_character_reference|template_substitution"
)
CODE = frozenset(
    (
        *("concatenated_string", "chained_string", "string_array", "symbol_array", "hash_key_symbol", "simple_symbol"),
        *("herestring_redirect", "template_declaration", "template_function", "template_instantiation"),
        *("template_method", "template_type", "template_argument_list", "template_parameter_list"),
        *("template_template_parameter_declaration", "template_expression", "string_interpolation"),
        *("text_interpolation", "jsx_text", "symbol", "doc_comment", "nowdoc_body", "nowdoc_string", "character"),
    )
)
"""Kinds that hold literals or parts of one, or that are on one line; white space in JSX is trimmed line by line."""


@pytest.mark.parametrize("ending", GRAMMARS)
def test_every_kind_of_literal_of_a_grammar_is_known(ending: str) -> None:
    from tree_sitter import Language

    grammar = GRAMMARS[ending]
    assert grammar is not None
    language: Language = grammars.parser(grammar).language  # type: ignore[assignment] # it has one
    kinds = {
        language.node_kind_for_id(number) or ""
        for number in range(language.node_kind_count)
        if language.node_kind_is_visible(number) and language.node_kind_is_named(number)
    }
    asked = {kind for kind in kinds if LITERAL_KIND.search(kind) and not INSIDE.search(kind)}
    known = STRINGS[grammar.name] | COMMENTS | {kind for name, kind in EMBEDDED if name == grammar.name}
    code = CODE | {"sh": {"subshell"}, "cs": {"preproc_arg"}, "php": {"heredoc_body"}}.get(ending, set())
    assert sorted(asked - known - code) == []
    assert sorted(STRINGS[grammar.name] - kinds) == []


FIXED = {
    "two heredocs of a line, Ruby": ("a.rb", "f(<<A, <<B)\n  a\nA\n  b\nB\n", [1, 2, 3, 4]),
    "two heredocs of a line, bash": ("a.sh", "cat <<A <<B\n  a\nA\n  b\nB\n", [1, 2, 3, 4]),
    "the end of a heredoc": ("a.sh", "cat <<E\n  a\nE\nls\n", [1, 2]),
    "code behind a heredoc in its line": ("a.sh", "cat <<'E' | sed 's/a\n  b/'\n  a\nE\nls\n", [1, 2, 3]),
    "a heredoc in a command": ("a.sh", "x=$(cat <<E\n  a\nE\n)\n", [1, 2]),
    "below the end of the code": ("a.rb", "x = 1\n__END__\n  a\n", [2]),
    "a string in a macro, C": ("a.c", '#define X "a\\\n  b"\nint x;\n', [1]),
    "a raw string in a macro": ("a.cpp", '#define X R"(a\n  b)"\nint x;\n', [1]),
    "a suffix": ("a.cpp", 'auto x = R"(a\n  b)"_s;\n', [1]),
    "HTML in PHP": ("a.php", "<?php if (1) { ?>\n<pre>\n  a\n</pre>\n<p>\n  b</p>\n<?php } ?>\n", [2, 3]),
    "a string in JSX": ("a.jsx", 'x = <p title="a\n  b">c\n  d</p>\n', [1]),
    "an implicit concatenation": ("a.py", "x = ('a'\n  '''b\n  c''')\n", [2]),
    "a line that goes on in a string": ("a.js", "x = 'a\\\n  b'\n", [1]),
    "a commented block of old code": ("a.c", "    /*\nold();\n    */\n    x();\n", [1, 2]),
    "POD": ("a.pm", "x();\n=head1 A\n\n  b\n\n=cut\ny();\n", [1, 2, 3, 4, 5]),
    "a substitution of two parts": ("a.pl", "s{\n a\n}{\n  b\n}x;\nf(\n  1);\n", [1, 2, 3, 4]),
    "Perl data": ("a.pl", "x();\n__DATA__\n  b\n", [2]),
    "a doubled quote": ("a.sql", "SELECT 'it''s\n  a', \"b\"\"\n  c\";\nx\n", [1, 2]),
    "an escaped end": ("a.nix", "x = ''\n  a '''b'' c ''$d\n  '';\ny = 1;\n".replace("'' c", " c"), [1, 2]),
    "levels of brackets": ("a.lua", "x = [==[\n ]] ]=]\n]==]\ny()\n", [1, 2]),
    "a comment of Lua": ("a.lua", "  --[[\nold\n  ]]\ny()\n", [1, 2]),
    "a nested comment": ("a.ml", "  (* a (* b\n*) c\n  *)\n  y\n", [1, 2]),
    "a string that a comment seems to begin": ("a.kt", 'x = "/*"\ny = """\n  a */\n"""\n', [2, 3]),
    "a script": ("a.html", "<script>\n  f(`\n a\n`);\n  g();\n</script>\n", [2, 3]),
    "a value of an attribute": ("a.html", '<a title="x\n  y" href=z>\n  b</a>\n', [1]),
    "kept white space": ("a.xml", '<a>\n  <b xml:space="preserve">\n c\n</b>\n</a>\n', [2, 3]),
    "a define": ("Makefile", "define X\n  a\nendef\nall:\n\tcc\n", [1, 2]),
    "a sign of one letter": ("a.clj", '(f \\")\n(g "a\n  b")\n', [2]),
    "a heredoc of Terraform": ("a.tf", "x = <<-EOT\n  a\n  EOT\ny = 1\n", [1, 2]),
}
MOVING = {
    "a comment": ("a.c", "  /* a\n   * b\n   */\n  x();\n"),
    "a docstring": ("a.py", 'def f():\n    """A.\n\n    b\n    """\n'),
    "a comment of HTML": ("a.html", "  <!-- a\n    b\n  -->\n"),
    "a comment behind code": ("a.java", "  int x; /* a\n            b */\n"),
    "words of a list": ("a.rb", "x = %w[\n  a\n  b\n]\n"),
    "text in JSX": ("a.tsx", "x = <p>\n  a\n  b\n</p>\n"),
    "a shift": ("a.cpp", "x = a << b\n  << c;\n"),
    "generic types and lifetimes": ("a.rs", "fn f<'a>(\n  x: &'a str,\n) {}\n"),
    "text with apostrophes": ("a.lua", "-- don't\nx = 1\n-- it's\ny = 2\n"),
    "a hash of Perl": ("a.pl", "my %h = (\n  s => 1,\n  y => 2,\n  q => $x{s},\n);\n$#{a};\nf($q, $m);\n"),
    "type variables": ("a.ml", "let f (x : 'a) =\n  g x\nlet h (y : 'b) =\n  y\n"),
    "primes": ("a.hs", "f = do\n  foldl' g' x\n  h'\n"),
    "a shell in a block": ("a.yaml", "run: |\n  cat <<EOF\n  a\n  EOF\nb: '''\n"),
    "code in a document": ("a.md", "- a\n  ```py\n  x = '''\n  b\n  ```\n"),
    "a comment in a shell": ("a.zsh", "# it's\nf() {\n  echo ${#x} a\\'b\n}\n# isn't\n"),
    "an operator": ("a.nix", "{\n  x = a ++ [\n    b\n  ];\n}\n"),
    "lists in lists": ("a.json", "[[\n  1]]\n"),
    "attributes": ("a.html", "<a x=1 y='2'\n  z>\n  b</a>\n"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "text", "wanted"), FIXED.values(), ids=FIXED.keys())
def test_lines_that_stay(path: str, text: str, wanted: list[int]) -> None:
    found = literals(text, language_of(path, text))
    assert [line for each in found if not each.moves for line in range(each.first, each.last + 1)] == wanted


@pytest.mark.parametrize(("path", "text"), MOVING.values(), ids=MOVING.keys())
def test_lines_that_move_with_the_code(path: str, text: str) -> None:
    assert [each for each in literals(text, language_of(path, text)) if not each.moves] == []


@pytest.mark.parametrize(
    ("code", "unclear"),
    [
        ("a\n  b", False),
        ("f('x')\n  g(\"y\")", False),
        ("don't\n  do it", False),
        ("x = 'a\n  b'", True),
        ("x = $$\n  b\n$$", True),
        ("x = q{\n  b\n}", True),
        ("x <<EOF\n  b\nEOF", True),
        ('x = "one line"', False),
    ],
)
def test_what_may_be_a_literal_in_an_unknown_language(code: str, unclear: bool) -> None:
    assert may_hold_more(code, language_of("a.unheard", code)) == unclear
    assert not may_hold_more(code, language_of("a.py", code))


def test_hostile_text_costs_little() -> None:
    for text in ("<<A\n" * 800, "q{" * 800, "(*" * 800, '"' * 801, "<pre>" * 800, "[=[" * 800, "$a$" * 801):
        for path in ("a.pl", "a.ml", "a.lua", "a.sql", "a.html", "a.sh.unheard"):
            list(spans(text, signs_of(path)))


EDITS = {
    "a new string, code too far left": ("a.py", "    x = 1\n", "    x = '''\nA\n    '''\n", True),
    "a new heredoc": ("a.rb", "  x = 1\n", "  x = <<E\nA\nE\n", True),
    "POD": ("a.pl", "  f();\n", "  f();\n  =pod\n", False),
    "code alone": ("a.py", "    x = 1\n", "    x = 1\n    y = 2\n", False),
    "a comment": ("a.c", "    x();\n", "    /* a\n     * b */\n    x();\n", False),
}


@pytest.mark.parametrize(("path", "before", "after", "refused"), EDITS.values(), ids=EDITS.keys())
def test_a_line_in_a_string_that_nobody_gave_is_refused(path: str, before: str, after: str, refused: bool) -> None:
    refuse_altered(path, before, after, [after])
    given = re.sub("^ +|(?<=\n) +", "", after) if not refused else after.replace("A\n", "  A\n")
    if not refused:
        refuse_altered(path, before, after, [given])
        return
    with pytest.raises(EditRefused, match="indented"):
        refuse_altered(path, before, after, [given])
