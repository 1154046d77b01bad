"""Demand estimators on the paper's system: its sampler, and the figures of the paper."""
