"""Parsing: a sample of every language, broken and hostile texts, and the packed form."""

from __future__ import annotations

import time

import pytest

from codeagent_lsp.index.grammars import KEPT, grammar_of, tree_of
from codeagent_lsp.index.parse import MAX_BYTES, parse, parsed
from codeagent_lsp.index.symbols import (
    FileTags,
    Import,
    Packed,
    Reference,
    Scopes,
    SymbolInfo,
    pack,
    unpack,
    unpack_defined,
    unpack_symbols,
    unpack_used,
)
from tests.index.samples import Sample, rendered, samples

SAMPLES = samples()


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample.path for sample in SAMPLES])
class TestEveryLanguage:
    @pytest.mark.slow
    def test_everything_in_it_is_found(self, sample: Sample) -> None:
        assert rendered(parse(sample.path, sample.text)) == sample.tags

    def test_every_cut_of_it_is_survived(self, sample: Sample) -> None:
        for end in range(0, len(sample.text), 101):
            tags = parse(sample.path, sample.text[:end])
            assert all(1 <= s.line_start <= s.line_end for s in tags.symbols)

    def test_what_overlaps_a_range_is_found_as_in_the_whole(self, sample: Sample) -> None:
        data = sample.text.encode()
        whole = parsed(sample.path, data)
        assert whole is not None
        for start in range(0, len(data), 97):
            part = parsed(sample.path, data, within=(start, start + 40))
            assert part is not None
            found = {
                (each.node.start_byte, each.symbol.qualified, each.symbol.signature) for each in part.outline.places
            }
            for node, symbol in ((each.node, each.symbol) for each in whole.outline.places):
                if node.start_byte < start + 40 and node.end_byte > start:
                    assert (node.start_byte, symbol.qualified, symbol.signature) in found

    def test_with_windows_line_ends_the_same_is_found(self, sample: Sample) -> None:
        plain, windows = parse(sample.path, sample.text), parse(sample.path, sample.text.replace("\n", "\r\n"))
        assert [(s.qualified, s.kind, s.line_start) for s in windows.symbols] == [
            (s.qualified, s.kind, s.line_start) for s in plain.symbols
        ]

    def test_packed_and_unpacked_it_is_the_same(self, sample: Sample) -> None:
        tags = parse(sample.path, sample.text)
        packed = pack(tags)
        assert unpack(sample.path, packed) == tags
        assert unpack_symbols(sample.path, packed.outline) == tags.symbols
        assert set(unpack_defined(sample.path, packed.defined)) == {s.name for s in tags.symbols}
        assert sum(unpack_used(sample.path, packed.used).values()) == len(tags.references)


def test_the_tree_of_a_text_is_kept_until_others_have_been_asked_for() -> None:
    grammars = [grammar for name in ("a.py", "a.js") if (grammar := grammar_of(name)) is not None]
    kept = [tree_of(grammar, b"f(x)") for grammar in grammars]
    assert [tree_of(grammar, b"f(x)") for grammar in grammars] == kept
    assert kept[0] is not kept[1]
    for number in range(KEPT):
        tree_of(grammars[0], b"f(%d)" % number)
    assert tree_of(grammars[0], b"f(x)") is not kept[0]


class TestBadTexts:
    @pytest.mark.parametrize(
        ("path", "data"),
        [
            ("a.txt", b"def f(): pass"),
            ("a.py", b"\x00\x01\x02" * 100),
            ("a.py", b"\xff\xfe" + "x = 1".encode("utf-16-be")),
            ("a.py", b""),
            ("noending", b"def f(): pass"),
            ("a.py", b"#" * (MAX_BYTES + 1)),
        ],
    )
    def test_nothing_is_found_and_nothing_raised(self, path: str, data: bytes) -> None:
        assert parse(path, data).symbols == ()

    def test_broken_code_gives_what_is_whole(self) -> None:
        tags = parse("a.py", "class A:\n    def good(self): return 1\n\ndef bad(:\n    (((\n")
        assert tags.broken
        assert "A.good" in {s.qualified for s in tags.symbols}

    def test_utf_16_and_latin_1_texts_are_read(self) -> None:
        for data in ("def größe(): pass\n".encode("utf-16"), "def größe(): pass\n".encode("latin-1")):
            assert [s.name for s in parse("a.py", data).symbols] == ["größe"]

    def test_lone_surrogates_do_no_harm(self) -> None:
        assert [s.name for s in parse("a.py", "def f():\n    return '\ud800'\n").symbols] == ["f"]

    @pytest.mark.slow
    @pytest.mark.parametrize("ending", ["py", "js", "cpp", "rs", "rb", "sh", "php", "cs"])
    def test_hopeless_texts_end_in_time(self, ending: str) -> None:
        started = time.monotonic()
        parse(f"a.{ending}", "(" * 200_000 + "{" * 100_000)
        parse(f"a.{ending}", "if (a) {\n" * 20_000)
        assert time.monotonic() - started < 30

    @pytest.mark.parametrize(
        ("path", "opening", "closing"), [("a.ts", "class A { b() {", "}}"), ("a.py", "f(", ")"), ("a.js", "x=>{", "}")]
    )
    def test_sound_texts_may_be_nested_as_deep_as_they_like(self, path: str, opening: str, closing: str) -> None:
        started = time.monotonic()
        tags = parse(path, opening * 10_000 + closing * 10_000)
        assert time.monotonic() - started < 10
        assert not tags.broken
        assert len(tags.symbols) < 100

    def test_a_time_limit_ends_a_long_text(self) -> None:
        tags = parse("a.py", "x = [1, 2, 3]\n" * 70_000, seconds=0.0)
        assert tags == FileTags("python", broken=True)

    @pytest.mark.slow
    def test_long_texts_take_linear_time(self) -> None:
        """Comments and wrappers are looked up, never searched for among the siblings."""
        started = time.monotonic()
        tags = parse("a.h", "".join(f"/* c */\n#define N{n} {n}\n" for n in range(20_000)))
        assert len(tags.symbols) == 20_000
        assert time.monotonic() - started < 15

    def test_overlong_names_and_signatures_are_cut_or_left_out(self) -> None:
        tags = parse("a.py", f"def {'f' * 500}(): pass\ndef g({', '.join(f'arg{n}' for n in range(200))}): pass\n")
        assert [s.name for s in tags.symbols] == ["g"]
        assert len(tags.symbols[0].signature) == 240


