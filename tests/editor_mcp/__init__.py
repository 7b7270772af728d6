"""Tests of the editor lent to other agents."""
