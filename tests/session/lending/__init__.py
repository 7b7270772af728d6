"""Tests of the runs of other agents."""
