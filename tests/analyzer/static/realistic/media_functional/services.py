"""The services of the media library; endpoints put functions together."""

from __future__ import annotations

from itertools import islice

from media import names
from media.pipeline import presented, process
from media.store import find_item, items_of, related, save, signed_url, start_tags

from mup import EP, MS, Communication


def not_found(comm: Communication, what: str) -> None:
    """Answer that there is no such thing."""
    comm.respond({"error": f"no {what}"}, status=404)


class Library(MS):
    """What clients talk to."""

    pool_size = 6

    @EP("/item/")
    def item(self, comm: Communication) -> None:
        item = find_item(comm, comm.params["id"])
        if item is None:
            not_found(comm, "item")
            return
        tags = start_tags(comm, item)
        url = signed_url(comm, item["key"])
        similar = related(comm, item) if comm.params.get("related", "yes") == "yes" else ()
        comm.respond(
            presented(item)
            | {
                "url": url,
                "related": [presented(i) for i in similar],
                "tags": [row["tag"] for row in tags.get()],
            }
        )

    @EP("/process/")
    def process(self, comm: Communication) -> None:
        item = find_item(comm, comm.params["id"])
        if item is None:
            not_found(comm, "item")
            return
        result = process(comm, item)
        if result is None:
            comm.respond({"error": f"cannot handle {item['kind']}"}, status=415)
            return
        save(comm, item["_id"], **result)
        comm.respond(result)

    @EP("/album/")
    def album(self, comm: Communication) -> None:
        owner, size = comm.params["owner"], int(comm.params.get("size", 10))
        items = items_of(comm, owner, kind="image")
        links = {item["_id"]: signed_url(comm, item["key"]) for item in islice(items, size)}
        comm.respond({"items": [presented(item) for item in items], "links": links})

    @EP("/export/")
    def export(self, comm: Communication) -> None:
        pages = []
        cursor = comm.params.get("from")
        while True:
            answer = comm.call(names.STORE, names.BLOB, {"after": cursor}).get()
            pages += answer["keys"]
            if not (cursor := answer.get("next")):
                break
        comm.respond({"keys": pages})


class Store(MS):
    """Blobs."""

    pool_size = 16

    @EP(f"{names.API}/blob/")
    def blob(self, comm: Communication) -> None:
        after = comm.params.get("after")
        keys = [row["key"] for row in comm.query("blobs", "list", "keys", {"after": after}).get()]
        comm.respond({"keys": keys, "next": keys[-1] if len(keys) == 100 else None})

    @EP(names.SIGN)
    def sign(self, comm: Communication) -> None:
        comm.respond({"url": f"https://blobs/{comm.params['key']}?s={hash(comm.params['key'])}"})


class Transcoder(MS):
    """Changes formats."""

    pool_size = 2

    @EP(names.TRANSCODE)
    def transcode(self, comm: Communication) -> None:
        comm.respond({"key": f"{comm.params['key']}.{comm.params['format']}"})

    @EP(names.THUMBNAIL)
    def thumbnail(self, comm: Communication) -> None:
        comm.respond({"key": f"{comm.params['key']}@{comm.params['width']}"})


class Search(MS):
    """Finds similar things."""

    @EP(names.INDEX)
    def index(self, comm: Communication) -> None:
        find_item(comm, comm.params["item"])
        comm.respond(status=204)

    @EP("/v1/similar/")
    def similar(self, comm: Communication) -> None:
        rows = comm.query("index", "neighbours", "vectors", {"item": comm.params["like"]}).get()
        comm.respond({"items": rows[:5]})
