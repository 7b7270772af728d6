"""Whatever stands around a name, its uses are found where they are, in every language; no comment is one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.code.ast_edit import AstEdit, edited
from codeagent_lsp.tools.code.meaning import Site, defined, definition_site, elsewhere, references, with_constructors
from codeagent_lsp.tools.code.source import required
from tests.tools.code.kits import KITS, Kit
from tests.tools.code.test_edit_properties import SETTINGS, files, is_comment

EACH_KIT = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)
NOTES = {"#": "# {name}() and 'so' on", "//": '// {name}(); "so" on'}


def found(path: str, text: str, symbol: str) -> tuple[Site, ...]:
    """The uses of a symbol in the one text that there is."""
    source = required(path, text)
    return references(source, symbol, elsewhere([(source, each) for each in defined(source, symbol)])).sites


def places(sites: tuple[Site, ...]) -> list[tuple[int, int]]:
    return [(site.line, site.column) for site in sites]


def last_name(symbol: str) -> str:
    return symbol.rpartition(".")[2]


@EACH_KIT
class TestEveryLanguage:
    @given(data=st.data())
    @SETTINGS
    def test_a_use_is_where_the_name_stands(self, kit: Kit, data: st.DataObject) -> None:
        file = data.draw(files(kit))
        name, lines = last_name(file.piece.target), file.text.splitlines()

        sites = found(kit.path, file.text, file.piece.target)

        assert places(sites) == sorted(set(places(sites)))
        for site in sites:
            line = lines[site.line - 1]
            assert re.match(rf"{re.escape(name)}\b", line[site.column - 1 :])
            assert not is_comment(kit, line)
            assert site.text == line.strip()[:160]

    @given(data=st.data(), above=st.integers(0, 3), below=st.integers(0, 3))
    @SETTINGS
    def test_comments_above_and_below_change_nothing(
        self, kit: Kit, data: st.DataObject, above: int, below: int
    ) -> None:
        file = data.draw(files(kit, may_break=False))
        name = last_name(file.piece.target)
        note = NOTES["#" if kit.name in ("python", "ruby", "bash") else "//"].format(name=name) + "\n"
        head, text = kit.head, file.text.replace("\r\n", "\n")

        noted = head + note * above + text[len(head) :].rstrip("\n") + "\n" + note * below

        moved = [
            (line + above if line > head.count("\n") else line, column)
            for line, column in places(found(kit.path, text, file.piece.target))
        ]
        assert places(found(kit.path, noted, file.piece.target)) == moved

    @given(data=st.data())
    @SETTINGS
    def test_line_ends_change_nothing(self, kit: Kit, data: st.DataObject) -> None:
        file = data.draw(files(kit))
        text = file.text.replace("\r\n", "\n")

        one, other = (found(kit.path, each, file.piece.target) for each in (text, text.replace("\n", "\r\n")))

        assert one == other

    @given(data=st.data())
    @SETTINGS
    def test_what_a_rename_changes_are_the_definition_and_its_uses(self, kit: Kit, data: st.DataObject) -> None:
        file = data.draw(files(kit, may_break=False))
        symbol = file.piece.target
        named = kit.named.title() if last_name(symbol)[0].isupper() else kit.named
        try:
            done = edited(kit.path, file.text, [AstEdit(symbol, "rename", named)]).text
        except EditRefused:
            return
        source = required(kit.path, file.text)
        definitions = {
            definition_site(source, each).line for each in with_constructors(source, defined(source, symbol))
        }
        uses = {site.line for site in found(kit.path, file.text, symbol)}

        pairs = zip(file.text.splitlines(), done.splitlines(), strict=True)
        changed = {number for number, (one, other) in enumerate(pairs, 1) if one != other}

        assert changed <= definitions | uses
        assert {site.line for site in found(kit.path, done, _renamed(symbol, named))} >= changed - definitions


def _renamed(symbol: str, named: str) -> str:
    return f"{symbol.rpartition('.')[0]}.{named}".lstrip(".")
