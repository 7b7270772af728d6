"""Programming tasks made by a program from a seed, for measuring and showing coding agents. No agent and no model here.

On the command line (standard library only, besides this package; run in the repository root):

    python -m tests.bench.tasks --seed 7 --count 3 --into FOLDER     writes FOLDER/ID/ and FOLDER/ID.json per task
    python -m tests.bench.tasks --check FOLDER/ID                    "solved" or "not solved"; exit code 0 or 1
    python -m tests.bench.tasks --list [--seed 7] [--count N] [--kinds fault,rename] [--sizes small]
    python -m tests.bench.tasks --exercises PATH --into FOLDER       the programs of a checkout of QuixBugs instead
    codeagent-lsp batch FOLDER/tasks.jsonl --report --set model.baseUrl=URL      any model on the tasks of a folder
    python -m tests.bench.tasks … --repo PATH / --package NAME       faults in public code too (a folder, or from PyPI)

FOLDER/ID/ is the project that an agent works in, its tests failing. FOLDER/ID.json is the whole task: `id`, `kind`
(of `ALL_KINDS`, or exercise), `size` (small, medium, large), `words` (what the user types), `files`, `tests`
(names of the files that the check lays over the project again), `check` (the command, "python" being this Python),
`place` (the file to change), `also` (those that change with it), `cause` (what is wrong, for the record, never to be
shown to an agent).

From Python: `draw(seed, count=60, kinds=…, sizes=…)` gives `Task` values, the same for the same arguments on the same
Python; `lay(task, folder)` writes a project; `solved(task, folder)` checks one. A task is solved when its own tests,
laid fresh over a copy of the project, pass. Text of the standard library is read from the running Python, never kept.
"""

from tests.bench.tasks.drawing import ALL_KINDS, KINDS, SIZES, draw
from tests.bench.tasks.task import Task, lay, load, save, solved

__all__ = ["ALL_KINDS", "KINDS", "SIZES", "Task", "draw", "lay", "load", "save", "solved"]
