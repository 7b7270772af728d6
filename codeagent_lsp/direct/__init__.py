"""The direct path: gather what a task needs, ask the model for the changed code, check it by tests, and try again.

For models that are not good at tool calls, and for all models after a tool loop that failed. `solver.py` is the page to
read first. A model answers in the *form* it is good at, which a probe finds out once: `whole` files, whole `function`s,
one `line`, search and replace `blocks`, or `diff`s; `tools` is the loop of tool calls (`agent/loop.py`). Not here: when
a run works this way (`session/solving/task_work.py`).
"""
