"""Measurements under known loads and configurations in, parameters of a model out, and how sure they are.

Follows M. Woodside, "The Relationship of Performance Models to Data" (SIPEW 2008);
docs/explanation/fitting.md says where it departs from it.

From measurements and a model: ``data``, ``covariance``, ``forward``, ``regression``, ``correction`` (by
simulation), ``confidence``, ``predictions``, ``structures`` (F test), ``design``, ``report``; over time:
``states``, ``noise``, ``tracking``, ``track_report``.
"""
