"""What happens to an upload: a table of handlers by kind, steps as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from media import names
from media.store import Item
from mup import Communication, MupFuture

Result = dict[str, Any]
Handler = Callable[[Communication, Item], Result]


def _thumbnails(comm: Communication, item: Item) -> list[MupFuture]:
    return [
        comm.call(names.TRANSCODER, names.THUMBNAIL, {"key": item["key"], "width": width})
        for width in names.SIZES
    ]


def image(comm: Communication, item: Item) -> Result:
    """Make all thumbnails at once."""
    started = _thumbnails(comm, item)
    return {"thumbnails": [future.get()["key"] for future in started]}


def _transcoded(comm: Communication, item: Item, kind: str) -> dict[str, MupFuture]:
    return {
        form: comm.call(names.TRANSCODER, names.TRANSCODE, {"key": item["key"], "format": form})
        for form in names.FORMATS[kind]
    }


def video(comm: Communication, item: Item) -> Result:
    """Transcode into all formats, and take a still meanwhile."""
    running = _transcoded(comm, item, "video")
    still = comm.call(names.TRANSCODER, names.THUMBNAIL, {"key": item["key"], "width": names.SIZES[1]}).get()
    return {"still": still["key"], "files": {form: future.get()["key"] for form, future in running.items()}}


def audio(comm: Communication, item: Item) -> Result:
    """Transcode into the one format there is."""
    running = _transcoded(comm, item, "audio")
    return {"files": {form: future.get()["key"] for form, future in running.items()}}


def document(comm: Communication, item: Item) -> Result:
    """Nothing to be done: it is served as it is."""
    return {"files": {"pdf": item["key"]}}


HANDLERS: dict[str, Handler] = {
    "image": image,
    "video": video,
    "audio": audio,
    "document": document,
}


def process(comm: Communication, item: Item) -> Result | None:
    """Do what an item's kind asks for; None if the kind is not known."""
    handler = HANDLERS.get(item["kind"])
    return handler(comm, item) if handler is not None else None


def compose(*steps: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function that does one step after the other."""

    def composed(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return composed


def _title(item: Item) -> dict[str, Any]:
    return {**item, "title": item.get("title") or item["key"].rsplit("/", 1)[-1]}


def _public(item: Item) -> dict[str, Any]:
    return {key: value for key, value in item.items() if not key.startswith("_")}


presented = compose(_title, _public)
