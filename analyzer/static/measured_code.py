"""What an event log is of: the code behind an endpoint or a scenario, and the runtime of its service.

A mark is the text that a log keeps of that: ``CODE@RUNTIME`` of an endpoint, ``CODE~REST`` of a scenario,
where REST is the hash of its code without the think times that the source states. A log of other think times
shows the same work, and a model takes think times from the source. Logs of older versions have CODE alone.
"""

from __future__ import annotations

from typing import NamedTuple

from analyzer.static.application import Application

__all__ = ["difference", "fingerprints"]


class _Mark(NamedTuple):
    code: str
    rest: str
    runtime: str

    @classmethod
    def of(cls, text: str) -> _Mark:
        text, _, runtime = text.partition("@")
        code, _, rest = text.partition("~")
        return cls(code, rest, runtime)


def fingerprints(application: Application) -> dict[str, str]:
    """Return what a log keeps of every endpoint and scenario: its mark, by the label the log uses."""
    found = {
        endpoint.label: f"{endpoint.fingerprint}@{service.runtime}"
        for service in application.services
        for endpoint in service.endpoints
    }
    found.update(
        {f"{c.name}.scenario": f"{c.fingerprint}~{c.without_think_times}" for c in application.clients}
    )
    return found


def difference(recorded: str, current: str) -> str:
    """Return why what was measured is not what there is now; "" if it is.

    Args:
        recorded: Mark of what was measured.
        current: Mark of the source as it is now.
    """
    was, now = _Mark.of(recorded), _Mark.of(current)
    same = was.rest == now.rest if was.rest and now.rest else was.code == now.code
    if not same:
        return "changed since the log was written"
    if was.runtime and now.runtime and was.runtime != now.runtime:
        return f"ran in the runtime {was.runtime} when the log was written, now it is {now.runtime}"
    return ""
