"""What is answered by several simulations? Scenarios against a baseline, saturation, scaling, rehearsals."""
