"""Measurements from a Prometheus server, as the tables that ``mup estimate`` and ``mup fit`` read."""
