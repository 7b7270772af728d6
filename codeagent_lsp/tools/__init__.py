"""The tools of the agent; which there are: `catalogue.py`."""
