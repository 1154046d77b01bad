"""The engine that shows what the compiled one should do, on SimPy: a hundred times slower, and readable."""
