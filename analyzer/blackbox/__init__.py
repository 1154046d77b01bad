"""A URL in, a queueing station out: load injection, inference, validation (see ``experiment``)."""
