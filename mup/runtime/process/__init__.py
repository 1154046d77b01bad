"""What every process of a service does: log, import classes, choose an event loop and a core, be debugged."""
