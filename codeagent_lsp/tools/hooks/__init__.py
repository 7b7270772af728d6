"""Hooks: commands of the user or the workspace that run when something happens in a run.

`hooks.py` first: a method for each event, which runs them; `hook_files.py` has the list of events and reads the files,
`hook_answers.py` understands what they say, `hook_input.py` is what they are told. Not here: when they are called
(`executor.py` for tools, `session/run.py` for prompts and sessions, `session/toolbox.py` for the rest).
"""
