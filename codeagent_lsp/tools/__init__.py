"""The tools that the agent's model can call, one folder for each feature; `catalogue.py` lists them all."""
