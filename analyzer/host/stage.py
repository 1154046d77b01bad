"""Process in which a measurement of the host is made.

In one of its own with a single thread and little in memory (``python -m analyzer.host.stage``): forking is
safe there, and no foreign thread pools and garbage are measured along.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import msgspec

from mup.errors import DeploymentError

__all__ = ["measure"]

GRACE_SECONDS = 60.0
"""For starting Python on a machine that is full."""


def measure(name: str, seconds: float, **arguments: Any) -> bytes:
    """Run one measurement in a process of its own.

    Args:
        name: ``ring``, or one of ``analyzer.host.costs.MEASUREMENTS``.
        seconds: How long it should take, about.
        arguments: Of the measurement.

    Returns:
        Its result as JSON.

    Raises:
        DeploymentError: It failed, or did not end.
    """
    command = [sys.executable, "-P", "-m", __name__, name, json.dumps({"seconds": seconds, **arguments})]
    try:
        done = subprocess.run(  # noqa: S603  (our own module)
            command, check=False, capture_output=True, timeout=seconds * 4 + GRACE_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise DeploymentError(f"the measurement {name!r} of this machine did not end") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
        raise DeploymentError(f"the measurement {name!r} of this machine failed: {reason[0]}")
    return done.stdout


def _main(name: str, arguments: dict[str, Any]) -> None:
    from analyzer.host.costs import MEASUREMENTS  # noqa: PLC0415  (the parent does not need them)
    from analyzer.host.ring import RingPlan, run_ring  # noqa: PLC0415

    if name == "ring":
        plan = RingPlan.for_cores(arguments["cores"], arguments["seconds"])
        result: Any = run_ring(plan)
    else:
        result = MEASUREMENTS[name](arguments["seconds"])
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    _main(sys.argv[1], json.loads(sys.argv[2]))
