"""Staging: what a run has made of files, step by step, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from codeagent_lsp.errors import FileRefused, ToolFailed
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileText, StagedFile
from tests.examples import examples
from tests.workspace.changes.test_changeset import applied


@dataclass
class Desk:
    """A staging over a dictionary of what the user has; `told` mirrors what it says has changed."""

    files: dict[str, str]
    told: dict[str, FileChange] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.staging = Staging(self.base, self.on_change)

    def base(self, path: str) -> FileText | None:
        return FileText(path, self.files[path], "buffer", 5) if path in self.files else None

    def on_change(self, path: str, change: FileChange | None) -> None:
        self.calls.append(path)
        self.told.pop(path, None)
        if change is not None:
            self.told[path] = change

    def read(self, path: str) -> FileText | None:
        state = self.staging.lookup(path)
        if state is None:
            return self.base(path)
        return None if state.text is None else FileText(path, state.text, "staged")

    def write(self, path: str, text: str | None) -> str:
        return self.staging.write({path: text}).change_id

    def move(self, source: str, target: str) -> str:
        file = self.read(source)
        assert file is not None
        return self.staging.move(target, file).change_id

    @property
    def changes(self) -> list[FileChange]:
        return list(self.staging.changeset)

    def seen(self) -> dict[str, str]:
        """All files as the run sees them."""
        paths = {*self.files, *self.staging.paths()}
        return {path: file.text for path in paths if (file := self.read(path)) is not None}


@pytest.fixture
def desk() -> Desk:
    return Desk({"a": "A\n", "b": "B\n", "c": "C\n"})


# --- writing


def test_an_edit_keeps_the_first_base_and_version(desk: Desk) -> None:
    desk.write("a", "1\n")
    desk.files["a"] = "typed since\n"
    desk.write("a", "2\n")
    assert desk.changes == [FileChange("a", "A\n", "2\n", 5)]


def test_what_was_read_is_the_base_even_when_the_user_typed_since(desk: Desk) -> None:
    read = desk.base("a")
    assert read is not None
    desk.files["a"] = "typed\nA\n"
    desk.staging.write({"a": "A\nours\n"}, [read])
    assert desk.changes == [FileChange("a", "A\n", "A\nours\n", 5)]
    moving = desk.base("b")
    assert moving is not None
    desk.files["b"] = "typed\n"
    desk.staging.move("d", moving)
    assert desk.changes[1] == FileChange("d", "B\n", "B\n", 5, "b")


def test_a_staged_text_that_was_read_is_no_base(desk: Desk) -> None:
    desk.staging.write({"a": "made from staged text\n"}, [FileText("a", "staged\n", "staged")])
    assert desk.changes == [FileChange("a", "A\n", "made from staged text\n", 5)]


def test_going_back_to_the_users_text_leaves_nothing(desk: Desk) -> None:
    desk.write("a", "1\n")
    desk.write("a", "A\n")
    assert desk.changes == []
    assert desk.staging.lookup("a") is None
    assert desk.told == {}


def test_create_edit_and_delete_again(desk: Desk) -> None:
    desk.write("new", "")
    assert desk.changes == [FileChange("new", None, "")]
    assert desk.staging.lookup("new") == StagedFile("")
    desk.write("new", "x\n")
    assert desk.changes == [FileChange("new", None, "x\n")]
    desk.write("new", None)
    assert desk.changes == []


def test_delete_then_create_again_is_an_edit(desk: Desk) -> None:
    desk.write("a", None)
    assert desk.staging.lookup("a") == StagedFile(None)
    desk.write("a", "again\n")
    assert desk.changes == [FileChange("a", "A\n", "again\n", 5)]


def test_several_files_are_one_step(desk: Desk) -> None:
    step = desk.staging.write({"a": "1\n", "b": None, "new": "n\n"})
    assert step.paths == ("a", "b", "new")
    assert [change.kind for change in desk.changes] == ["edit", "delete", "create"]
    desk.staging.undo()
    assert desk.changes == []


# --- moving


def test_move_then_edit_then_delete(desk: Desk) -> None:
    desk.move("a", "d")
    assert desk.changes == [FileChange("d", "A\n", "A\n", 5, "a")]
    assert (desk.staging.lookup("a"), desk.staging.lookup("d")) == (StagedFile(None), StagedFile("A\n"))
    assert set(desk.staging.paths()) == {"a", "d"}
    desk.write("d", "edited\n")
    assert desk.changes == [FileChange("d", "A\n", "edited\n", 5, "a")]
    desk.write("d", None)
    assert desk.changes == [FileChange("a", "A\n", None, 5)]
    assert desk.told == {"a": desk.changes[0]}


def test_edit_then_move_then_move_again_and_back(desk: Desk) -> None:
    desk.write("a", "edited\n")
    desk.move("a", "d")
    desk.move("d", "e")
    assert desk.changes == [FileChange("e", "A\n", "edited\n", 5, "a")]
    assert desk.staging.lookup("d") is None
    desk.move("e", "a")
    assert desk.changes == [FileChange("a", "A\n", "edited\n", 5)]
    assert desk.told == {"a": desk.changes[0]}


def test_moving_there_and_back_is_nothing(desk: Desk) -> None:
    desk.move("a", "d")
    desk.move("d", "a")
    assert desk.changes == []
    assert desk.seen() == desk.files


def test_create_then_move_is_a_creation_at_the_new_place(desk: Desk) -> None:
    desk.write("new", "n\n")
    desk.move("new", "newer")
    assert desk.changes == [FileChange("newer", None, "n\n")]
    assert desk.staging.lookup("new") is None
    assert desk.told == {"newer": desk.changes[0]}


def test_nothing_takes_the_place_of_a_file_that_was_moved_away(desk: Desk) -> None:
    desk.move("a", "d")
    before = desk.staging.changeset
    with pytest.raises(FileRefused, match="moved away"):
        desk.write("a", "other\n")
    with pytest.raises(FileRefused, match="moved away"):
        desk.move("b", "a")
    assert desk.staging.changeset == before
    assert desk.staging.undo().change_id == "c1"


def test_moving_to_the_place_of_a_deleted_file_keeps_that_files_base(desk: Desk) -> None:
    desk.write("a", None)
    desk.move("b", "a")
    assert desk.changes == [FileChange("a", "A\n", "B\n", 5), FileChange("b", "B\n", None, 5)]
    assert desk.seen() == {"a": "B\n", "c": "C\n"}


def test_a_new_file_moved_to_the_place_of_a_deleted_one_is_an_edit(desk: Desk) -> None:
    desk.write("a", None)
    desk.write("new", "n\n")
    desk.move("new", "a")
    assert desk.changes == [FileChange("a", "A\n", "n\n", 5)]


# --- undo


def test_undo_the_last_one_by_id_and_all_after_it(desk: Desk) -> None:
    ids = [desk.write("a", "1\n"), desk.write("b", "2\n"), desk.move("a", "d"), desk.write("c", None)]
    assert len(set(ids)) == 4
    assert desk.staging.undo().change_id == ids[3]
    assert [change.path for change in desk.changes] == ["b", "d"]
    step = desk.staging.undo(ids[1])
    assert (step.change_id, step.paths) == (ids[1], ("b", "a", "d"))
    assert desk.changes == [FileChange("a", "A\n", "1\n", 5)]
    assert desk.told == {"a": desk.changes[0]}
    desk.staging.undo()
    assert desk.seen() == desk.files


def test_undo_says_what_can_be_undone(desk: Desk) -> None:
    with pytest.raises(ToolFailed, match="nothing to undo"):
        desk.staging.undo()
    first, second = desk.write("a", "1\n"), desk.write("b", "2\n")
    with pytest.raises(ToolFailed, match=f"c9.*{first}, {second}"):
        desk.staging.undo("c9")
    assert len(desk.changes) == 2


def test_ids_are_never_used_again(desk: Desk) -> None:
    first = desk.write("a", "1\n")
    desk.staging.undo()
    assert desk.write("a", "1\n") != first


# --- being told


def test_only_files_whose_state_changed_are_told_of(desk: Desk) -> None:
    desk.write("a", "1\n")
    desk.calls.clear()
    desk.write("a", "1\n")
    assert desk.calls == []
    desk.write("b", "2\n")
    assert desk.calls == ["b"]
    desk.calls.clear()
    desk.move("a", "d")
    assert set(desk.calls) == {"a", "d"}
    desk.calls.clear()
    desk.write("d", None)
    assert set(desk.calls) == {"a", "d"}


def test_reset_continues_from_another_changeset(desk: Desk) -> None:
    desk.write("a", "1\n")
    desk.move("b", "d")
    rest = Changeset((FileChange("c", "C\n", "3\n", 6),))
    desk.calls.clear()
    desk.staging.reset(rest)
    assert desk.staging.changeset == rest
    assert set(desk.calls) == {"a", "b", "d", "c"}
    assert desk.told == {"c": rest.files[0]}
    with pytest.raises(ToolFailed):
        desk.staging.undo()


def test_an_earlier_state_comes_back_except_for_what_was_decided_since(desk: Desk) -> None:
    desk.write("a", "1\n")
    desk.write("b", "2\n")
    earlier = desk.staging.changeset
    desk.write("a", "3\n")
    desk.staging.reset(desk.staging.changeset.without(["b"]))
    desk.staging.restore(earlier)
    assert [change.text for change in desk.staging.changeset] == ["1\n"]
    desk.write("b", "4\n")  # the run goes on with it, so it is undecided again
    desk.staging.restore(earlier)
    assert desk.staging.changeset == earlier


def test_a_staging_can_start_from_a_changeset(desk: Desk) -> None:
    start = Changeset((FileChange("a", "A\n", "1\n", 5),))
    staging = Staging(desk.base, desk.on_change, start)
    assert staging.lookup("a") == StagedFile("1\n")
    staging.write({"a": "2\n"})
    assert staging.changeset.files == (FileChange("a", "A\n", "2\n", 5),)


# --- any order of anything


class AnyOrder(RuleBasedStateMachine):
    """The changeset, applied to what the user has, is always what the run sees."""

    names = st.sampled_from(["a", "b", "c", "x", "y"])

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk({"a": "A\n", "b": "B\n", "c": "C\n"})
        self.model = dict(self.desk.files)
        self.past: list[dict[str, str]] = []

    def attempt(self, act: Callable[[], str], then: dict[str, str]) -> None:
        try:
            act()
        except FileRefused:
            return
        self.past.append(self.model)
        self.model = then

    @rule(name=names, text=st.sampled_from(["A\n", "B\n", "1\n", ""]))
    def write(self, name: str, text: str) -> None:
        self.attempt(lambda: self.desk.write(name, text), {**self.model, name: text})

    @rule(name=names)
    def delete(self, name: str) -> None:
        if name in self.model:
            rest = {path: text for path, text in self.model.items() if path != name}
            self.attempt(lambda: self.desk.write(name, None), rest)

    @rule(source=names, place=names)
    def move(self, source: str, place: str) -> None:
        if source in self.model and place not in self.model:
            rest = {path: text for path, text in self.model.items() if path != source}
            self.attempt(lambda: self.desk.move(source, place), {**rest, place: self.model[source]})

    @rule(back=st.integers(1, 3))
    def undo(self, back: int) -> None:
        if len(self.past) >= back:
            ids = [step.change_id for step in self.desk.staging._steps]
            self.desk.staging.undo(ids[-back])
            self.model = self.past[-back]
            del self.past[-back:]

    @invariant()
    def the_view_is_the_model(self) -> None:
        assert self.desk.seen() == self.model

    @invariant()
    def the_changeset_leads_there_and_back(self) -> None:
        changeset = self.desk.staging.changeset
        assert applied(self.desk.files, changeset) == self.model
        assert applied(self.model, changeset.inverse()) == self.desk.files

    @invariant()
    def the_listener_knows_all(self) -> None:
        assert self.desk.told == {change.path: change for change in self.desk.changes}


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=examples(60), stateful_step_count=20, deadline=None)
