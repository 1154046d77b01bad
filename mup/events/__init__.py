"""The event log: what happened in a service, when, and at what CPU cost.

The format is in docs/reference/event-log.md.

Writers (``writer``, ``sites``, ``ids``, ``record``) need the standard library only: they run inside services.
``reader`` needs numpy and is imported by tools only.
"""
