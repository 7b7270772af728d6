"""Tests of the sandbox server."""
