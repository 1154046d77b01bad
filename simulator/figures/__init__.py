"""Figures of a run with intervals, and the laws that they must obey."""
