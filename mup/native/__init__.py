"""Annotated Python compiled to machine code when mup is installed, and calls of it.

A few hot functions (the simulation engine, fluids, likelihoods) are written in a small, statically typed
part of Python. ``subset`` reads them, ``translation`` and ``library`` write them as C, ``building`` has them
compiled, ``loading`` finds what was compiled, and ``binding`` calls it.
"""
