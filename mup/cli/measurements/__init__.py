"""Commands that measure: the machine, one user, real load, a service behind a URL."""
