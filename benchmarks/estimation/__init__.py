"""How good are the demand estimators? Sampler of the paper's system, and the figures of the paper."""
