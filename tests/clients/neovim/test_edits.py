"""A real Neovim as a stock client: accepted changes reach its buffers, and nothing the user typed is lost."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.clients.neovim.support import MARKS, SOURCE, Neovim, call, edit, play
from tests.examples import WHOLE

pytestmark = MARKS
PACES = [*product((5, 8, 12, 20, 30, 60), (1, 50))]


@pytest.mark.journey
def test_a_run_changes_the_unsaved_buffer_and_not_the_disk(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        rig.replace(buffer, 1, "    return 11")
        local sentence = rig.run("run", { task = "change it" })
        return { text = rig.text(buffer), sentence = sentence, modified = vim.bo[buffer].modified }
        """,
        files={"a.py": SOURCE},
        script=[call("read_file", path="a.py"), edit("return 11", "return 12"), {"text": "Changed."}],
    )
    assert played.found["text"] == SOURCE.replace("return 1\n", "return 12\n")
    assert played.found["sentence"] == "Applied 1 file."
    assert played.found["modified"]
    assert played.disk("a.py") == SOURCE
    assert [prompt["titles"] for prompt in played.prompts] == [["Review", "Apply", "Discard"]]
    assert played.encoding == "utf-8"
    assert "Changed." in played.messages


def test_why_nothing_was_changed_is_said_without_the_files_of_neovim(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        vim.bo[buffer].modifiable = false
        return { sentence = rig.run("run", { task = "change it" }), text = rig.text(buffer) }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 1", "return 12"), {"text": "Changed."}],
    )
    assert played.found["text"] == SOURCE
    assert "Nothing could be applied: Buffer is not 'modifiable'" in " ".join(played.messages)
    assert ".lua" not in " ".join(played.messages) + played.found["sentence"]


def test_what_the_user_types_elsewhere_meanwhile_stays(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        rig.choose = function(prompt)
          rig.type(buffer, 0, "# typed while the question was open")
          vim.wait(250)
          return "Apply"
        end
        rig.run("run", { task = "change it" })
        return { text = rig.text(buffer) }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed."}],
    )
    assert played.found["text"] == "# typed while the question was open\n" + SOURCE.replace("return 3", "return 4")


def test_what_the_user_types_on_the_same_line_wins_and_the_conflict_is_shown(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        rig.choose = function(prompt)
          rig.replace(buffer, 9, "    return 33")
          vim.wait(250)
          return "Apply"
        end
        local sentence = rig.run("run", { task = "change it" })
        rig.told("a.py:10")
        return { text = rig.text(buffer), pending = rig.command("pending"), sentence = sentence }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed."}],
    )
    assert played.found["text"] == SOURCE.replace("return 3", "return 33")
    assert "changes" in [item["kind"] for item in played.found["pending"]]  # the conflict may be asked about just then


def test_a_change_right_before_the_edit_arrives_is_not_garbled(neovim: Neovim) -> None:
    """Neovim tells of typing up to 150 ms late, so the edit is made for a version that is gone."""
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        rig.type(buffer, 0, "# first")
        vim.wait(250)
        rig.choose = function(prompt)
          rig.type(buffer, 0, "# typed right before")
          return "Apply"
        end
        local sentence = rig.run("run", { task = "change it" })
        return { text = rig.text(buffer), pending = rig.command("pending"), sentence = sentence }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed."}],
    )
    typed = "# typed right before\n# first\n"
    applied, kept = typed + SOURCE.replace("return 3", "return 4"), typed + SOURCE
    assert played.found["text"] in (applied, kept)
    if played.found["text"] == kept:
        assert [item["kind"] for item in played.found["pending"]] == ["changes"]
        assert "Applied" not in played.found["sentence"]


def test_undo_keeps_what_was_typed_later(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        rig.run("run", { task = "change it" })
        local changed = rig.text(buffer)
        rig.type(buffer, 0, "# later")
        vim.wait(250)
        rig.command("undo", vim.empty_dict())
        rig.told("Undone")
        return { changed = changed, text = rig.text(buffer) }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed."}],
    )
    assert played.found["changed"] == SOURCE.replace("return 3", "return 4")
    assert played.found["text"] == "# later\n" + SOURCE