class TestDetails:
    @pytest.mark.parametrize(
        ("path", "first", "language"),
        [
            ("run", "#!/usr/bin/env python3\n", "python"),
            ("run", "#!/bin/sh\n", "bash"),
            ("run", "#!/usr/bin/env -S node\n", "javascript"),
            ("Rakefile", "", "ruby"),
            ("A.PY", "", "python"),
            ("x.h", "", "cpp"),
            ("x.unknown", "#!/bin/sh\n", ""),
        ],
    )
    def test_the_language_of_a_file(self, path: str, first: str, language: str) -> None:
        grammar = grammar_of(path, first.encode())
        assert (grammar.name if grammar else "") == language

    def test_a_shebang_describes_nothing(self) -> None:
        assert parse("a.py", "#!/usr/bin/env python\ndef f(): pass\n").symbols[0].docstring == ""

    def test_only_the_first_paragraph_of_a_docstring(self) -> None:
        tags = parse("a.py", 'def f():\n    """One\n    line.\n\n    More.\n    """\n')
        assert tags.symbols[0].docstring == "One line."

    def test_an_attribute_between_comment_and_definition_is_passed_over(self) -> None:
        assert parse("a.rs", "/// Doc.\n#[inline]\nfn f() {}\n").symbols[0].docstring == "Doc."

    def test_a_comment_apart_describes_nothing(self) -> None:
        assert parse("a.go", "package a\n// PrivateView.\n\nfunc f() {}\n").symbols[0].docstring == ""

    def test_multi_line_signatures_become_one_line(self) -> None:
        tags = parse("a.py", "def f(\n    a: int,\n    b: str,\n) -> None:\n    pass\n")
        assert tags.symbols[0].signature == "def f(a: int, b: str) -> None"

    def test_decorators_belong_to_the_lines(self) -> None:
        symbol = parse("a.py", "@one\n@two(1)\ndef f():\n    pass\n").symbols[0]
        assert (symbol.line_start, symbol.line_end, symbol.signature) == (1, 4, "def f()")

    def test_references_know_what_they_are_in(self) -> None:
        tags = parse("a.py", "def f():\n    def g():\n        h()\n    i()\nj()\n")
        assert {(r.name, r.within) for r in tags.references} == {("h", "f.g"), ("i", "f"), ("j", "")}

    def test_scopes_side_by_side_and_nested(self) -> None:
        def symbol(name: str, start: int, end: int, parent: str = "") -> SymbolInfo:
            return SymbolInfo(name, "function", "", start, end, parent=parent)

        scopes = Scopes((symbol("a", 2, 9), symbol("b", 3, 5, "a"), symbol("c", 6, 6, "a"), symbol("d", 12, 12)))
        assert [scopes.at(line) for line in (1, 2, 3, 5, 6, 7, 9, 10, 12, 13)] == [
            "", "a", "a.b", "a.b", "a.c", "a", "a", "", "d", "",
        ]  # fmt: skip

    @pytest.mark.parametrize("field", ["outline", "used"])
    @pytest.mark.parametrize("junk", ["", "[]", "{", "[[[", "null", '["python",0,[[1]],[]]'])
    def test_damaged_texts_are_value_errors(self, field: str, junk: str) -> None:
        tags = FileTags("python", (), (Reference("a", 1),), (Import("os", (), 1),))
        with pytest.raises(ValueError):
            unpack("a.py", Packed(*(junk if name == field else text for name, text in pack(tags)._asdict().items())))
