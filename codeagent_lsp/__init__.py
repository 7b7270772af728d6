"""A coding agent that speaks the Language Server Protocol, and the Agent Client Protocol by an adapter."""

__version__ = "0.1.0"
