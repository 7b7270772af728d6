"""A real Neovim as a stock client: files that are created, deleted and renamed, and taken back."""

from __future__ import annotations

from tests.clients.neovim.support import MARKS, SOURCE, Neovim, call, edit

pytestmark = MARKS


def test_a_new_file_is_text_in_a_buffer_and_empty_on_disk(neovim: Neovim) -> None:
    played = neovim.play(
        """
        rig.open("a.py")
        local sentence = rig.run("run", { task = "add a file" })
        return { text = rig.seen("new.py"), sentence = sentence, disk = rig.disk("new.py") }
        """,
        files={"a.py": SOURCE},
        script=[call("write_file", path="new.py", content="x = 1\n"), {"text": "Added."}],
    )
    assert played.found == {"text": "x = 1\n", "sentence": "Applied 1 file.", "disk": ""}


def test_a_new_file_in_a_new_folder_can_be_saved_and_undone(neovim: Neovim) -> None:
    played = neovim.play(
        """
        rig.open("a.py")
        rig.run("run", { task = "add a file" })
        local text = rig.seen("deep/er/new.py")
        rig.command("undo", vim.empty_dict())
        rig.told("Undone")
        return { text = text, after = rig.seen("deep/er/new.py") or "gone" }
        """,
        files={"a.py": SOURCE},
        script=[call("write_file", path="deep/er/new.py", content="x = 1\n"), {"text": "Added."}],
    )
    assert played.found == {"text": "x = 1\n", "after": "gone"}
    assert played.disk("deep/er/new.py") is None


def test_a_file_that_came_meanwhile_is_not_emptied(neovim: Neovim) -> None:
    """Neovim empties a file that it is asked to create."""
    played = neovim.play(
        """
        rig.open("a.py")
        rig.choose = function()
          vim.fn.writefile({ "precious" }, rig.workspace .. "/new.py")
          return "Apply"
        end
        local sentence = rig.run("run", { task = "add a file" })
        rig.told("new.py:1")
        rig.wait("no question", 5000, function() return #rig.command("pending") == 1 end)
        return { pending = rig.command("pending") }
        """,
        files={"a.py": SOURCE},
        script=[call("write_file", path="new.py", content="x = 1\n"), {"text": "Added."}],
    )
    assert played.disk("new.py") == "precious\n"
    assert [item["kind"] for item in played.found["pending"]] == ["changes"]


def test_a_buffer_without_a_file_is_edited_as_it_is(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("fresh.py")
        vim.api.nvim_buf_set_lines(buffer, 0, -1, true, { "x = 1", "y = 2" })
        vim.wait(250)
        local sentence = rig.run("run", { task = "change it" })
        return { text = rig.text(buffer), sentence = sentence }
        """,
        files={},
        script=[edit("y = 2", "y = 3", "fresh.py"), {"text": "Changed."}],
    )
    assert played.found == {"text": "x = 1\ny = 3\n", "sentence": "Applied 1 file."}
    assert played.disk("fresh.py") is None


def test_a_file_is_deleted_and_comes_back(neovim: Neovim) -> None:
    played = neovim.play(
        """
        rig.open("b.py")
        rig.open("a.py")
        local sentence = rig.run("run", { task = "remove b" })
        local there = rig.disk("b.py") ~= nil
        rig.command("undo", vim.empty_dict())
        rig.told("Undone")
        return { there = there, sentence = sentence, text = rig.seen("b.py") }
        """,
        files={"a.py": SOURCE, "b.py": "x = 1\n"},
        script=[call("delete_file", path="b.py"), {"text": "Deleted."}],
    )
    assert played.found == {"there": False, "sentence": "Applied 1 file.", "text": "x = 1\n"}


def test_unsaved_text_is_only_deleted_after_a_question_of_its_own(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("b.py")
        rig.type(buffer, 0, "# unsaved")
        vim.wait(250)
        rig.choose = function(_, titles) return titles[1] == "Keep" and "Keep" or "Apply" end
        rig.run("run", { task = "remove b" })
        return { text = rig.text(buffer) }
        """,
        files={"b.py": "x = 1\n"},
        script=[call("delete_file", path="b.py"), {"text": "Deleted."}],
    )
    assert played.found["text"] == "# unsaved\nx = 1\n"
    assert played.disk("b.py") == "x = 1\n"
    assert [prompt["titles"] for prompt in played.prompts] == [["Review", "Apply", "Discard"], ["Keep", "Delete"]]


def test_a_file_is_renamed_and_edited_in_one_go(neovim: Neovim) -> None:
    played = neovim.play(
        """
        rig.open("b.py")
        local sentence = rig.run("run", { task = "rename b" })
        return { old = rig.disk("b.py") or "gone", text = rig.seen("sub/c.py"), sentence = sentence }
        """,
        files={"b.py": "x = 1\ny = 1\n"},
        script=[
            call("move_file", path="b.py", new_path="sub/c.py"),
            edit("y = 1", "y = 2", "sub/c.py"),
            {"text": "Renamed."},
        ],
    )
    assert played.found == {"old": "gone", "text": "x = 1\ny = 2\n", "sentence": "Applied 1 file."}


def test_a_renamed_file_goes_back(neovim: Neovim) -> None:
    played = neovim.play(
        """
        rig.open("b.py")
        rig.run("run", { task = "rename b" })
        rig.command("undo", vim.empty_dict())
        rig.told("Undone")
        return { old = rig.seen("b.py"), new = rig.disk("c.py") or "gone" }
        """,
        files={"b.py": "x = 1\n"},
        script=[call("move_file", path="b.py", new_path="c.py"), {"text": "Renamed."}],
    )
    assert played.found == {"old": "x = 1\n", "new": "gone"}
