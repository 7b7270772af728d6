"""Several attempts at one task: runs from the same unsaved text, of which the best is proposed.

`attempting.py` first. Not here: what an attempt does, which is a run (`run.py`).
"""
