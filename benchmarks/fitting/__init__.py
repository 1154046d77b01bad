"""Fitting models to measurements: the tables of Woodside's paper, and how often intervals hold."""
