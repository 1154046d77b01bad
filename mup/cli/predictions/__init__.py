"""Commands that predict: simulations, what-ifs, plans, and predictions beside reality."""
