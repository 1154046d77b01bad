"""AcmeAir: an airline that sells flights, in two services."""
