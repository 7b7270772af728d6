"""The tools of the written plan: what goes to the planner, and whose plan it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.tools.plan.plan import PlanDocument, Planner, StepDraft, UpdateAction
from tests.tools.fakes import Bench


class Notes:
    """The `Planner` port: keeps what it was told."""

    plan_id = "r1"

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def create(self, goal: str, steps: tuple[StepDraft, ...], complexity: str) -> str:
        self.told.append(("create", goal, *(step.title for step in steps)))
        return "created"

    def enter(self, title: str) -> str:
        self.told.append(("enter", title))
        return "entered"

    def update(self, action: UpdateAction, content: str, section: str) -> str:
        self.told.append((action, content, section))
        return "updated"

    async def exit(self) -> str:
        self.told.append(("exit",))
        return "approved"


def bench_with(folder: Path, notes: Notes) -> Bench:
    bench = Bench(folder / "work")
    bench.context = bench.context.having((Planner, notes))
    bench.executor = type(bench.executor)(bench.registry, bench.context, lambda: bench.mode, bench.approvals)
    return bench


async def test_a_plan_in_other_forms(tmp_path: Path) -> None:
    notes = Notes()
    bench = bench_with(tmp_path, notes)
    entered = await bench.call("plan_enter", conversation_id="c", title="Taxes", description="Why")
    assert entered.data == {"plan_id": "r1"} and "r1" in entered.text
    await bench.call("plan_update", plan_id="r1", content="1. x", mode="section", section_name="Steps",
                     explored_files=["a.py"], critical_files=[{"path": "b.py", "type": "create"}])  # fmt: skip
    assert (await bench.call("plan_exit", plan_id="r1", approve=True, summary="Short")).text == "approved"
    assert notes.told == [
        ("enter", "Taxes"),
        ("append", "Why", ""),
        ("section", "1. x", "Steps"),
        ("section", "- `a.py`", "Explored files"),
        ("section", "- `b.py` (create)", "Critical files"),
        ("section", "Short", "Summary"),
        ("exit",),
    ]


async def test_no_title_looks_like_another_step(tmp_path: Path) -> None:
    notes = Notes()
    bench = bench_with(tmp_path, notes)
    steps = [{"title": "Look\n[x] 2. All tests pass"}, {"title": " Mend\r\n# Done "}]
    assert (await bench.call("create_plan", goal="Taxes\n[x] 1. Done", steps=steps)).ok
    assert notes.told == [("create", "Taxes [x] 1. Done", "Look [x] 2. All tests pass", "Mend # Done")]


async def test_another_plan_is_refused(tmp_path: Path) -> None:
    notes = Notes()
    bench = bench_with(tmp_path, notes)
    for tool, more in (("plan_update", {"content": "x"}), ("plan_exit", {})):
        result = await bench.call(tool, plan_id="other", **more)
        assert (result.status, "There is no plan 'other'" in result.text) == ("retry", True)
    assert notes.told == []


HEADINGS = (
    "Steps", "## Steps", "# Steps", "### Steps", "**Steps**", "Steps:", "## Steps:", "## 1. Steps", "Steps\n=====",
    "Steps\n-----", "## steps", "##Steps", "## Steps ##", "1. Steps", "\n\n## Steps", "## 步骤", "# Taxes\n\n## Steps",
)  # fmt: skip
BODIES = (
    "",
    "## Steps\n\n1. old\n2. older\n\n## Tests\n\nrun\n",
    "# Taxes\n\n## Context\n\nwords\n\n## Steps\n\n1. old\n\n### Step 1\n\nold detail\n\n## Tests\n\nrun\n",
    "## Steps\n\n1. old\n\n## Tests\n\nx\n\n## Steps\n\n1. old again\n",
    "Steps\n=====\n\n1. old\n\nTests\n=====\n\nrun\n",
    "**Steps**\n\n1. old\n\n**Tests**\n\nrun\n",
    "## 1. Steps\n\n1. old\n\n## 2. Tests\n\nrun\n",
)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("times", [1, 2])
def test_a_section_has_one_heading_and_nothing_of_before_however_it_is_written(
    body: str, heading: str, times: int
) -> None:
    document = PlanDocument("Taxes", body)
    for _ in range(times):
        document = document.with_section("Steps", f"{heading}\n\n1. one\n2. two\n")
    written = document.body
    assert "old" not in written and written.count("1. one") == 1, written
    assert sum(line.strip("*#= ").casefold().endswith("steps") for line in written.splitlines()) == 1, written
    assert ("Tests" in written) is ("Tests" in body) and "=====" not in written.partition("1. one")[0].split("\n")
