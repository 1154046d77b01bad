"""How does annotated Python become machine code when mup is installed, and how is that called?

A few hot functions (the simulation engine, fluids, likelihoods) are written in a small, statically typed
part of Python. ``subset`` reads them, ``translation`` and ``library`` write them as C, ``building`` has them
compiled, ``loading`` finds what was compiled, and ``binding`` calls it.
"""
