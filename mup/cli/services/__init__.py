"""Commands and helpers that make, run and look at the services of a project."""
