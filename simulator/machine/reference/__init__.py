"""Reference engine on SimPy, which defines what the compiled one does: readable, 100 times slower."""
