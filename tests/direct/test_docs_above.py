"""A reply that begins with a new version of the comment above the selection does not write it twice; nothing else that
stands there, or begins like a comment, goes.
"""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.direct.question import RewriteLimits, RewriteRequest, SelectionQuestion
from codeagent_lsp.workspace.files.file_view import FileText

ROWS = (
    # The file, what stands above the selection, what is selected, the reply, and what becomes of both.
    (
        "a.js",
        "// Adds two of them.\n",
        "f(1);\n",
        "// Adds two of them at once.\nf(2);\n",
        "// Adds two of them.\nf(2);\n",
    ),
    ("a.c", "// set it\n", "*p = 5;\ng();\n", "*p = 6;\ng();\n", "// set it\n*p = 6;\ng();\n"),
    ("a.c", "// set it\n", "--n;\ng();\n", "--n;\nh();\n", "// set it\n--n;\nh();\n"),
    (
        "a.c",
        "// on windows\n",
        "#ifdef W\nint a;\n#endif\n",
        "#ifdef W\nlong a;\n#endif\n",
        "// on windows\n#ifdef W\nlong a;\n#endif\n",
    ),
    (
        "a.rs",
        "// A thing\n",
        "#[derive(A)]\nstruct B;\n",
        "#[derive(A, C)]\nstruct B;\n",
        "// A thing\n#[derive(A, C)]\nstruct B;\n",
    ),
    (
        "a.css",
        "/* main box */\n",
        "#main { color: red; }\n",
        "#main { color: blue; }\n",
        "/* main box */\n#main { color: blue; }\n",
    ),
    (
        "a.py",
        "# a note\n",
        "# the second line\nx = f(1)\n",
        "# the second line\nx = f(2)\n",
        "# a note\n# the second line\nx = f(2)\n",
    ),
    (
        "a.js",
        "// adds two\n",
        "f(1);\n",
        "// eslint-disable-next-line\nf(1);\n",
        "// adds two\n// eslint-disable-next-line\nf(1);\n",
    ),
    (
        "a.py",
        "# load the data\n",
        "a = f()\n",
        "# it may be None here\na = f() or 1\n",
        "# load the data\n# it may be None here\na = f() or 1\n",
    ),
)


@pytest.mark.parametrize(("path", "above", "selected", "reply", "right"), ROWS)
def test_what_stands_above(path: str, above: str, selected: str, reply: str, right: str) -> None:
    text = above + selected
    question = SelectionQuestion(RewriteRequest(path, text, len(above), len(text), "do it"), "", RewriteLimits())
    answer = question.read(f"```\n{reply}```", Material((ShownFile(path, FileText(path, text, "disk")),)), "whole")
    assert answer.texts == {path: right}, answer


def test_better_docs_take_the_place_of_the_old_ones_where_they_were_asked_for() -> None:
    above, selected = "/** Adds two. */\n", "int f() {\n  return 1;\n}\n"
    request = RewriteRequest("a.c", above + selected, len(above), len(above + selected), "better the documentation")
    material = Material((ShownFile("a.c", FileText("a.c", above + selected, "disk")),))
    reply = f"```c\n/** Adds two of them. */\n{selected}```"
    answer = SelectionQuestion(request, "", RewriteLimits()).read(reply, material, "whole")
    assert answer.texts == {"a.c": f"/** Adds two of them. */\n{selected}"}
