"""Commands that learn numbers and models from measurements."""
