"""A prepared change follows typing as a merge would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.server.editor import Prepared
from codeagent_lsp.server.text_edits import minimal_edits
from codeagent_lsp.workspace.changes.changeset import Current, FileChange
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.text.document import Change, Document

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "d\n", "\n", "é🎉\n"]), max_size=4)


@given(st.data())
def test_it_is_what_a_merge_makes_and_its_edits_make_it(data: st.DataObject) -> None:
    base = [f"{number}\n" for number in range(data.draw(st.integers(0, 12)))] + data.draw(
        st.sampled_from([[], ["end"]])
    )
    text, now = spliced(base, data), spliced(base, data)
    text = spliced(text, data)
    change = FileChange("/a", "".join(base), "".join(text), 1)
    prepared = Prepared(change, minimal_edits("".join(base), "".join(text), "utf-16"))
    follows = prepared.onto(Current("".join(now), 2))
    if follows is None:
        return
    merged = merge.merge("".join(base), "".join(text), "".join(now), beside=True)
    assert (follows.change.base, follows.change.version, merged.conflicts) == ("".join(now), 2, ())
    assert follows.change.text == merged.text
    document = Document("", "".join(now), 2)
    for edit in reversed(follows.edits):
        start, end = edit.range.start, edit.range.end
        document = document.apply(
            Change(edit.new_text, (start.line, start.character), (end.line, end.character)), "utf-16"
        )
    assert document.text == merged.text


def test_it_follows_what_is_typed_above_and_below_and_nothing_else() -> None:
    base, text = "1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nfour\nand\n5\n6\n7\n"
    prepared = Prepared(FileChange("/a", base, text), minimal_edits(base, text, "utf-16"))
    for now, expected in (
        (f"0\n{base}", f"0\n{text}"),
        (base.replace("7", "7!"), text.replace("7", "7!")),
        (base.replace("4", "IV"), None),
        (base.replace("1", "1!").replace("7", "7!"), None),
    ):
        follows = prepared.onto(Current(now))
        assert (follows and follows.change.text) == expected


def spliced(lines: list[str], data: st.DataObject) -> list[str]:
    start = data.draw(st.integers(0, len(lines)))
    end = data.draw(st.integers(start, min(len(lines), start + 3)))
    return [*lines[:start], *data.draw(LINES), *lines[end:]]
