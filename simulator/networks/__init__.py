"""Closed queueing networks, and layered ones with their queues written out: what learning fits to traces."""
