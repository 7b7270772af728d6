"""Prompt documents: Markdown files in which a user of any editor writes a task, with completion of what it points at.

`prompt_documents.py` first; `completion.py` answers `textDocument/completion` in them, from `workspace_names.py`. Not
here: what mentions stand for in a run (`session/mentioned.py`).
"""
