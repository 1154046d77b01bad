"""The command line: one module per command, each importing what it needs only when it runs."""
