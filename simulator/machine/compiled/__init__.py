"""Compiled engine, which users wait for: state in arrays, compiled to machine code."""
