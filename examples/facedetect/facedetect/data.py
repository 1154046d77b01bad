"""The pictures of the storage: the files of a folder."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "pictures"


def fill(database: Any) -> None:
    """Fill the database; called by mup with a pymongo database when the project starts."""
    database.pictures.delete_many({})
    database.pictures.insert_many(pictures())


def pictures() -> list[dict[str, str]]:
    """Return all pictures, by the name of their file."""
    return [
        {"_id": file.stem, "base64": base64.b64encode(file.read_bytes()).decode()}
        for file in sorted(FOLDER.glob("*.jpg"))
    ]
