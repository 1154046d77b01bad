"""Event logs in, calibrated models out: exploration, run directories, path matching, calibration."""
