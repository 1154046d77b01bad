"""The documentation and the completion of commands."""
