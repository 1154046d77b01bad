"""How a model is run for its figures: once for long, or many times anew."""
