"""Whatever a model calls, and with whatever arguments: it gets a result, and the run goes on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.tools.catalogue import BUILTIN
from tests.session.fakes import World, call, calls, say, world

PATCHES = (
    "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n",
    "garbage",
    "--- a/a.py\n+++ b/a.py\n--- a/b.py\n+++ b/c.py\n@@ -1 +1 @@\n-x\n+y\n",
    "diff --git a/x.png b/x.png\nGIT binary patch\nliteral 3\nabc\n",
    "--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-x\n+y\n",
    "--- ../../x\n+++ ../../x\n@@ -1 +1 @@\n-x\n+y\n",
    "*** Begin Patch\n*** Add File: \0\n+x\n*** End Patch\n",
    "",
)
VALUES: tuple[Any, ...] = (
    *(
        "",
        " ",
        "\0",
        "a\0b",
        "x" * 5000,
        "../..",
        "/etc/passwd",
        "~",
        "a.py",
        "new/deep/b.py",
        ".",
        "\ud800",
        "日本.py",
    ),
    *(0, -1, 1e308, float("nan"), True, None, [], [None], [""], {}, {"a": {"b": []}}, [["x"]], [{"path": 5}]),
    *PATCHES,
)


def made(tmp_path: Path) -> World:
    found = world(tmp_path / "w", deadline=0.05)
    (found.root / "a.py").write_text("x = 1\n")
    return found


def arguments(schema: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    names = [*(schema.get("properties") or {}), "path", "nothing"]
    chosen = chance.sample(names, k=chance.randrange(len(names) + 1))
    return {name: chance.choice(VALUES) for name in chosen}


TOOLS = sorted(tool().traits.name for tool in BUILTIN)


@pytest.mark.slow
@pytest.mark.parametrize("name", TOOLS)
async def test_any_arguments_of_any_tool_give_a_result(tmp_path: Path, name: str) -> None:
    found, chance = made(tmp_path), random.Random(name)
    schema = dict(next(tool for tool in BUILTIN if tool.traits.name == name)().spec()["parameters"])
    found.script(*(calls(call(name, **arguments(schema, chance))) for _ in range(12)), *[say("Seen.")] * 3)
    done = await found.run("look at it")
    assert done.status in ("completed", "waiting", "stopped"), (done.summary, done.error)
    assert [event for event in found.events if isinstance(event, events.ToolFinished)]


@pytest.mark.slow
@pytest.mark.parametrize("patch", [*PATCHES, 5, ["a"], None, {"a": 1}])
async def test_a_patch_that_cannot_be_read_is_a_result(tmp_path: Path, patch: Any) -> None:
    found = made(tmp_path)
    found.script(calls(call("apply_patch", patch=patch)), say("Seen."))
    done = await found.run("look at it")
    assert done.status == "completed" and done.summary == "Seen."
