"""The registry: which replicas of a service are alive, and where the databases are.

It runs alone (``python -m mup_registry``), speaks JSON over HTTP (docs/reference/registry.md) and knows
nothing of models.
"""
