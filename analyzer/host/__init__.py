"""Hosts, measured: what a machine adds to the work of the services on it, and how its scheduler behaves."""
