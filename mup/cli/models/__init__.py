"""Commands that derive models from source, and show, compare and convert them."""
