"""Whatever an edit does to one definition, every other byte of the file is what it was."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.code.ast_edit import AstEdit, Operation, edited
from codeagent_lsp.tools.code.extent import extent_of
from codeagent_lsp.tools.code.source import find_one, required
from tests.examples import examples, volume
from tests.tools.code.kits import KITS, Kit, Piece

SETTINGS = settings(deadline=None, max_examples=examples(max(40, volume(100))))
"""For each language and property."""
EACH_KIT = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)


@dataclass(frozen=True)
class File:
    """A file made of pieces; the target stands between `before` and `after`."""

    kit: Kit
    before: str
    piece: Piece
    target: str
    after: str
    broken: bool

    @property
    def text(self) -> str:
        return self.before + self.target + self.after

    def edited(self, operation: Operation, code: str = "") -> str:
        return edited(self.kit.path, self.text, [AstEdit(self.piece.target, operation, code)]).text


@st.composite
def files(draw: st.DrawFn, kit: Kit, *, may_break: bool = True) -> File:
    target = draw(st.sampled_from(kit.targets))
    others = draw(st.permutations([piece for piece in kit.pieces if piece is not target]))
    place = draw(st.integers(0, len(others)))
    gap = "\n" * draw(st.integers(1, 2))
    broken = may_break and draw(st.booleans())
    indent = draw(st.sampled_from(["\t", "    ", "  "])) if kit.outer[0] else ""
    above = kit.head + kit.outer[0] + "".join(_indented(piece, indent) + gap for piece in others[:place])
    below = "".join(gap + _indented(piece, indent) for piece in others[place:]) + kit.outer[1]
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    body = _indented(target, indent)
    if broken:
        below += "\n\n" + kit.broken
    if not below and draw(st.booleans()):
        body = body.removesuffix("\n")
    elif draw(st.booleans()):
        below = below.removesuffix("\n")
    before, middle, after = (part.replace("\n", newline) for part in (above, body, below))
    return File(kit, before, target, middle, after, broken)


def _indented(piece: Piece, indent: str) -> str:
    """Lines inside strings are indented, too: here they are what they are."""
    return "".join(indent + line if line.strip() else line for line in piece.text.splitlines(keepends=True))


def _attempt(file: File, operation: Operation, code: str) -> str | None:
    """The new text; None where the edit was refused, which with broken code around may be, or for a missing body."""
    try:
        return file.edited(operation, code)
    except EditRefused as refusal:
        assert file.broken or (file.piece.body is None and "has no body" in str(refusal)), refusal
        return None


def _ends_kept(file: File, done: str) -> None:
    assert ("\r\n" in done) == ("\r\n" in file.text)
    if "\r\n" in file.text:
        assert "\n" not in done.replace("\r\n", "")
    assert done.endswith("\n") == file.text.endswith("\n")


@EACH_KIT
class TestEveryLanguage:
    @given(data=st.data())
    @SETTINGS
    def test_replacing_leaves_the_rest(self, kit: Kit, data: st.DataObject) -> None:
        file = data.draw(files(kit))
        done = _attempt(file, "replace", kit.whole)
        if done is not None:
            assert done.startswith(file.before) and done.endswith(file.after)
            assert kit.named in done[len(file.before) : len(done) - len(file.after)]
            _ends_kept(file, done)

    @given(data=st.data())
    @SETTINGS
    def test_a_new_body_leaves_the_rest(self, kit: Kit, data: st.DataObject) -> None:
        file = data.draw(files(kit))
        body = kit.body if file.piece.body == "" else file.piece.body
        done = _attempt(file, "replace_body", body or "none")
        assert body is not None or done is None
        if done is not None:
            assert done.startswith(file.before) and done.endswith(file.after)
            new = done[len(file.before) : len(done) - len(file.after)]
            assert all(line.strip(" \t;") in new for line in (body or "").splitlines())
            _ends_kept(file, done)

    @given(data=st.data(), operation=st.sampled_from(["insert_before", "insert_after"]))
    @SETTINGS
    def test_inserting_leaves_everything(self, kit: Kit, data: st.DataObject, operation: Operation) -> None:
        file = data.draw(files(kit))
        done = _attempt(file, operation, kit.whole)
        if done is None:
            return
        assert done.startswith(file.before) and done.endswith(file.after)
        middle = done[len(file.before) : len(done) - len(file.after)]
        target = file.target if file.target.endswith("\n") else file.target.rstrip("\r\n")
        assert middle.endswith(target) if operation == "insert_before" else middle.startswith(target)
        _ends_kept(file, done)

    @given(data=st.data())
    @SETTINGS
    def test_deleting_leaves_all_other_lines(self, kit: Kit, data: st.DataObject) -> None:
        file = data.draw(files(kit))
        done = _attempt(file, "delete", "")
        if done is not None:
            rest = file.before + file.after
            assert [line for line in done.splitlines() if line] == [line for line in rest.splitlines() if line]
            assert done.startswith(file.before.rstrip("\r\n")) and done.endswith(file.after.lstrip("\r\n"))

    @given(data=st.data())
    @SETTINGS
    def test_renaming_changes_names_only(self, kit: Kit, data: st.DataObject) -> None:
        file = data.draw(files(kit))
        old = file.piece.target.rpartition(".")[2]
        named = kit.named.title() if old[0].isupper() else kit.named
        done = _attempt(file, "rename", named)
        if done is None:
            return
        before, after = file.text.splitlines(), done.splitlines()
        assert len(before) == len(after)
        for one, other in zip(before, after, strict=True):
            assert re.sub(rf"\b{named}\b", old, other) in (one, one.replace(f"{old}:", f"{old}: {old}"))
            assert one == other or re.search(rf"\b{old}\b", one)
            if is_comment(kit, one):
                assert one == other

    @given(data=st.data())
    @SETTINGS
    def test_its_own_text_in_its_place_is_refused_as_there_is_nothing_to_do(
        self, kit: Kit, data: st.DataObject
    ) -> None:
        file = data.draw(files(kit, may_break=False))
        source = required(kit.path, file.text)
        extent = extent_of(source, find_one(source, file.piece.target))
        own = source.slice(source.line_start(extent.top), extent.end)
        with pytest.raises(EditRefused) as refused:
            file.edited("replace", own)
        assert refused.value.reason == "already_applied"

    @given(data=st.data())
    @SETTINGS
    def test_what_was_inserted_can_be_deleted_again(self, kit: Kit, data: st.DataObject) -> None:
        file = data.draw(files(kit, may_break=False))
        done = file.edited("insert_after", kit.whole)
        prefix = f"{file.piece.target.rpartition('.')[0]}." if "." in file.piece.target and kit.outer[0] else ""
        assert edited(kit.path, done, [AstEdit(f"{prefix}{kit.named}", "delete")]).text == file.text

    @given(data=st.data())
    @SETTINGS
    def test_code_that_does_not_parse_is_refused(self, kit: Kit, data: st.DataObject) -> None:
        file = data.draw(files(kit, may_break=False))
        with pytest.raises(EditRefused, match=r"line \d+|cannot be parsed|would no longer be"):
            file.edited("replace", kit.broken)


def is_comment(kit: Kit, line: str) -> bool:
    marks = ("#",) if kit.name in ("python", "ruby", "bash") else ("//", "/*", " *")
    return line.strip().startswith(marks) and not line.strip().startswith("#[")
