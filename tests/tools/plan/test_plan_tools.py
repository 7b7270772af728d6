"""The tools of the written plan: what goes to the planner, and whose plan it is."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.tools.plan.plan import Planner, StepDraft, UpdateAction
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


async def test_another_plan_is_refused(tmp_path: Path) -> None:
    notes = Notes()
    bench = bench_with(tmp_path, notes)
    for tool, more in (("plan_update", {"content": "x"}), ("plan_exit", {})):
        result = await bench.call(tool, plan_id="other", **more)
        assert (result.status, "There is no plan 'other'" in result.text) == ("retry", True)
    assert notes.told == []
