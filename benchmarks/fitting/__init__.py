"""Fitting models to measurements: the tables of Woodside's paper, how often intervals hold, and tracking."""
