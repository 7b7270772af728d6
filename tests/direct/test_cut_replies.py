"""A reply that ends too early gives all of a change or nothing of it, wherever it ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.answer import Answer, Files, is_bare_diff, read_answer
from codeagent_lsp.direct.question import FilesQuestion
from codeagent_lsp.direct.solver import Solver, SolverLimits
from codeagent_lsp.llm.model import ModelRequest, Reply, StreamItem
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from tests.direct.test_solver import NOW, PROVED, Bench

TEXT = "import os\n\n\ndef f(a):\n    b = a + 1\n    return b\n\n\ndef g():\n    return 2\n"
NEW = TEXT.replace("return b", "c = b * 2\n    return c")
HUNK = "     b = a + 1\n-    return b\n+    c = b * 2\n+    return c\n"
DIFF = f"--- a/a.py\n+++ b/a.py\n@@ -5,2 +5,3 @@\n{HUNK}"
PATCH = f"*** Begin Patch\n*** Update File: a.py\n@@\n{HUNK}*** End Patch\n"
FUNCTION = "def f(a):\n    b = a + 1\n    c = b * 2\n    return c\n"
BLOCK = "<<<<<<< SEARCH\n    return b\n=======\n    c = b * 2\n    return c\n>>>>>>> REPLACE\n"
REPLIES: dict[str, tuple[TextForm, str]] = {
    "whole": ("whole", f"a.py\n```python\n{NEW}```\nDone.\n"),
    "function": ("function", f"a.py\n```python\n{FUNCTION}```\nDone.\n"),
    "blocks": ("blocks", f"a.py\n```python\n{BLOCK}```\n"),
    "bare blocks": ("blocks", f"a.py\n{BLOCK}\nDone.\n"),
    "diff": ("diff", f"```diff\n{DIFF}```\nDone.\n"),
    "patch": ("diff", f"```\n{PATCH}```\n"),
    "bare diff": ("diff", DIFF),
    "bare patch": ("diff", PATCH),
}


def read(reply: str, form: TextForm) -> Answer:
    return read_answer(reply, Files({"a.py": TEXT}), form)


@pytest.mark.parametrize("kind", REPLIES)
def test_every_beginning_of_a_reply(kind: str) -> None:
    form, reply = REPLIES[kind]
    assert read(reply, form).texts == {"a.py": NEW}
    for end in range(0, len(reply), 3):
        answer = read(reply[:end], form)
        assert answer.texts in ({}, {"a.py": NEW}) or is_bare_diff(reply[:end]), reply[:end]
    assert is_bare_diff(reply) == (kind in ("bare diff", "bare patch"))


class Cut(ScriptedModel):
    """A scripted model of which each reply has come to the limit of its length."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Give the next reply as one that was cut."""
        async for item in super().stream(request):
            yield replace(item, finish_reason="length") if isinstance(item, Reply) else item


async def test_nothing_is_taken_of_a_diff_that_may_go_on() -> None:
    told = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    x = a\n"
    bench, model = Bench(lambda text: None), Cut([ScriptedReply(told)] * 3)
    question = FilesQuestion("The tests fail. Repair it.", PROVED, 2048, "diff")
    await Solver(model, bench, question, SolverLimits(), lambda event: None).solve(is_task=True)
    assert bench.text == NOW and len(model.requests) > 1
