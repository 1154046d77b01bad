"""Work that a speed monitor times: a bit of each kind that services do.

What slows a machine down does not slow all work alike. A loop whose data fit the innermost cache suffers most
from a stranger on the other hyper-thread of its core, and does not notice one who uses the memory; objects
that lie scattered do. Calls of the operating system lie in between, as services do that are mostly framework:
their processor time follows equal parts of the four kinds here better than any one of them
(``benchmarks/sampled_work.py``).
"""

from __future__ import annotations

import json
import socket

from mup.workload.speed import ReferenceWork

__all__ = ["SampledWork"]

ITERATIONS = 1250
STEPS = 55
MESSAGES = 1
ROUND_TRIPS = 27
"""Of each kind in half a unit: some 60 us of each on a processor of 2024."""

HEAD = (
    b"POST /orders HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\n"
    b"Content-Length: 512\r\nAccept: */*\r\nUser-Agent: client\r\nX-Request-Id: 12345\r\n\r\n"
)
BODY = json.dumps(
    {"id": 17, "name": "x" * 40, "items": [{"k": i, "v": i * 1.5, "s": "abc"} for i in range(12)]}
).encode()


class SampledWork:
    """Arithmetic, objects, texts and sockets."""

    def __init__(self) -> None:
        self._objects = ReferenceWork()
        self._here, self._there = socket.socketpair()

    def half_unit(self) -> int:
        """Do half a unit of work; the result keeps anything from being left out."""
        return self.arithmetic() + self.objects() + self.texts() + self.sockets()

    def arithmetic(self) -> int:
        """Count in a loop."""
        total = 0
        for number in range(ITERATIONS):
            total += number & 3
        return total

    def objects(self) -> int:
        """Visit objects that lie scattered in memory."""
        return self._objects.steps(STEPS)

    def texts(self) -> int:
        """Take a request apart, and write its body anew."""
        total = 0
        for _ in range(MESSAGES):
            first, *lines = HEAD.decode("latin-1").split("\r\n")
            headers = {}
            for line in lines:
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            total += len(first) + len(headers) + len(json.dumps(json.loads(BODY)))
        return total

    def sockets(self) -> int:
        """Send something to oneself through the operating system."""
        total = 0
        for _ in range(ROUND_TRIPS):
            self._here.send(BODY)
            total += len(self._there.recv(len(BODY)))
        return total

    def close(self) -> None:
        """Close the sockets."""
        self._here.close()
        self._there.close()