def test_one_undo_of_neovim_takes_an_edit_back(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        rig.run("run", { task = "change it" })
        vim.cmd("silent undo")
        return { text = rig.text(buffer) }
        """,
        files={"a.py": SOURCE},
        script=[edit("return 1\n", "return 4\n"), edit("return 3", "return 4"), {"text": "Changed."}],
    )
    assert played.found["text"] == SOURCE


def test_two_files_of_which_one_is_not_open(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        local sentence = rig.run("run", { task = "change both" })
        return { a = rig.text(buffer), b = rig.seen("b.py"), sentence = sentence }
        """,
        files={"a.py": SOURCE, "b.py": "x = 1\n"},
        script=[edit("return 1\n", "return 4\n"), edit("x = 1", "x = 2", "b.py"), {"text": "Changed."}],
    )
    assert played.found["sentence"] == "Applied 2 files."
    assert played.found["b"] == "x = 2\n"
    assert played.disk("b.py") == "x = 1\n"


def test_text_with_characters_beyond_the_basic_plane(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        rig.run("run", { task = "change it" })
        return { text = rig.text(buffer) }
        """,
        files={"a.py": "s = '🎉 ü 𝒳'; x = 1; y = '🎉'\n"},
        script=[edit("x = 1; y = '🎉'", "x = 2; y = '🎈'"), {"text": "Changed."}],
    )
    assert played.found["text"] == "s = '🎉 ü 𝒳'; x = 2; y = '🎈'\n"


def test_a_file_with_crlf_keeps_its_line_ends(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        local sentence = rig.run("run", { task = "change it" })
        vim.cmd("silent write")
        return { sentence = sentence }
        """,
        files={"a.py": SOURCE.replace("\n", "\r\n")},
        script=[edit("return 3", "return 4\n    # end"), {"text": "Changed."}],
    )
    assert played.found["sentence"] == "Applied 1 file."
    assert played.disk("a.py") == SOURCE.replace("return 3", "return 4\n    # end").replace("\n", "\r\n")


def test_lines_added_at_the_very_end_bring_no_empty_line(neovim: Neovim) -> None:
    played = neovim.play(
        """
        local buffer = rig.open("a.py")
        local sentence = rig.run("run", { task = "change it" })
        return { text = rig.text(buffer), b = rig.seen("b.py"), c = rig.seen("c.py"), sentence = sentence }
        """,
        files={"a.py": SOURCE, "b.py": "no newline", "c.py": ""},
        script=[
            edit("    return 3\n", "    return 3\n\n\nx = 1\n"),
            call("write_file", path="b.py", content="no newline\nsecond\n"),
            call("write_file", path="c.py", content="first\nsecond\n"),
            {"text": "Changed."},
        ],
    )
    assert played.found["text"] == SOURCE + "\n\nx = 1\n"
    assert played.found["b"] == "no newline\nsecond\n"
    assert played.found["c"] == "first\nsecond\n"
    assert played.found["sentence"] == "Applied 3 files."


@pytest.mark.parametrize("pause", [200, 83, 33, 16] if WHOLE else [33])
def test_fifty_hunks_land_while_the_user_types_above_them(neovim: Neovim, pause: int) -> None:
    base = "# notes: \n" + "".join(f"line {number}.\n" for number in range(600))
    text = "".join(f"changed {number}\nmore\n" if number % 12 == 6 else f"line {number}.\n" for number in range(600))
    edits = [edit(f"line {number}.\n", f"changed {number}\nmore\n", "a.txt") for number in range(6, 600, 12)]
    played = neovim.play(
        f"""
        local buffer, typed = rig.open("a.txt"), "k"
        vim.api.nvim_buf_set_text(buffer, 0, 9, 0, 9, {{ "k" }})
        vim.wait(300) -- its first change Neovim tells in a pause only, later ones every 150 ms
        local timer = vim.uv.new_timer()
        timer:start(0, {pause}, vim.schedule_wrap(function()
          local line = vim.api.nvim_buf_get_lines(buffer, 0, 1, true)[1]
          vim.api.nvim_buf_set_text(buffer, 0, #line, 0, #line, {{ "k" }})
          typed = typed .. "k"
        end))
        local sentence = rig.run("run", {{ task = "change it" }})
        timer:stop()
        return {{ text = rig.text(buffer), sentence = sentence, typed = typed, messages = rig.messages }}
        """,
        files={"a.txt": base},
        script=[{"tool_calls": [each["tool_calls"][0] for each in edits]}, {"text": "Changed."}],
    )
    assert played.found["sentence"] == "Applied 1 file."
    assert len(played.found["typed"]) > 1
    assert played.found["text"] == f"# notes: {played.found['typed']}\n{text}"


