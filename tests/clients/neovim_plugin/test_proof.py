"""What was tried on the changes, as Neovim's review shows it: sentences, marks, and *outdated* once the user types."""

from __future__ import annotations

from pathlib import Path

from tests.clients.neovim.support import MARKS, edit
from tests.clients.neovim_plugin.support import play

pytestmark = MARKS

GAP = "# far enough\n" * 8
CART = f"def total(items):\n    return 0\n\n\n{GAP}def name():\n    return 'cart'\n"
TESTS = "from cart import total\n\n\ndef test_total():\n    assert total([2, 3]) == 5\n"


def test_the_review_shows_what_was_tried(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        """
        local buffer = rig.open("cart.py")
        rig.choose = function() return nil end
        vim.cmd("CodeAgent run mend it")
        rig.ended("completed")
        vim.cmd("CodeAgent review")
        rig.wait("the review", 10000, function() return vim.api.nvim_get_current_buf() == rig.own("review") end)
        local function seen()
          local found = {}
          for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(rig.own("review"), -1, 0, -1, { details = true })) do
            for _, line in ipairs(mark[4].virt_lines or {}) do
              for _, chunk in ipairs(line) do table.insert(found, chunk[1]) end
            end
            for _, chunk in ipairs(mark[4].virt_text or {}) do table.insert(found, mark[2] + 1 .. ":" .. chunk[1]) end
          end
          return table.concat(found, "\\n")
        end
        vim.cmd("CodeAgent minimize")
        rig.wait("the marks", 60000, function() return seen():find("not needed for the tests", 1, true) end)
        local proved = seen()
        vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { "# typed" })
        vim.api.nvim_exec_autocmds("TextChanged", { buffer = buffer })
        rig.wait("outdated", 10000, function() return seen():find("Outdated", 1, true) end)
        return { proved = proved, outdated = seen(), page = rig.page("transcript") }
        """,
        files={"cart.py": CART, "test_cart.py": TESTS},
        script=[
            edit("    return 0\n", "    return sum(items)\n", "cart.py"),
            edit("    return 'cart'\n", "    return 'basket'\n", "cart.py"),
            {"text": "Mended."},
        ],
    )
    proved = played.found["proved"]
    assert "Tests: 1 passed" in proved
    assert "Failed before and pass now: 1" in proved
    assert proved.count("not needed for the tests") == 1
    assert "not needed for the tests" not in played.found["outdated"]
    assert "Changes that the tests do not need: 1" in played.found["page"]
    assert played.disk("cart.py") == CART
