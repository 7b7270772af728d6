"""What servers that are killed are busy with: scripted runs with effects that can be counted.

A command of a story writes its name into a file that outlives every server, so that one that ran twice is seen.
Not here: killing and what is looked at afterwards (`test_killed.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.server.rawclient import NO_ANSWER
from tests.server.replies import calls, edit, say, write

PACE = 0.02  # seconds a reply of the model takes
EFFECTS = "../effects.log"  # beside the workspace

Reply = dict[str, Any]
Answer = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Story:
    """Tasks given one after the other, what the model says to them, and how the user answers prompts.

    `steps` is the number of steps of its plan, 0 without one. `open_ended` stories end with a question that nobody
    answers. `files` are what the user has when all is done.
    """

    name: str
    script: Sequence[Reply]
    answer: Answer
    files: dict[str, str]
    tasks: tuple[str, ...] = ("build it",)
    steps: int = 0
    open_ended: bool = False


def leaving(name: str) -> tuple[str, dict[str, Any]]:
    """The call of a command with an effect."""
    return ("run_cmd", {"command": f"echo {name} >> {EFFECTS}"})


def done_step(number: int) -> list[Reply]:
    """What the model does in a step of a plan: a command and a file."""
    return [calls(leaving(f"step{number}")), write(f"f{number}.py", f"x = {number}\n"), say(f"Step {number} is done.")]


def plan(count: int, *, broken: int = 0) -> list[Reply]:
    """A plan of so many steps; the model fails once at the `broken` one."""
    titles = [f"part {number}" for number in range(1, count + 1)]
    steps = [{"title": title, "description": f"do {title}"} for title in titles]
    made = {"goal": "the goal", "steps": steps, "estimated_complexity": "low"}
    script = [calls(("create_plan", made))]
    for number in range(1, count + 1):
        script += [{"error": "broken"}] if number == broken else []
        script += done_step(number)
    return script


def usual(params: dict[str, Any]) -> Any:
    """The first of these that is offered."""
    titles = [item["title"] for item in params["actions"]]
    wanted = ("Apply", "Retry", "Allow once", "red")
    return next(({"title": title} for title in wanted if title in titles), None)


def silent_at_the_end(params: dict[str, Any]) -> Any:
    """As usual, but the last question stays open."""
    return NO_ANSWER if "Which name" in params["message"] else usual(params)


def asked(text: str, *options: str) -> tuple[str, dict[str, Any]]:
    """The call that asks the user."""
    return ("AskUser", {"questions": [{"text": text, "options": list(options)}]})


def _paced(script: Sequence[Reply]) -> tuple[Reply, ...]:
    return tuple({"delay": PACE, **reply} for reply in script)


def _steps(count: int) -> dict[str, str]:
    return {f"f{number}.py": f"x = {number}\n" for number in range(1, count + 1)}


STORIES = (
    Story(
        "edits",
        _paced(
            [
                write("a.py", "x = 1\ny = 1\n"),
                edit("a.py", "x = 1", "x = 2"),
                write("b.py", "b\n"),
                say("First."),
                edit("a.py", "y = 1", "y = 2"),
                say("Second."),
            ]
        ),
        usual,
        {"a.py": "x = 2\ny = 2\n", "b.py": "b\n"},
        tasks=("write them", "and change one"),
    ),
    Story(
        "command",
        _paced([calls(leaving("one")), write("a.py", "x = 1\n"), calls(leaving("two")), say("Done.")]),
        usual,
        {"a.py": "x = 1\n"},
    ),
    Story("plan with review", _paced(plan(4)), usual, _steps(4), steps=4),
    Story("plan with a failing step", _paced(plan(3, broken=2)), usual, _steps(3), steps=3),
    Story(
        "question left open",
        _paced(
            [calls(asked("Which colour?", "red", "blue")), calls(leaving("one")), write("a.py", "red\n"),
             calls(asked("Which name?", "this", "that"))]
        ),
        silent_at_the_end,
        {},
        open_ended=True,
    ),
    Story(
        "subagent",
        _paced(
            [calls(leaving("parent")), calls(("delegate", {"agent": "coder", "task": "write a.py"})),
             calls(leaving("child")), write("a.py", "x = 1\n"), say("I wrote it."), say("All done.")]
        ),
        usual,
        {"a.py": "x = 1\n"},
    ),
)  # fmt: skip
