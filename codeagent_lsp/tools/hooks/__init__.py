"""Hooks: commands of the user or the workspace that run when something happens in a run.

`hooks.py` first: a method for each event, which runs them; `hook_files.py` has the list of events and reads the files,
`hook_protocol.py` is what they are told and understands what they say. Not here: when they are called
(`executor.py` for tools, `session/run.py` for prompts and sessions, `session/toolbox.py` for the rest).
"""
