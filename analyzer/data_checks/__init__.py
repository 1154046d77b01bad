"""Checks of data before anything is learned from them: laws, stationarity, clocks, numbers of samples."""
