"""What does a run say? Figures with intervals, and the laws that they must obey."""
