"""The direct path: gather what a task needs, ask the model for the changed code, check it by tests, and try again.

For models that are not good at tool calls, and for all models after a tool loop that failed. Not here: how answers are
read (`agent/forms`), the loop of tool calls (`agent/loop.py`).
"""
