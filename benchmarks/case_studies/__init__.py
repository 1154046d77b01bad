"""The four case studies of the thesis: predicted from one user, then run for real, step by step."""
