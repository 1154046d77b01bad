"""Tables, charts and sentences that several commands print."""
