"""Users of some URLs, one thread each: ``python visitor.py URL...``.

Prints ``[asked, began, ended, status, answer]`` per request.

On its own, because it runs on a machine of its own. Ends when it is killed.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

USERS = ("Gate", "Gate", "Door", "Door")
PAUSE = 0.02
_one_at_a_time = threading.Lock()


def visit(name: str, url: str) -> None:
    """Ask again and again; status 0 = no answer."""
    parts = urlsplit(url)
    while True:
        began, status, answer = time.monotonic(), 0, ""
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        try:
            connection.request("GET", parts.path)
            response = connection.getresponse()
            status, answer = response.status, response.read().decode()
        except (OSError, HTTPException) as error:
            answer = repr(error)
        connection.close()
        line = json.dumps([f"{name}{parts.path}", began, time.monotonic(), status, answer])
        with _one_at_a_time:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        time.sleep(PAUSE)


if __name__ == "__main__":
    for who, where in zip(USERS, sys.argv[1:], strict=True):
        threading.Thread(target=visit, args=(who, where)).start()
