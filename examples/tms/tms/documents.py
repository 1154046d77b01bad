"""Write documents as JSON that people can read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mup import Communication

JSON = {"Content-Type": "application/json"}


def respond_pretty(comm: Communication, documents: Iterable[Mapping[str, Any]]) -> None:
    """Answer with a list of documents, indented.

    Each is written as text and read again, one by one: the system this is modelled on does so, and it is a
    part of what its lists cost.
    """
    collected = [json.loads(json.dumps(document)) for document in documents]
    comm.respond(json.dumps(collected, indent=2), headers=JSON)
