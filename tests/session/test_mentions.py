"""The spelling of mentions: what is one, what is none, and that what is written is read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.session.request import MOST_MENTIONS, Mention, mentions_in, shorter_readings, write_mention


def file(path: str, text: str = "", symbol: str = "", lines: tuple[int, int] | None = None) -> Mention:
    return Mention("file", text or f"@{path}", path, symbol, lines)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("look at @src/a.py.", [file("src/a.py")]),
        ("@a.py, @b.py; (@c.py)", [file("a.py"), file("b.py"), file("c.py")]),
        ("@src/a.py#Cart.total, and", [file("src/a.py", "@src/a.py#Cart.total", "Cart.total")]),
        ("@a.py:10-20", [file("a.py", "@a.py:10-20", lines=(10, 20))]),
        ("@a.py:10", [file("a.py", "@a.py:10", lines=(10, 10))]),
        ("@a.py:10:7", [file("a.py", "@a.py:10:7", lines=(10, 10))]),
        ("@a.py#L3-L9 @a.py#L3", [file("a.py", "@a.py#L3-L9", lines=(3, 9)), file("a.py", "@a.py#L3", lines=(3, 3))]),
        ("@a.py:9-3", [file("a.py", "@a.py:9-3", lines=(9, 9))]),
        ('@"my file.py"#total.', [file("my file.py", '@"my file.py"#total', "total")]),
        ("@src/", [file("src/")]),
        ("看@a.py，然后 @src/甲.py。", [file("a.py"), file("src/甲.py")]),
        (
            "@diff @diagnostics. @selection @terminal-output",
            [Mention(kind, f"@{kind}") for kind in ("diff", "diagnostics", "selection", "terminal-output")],
        ),
        ("@a.py @a.py", [file("a.py")]),
        ("a@b.org", []),
        ("`@a.py` \\@a.py @@a @ a", []),
        ('@"" @"\n"', []),
        ("@app/(shop)/[id]/page.tsx.", [file("app/(shop)/[id]/page.tsx")]),
        ("(see @a.py) [@b.py](x)", [file("a.py"), file("b.py")]),
        ("@C#/a.cs @C#/a.cs#Cart", [file("C#/a.cs"), file("C#/a.cs", "@C#/a.cs#Cart", "Cart")]),
        ("@lib/SDL2 and @a.md#SDL2", [file("lib/SDL2"), file("a.md", "@a.md#SDL2", "SDL2")]),
        ("@“my file.py”", [file("my file.py", "@“my file.py”")]),
        ("@a.py `npm i @types/node` @b.py", [file("a.py"), file("b.py")]),
        ("@a.py\n```py\n@b.py\n```\n@c.py\n~~~\n~~~\n@d.py", [file("a.py"), file("c.py"), file("d.py")]),
        ("``@a.py`` ``x ` @b.py`` @c.py", [file("c.py")]),
        ("````\n```\n@a.py\n```\n@b.py\n````\n@c.py", [file("c.py")]),
        ("one ` and @a.py, two `` and @b.py", [file("a.py"), file("b.py")]),
        ("```\nit is open\n\n@a.py", [file("a.py")]),
        ("你好~~~ 请看 @a.py ~~~", [file("a.py")]),
        ("say ``` and @a.py", [file("a.py")]),
    ],
)
def test_what_is_a_mention(words: str, found: list[Mention]) -> None:
    assert list(mentions_in(words)) == found


@pytest.mark.parametrize(
    ("words", "path", "symbol", "lines"),
    [
        ("看@src/a.py里的total", "src/a.py", "", None),
        ("@文档/说明.md里写的", "文档/说明.md", "", None),
        ("@src/a.pyを直して", "src/a.py", "", None),
        ("@src/a.py를 고쳐", "src/a.py", "", None),
        ("@src/a.py’s total", "src/a.py", "", None),
        ("@src/a.py…", "src/a.py", "", None),
        ("【@src/a.py】", "src/a.py", "", None),
        ("@a.py:2-3行", "a.py", "", (2, 3)),
        ("@a.py#L2行", "a.py", "", (2, 2)),
        ("@a.py#Cart.total里", "a.py", "Cart.total", None),
        ('@"my a.py"#total的', "my a.py", "total", None),
        ("@src/a.py(旧的)", "src/a.py", "", None),
        ("@issue#12.md", "issue#12.md", "", None),
        ("@notes:10", "notes:10", "", None),
    ],
)
def test_words_behind_a_name_without_a_blank(words: str, path: str, symbol: str, lines: tuple[int, int] | None) -> None:
    (mention,) = mentions_in(words)
    found = [(each.path, each.symbol, each.lines) for each in shorter_readings(mention)]
    assert (path, symbol, lines) in found


def test_special_mentions_with_words_behind_them() -> None:
    (mention,) = mentions_in("@diff里有什么")
    assert [each.kind for each in shorter_readings(mention)] == ["diff"]


def test_there_is_a_most() -> None:
    assert len(mentions_in(" ".join(f"@a{number}.py" for number in range(100)))) == MOST_MENTIONS


@given(
    st.text(st.characters(codec="utf-8", exclude_characters='"\n\r#'), min_size=1, max_size=40).filter(str.strip),
    st.none() | st.tuples(st.integers(1, 999), st.integers(0, 99)).map(lambda pair: (pair[0], sum(pair))),
)
def test_what_is_written_is_read(path: str, lines: tuple[int, int] | None) -> None:
    (found,) = mentions_in(f"see {write_mention(path, lines)} now")
    if found.kind == "file":
        assert (found.path, found.lines, found.symbol) == (path, lines, "")
    else:
        assert path == found.kind


@given(st.text(max_size=300))
def test_nothing_is_raised(words: str) -> None:
    mentions_in(words)
