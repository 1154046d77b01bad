"""Queue lengths over time -> models: ``traces`` (the data), and one module per kind of model."""
