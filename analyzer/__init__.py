"""From code and observations to models: static analysis, calibration, estimation, learning."""
