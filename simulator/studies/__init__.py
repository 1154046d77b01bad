"""Studies of several simulations: scenarios against a baseline, saturation, scaling, rehearsals."""
