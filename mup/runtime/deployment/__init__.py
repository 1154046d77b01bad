"""Replicas and registry of a project: started, registered, stopped."""
