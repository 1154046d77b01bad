"""Many models of one structure: what they have in common, and what differs."""
