"""A coding agent that speaks only the Language Server Protocol."""

__version__ = "0.1.0"
