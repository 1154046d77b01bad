"""Fill a database.

``python -m mup.databases.load`` reads ``{"uri", "target", "source"}`` from standard input, imports
``module:function`` from the source folder, and calls it with a ``pymongo`` database. It is a process of its
own, so that neither the user's modules nor their prints end up in the launcher. A failure is one JSON line
``{"error"}`` on standard output.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any

import pymongo

from mup.databases.address import database_of
from mup.databases.mongo import client_options


def main() -> None:
    """Fill one database."""
    parent = os.getppid()
    text = sys.stdin.read()
    if not text:
        return  # who started this process has gone
    config = json.loads(text)
    answer = os.fdopen(os.dup(1), "w")
    # What the user's function prints is for people.
    os.dup2(2, 1)
    error = _fill(config["uri"], config["target"], config["source"], parent)
    if error:
        answer.write(json.dumps({"error": error}) + "\n")
    for stream in (answer, sys.stdout, sys.stderr):
        stream.flush()
    # PyMongo's monitor threads would hold the end of the interpreter up by half a second.
    os._exit(0)


def _fill(uri: str, target: str, source: str, parent: int) -> str:
    module, _, function = target.partition(":")
    sys.path.insert(0, source)
    try:
        fill = getattr(importlib.import_module(module), function)
    except Exception as error:  # noqa: BLE001 - the user's module may raise anything
        return f"cannot import {target!r} from {source}: {type(error).__name__}: {error}"
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(uri, **client_options(uri))
    try:
        fill(client[database_of(uri)])
    except Exception as error:  # noqa: BLE001
        if os.getppid() != parent:
            # Its database ended with who started both: no mistake of the function.
            os._exit(1)
        traceback.print_exc()
        return f"{target} failed: {type(error).__name__}: {error}"
    finally:
        client.close()
    return ""


if __name__ == "__main__":
    main()
