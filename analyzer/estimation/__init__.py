"""Observations of one station -> mean service demands: estimators, baselines, tracking over time."""
