"""Means and intervals from batches and repeats, shared by all predictions and measurements.

    student.py     quantiles of Student's t distribution
    series.py      warm-up of a series (MSER-5), correlation of neighbours, what that does to a variance
    batches.py     ratios of two sums from batches of one run, in their order; means of independent values
    groups.py      means from groups of unequal sizes that do not depend on each other
    repeats.py     ratios and quantiles from the batches of several runs

Simulations, calibration, fitting, learning and load tests use them. What a load test needs is in ``repeats``,
which does without scipy: starting a load should not wait for its import. So there are two quantiles of
Student's t (see ``student``), and three ways to treat the correlation of neighbouring batches:

- ``batches`` takes all correlations of a first-order autoregressive process, (1 + r) / (1 - r). Its batches
  are 20 and more of one run, so that r says something about longer distances, too.
- ``repeats`` takes the correlation of neighbours alone, 1 + 2 r. A real run may have few batches, of which r
  is hardly known, and they are a second or longer: those further apart hardly depend on each other.
- ``groups`` widens nothing: its groups are long, and their number decides when an exploration may end.
"""
