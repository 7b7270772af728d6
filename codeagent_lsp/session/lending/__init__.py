"""The editor lent to another agent: its run, and the tools that it gets."""