TYPING = """
local buffer = rig.open("a.py")
local typed, formats = "", 0
local function press()
  local letter = string.char(97 + #typed % 10)
  typed = typed .. letter
  local line = vim.api.nvim_buf_get_lines(buffer, 0, 1, true)[1]
  vim.api.nvim_buf_set_text(buffer, 0, #line, 0, #line, { letter })
end
vim.api.nvim_create_autocmd("BufWritePre", { callback = function()
  formats = formats + 1
  local lines = {}
  for _, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, true)) do
    local told = line:gsub("'", '"'):gsub("%s+$", "")
    if told ~= "" or lines[#lines] ~= "" then table.insert(lines, told) end
  end
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
end })
local apply = vim.lsp.handlers["workspace/applyEdit"]
vim.lsp.handlers["workspace/applyEdit"] = function(...)
  local lines = vim.api.nvim_buf_line_count(buffer)
  local answer = apply(...)
  if vim.api.nvim_buf_line_count(buffer) ~= lines then vim.cmd("silent write") end
  return answer
end
rig.command("pending", vim.empty_dict()) -- the server is awake
press()
vim.wait(400) -- Neovim tells nothing before a first pause of 150 ms; then it tells every 150 ms
local timer = vim.uv.new_timer()
timer:start(0, math.floor(1000 / RATE), vim.schedule_wrap(press))
local id = rig.command("run", { task = "change it" }).runId
local ended = rig.ended(id)
local after = { text = rig.text(buffer), typed = typed }
rig.command("undo", { runId = id })
rig.wait("the undoing", 20000, function() return vim.tbl_contains(rig.messages, "Undone in 1 file.") end)
timer:stop()
return { after = after, undone = rig.text(buffer), typed = typed, formats = formats, ended = ended }
"""


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "hunks"), PACES if WHOLE else [(8, 50), (60, 1)])
def test_it_lands_and_is_taken_back_while_keys_are_pressed_and_saving_formats(
    tmp_path: Path, rate: int, hunks: int
) -> None:
    functions = range(max(2, hunks))
    before = "# notes:\n" + "".join(f"def f{n}():  \n    x = 'old {n}'  \n\n\n    return x\n\n\n" for n in functions)
    edits = [(f"x = 'old {n}'  \n", f"x = 'new {n}'  \n    y = '{n}'\n") for n in range(hunks)]
    after = before
    for old, new in edits:
        after = after.replace(old, new)
    played = play(
        tmp_path,
        TYPING.replace("RATE", str(rate)),
        files={"a.py": before},
        script=[{"tool_calls": [edit(*each)["tool_calls"][0] for each in edits]}, {"text": "Changed."}],
        settings={"edits": {"apply": "auto"}},
    )
    found = played.found
    assert found["after"]["text"] == _formatted(after).replace("# notes:", f"# notes:{found['after']['typed']}")
    assert found["undone"] == _formatted(before).replace("# notes:", f"# notes:{found['typed']}")
    assert found["formats"] >= 2


def _formatted(text: str) -> str:
    lines: list[str] = []
    for line in text.splitlines():
        told = line.replace("'", '"').rstrip()
        lines += [told] if told or not (lines and lines[-1] == "") else []
    return "\n".join(lines) + "\n"
