"""Workers, which run endpoints: processes, threads, or tasks of an event loop."""
