"""Prompt documents: Markdown files in which a user of any editor writes a task, with completion of what it points at.

`prompting.py` first; `prompting.py` answers `textDocument/completion` in them, from `prompting.py`. Not
here: what mentions stand for in a run (`session/mentioned.py`).
"""
