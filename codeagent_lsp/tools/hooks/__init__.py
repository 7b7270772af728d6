"""Hooks: commands of the user or the workspace that run when something happens in a run.

`hooks.py` first: it runs them; `hook_files.py` reads them, `hook_answers.py` understands what they say,
`hook_input.py` is what they are told. Not here: when they are called
(`executor.py` for tools, `session/toolbox.py` for the rest).
"""
