"""The accuracy test bed: generated services, predicted from one user, then run for real."""
