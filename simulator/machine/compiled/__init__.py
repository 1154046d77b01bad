"""The engine that users wait for: state in arrays, compiled to machine code."""
