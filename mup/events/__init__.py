"""The event log: what happened in a service, when, and at what CPU cost.

The format is in docs/reference/event-log.md.

What writes (``writer``, ``segments``, ``settings``, ``sites``, ``ids``, ``record``) runs inside services and
loads little.
``reader`` needs numpy and is imported by tools only.
"""
